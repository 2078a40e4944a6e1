"""Data sets in LongBench's shape, whole and broken."""

import json
from pathlib import Path
from typing import Any

import pytest
from heard import Heard

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.evaluation.datasets import Dataset, read_dataset, read_library, unmeasured

ROW = {"_id": "q1", "input": "Where?", "context": "In the harbour.", "answers": ["the harbour"]}


def _write(path: Path, *rows: dict[str, Any] | str) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _read(folder: Path, *rows: dict[str, Any] | str, **others: Any) -> tuple[Dataset, Heard]:
    heard = Heard()
    return read_dataset(_write(folder / "set.jsonl", *rows), heard, **others), heard


def test_a_row_becomes_a_question_and_a_document(tmp_path: Path) -> None:
    """LongBench's fields are read; the context is a document named after the question."""
    found, heard = _read(tmp_path, {**ROW, "evidence": ["In the harbour."], "language": "zh", "extra": 1})
    (question,) = found.questions
    assert found.name == "set"
    assert (question.id, question.text, question.doc, question.language) == ("q1", "Where?", "q1", "zh")
    assert question.answers == ("the harbour",)
    assert question.evidence == ("In the harbour.",)
    assert not question.named
    assert found.sources["q1"].text == "In the harbour."
    assert heard.notices == heard.failures == []


def test_identical_contexts_are_one_document(tmp_path: Path) -> None:
    """Questions about the same text share a document, which may go by any of their ids elsewhere."""
    found, _ = _read(tmp_path, ROW, {**ROW, "_id": "q2", "input": "When?"})
    assert list(found.sources) == ["q1"]
    assert found.questions[1].doc == "q1"
    assert found.questions[1].names == ("q1", "q2")


def test_a_context_file_is_read_beside_the_data_set(tmp_path: Path) -> None:
    """`context_file` is a path from the data set's folder; the row thereby names its document."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Harbour\n\nIn the harbour.\n", "utf-8")
    found, heard = _read(tmp_path, {"input": "Where?", "answers": "harbour", "context_file": "docs/a.md"})
    (question,) = found.questions
    assert question.doc == "docs/a.md"
    assert question.named
    assert question.id == "set-1"
    assert question.answers == ("harbour",)
    assert found.sources["docs/a.md"].text.startswith("# Harbour")
    assert not heard.failures


def test_documents_of_a_folder_are_named_by_rows(tmp_path: Path) -> None:
    """`manual` or `doc` names a file of the folder, by its path there or by its own name."""
    folder = tmp_path / "manuals"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("Alpha text.", "utf-8")
    (folder / "sub" / "b.md").write_text("Beta text.", "utf-8")
    library = read_library(folder, Heard())
    rows = [{"input": "What?", "manual": "a.md"}, {"input": "Which?", "doc": "b.md"}]
    found, heard = _read(tmp_path, *rows, library=library)
    assert set(found.sources) == {"a.md", "sub/b.md"}
    assert [question.doc for question in found.questions] == ["a.md", "sub/b.md"]
    assert not heard.failures


BROKEN = [
    ("{", "not JSON"),
    ("[1]", "one object a line is expected"),
    ({**ROW, "input": " "}, "the question is empty"),
    ({"_id": "x", "context": "text"}, 'field "input" is missing'),
    ({**ROW, "context": "  \n"}, "the context is empty"),
    ({**ROW, "context": None, "context_file": "gone.md"}, "there is no such file"),
    ({"input": "Where?", "answers": ["x"]}, 'no "context"'),
    ({"input": "Where?", "manual": "gone.md"}, "--contexts"),
    ({**ROW, "_id": "first"}, "came before"),
    ({**ROW, "_id": "y", "answers": [1]}, "a list of strings is expected"),
]


@pytest.mark.parametrize(("row", "reason"), BROKEN)
def test_a_row_that_cannot_be_used_is_left_out_and_said(
    tmp_path: Path, row: dict[str, Any] | str, reason: str
) -> None:
    """A broken row is a failure with its place; the others are used."""
    found, heard = _read(tmp_path, {**ROW, "_id": "first"}, row, {**ROW, "_id": "last"})
    assert [question.id for question in found.questions] == ["first", "last"]
    ((place, said),) = heard.failures
    assert place == f"{tmp_path / 'set.jsonl'}:2"
    assert reason in said
    assert said.endswith("left out")


def test_an_empty_context_file_is_said(tmp_path: Path) -> None:
    """A file without any text holds no answer: its questions are left out, not scored 0."""
    (tmp_path / "empty.md").write_text("\n", "utf-8")
    _, heard = _read(tmp_path, ROW, {"input": "Where?", "context_file": "empty.md"})
    assert "no text in it" in heard.failures[0][1]


def test_nothing_to_ask_is_an_error(tmp_path: Path) -> None:
    """A data set without a question that can be used, or that is not there, stops the run at once."""
    with pytest.raises(UsageError, match="no question that can be used"):
        _read(tmp_path, "{}")
    with pytest.raises(UsageError, match="cannot be read"):
        read_dataset(tmp_path / "gone.jsonl", Heard())
    with pytest.raises(UsageError, match="a folder of documents"):
        read_library(tmp_path / "gone", Heard())


def test_what_no_measure_applies_to_is_said(tmp_path: Path) -> None:
    """Answers of punctuation only and questions without evidence are counted as not measured."""
    rows = [{**ROW, "evidence": ["In the harbour."]}, {**ROW, "_id": "q2", "answers": ["…", "?!"]}]
    found, _ = _read(tmp_path, *rows)
    answers, evidence = unmeasured(found)
    assert answers.startswith("set: 1 of 2 questions have no short answer")
    assert evidence.startswith("set: 1 of 2 questions have no evidence")


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    """Another answer or another context is another data set; the same one has the same digest."""
    first, again = (_read(tmp_path, ROW)[0].digest for _ in range(2))
    assert first == again
    assert _read(tmp_path, {**ROW, "answers": ["a quay"]})[0].digest != first
    assert _read(tmp_path, {**ROW, "context": "In the harbour!"})[0].digest != first
