from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kb import Silent, build, files_of, group, ranking, settings

from mrag_cli.ground.errors import InputError, UsageError
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.records.models import Deletion, DocumentGroup, Foreign
from mrag_cli.stages.index import build_index


def test_an_empty_stream_is_an_empty_index(tmp_path: Path) -> None:
    """Nothing in, an index that finds nothing out."""
    manifest = build(tmp_path / "kb", [])
    assert manifest.segments == ()
    assert ranking(tmp_path / "kb", "lamp") == []


def test_an_index_is_not_replaced_by_accident(tmp_path: Path) -> None:
    """An index that is there stays, unless --overwrite replaces it in one commit."""
    build(tmp_path / "kb", [group("a", [("lamp", "one")])])
    with pytest.raises(UsageError, match="--overwrite replaces it"):
        build(tmp_path / "kb", [group("b", [("lamp", "two")])])
    overwriting = replace(settings(), overwrite=True)
    build_index([group("b", [("lamp", "two")])], tmp_path / "kb", overwriting, Silent())
    assert [value for _, _, value, _ in ranking(tmp_path / "kb", "lamp")] == ["two"]
    assert read_manifest(tmp_path / "kb").generation == 2
    assert len(files_of(tmp_path / "kb")) == 5


def test_notices(tmp_path: Path) -> None:
    """Documents without markers, and deletions, are told; unknown records are not."""
    told = Silent()
    bare = group("bare", [("lamp", "one")])
    without = DocumentGroup(bare.document, bare.units)
    parts = [without, Deletion("x"), Foreign(b'{"type":"note"}'), group("empty")]
    build_index(parts, tmp_path / "kb", settings(), told)
    assert len(told.notices) == 2
    assert "1 of 2 documents have no markers" in told.notices[0]
    assert "1 deletions left out" in told.notices[1]


def test_a_malformed_stream_leaves_no_index(tmp_path: Path) -> None:
    """An error in the middle of the stream leaves no index, and no files."""

    def parts() -> Iterator[DocumentGroup]:
        yield group("a", [("lamp", "one")])
        raise InputError("s", 2, "wrong")

    with pytest.raises(InputError):
        build_index(parts(), tmp_path / "kb", settings(), Silent())
    assert files_of(tmp_path / "kb") == set()
    build(tmp_path / "kb", [group("a", [("lamp", "one")])])


def test_documents_with_the_same_text(tmp_path: Path) -> None:
    """Two documents may say the same; both are found, in the order of their ids."""
    build(tmp_path / "kb", [group("b", [("lamp", "one")]), group("a", [("lamp", "one")])])
    assert [doc for doc, _, _, _ in ranking(tmp_path / "kb", "lamp")] == ["a", "b"]
