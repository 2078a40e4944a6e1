from pathlib import Path

import pytest
from kb import ask, build, group, mrag

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.filters import Filters
from mrag_cli.parts.store.snapshot import Snapshot

GROUPS = [
    group("notes/a.md", [("lamp", "a")], {"year": 2026, "tags": ["x", "y"], "draft": True}),
    group("notes/b.md", [("lamp", "b")], {"year": 2025, "tags": "x", "draft": False}),
    group("other/c.md", [("lamp", "c")], {"year": "2026", "ratio": 0.5}),
    group("other/[d].md", [("lamp", "d")]),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four documents with meta of every kind."""
    directory = tmp_path_factory.mktemp("filters") / "kb"
    build(directory, GROUPS)
    return directory


CASES = [
    ([], [], "abcd"),
    (["notes/*"], [], "ab"),
    (["*.md"], [], "abcd"),
    (["notes/a.md", "other/c.md"], [], "ac"),
    (["NOTES/*"], [], ""),
    (["other/[[]d].md"], [], "d"),
    ([], ["year=2026"], "ac"),
    ([], ["tags=x"], "ab"),
    ([], ["tags = y"], "a"),
    ([], ["draft=true"], "a"),
    ([], ["ratio=0.5"], "c"),
    ([], ["year=2026", "tags=x"], "a"),
    (["other/*"], ["year=2026"], "c"),
    ([], ["absent="], ""),
]


@pytest.mark.parametrize(("globs", "where", "wanted"), CASES)
def test_filters(index: Path, globs: list[str], where: list[str], wanted: str) -> None:
    """One pattern of ids must match, and every meta value, a list's by any member."""
    found = ask(index, "lamp", filters=Filters.parse(globs, where), considered=1 if wanted else None)
    assert [hit.marker.value for hit in found.hits] == list(wanted[:1])
    found = ask(index, "lamp", filters=Filters.parse(globs, where))
    assert "".join(sorted(hit.marker.value for hit in found.hits)) == wanted


def test_no_filter_is_no_mask(index: Path) -> None:
    """Without filters no document is read."""
    assert Filters().masks(Snapshot.open(index)) is None


def test_a_filter_needs_a_value(index: Path) -> None:
    """A ``--where`` without ``=`` is a usage error."""
    with pytest.raises(UsageError, match="name=value is expected"):
        Filters.parse([], ["year"])
    assert mrag("query", index, "lamp", "--where", "year").returncode == 2
    assert mrag("query", index, "lamp", "--doc", "other/*", "--where", "year=2026").stdout == "c\n"
