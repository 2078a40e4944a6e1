"""Filters on documents: what passes, what the command line may say, and that they act before the top-k."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb import ask, build, group, update

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.filters import Filters
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion

META: dict[str, dict[str, Any]] = {
    "notes/a.md": {"year": 2024, "author": "Brack", "tags": ["ferry", "boats"]},
    "notes/deep/b.md": {"year": 2025, "draft": True, "share": 0.5},
    "other/[c].md": {"author": "Brack = Holm", "year": None},
    "d": {},
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments with a dead document and a document without markers."""
    directory = tmp_path_factory.mktemp("filters") / "kb"
    groups = [group(doc, [("lamp", f"lamp of {doc}")], meta) for doc, meta in META.items()]
    build(directory, [*groups[:2], group("gone", [("lamp", "dead")], {"year": 2024})])
    update(directory, [*groups[2:], Deletion("gone"), group("bare")])
    return directory


def passing(index: Path, globs: list[str], where: list[str]) -> set[str]:
    """Return the documents of the markers that pass."""
    snapshot = Snapshot.open(index)
    masks = Filters.parse(globs, where).masks(snapshot)
    assert masks is not None
    found = set()
    for segment, mask in zip(snapshot.segments, masks.by_segment, strict=True):
        assert mask is not None
        found |= {segment.marker(row).doc for row in mask.nonzero()[0].tolist()}
    return found


@pytest.mark.parametrize(
    ("globs", "docs"),
    [
        (["*"], set(META)),
        (["notes/*"], {"notes/a.md", "notes/deep/b.md"}),
        (["*/b.md", "d"], {"notes/deep/b.md", "d"}),
        (["?"], {"d"}),
        (["NOTES/*"], set()),
        (["other/[[]c].md"], {"other/[c].md"}),
        (["gone"], set()),
        (["bare"], set()),
        ([""], set()),
    ],
)
def test_globs_match_whole_ids(index: Path, globs: list[str], docs: set[str]) -> None:
    """One of the patterns must match, case and all; a dead document never passes."""
    assert passing(index, globs, []) == docs


@pytest.mark.parametrize(
    ("where", "docs"),
    [
        (["year=2024"], {"notes/a.md"}),
        ([" year = 2024 "], {"notes/a.md"}),
        (["author=Brack = Holm"], {"other/[c].md"}),
        (["tags=boats"], {"notes/a.md"}),
        (["tags=boats", "tags=ferry", "author=Brack"], {"notes/a.md"}),
        (["tags=boats", "year=2025"], set()),
        (["draft=true"], {"notes/deep/b.md"}),
        (["share=0.5"], {"notes/deep/b.md"}),
        (["unheard=1"], set()),
        (["unheard="], set()),
        (["year="], set()),
    ],
)
def test_every_where_must_hold(index: Path, where: list[str], docs: set[str]) -> None:
    """Numbers and truth values are written as JSON writes them; a list holds each of its members."""
    assert passing(index, [], where) == docs


def test_globs_and_where_must_both_hold(index: Path) -> None:
    """A document passes both kinds of filter."""
    assert passing(index, ["notes/*"], ["year=2025"]) == {"notes/deep/b.md"}


def test_no_filter_is_no_mask(index: Path) -> None:
    """Without filters nothing is read."""
    assert Filters.parse([], []).masks(Snapshot.open(index)) is None


@pytest.mark.parametrize("where", ["year", "", "year:2024", "=2024", " =x"])
def test_a_where_without_a_name_or_a_value_is_a_usage_error(where: str) -> None:
    """What is expected is said."""
    with pytest.raises(UsageError, match="name=value"):
        Filters.parse([], ["fine=1", where])


def test_filters_act_before_the_top_k(index: Path) -> None:
    """However few hits are considered, a filtered question finds what passes."""
    for doc in ("d", "notes/a.md", "other/[c].md"):
        where = Filters(globs=(doc.replace("[", "[[]"),))
        (hit,) = ask(index, "lamp", considered=1, filters=where).hits
        assert hit.marker.doc == doc


@given(st.lists(st.text(max_size=8), max_size=3), st.lists(st.text(max_size=8), max_size=3))
def test_any_text_is_a_filter_or_a_usage_error(globs: list[str], where: list[str]) -> None:
    """Nothing the command line says breaks the parsing."""
    try:
        filters = Filters.parse(globs, where)
    except UsageError:
        assert any(not text.partition("=")[0].strip() or "=" not in text for text in where)
    else:
        assert filters.globs == tuple(globs)
        assert len(filters.where) == len(where)
