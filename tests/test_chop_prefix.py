from mrag_cli.parts.chop.cnm import Cnm
from mrag_cli.parts.chop.prefix import ID_REPEATS, header_of, key_of
from mrag_cli.parts.chop.product import id_term

CNM = Cnm("coffee machine", ("coffee machine filter",), "Orla X10", 0.9, "Orla X10")


def test_a_key_is_the_prefix_before_the_chunk() -> None:
    """Category, model, nouns and further headings come before the text, the ids behind it."""
    key = key_of(CNM, ("Care", "Filter"), "Rinse it.")
    ids = " ".join([id_term("Orla X10")] * ID_REPEATS)
    assert key == f"[coffee machine: Orla X10]\ncoffee machine filter\nCare\nRinse it.\n{ids}"


def test_without_a_cnm_the_key_is_the_chunk() -> None:
    """Nothing known adds nothing."""
    assert key_of(Cnm(), (), "Rinse it.") == "Rinse it."
    assert header_of(Cnm()) == ""


def test_the_header_names_what_is_known() -> None:
    """The line above packed values has category and model, or the one there is."""
    assert header_of(CNM) == "[coffee machine: Orla X10]"
    assert header_of(Cnm(model="Orla X10")) == "[Orla X10]"
