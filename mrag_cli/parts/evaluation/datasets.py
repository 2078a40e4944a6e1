"""Questions with their contexts, from JSON lines in LongBench's shape.

A row has ``input`` (or ``question``), ``answers``, and its document as ``context``, as ``context_file`` (a
path beside the data set), or as the name ``doc`` or ``manual`` of a file in a folder of contexts;
``evidence`` (the gold passages' own words), ``language`` and ``_id`` (or ``id``) may be there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mrag_cli.ground.errors import InputError, UsageError
from mrag_cli.parts.measures import answer_recall, evidence_recall
from mrag_cli.parts.sources import Source, Sources
from mrag_cli.records.lines import Fields, read_json_lines, shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mrag_cli.ground.report import Reporter

_NAMES = ("context_file", "doc", "manual")


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is known about its answer.

    Attributes:
        id: unique within its data set.
        text: the question.
        answers: the gold answers; empty when none is known.
        evidence: the gold passages' own words; empty when none is known.
        language: ``en``, ``zh`` and the like.
        doc: id of its context among the data set's sources; empty when it has none.
        names: ids under which an index made elsewhere may hold its context, likeliest first.
        named: whether the row itself names its document, so that a hit must come from there.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    language: str = "en"
    doc: str = ""
    names: tuple[str, ...] = ()
    named: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions and the documents they are about.

    Attributes:
        name: the file's name without its ending.
        questions: in the file's order.
        sources: each document once, by its id, in order of first mention.
        digest: hex digest of all of it.
    """

    name: str
    questions: tuple[Question, ...]
    sources: Mapping[str, Source]
    digest: str


@dataclass(slots=True)
class _Reading:
    """What has been read of a data set; mutable, because it grows with each row."""

    path: Path
    library: Mapping[str, Source]
    reporter: Reporter
    sources: dict[str, Source] = field(default_factory=dict)
    by_text: dict[str, str] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)


def read_library(folder: Path, reporter: Reporter) -> dict[str, Source]:
    """Return the documents below ``folder`` by their path in it.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"--contexts {folder}: a folder of documents is expected")
    found = Sources([str(folder)], reporter, as_name="library")
    return {source.doc.removeprefix("library/"): _renamed(source, "library/") for source in found}


def _renamed(source: Source, prefix: str) -> Source:
    return replace(source, doc=source.doc.removeprefix(prefix))


def read_dataset(path: Path, reporter: Reporter, library: Mapping[str, Source] | None = None) -> Dataset:
    """Read a data set; rows that cannot be used are left out and reported as failures.

    Contexts that are the same are one document, named after the first question about it, unless the rows
    name it. Every document of ``library`` belongs to the data set, asked about or not.

    Args:
        path: a JSONL file.
        reporter: told of rows that were left out, and why.
        library: documents that rows may name, by their names.

    Raises:
        UsageError: the file cannot be read, or holds no question that can be used.
    """
    reading = _Reading(path, library or {}, reporter)
    reading.sources.update(reading.library)
    questions: list[Question] = []
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                place = f"{path}:{number}"
                try:
                    for _, _, value in read_json_lines((raw,), place):
                        questions.append(_question(Fields(str(path), number, value), reading))
                except InputError as error:
                    reason = (
                        str(error).removeprefix(f"{error.path}:{error.line}: ").removeprefix(f"{place}: ")
                    )
                    reporter.failed(place, f"{reason}; the row is left out")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    if not questions:
        raise UsageError(f"{path}: no question that can be used; rows need `input` and a `context`")
    named = tuple(_with_names(question, reading) for question in questions)
    return Dataset(path.stem, named, reading.sources, _digest(named, reading.sources))


def unmeasured(dataset: Dataset) -> list[str]:
    """Return notices on the questions that a measure does not apply to."""
    total = len(dataset.questions)
    no_answer = sum(answer_recall("", question.answers) is None for question in dataset.questions)
    no_evidence = sum(evidence_recall("", question.evidence) is None for question in dataset.questions)
    notices = []
    if no_answer:
        notices.append(
            f"{dataset.name}: {no_answer} of {total} questions have no short answer to look for "
            "(none, a yes or no, punctuation, or a sentence); answer recall leaves them out"
        )
    if no_evidence:
        notices.append(
            f"{dataset.name}: {no_evidence} of {total} questions have no evidence; evidence recall, Hit, MRR "
            "and NDCG leave them out"
        )
    return notices


def _question(fields: Fields, reading: _Reading) -> Question:
    value = fields.value
    text = fields.text("input" if "input" in value or "question" not in value else "question").strip()
    if not text:
        raise fields.error("the question is empty")
    own = next((str(value[name]) for name in ("_id", "id") if value.get(name) not in (None, "")), "")
    identity = own or f"{reading.path.stem}-{fields.line}"
    if identity in reading.ids:
        raise fields.error(f'the id "{identity}" came before; give each question its own')
    doc, named = _context(fields, identity, reading)
    reading.ids.add(identity)
    if doc:
        reading.names.setdefault(doc, [doc]).append(identity)
    return Question(
        id=identity,
        text=text,
        answers=_texts(fields, "answers"),
        evidence=_texts(fields, "evidence"),
        language=fields.text("language", "en"),
        doc=doc,
        named=named,
    )


def _context(fields: Fields, identity: str, reading: _Reading) -> tuple[str, bool]:
    """Return the id of a row's document, and whether the row names it."""
    given = next((name for name in _NAMES if fields.value.get(name)), None)
    name = fields.text(given) if given else ""
    if fields.value.get("context") is not None:
        text = fields.text("context").replace("\r\n", "\n").replace("\r", "\n")
        return _own_context(fields, text, name or identity, reading), bool(name)
    if not name:
        if reading.library:
            return "", False
        raise fields.error('no "context" and no "context_file"; a question needs a document')
    if name in reading.sources:
        return name, True
    matching = [known for known in reading.library if known.rsplit("/", 1)[-1] == name]
    if len(matching) == 1:
        return matching[0], True
    if given == "context_file":
        return _file_context(fields, name, reading), True
    raise fields.error(f'there is no document "{name}"; name the folder that holds it with --contexts')


def _own_context(fields: Fields, text: str, name: str, reading: _Reading) -> str:
    if not text.strip():
        raise fields.error("the context is empty; nothing can be found in it")
    known = reading.by_text.get(text)
    if known is not None:
        return known
    if name in reading.sources:
        raise fields.error(f'the document "{name}" came before with other words')
    reading.by_text[text] = name
    reading.sources[name] = Source(name, text, "markdown", fallback_title=name)
    return name


def _file_context(fields: Fields, name: str, reading: _Reading) -> str:
    path = reading.path.parent / name
    if not path.is_file():
        raise fields.error(f"context_file {path}: there is no such file")
    sources = list(Sources([str(path)], reading.reporter))
    if not sources or not sources[0].text.strip():
        raise fields.error(f"context_file {path}: no text in it; nothing can be found")
    source = sources[0]
    reading.sources[name] = replace(source, doc=name)
    return name


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    """Return a field that is a string or a list of strings."""
    found: Any = fields.value.get(name)
    if found is None:
        return ()
    if isinstance(found, str):
        return (found,)
    if not isinstance(found, list) or not all(isinstance(entry, str) for entry in found):
        raise fields.error(f'field "{name}" is {shown(found)}; a list of strings is expected')
    return tuple(found)


def _with_names(question: Question, reading: _Reading) -> Question:
    return replace(question, names=tuple(dict.fromkeys(reading.names.get(question.doc, ()))))


def _digest(questions: tuple[Question, ...], sources: Mapping[str, Source]) -> str:
    found = hashlib.sha256(repr(questions).encode())
    for source in sources.values():
        found.update(repr((source.doc, source.markup, source.title)).encode())
        found.update(source.text.encode("utf-8", "surrogatepass"))
    return found.hexdigest()
