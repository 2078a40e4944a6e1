"""Data sets and systems -> scores: ask every question of every system by every plan, and measure."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from mrag_cli.parts.evaluation.cells import Cell, PlanScores
from mrag_cli.parts.evaluation.ranking_metrics import ranking_scores
from mrag_cli.parts.evaluation.systems import Collection, Context, Spent
from mrag_cli.parts.measures import answer_recall, evidence_recall, f1
from mrag_cli.parts.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.evaluation.cells import WorkFolder
    from mrag_cli.parts.evaluation.datasets import Dataset, Question
    from mrag_cli.parts.evaluation.systems import Found, OpenIndex, Plan, System
    from mrag_cli.parts.packing import Packed

    Generate = Callable[[Sequence[tuple[str, Packed]]], Sequence[str | None]]

JOINED = "joined"
"""Id of the one document that all contexts are joined into."""


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """What is measured.

    Attributes:
        plans: how questions are answered; systems with an order of their own keep it.
        corpus: one index over all documents of a data set, rather than one for each document.
        joined: the documents are joined into a single one first, in an order that depends on their ids alone.
        cutoffs: the k's of Hit, MRR and NDCG, at most `DEEPEST`.
        sizes: documents of each index in the study of distractors, None for all; empty for no study.
        repeat: times an answer is generated, with a model.
        model: name of the model that answers, to tell kept cells apart; empty without one.
        code: digest of the code that measures, likewise.
    """

    plans: tuple[Plan, ...]
    corpus: bool = False
    joined: bool = False
    cutoffs: tuple[int, ...] = (1, 5, 10)
    sizes: tuple[int | None, ...] = ()
    repeat: int = 1
    model: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Machinery:
    """What an evaluation works with.

    Attributes:
        work: keeps finished cells; None keeps none.
        generate: answers questions from contexts, the given number of times over; None for no F1.
        advance: called with the number of questions that were further dealt with.
        reporter: told of questions that a system could not be asked.
    """

    work: WorkFolder | None
    generate: Callable[[int, Sequence[tuple[str, Packed]]], Sequence[str | None]] | None
    advance: Callable[[int], object]
    reporter: Reporter


def questions_to_ask(datasets: Sequence[Dataset], systems: Sequence[System], settings: EvalSettings) -> int:
    """Return how many questions an evaluation will deal with, for showing how far it is."""
    runs = 1 + len(settings.sizes)
    return runs * len(systems) * sum(len(dataset.questions) for dataset in datasets)


def evaluate(
    datasets: Sequence[Dataset], systems: Sequence[System], settings: EvalSettings, machinery: Machinery
) -> Iterator[Cell]:
    """Measure every system on every data set.

    Args:
        datasets: the questions and documents.
        systems: what is compared.
        settings: what is measured.
        machinery: what it works with.

    Yields:
        A cell for each data set and system, then those of the study of distractors; deterministic but for
        the seconds.

    Raises:
        ModelError, LimitReached: a model or embedder failed, or a limit was reached; finished cells are kept.
    """
    for dataset in datasets:
        for size in (0, *settings.sizes):
            if size and size > len(dataset.sources):
                machinery.reporter.notice(
                    f"{dataset.name} has {len(dataset.sources)} documents; the study of {size} leaves it out"
                )
                machinery.advance(len(systems) * len(dataset.questions))
                continue
            for system in systems:
                yield _kept_or_measured(dataset, system, size, settings, machinery)


def _kept_or_measured(
    dataset: Dataset, system: System, size: int | None, settings: EvalSettings, machinery: Machinery
) -> Cell:
    depends_on = {
        "dataset": [dataset.name, dataset.digest],
        "system": [system.name, dict(system.settings)],
        "plans": [asdict(plan) for plan in system.plans(settings.plans)],
        "corpus": [settings.corpus, settings.joined, size],
        "measures": [list(settings.cutoffs), settings.repeat, settings.model, settings.code],
    }
    found = machinery.work.get(depends_on) if machinery.work else None
    if found is None:
        found = _measured(dataset, system, size, settings, machinery)
        if machinery.work:
            machinery.work.keep(depends_on, found)
    else:
        machinery.advance(len(dataset.questions))
    if found.unasked:
        machinery.reporter.notice(
            f"{system.name}: no document for {found.unasked} of {len(dataset.questions)} questions of "
            f"{dataset.name}; they are not measured"
        )
    return found


class _Tally:
    """Collects what a system scores on a data set."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.values: dict[Plan, dict[str, dict[str, float]]] = {plan: {} for plan in plans}
        self.contexts: dict[Plan, list[tuple[Question, Packed]]] = {plan: [] for plan in plans}
        self.rankings: dict[Plan, dict[str, list[int]]] = {plan: {} for plan in plans}
        self.relevant: dict[str, set[int]] = {}

    def add(self, plan: Plan, question: Question, found: Found) -> None:
        context = found.packed.context
        self._put(plan, "answer_recall", question, answer_recall(context, question.answers))
        self._put(plan, "evidence_recall", question, evidence_recall(context, question.evidence))
        self._put(plan, "tokens", question, float(found.packed.tokens))
        self._put(plan, "milliseconds", question, 1000 * found.seconds)
        self.contexts[plan].append((question, found.packed))

    def _put(self, plan: Plan, measure: str, question: Question, value: float | None) -> None:
        if value is not None:
            self.values[plan].setdefault(measure, {})[question.id] = value

    def rank(self, cutoffs: Sequence[int]) -> None:
        """Measure the rankings."""
        for plan, rankings in self.rankings.items():
            for question, scores in ranking_scores(rankings, self.relevant, cutoffs).items():
                for measure, value in scores.items():
                    self.values[plan].setdefault(measure, {})[question] = value

    def generate(
        self,
        times: int,
        generate: Callable[[int, Sequence[tuple[str, Packed]]], Sequence[str | None]],
    ) -> dict[Plan, tuple[float, ...]]:
        """Have every question answered ``times`` over, measure F1, and return each repetition's mean."""
        asked = [
            (plan, question, packed)
            for plan, contexts in self.contexts.items()
            for question, packed in contexts
            if _answerable(question)
        ]
        scores: dict[Plan, list[dict[str, float]]] = {plan: [] for plan in self.contexts}
        for number in range(times):
            answers = generate(number, [(question.text, packed) for _, question, packed in asked])
            for own in scores.values():
                own.append({})
            for (plan, question, _), answer in zip(asked, answers, strict=True):
                if answer is not None:
                    scores[plan][-1][question.id] = f1(answer, question.answers, question.language)
        for plan, repeats in scores.items():
            all_of_one: dict[str, list[float]] = {}
            for repeat in repeats:
                for identity, score in repeat.items():
                    all_of_one.setdefault(identity, []).append(score)
            if all_of_one:
                self.values[plan]["f1"] = {name: sum(own) / len(own) for name, own in all_of_one.items()}
        return {
            plan: tuple(sum(repeat.values()) / len(repeat) for repeat in repeats if repeat)
            for plan, repeats in scores.items()
        }


def _answerable(question: Question) -> bool:
    """Tell whether a generated answer can be compared: some gold answer has a word in it."""
    return any(any(sign.isalnum() for sign in answer) for answer in question.answers)


def _measured(
    dataset: Dataset, system: System, size: int | None, settings: EvalSettings, machinery: Machinery
) -> Cell:
    plans = system.plans(settings.plans)
    tally = _Tally(plans)
    unasked = 0
    collections = list(_collections(dataset, size, settings))
    wanted = {context.names: context for collection, _ in collections for context in collection.contexts}
    spent = Spent()
    spent.add(system.prepare(list(wanted.values())))
    for collection, questions in collections:
        if not collection.contexts:
            unasked += len(questions)
            machinery.advance(len(questions))
            continue
        with system.open(collection) as index:
            spent.add(index.spent)
            for question in questions:
                if index.docs is None or not index.docs.isdisjoint(question.names):
                    _ask(index, question, plans, tally)
                else:
                    unasked += 1
                machinery.advance(1)
    tally.rank(settings.cutoffs)
    repeats: Mapping[Plan, tuple[float, ...]] = {}
    if machinery.generate is not None:
        repeats = tally.generate(settings.repeat, machinery.generate)
    ceiling = None
    if tally.relevant:
        ceiling = sum(map(bool, tally.relevant.values())) / len(tally.relevant)
    scores = tuple(PlanScores(plan, tally.values[plan], repeats.get(plan, ())) for plan in plans)
    return Cell(dataset.name, system.name, size, spent, scores, unasked, ceiling)


def _ask(index: OpenIndex, question: Question, plans: Sequence[Plan], tally: _Tally) -> None:
    words = index.words if evidence_recall("", question.evidence) is not None else None
    if words is not None:
        docs = question.names if question.named else ()
        tally.relevant[question.id] = words.relevant(question.evidence, docs)
    for plan in plans:
        found = index.ask(question.text, plan)
        tally.add(plan, question, found)
        if words is not None and found.ranked is not None:
            rows = [words.row(marker) for marker in found.ranked]
            # The same marker may come twice where a document says the same thing twice.
            tally.rankings[plan][question.id] = list(dict.fromkeys(rows))


def _collections(
    dataset: Dataset, size: int | None, settings: EvalSettings
) -> Iterator[tuple[Collection, list[Question]]]:
    """Yield the documents of each index with the questions to ask it; no documents where none is known."""
    names: dict[str, tuple[str, ...]] = {doc: (doc,) for doc in dataset.sources}
    by_doc: dict[str, list[Question]] = {}
    for question in dataset.questions:
        by_doc.setdefault(question.doc, []).append(question)
        if question.doc:
            names[question.doc] = question.names
    contexts = {doc: Context(source, names[doc]) for doc, source in dataset.sources.items()}
    if size is None or (size == 0 and (settings.corpus or settings.joined)):
        shared = Collection(tuple(contexts.values()), shared=True)
        yield (_joined(shared) if settings.joined else shared), list(dataset.questions)
        return
    for doc, questions in by_doc.items():
        if not doc:
            yield Collection(()), questions
            continue
        others = _distractors(doc, list(contexts), (size or 1) - 1)
        yield Collection((contexts[doc], *(contexts[other] for other in others))), questions


def _distractors(doc: str, docs: Sequence[str], count: int) -> list[str]:
    """Return ``count`` other documents; a smaller sample is the beginning of a larger one."""

    def place(other: str) -> bytes:
        return hashlib.sha256(f"{doc}\0{other}".encode("utf-8", "surrogatepass")).digest()

    return sorted((other for other in docs if other != doc), key=place)[:count] if count else []


def _joined(collection: Collection) -> Collection:
    """Return a collection of one document: all texts, in the order of their ids' digests."""

    def place(context: Context) -> bytes:
        return hashlib.sha256(context.names[0].encode("utf-8", "surrogatepass")).digest()

    texts: list[str] = []
    borders: list[tuple[int, str]] = []
    at = 0
    for context in sorted(collection.contexts, key=place):
        if context.source is not None:
            borders.append((at, context.names[0]))
            texts.append(context.source.text.rstrip() + "\n\n")
            at += len(texts[-1])
    source = Source(JOINED, "".join(texts), "markdown", fallback_title=JOINED)
    return Collection((Context(source, (JOINED,)),), tuple(borders), shared=True)
