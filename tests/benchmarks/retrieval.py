"""What the extractive default finds beside windows of 128 tokens.

::

    python tests/benchmarks/retrieval.py FOLDER
    python tests/benchmarks/retrieval.py FOLDER --half second

For every JSONL file of a folder in LongBench's shape (``input``, ``context``, ``answers``, ``evidence``), one
index for each document, BM25, budgets of 128, 384 and 640 tokens: answer recall (H) and evidence recall (E),
through the same stages as `mrag tag | mrag extract | mrag validate | mrag index` and `mrag query`. Under the
table stand the bars that the default must reach; one that is missed makes the exit code 1. ``--half`` takes
the first or second half of each file's questions, for choosing on one and confirming on the other.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_cli.parts.extractive import markers
from mrag_cli.parts.measures import answer_recall, evidence_recall
from mrag_cli.parts.sources import Source
from mrag_cli.parts.store.manifest import LexicalSettings
from mrag_cli.parts.store.segment_writer import SegmentSettings
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.parts.validation_report import Summary
from mrag_cli.records.models import DocumentGroup
from mrag_cli.stages.chunk import ChunkSettings, chunk
from mrag_cli.stages.index import IndexSettings, build_index
from mrag_cli.stages.query import Query, QuerySettings
from mrag_cli.stages.tag import TagSettings, tag
from mrag_cli.stages.validate import ValidateSettings, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mrag_cli.records.models import StreamPart

BUDGETS = (128, 384, 640)
LEAST_GAIN = {"hotpotqa": 1.25, "musique": 1.25, "2wiki": 1.2, "covidqa": 1.1}
"""The least ratio of evidence recall at the smallest budget, by file."""


class _Silent:
    def notice(self, message: str) -> None:
        """Ignore it."""

    def failed(self, name: str, reason: str) -> None:
        """Stop: a benchmark with a document missing measures something else."""
        raise RuntimeError(f"{name}: {reason}")


def _extractive(source: Source) -> Iterator[StreamPart]:
    """Yield a document with the markers that a pipeline without a model gives it."""
    for part in validate(_marked(source), ValidateSettings(), _Silent(), Summary()):
        if isinstance(part, DocumentGroup) and any(marker.origin == "fallback" for marker in part.markers):
            raise RuntimeError(f"{source.doc}: validation had to repair what the extractor left out")
        yield part


def _marked(source: Source) -> Iterator[StreamPart]:
    for part in tag([source], TagSettings(), _Silent()):
        yield replace(part, markers=markers(part)) if isinstance(part, DocumentGroup) else part


def _windows(source: Source) -> Iterator[StreamPart]:
    return chunk([source], ChunkSettings("fixed", 128, 0), _Silent())


SYSTEMS: dict[str, Callable[[Source], Iterator[StreamPart]]] = {
    "128-token windows": _windows,
    "mrag": _extractive,
}

Row = list[float | None]


@dataclass(frozen=True, slots=True)
class Result:
    """Mean recalls of a system on a file, one for each budget; None where the measure never applies."""

    answers: Row
    evidence: Row


def measured(questions: Sequence[dict[str, Any]], system: Callable[[Source], Iterator[StreamPart]]) -> Result:
    """Ask each question of an index of its own context alone."""
    answers: list[list[float]] = [[] for _ in BUDGETS]
    evidence: list[list[float]] = [[] for _ in BUDGETS]
    by_context: dict[str, list[dict[str, Any]]] = {}
    for question in questions:
        by_context.setdefault(question["context"], []).append(question)
    for context, asked in by_context.items():
        # lines as `mrag tag` reads them
        text = context.replace("\r\n", "\n").replace("\r", "\n")
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder) / "kb"
            settings = IndexSettings(SegmentSettings(LexicalSettings(), derive_pivot=True))
            build_index(system(Source(asked[0]["_id"], text)), directory, settings, _Silent())
            snapshot = Snapshot.open(directory)
            for place, budget in enumerate(BUDGETS):
                query = Query(snapshot, QuerySettings(budget, "bm25"), _no_vectors)
                for question in asked:
                    packed = query.answer(question["input"]).packed
                    if packed.tokens > budget:
                        raise RuntimeError(
                            f"{question['_id']}: {packed.tokens} tokens in a budget of {budget}"
                        )
                    for found, share in (
                        (answers, answer_recall(packed.context, question["answers"])),
                        (evidence, evidence_recall(packed.context, question.get("evidence") or [])),
                    ):
                        if share is not None:
                            found[place].append(share)
    return Result(_means(answers), _means(evidence))


def _no_vectors(question: str) -> Any:
    raise RuntimeError(f"BM25 needs no vector of {question!r}")


def _means(shares: Sequence[Sequence[float]]) -> Row:
    return [sum(found) / len(found) if found else None for found in shares]


def _macro(rows: Sequence[Row]) -> Row:
    there = [row for row in rows if None not in row]
    return _means([[row[place] or 0.0 for row in there] for place in range(len(BUDGETS))])


def _line(file: str, system: str, result: Result) -> str:
    cells = [f"{share:.3f}" if share is not None else "–" for share in result.answers + result.evidence]
    return f"| {file} | {system} | {' | '.join(cells)} |"


def missed(results: dict[str, dict[str, Result]]) -> Iterator[str]:
    """Yield the bars that were missed, by file."""
    for file, by_system in results.items():
        windows, mrag = (by_system[name].evidence for name in SYSTEMS)
        for place, (ours, theirs) in enumerate(zip(mrag, windows, strict=True)):
            if ours is None or theirs is None:
                continue
            least = LEAST_GAIN.get(file, 1.0) if place == 0 else 1.0
            if (place or file in LEAST_GAIN) and ours < least * theirs:
                yield f"{file} at {BUDGETS[place]}: E {ours:.3f} is not {least} times {theirs:.3f}"


def _questions(path: Path, half: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    middle = len(rows) // 2
    return {"first": rows[:middle], "second": rows[middle:], "all": rows}[half]


def main() -> int:
    """Print the table, then the bars."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=["first", "second", "all"], default="all")
    arguments = parser.parse_args()
    titles = [f"{measure}@{budget}" for measure in "HE" for budget in BUDGETS]
    sys.stdout.write(f"| file | system | {' | '.join(titles)} |\n|{'---|' * (len(titles) + 2)}\n")
    results: dict[str, dict[str, Result]] = {}
    for path in sorted(arguments.folder.glob("*.jsonl")):
        questions = _questions(path, arguments.half)
        results[path.stem] = {name: measured(questions, system) for name, system in SYSTEMS.items()}
        for name, result in results[path.stem].items():
            sys.stdout.write(_line(path.stem, name, result) + "\n")
        sys.stdout.flush()
    for name in SYSTEMS:
        mean = Result(
            _macro([by_system[name].answers for by_system in results.values()]),
            _macro([by_system[name].evidence for by_system in results.values()]),
        )
        sys.stdout.write(_line("mean", name, mean) + "\n")
    found = list(missed(results))
    sys.stdout.write("\n" + ("\n".join(f"missed: {bar}" for bar in found) or "all bars reached") + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
