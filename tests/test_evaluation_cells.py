"""Finished cells on the disk."""

from pathlib import Path

from mrag_cli.parts.evaluation.cells import Cell, PlanScores, WorkFolder
from mrag_cli.parts.evaluation.systems import Plan, Spent

CELL = Cell(
    dataset="set",
    system="mrag",
    size=None,
    spent=Spent(seconds=1.5, calls=2, dollars=None, keys={4: 1}, values={9: 2}),
    scores=(PlanScores(Plan("bm25", 128, "similarity"), {"answer_recall": {"q1": 1.0}}, (0.5, 0.25)),),
    unasked=1,
    ceiling=0.5,
)


def test_a_kept_cell_comes_back(tmp_path: Path) -> None:
    """What was kept is read as it was, for the same settings only."""
    work = WorkFolder(tmp_path / "work")
    assert work.get({"system": "mrag"}) is None
    work.keep({"system": "mrag", "size": 1}, CELL)
    assert work.get({"size": 1, "system": "mrag"}) == CELL
    assert work.get({"system": "mrag", "size": 2}) is None


def test_a_damaged_cell_counts_as_none(tmp_path: Path) -> None:
    """A file that was cut off or holds something else is measured again."""
    work = WorkFolder(tmp_path)
    work.keep({"system": "mrag"}, CELL)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for broken in (whole[:-20], b"{}", b"[]", b""):
        path.write_bytes(broken)
        assert work.get({"system": "mrag"}) is None
