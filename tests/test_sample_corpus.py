"""The sample corpus holds what its questions say it holds."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).parent.parent / "sample_corpus"
DOCUMENTS = sorted(path for path in (CORPUS / "documents").rglob("*") if path.is_file())
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (CORPUS / "questions.jsonl").read_text("utf-8").splitlines()
]
by_id = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["_id"])


class _Article(HTMLParser):
    """The text of a page's article."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the parser's signature
        self._inside = self._inside or tag == "article"

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "article"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.pieces.append(data)


def _context_files(question: dict[str, Any]) -> list[str]:
    files = question["context_file"]
    return [files] if isinstance(files, str) else files


def _flat(text: str, language: str) -> str:
    """One space for each run of white space; none in Chinese, which breaks lines anywhere."""
    return re.sub(r"\s+", "" if language == "zh" else " ", text)


def _read(path: Path) -> str:
    text = path.read_text("utf-8")
    if path.suffix != ".html":
        return text
    parser = _Article()
    parser.feed(text)
    return "".join(parser.pieces)


@by_id
def test_a_question_has_longbench_fields(question: dict[str, Any]) -> None:
    """Each question has LongBench's fields, filled, with one piece of evidence for each further document."""
    assert set(question) == {"_id", "input", "context_file", "answers", "language", "evidence"}
    assert question["language"] in {"en", "zh"}
    assert question["input"].rstrip().endswith(("?", "？"))
    for field in ("answers", "evidence"):
        assert question[field]
        assert all(text.strip() for text in question[field])
    assert len(question["evidence"]) >= len(_context_files(question))


@by_id
def test_evidence_stands_in_its_document(question: dict[str, Any]) -> None:
    """Each passage of evidence occurs in a named document, and each named document holds one."""
    language = question["language"]
    texts = [_flat(_read(CORPUS / name), language) for name in _context_files(question)]
    evidence = [_flat(passage, language) for passage in question["evidence"]]
    for passage in evidence:
        assert any(passage in text for text in texts), passage
    for text in texts:
        assert any(passage in text for passage in evidence)


@by_id
def test_answers_stand_in_the_evidence(question: dict[str, Any]) -> None:
    """Each answer occurs in the evidence, letter for letter but for case."""
    evidence = _flat("\n".join(question["evidence"]), question["language"]).casefold()
    for answer in question["answers"]:
        assert _flat(answer, question["language"]).casefold() in evidence


def test_ids_and_questions_are_unique() -> None:
    """No id and no question comes twice."""
    for field in ("_id", "input"):
        assert len({question[field] for question in QUESTIONS}) == len(QUESTIONS)


def test_every_document_has_four_questions() -> None:
    """Each document is asked about at least four times, and some questions need two documents."""
    asked = [CORPUS / name for question in QUESTIONS for name in _context_files(question)]
    assert set(asked) == set(DOCUMENTS)
    assert all(asked.count(path) >= 4 for path in DOCUMENTS)
    assert sum(len(_context_files(question)) > 1 for question in QUESTIONS) >= 10


def test_the_kinds_of_documents() -> None:
    """The documents are plain text, Markdown, HTML and Chinese, in nested folders, none of them short."""
    assert {path.suffix for path in DOCUMENTS} == {".txt", ".md", ".html"}
    assert len(DOCUMENTS) >= 12
    assert all(path.parent != CORPUS / "documents" for path in DOCUMENTS)
    assert all(len(path.read_text("utf-8")) > 1_000 for path in DOCUMENTS)


def test_the_two_manuals_differ_in_few_lines() -> None:
    """The sibling manuals share at least half of their lines."""
    one, other = (
        (CORPUS / f"documents/manuals/{name}.md").read_text("utf-8").splitlines()
        for name in ("tern-3", "tern-3s")
    )
    assert len(set(one) & set(other)) / len(set(one)) >= 0.5
