"""A small data set, a system without an index, and cells, for the tests of `mrag eval`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mrag_cli.parts.evaluation.cells import Cell, PlanScores
from mrag_cli.parts.evaluation.datasets import Dataset, Question
from mrag_cli.parts.evaluation.ranking_metrics import MarkerWords
from mrag_cli.parts.evaluation.systems import Collection, Context, Found, OpenIndex, Plan, Spent, System
from mrag_cli.parts.packing import Evidence, Packed
from mrag_cli.parts.sources import Source
from mrag_cli.records.models import Document, DocumentGroup, Marker

HARBOUR = """# Harbour

The north quay was rebuilt in 1931 by Ida Marsh. Its cranes lift forty tonnes.

The ferry to Ostrey leaves at seven every morning from the east pier."""
MUSEUM = """# Museum

The lighthouse museum opens at nine. Admission is free for children under twelve.

Its oldest lamp was made in Brest and burned whale oil until 1884."""
ROWS: list[dict[str, Any]] = [
    {
        "_id": "quay",
        "input": "Who rebuilt the north quay?",
        "context": HARBOUR,
        "answers": ["Ida Marsh"],
        "evidence": ["The north quay was rebuilt in 1931 by Ida Marsh."],
    },
    {
        "_id": "ferry",
        "input": "When does the ferry to Ostrey leave?",
        "context": HARBOUR,
        "answers": ["seven", "at seven"],
        "evidence": ["The ferry to Ostrey leaves at seven every morning from the east pier."],
    },
    {
        "_id": "lamp",
        "input": "Where was the oldest lamp of the museum made?",
        "context": MUSEUM,
        "answers": ["Brest"],
        "evidence": ["Its oldest lamp was made in Brest and burned whale oil until 1884."],
    },
    {"_id": "free", "input": "Is the museum free for children?", "context": MUSEUM, "answers": ["yes"]},
]


def write_rows(path: Path, rows: Sequence[dict[str, Any]] = ROWS) -> Path:
    """Write rows as a data set."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def dataset(name: str = "town", documents: int = 2) -> Dataset:
    """Return a data set of one question about each of some documents."""
    texts = [
        f"Fact {number}: bird{number} sees lake{number} from hill{number}." for number in range(documents)
    ]
    sources = {f"d{number}": Source(f"d{number}", text) for number, text in enumerate(texts)}
    questions = tuple(
        Question(
            f"q{number}",
            f"Which fact is number {number}?",
            (f"fact {number}",),
            (texts[number],),
            doc=f"d{number}",
            names=(f"d{number}",),
        )
        for number in range(documents)
    )
    return Dataset(name, questions, sources, f"digest of {name}")


def packed(*texts: str) -> Packed:
    """Return a context of some texts of one token a word."""
    evidence = tuple(
        Evidence(rank, "d", (rank,), text, len(text.split()), len(text.split()) + 1)
        for rank, text in enumerate(texts, 1)
    )
    tokens = sum(one.cost for one in evidence) - bool(evidence)
    return Packed(evidence, tokens, {one.rank: "packed" for one in evidence}, "\n\n".join(texts))


class Everything:
    """A system that finds every document whole, and remembers what it was given and asked.

    Attributes:
        opened: the documents of each index.
        asked: the questions.
    """

    def __init__(
        self, name: str = "everything", *, docs: frozenset[str] | None = None, **others: Any
    ) -> None:
        self.opened: list[list[str]] = []
        self.asked: list[str] = []
        self._docs = docs
        self.system = System(name, {"name": name}, self._open, self._prepare, **others)

    def _prepare(self, contexts: Sequence[Context]) -> Spent:
        return Spent(seconds=1.0, documents=len(contexts))

    @contextmanager
    def _open(self, collection: Collection) -> Iterator[OpenIndex]:
        sources = [context.source for context in collection.contexts if context.source]
        self.opened.append([source.doc for source in sources])
        words = MarkerWords(collection.borders)
        groups = [
            DocumentGroup(
                Document(source.doc, "", source.doc, 0, 0),
                (),
                (Marker(source.doc, source.text, source.text, (), "llm", 5),),
            )
            for source in sources
        ]
        for group in groups:
            words.add(group)
        markers = tuple(marker for group in groups for marker in group.markers)

        def ask(question: str, plan: Plan) -> Found:
            self.asked.append(question)
            return Found(packed(*(marker.value for marker in markers)), markers[: plan.budget], 0.002)

        yield OpenIndex(ask, Spent(markers=len(markers)), words, self._docs)


def cell(dataset: str, system: str, scores: dict[str, dict[str, float]], **others: Any) -> Cell:
    """Return a cell of one plan."""
    plan = others.pop("plan", Plan("bm25", 128, "similarity"))
    repeats = others.pop("repeats", ())
    spent = others.pop("spent", Spent(seconds=2.0, documents=4, markers=8, keys={4: 8}, values={10: 8}))
    given = {"size": 0, **others}
    return Cell(dataset, system, spent=spent, scores=(PlanScores(plan, scores, repeats),), **given)
