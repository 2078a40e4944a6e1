"""The files of a segment's folder."""

from pathlib import Path

import numpy as np
import pytest

from mrag_cli.ground.files import digest_of
from mrag_cli.parts.store.disk import Disk
from mrag_cli.parts.store.folder_writer import (
    FolderWriter,
    RecordsWriter,
    as_bytes,
    order_arrays,
    page_arrays,
)
from mrag_cli.parts.store.layout import DOCUMENTS, MARKERS, UNITS


def test_a_file_is_remembered_with_its_size_and_digest(tmp_path: Path) -> None:
    """What was written is what the manifest will say."""
    writer = FolderWriter(Disk(), tmp_path / "1")
    writer.write("vectors", b"abc" * 1000)
    path = tmp_path / "1" / "vectors"
    assert path.read_bytes() == b"abc" * 1000
    assert writer.files["vectors"].size == 3000
    assert writer.files["vectors"].sha256 == digest_of(path)


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    """A segment's file is written once."""
    writer = FolderWriter(Disk(), tmp_path / "1")
    writer.write("vectors", b"abc")
    with pytest.raises(FileExistsError):
        writer.write("vectors", b"abd")


def test_the_order_of_documents_and_their_places_in_it() -> None:
    """`order` lists rows by ascending id, `ranks` each row's place; code points decide."""
    found = dict(order_arrays(["b", "é", "a", "\U0001f600", "\uffee"]))
    assert found["documents.order"].tolist() == [2, 0, 1, 4, 3]
    assert found["documents.ranks"].tolist() == [1, 2, 0, 4, 3]
    assert [name for name, _ in order_arrays([])] == ["documents.order", "documents.ranks"]


def test_a_page_leads_to_its_markers() -> None:
    """Hashes ascend, rows ascend within a hash, and markers without a page are in no table."""
    pages = np.array([7, 0, 5, 7, 1 << 63, 0, 5], np.uint64)
    found = dict(page_arrays(pages))
    assert found["markers.pages"].tolist() == pages.tolist()
    assert found["pages.hashes"].tolist() == [5, 5, 7, 7, 1 << 63]
    assert found["pages.rows"].tolist() == [2, 6, 0, 3, 4]


def test_records_are_found_where_they_start(tmp_path: Path) -> None:
    """Lines added one by one or copied together get the same offsets."""
    target = FolderWriter(Disk(), tmp_path / "1")
    records = RecordsWriter(target)
    records.add(UNITS, [b"one\n", b"three\n"])
    records.add_together(UNITS, b"xx\nyyyy\n", np.array([100, 103, 108], np.uint64))
    assert records.rows(UNITS) == 4
    assert (records.rows(DOCUMENTS), records.rows(MARKERS)) == (0, 0)
    records.close()
    offsets = dict(records.arrays())
    assert list(offsets["units.offsets"]) == [0, 4, 10, 13, 18]
    assert list(offsets["markers.offsets"]) == [0]
    assert (tmp_path / "1" / "units.jsonl").read_bytes() == b"one\nthree\nxx\nyyyy\n"
    assert target.files["units.jsonl"].size == 18


def test_the_bytes_of_an_array_are_its_own() -> None:
    """No copy is made, of an empty array neither."""
    values = np.arange(3, dtype="<u4")
    assert bytes(as_bytes(values)) == values.tobytes()
    assert len(as_bytes(np.empty((0, 4), np.float32))) == 0
