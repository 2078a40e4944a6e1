from mrag_cli.parts.chop.families import mentions
from mrag_cli.parts.chop.product import id_term


def test_siblings_make_a_family() -> None:
    """Names with three or more siblings are found, with their variants, in order."""
    text = (
        "The Orla S8 and the Orla S9+ came after the Orla Note10. The Orla X20 Ultra 5G is new. See Table 4."
    )
    found = mentions(text)
    assert [mention.name for mention in found] == ["Orla S8", "Orla S9+", "Orla Note10", "Orla X20 Ultra 5G"]
    assert found[0].id == id_term("Orla S8")
    assert [mention.start for mention in found] == sorted(mention.start for mention in found)


def test_two_models_are_no_family() -> None:
    """Fewer than three siblings, and words that only stand before a number, give nothing."""
    assert mentions("The Orla S8 and the Orla S9. Chapter 1, Chapter 2, Chapter 3, Chapter 4.") == []


def test_others_products_are_left_out() -> None:
    """What the text calls compatible or an example is not its subject."""
    text = "The Orla S8, the Orla S9 and the Orla S10. It is compatible with the Orla S11."
    assert [mention.name for mention in mentions(text)] == ["Orla S8", "Orla S9", "Orla S10"]
