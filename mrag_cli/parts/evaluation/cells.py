"""Finished cells of an evaluation on the disk, so that a run that was killed goes on where it was.

A cell is what one system scored on one data set. Its file is named by a digest of everything its numbers
depend on, so that a cell is never taken for another.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import orjson

from mrag_cli.ground.files import replaced_on_success

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mrag_cli.parts.evaluation.systems import Plan, Spent

CELL_VERSION = 1
"""Raised whenever the same settings give other numbers."""


@dataclass(frozen=True, slots=True)
class PlanScores:
    """What one system scored on one data set by one plan.

    Attributes:
        plan: how the questions were answered.
        values: by measure, the value of each question it applies to, by the question's id.
        repeats: the mean F1 of each repeated generation; empty without a model.
    """

    plan: Plan
    values: Mapping[str, Mapping[str, float]]
    repeats: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """What one system scored on one data set.

    Attributes:
        dataset: its name.
        system: its name.
        size: documents of each index in the study of distractors; 0 elsewhere, None for all documents.
        spent: what its indexes took.
        scores: by plan.
        unasked: questions that could not be asked, because no index holds their document.
        ceiling: share of the questions with evidence for which some marker is relevant, by None where
            nothing is known.
    """

    dataset: str
    system: str
    size: int | None
    spent: Spent
    scores: tuple[PlanScores, ...]
    unasked: int = 0
    ceiling: float | None = None


class WorkFolder:
    """Keeps finished cells.

    Args:
        folder: made when the first cell is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, depends_on: Mapping[str, object]) -> Cell | None:
        """Return a kept cell, or None; a file that is damaged counts as none."""
        try:
            return _cell(orjson.loads(self._path(depends_on).read_bytes()))
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            return None

    def keep(self, depends_on: Mapping[str, object], cell: Cell) -> None:
        """Keep a cell.

        Raises:
            OSError: the folder cannot be written to.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with replaced_on_success(self._path(depends_on)) as file:
            file.write(orjson.dumps(asdict(cell), option=orjson.OPT_NON_STR_KEYS))

    def _path(self, depends_on: Mapping[str, object]) -> Path:
        frame = orjson.dumps([CELL_VERSION, dict(depends_on)], option=orjson.OPT_SORT_KEYS)
        return self.folder / f"{hashlib.sha256(frame).hexdigest()[:32]}.json"


def _cell(found: dict[str, Any]) -> Cell:
    from mrag_cli.parts.evaluation.systems import Plan, Spent

    spent = dict(found["spent"])
    for lengths in ("keys", "values"):
        spent[lengths] = {int(length): times for length, times in spent[lengths].items()}
    scores = tuple(
        PlanScores(Plan(**row["plan"]), row["values"], tuple(row["repeats"])) for row in found["scores"]
    )
    return Cell(**{**found, "spent": Spent(**spent), "scores": scores})
