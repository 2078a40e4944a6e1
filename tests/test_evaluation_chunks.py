"""Chunks as markers."""

from mrag_cli.parts.cutting import Cut
from mrag_cli.parts.evaluation.chunks import chunked
from mrag_cli.parts.sources import Source
from mrag_cli.parts.tokens import count


def test_a_chunk_is_key_and_value_at_once() -> None:
    """Each cut is a unit with its span, and a marker with its own words, counted."""
    text = "One sentence. \nAnother one."
    group = chunked(Source("a", text, title="T"), [Cut(0, 15, 4), Cut(15, len(text), 3)], "semantic")
    assert [unit.text for unit in group.units] == ["One sentence. \n", "Another one."]
    assert [unit.span for unit in group.units] == [(0, 15), (15, 27)]
    first, second = group.markers
    assert (first.key, first.value, first.pointers, first.origin) == (
        first.value,
        "One sentence.",
        (1,),
        "semantic",
    )
    assert first.tokens == count("One sentence.")
    assert second.pointers == (2,)
    assert (group.document.units, group.document.title) == (2, "T")
