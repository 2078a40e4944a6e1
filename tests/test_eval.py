"""The stage: who is asked what, over which documents, and what is made of the answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluations import Everything, dataset
from heard import Heard

from mrag_cli.parts.evaluation.cells import Cell, WorkFolder
from mrag_cli.parts.evaluation.datasets import Dataset, Question
from mrag_cli.parts.evaluation.systems import Plan
from mrag_cli.parts.packing import Packed
from mrag_cli.parts.sources import Source
from mrag_cli.stages.eval import EvalSettings, Machinery, evaluate, questions_to_ask

PLAN = Plan("bm25", 128, "similarity")


def _run(
    data: Dataset,
    tested: Everything,
    settings: EvalSettings | None = None,
    *,
    work: WorkFolder | None = None,
    generate: Any = None,
) -> tuple[list[Cell], Heard, int]:
    heard, advanced = Heard(), [0]

    def advance(number: int) -> None:
        advanced[0] += number

    settings = settings or EvalSettings((PLAN,))
    cells = list(evaluate([data], [tested.system], settings, Machinery(work, generate, advance, heard)))
    assert advanced[0] == questions_to_ask([data], [tested.system], settings)
    return cells, heard, len(tested.asked)


def test_each_question_is_asked_of_its_own_document() -> None:
    """Without --corpus every document is an index, and all measures of a perfect system are 1."""
    tested = Everything()
    ((cell,), heard, asked) = _run(dataset(documents=3), tested)
    assert tested.opened == [["d0"], ["d1"], ["d2"]]
    assert asked == 3
    (scores,) = cell.scores
    for measure in ("answer_recall", "evidence_recall", "hit@1", "mrr@10", "ndcg@5"):
        assert scores.values[measure] == {"q0": 1.0, "q1": 1.0, "q2": 1.0}
    assert scores.values["tokens"]["q0"] == 7
    assert scores.values["milliseconds"]["q0"] == 2
    assert (cell.spent.seconds, cell.spent.documents, cell.spent.markers) == (1.0, 3, 3)
    assert cell.ceiling == 1.0
    assert not heard.notices


def test_a_corpus_is_one_index() -> None:
    """With --corpus every question is asked of all documents; the first ranks are the first documents'."""
    tested = Everything()
    ((cell,), _, _) = _run(dataset(documents=3), tested, EvalSettings((PLAN,), corpus=True))
    assert tested.opened == [["d0", "d1", "d2"]]
    values = cell.scores[0].values
    assert values["mrr@5"] == {"q0": 1.0, "q1": 0.5, "q2": pytest.approx(1 / 3)}
    assert values["hit@1"] == {"q0": 1.0, "q1": 0.0, "q2": 0.0}


def test_joined_documents_are_one() -> None:
    """With --joined all texts are one document, and what it says is attributed to the one it came from."""
    tested = Everything()
    ((cell,), _, _) = _run(dataset(documents=3), tested, EvalSettings((PLAN,), joined=True))
    assert tested.opened == [["joined"]]
    assert cell.scores[0].values["answer_recall"]["q2"] == 1.0


def test_what_does_not_apply_is_not_measured() -> None:
    """A yes or no, punctuation and missing evidence leave a question out of a measure, not at 0."""
    sources = {"d": Source("d", "Words of the document.")}
    questions = tuple(
        Question(name, f"What of {name}?", answers, (), doc="d", names=("d",))
        for name, answers in (("yes", ("yes",)), ("dots", ("...",)), ("none", ()), ("word", ("words",)))
    )
    ((cell,), _, _) = _run(Dataset("x", questions, sources, ""), Everything())
    values = cell.scores[0].values
    assert values["answer_recall"] == {"word": 1.0}
    assert "evidence_recall" not in values
    assert "hit@1" not in values
    assert len(values["tokens"]) == 4
    assert cell.ceiling is None


def test_a_system_that_lacks_documents_is_not_asked_about_them() -> None:
    """Questions whose document an index does not hold are said to be not measured."""
    tested = Everything(docs=frozenset({"d1"}))
    ((cell,), heard, asked) = _run(dataset(documents=3), tested)
    assert (asked, cell.unasked) == (1, 2)
    assert list(cell.scores[0].values["answer_recall"]) == ["q1"]
    assert "no document for 2 of 3 questions of town" in heard.notices[0]


def test_a_question_that_names_no_document_needs_a_corpus() -> None:
    """It is asked of a shared index, and of no other."""
    question = Question("q", "Which fact?", ("fact 1",))
    data = Dataset("x", (question,), dataset().sources, "")
    ((cell,), heard, _) = _run(data, Everything())
    assert cell.unasked == 1
    assert heard.notices
    ((cell,), _, asked) = _run(data, Everything(), EvalSettings((PLAN,), corpus=True))
    assert (cell.unasked, asked) == (0, 1)


def test_distractors_are_added_step_by_step() -> None:
    """The study asks each question among ever more documents; the gold one is always there, samples nest."""
    tested = Everything()
    sizes = (1, 2, 4, None)
    cells, heard, _ = _run(dataset(documents=4), tested, EvalSettings((PLAN,), sizes=sizes))
    assert [cell.size for cell in cells] == [0, *sizes]
    assert tested.opened[:8] == [["d0"], ["d1"], ["d2"], ["d3"]] * 2
    pairs, fours = tested.opened[8:12], tested.opened[12:16]
    assert all(pair[0] == four[0] and pair == four[:2] for pair, four in zip(pairs, fours, strict=True))
    assert all(sorted(four) == ["d0", "d1", "d2", "d3"] for four in fours)
    assert tested.opened[16:] == [["d0", "d1", "d2", "d3"]]
    assert not heard.notices
    _, heard, _ = _run(dataset(documents=4), Everything(), EvalSettings((PLAN,), sizes=(1, 50)))
    assert "the study of 50 leaves it out" in heard.notices[0]


def test_answers_are_measured_and_repeated() -> None:
    """Each repetition is generated anew; a failed call leaves its question out of that repetition."""
    asked: list[tuple[int, int]] = []

    def generate(number: int, contexts: Sequence[tuple[str, Packed]]) -> list[str | None]:
        asked.append((number, len(contexts)))
        return ["fact 0", None] if number == 0 else ["fact nothing", "fact 1"]

    settings = EvalSettings((PLAN,), repeat=2)
    ((cell,), _, _) = _run(dataset(), Everything(), settings, generate=generate)
    assert asked == [(0, 2), (1, 2)]
    assert cell.scores[0].values["f1"] == {"q0": 0.75, "q1": 1.0}
    assert cell.scores[0].repeats == (1.0, 0.75)


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """A finished cell is not measured again, unless the data, the system or the plans changed."""
    work, tested = WorkFolder(tmp_path), Everything()
    first, _, _ = _run(dataset(), tested, work=work)
    again = Everything()
    assert _run(dataset(), again, work=work)[0] == first
    assert again.opened == []
    others = [
        (dataset(documents=3), Everything(), None),
        (dataset(), Everything("another"), None),
        (dataset(), Everything(), EvalSettings((Plan("bm25", 256, "similarity"),))),
        (dataset(), Everything(), EvalSettings((PLAN,), corpus=True)),
    ]
    for data, other, settings in others:
        _run(
            Dataset(data.name, data.questions, data.sources, str(len(data.sources))),
            other,
            settings,
            work=work,
        )
        assert other.opened
