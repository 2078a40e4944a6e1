from mrag_cli.parts.chop.cnm import Cnm
from mrag_cli.parts.chop.product import id_term


def test_ids_come_from_the_subject() -> None:
    """Each product that the subject lists has an id, the main one first; without a subject there is none."""
    cnm = Cnm("coffee machine", (), "Orla X10 (X10e)", 0.9, "Orla X10 (X10e)")
    assert cnm.ids == (id_term("Orla X10"), id_term("Orla X10e"))
    assert Cnm("coffee machine").ids == ()


def test_the_record_says_what_was_decided() -> None:
    """A marker's field has the CNM, the ids, the segment and the decision; null where a field is absent."""
    assert Cnm("kettle", ("kettle lid",), None, 0.5).record(segment=2, continued=True) == {
        "category": "kettle",
        "nouns": ["kettle lid"],
        "model": None,
        "confidence": 0.5,
        "id": [],
        "segment": 2,
        "continued": True,
    }
