"""CHOP: documents into chunks whose keys say what they are about (the paper's Eq. 1 to 4)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import orjson

from mrag_cli.parts import tokens
from mrag_cli.parts.blocks import blocks, title
from mrag_cli.parts.chop.boundaries import segments
from mrag_cli.parts.chop.chunks import sections, windows
from mrag_cli.parts.chop.domains import DOMAINS
from mrag_cli.parts.chop.families import mentions
from mrag_cli.parts.chop.judge import Judge
from mrag_cli.parts.chop.outline import Sections, headings
from mrag_cli.parts.chop.prefix import header_of, key_of
from mrag_cli.parts.chop.rules import describe, with_section
from mrag_cli.parts.llm.ahead import in_order
from mrag_cli.parts.llm.failures import CallFailed
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Marker, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.chop.asking import Questions
    from mrag_cli.parts.chop.cnm import Cnm
    from mrag_cli.parts.chop.judge import Summary
    from mrag_cli.parts.cutting import Cut
    from mrag_cli.parts.llm.client import Client
    from mrag_cli.parts.sources import Source
    from mrag_cli.records.models import StreamPart

CHOP_VERSION = 1
"""Raised whenever the same text and settings give other records: every document then counts as changed."""


@dataclass(frozen=True, slots=True)
class ChopSettings:
    """How documents are chopped.

    Attributes:
        chunk_tokens: most tokens of a chunk.
        overlap: tokens that a window repeats of the one before; windows only.
        chunks: ``windows`` of a fixed size, as in the paper, or along the ``headings``.
        prefix: where the prefix goes: into the ``key`` alone, or above the packed values too (``both``).
        domain: ``product``, ``legal`` or ``policy``; the trade's words for the rules.
        anchor: what a model judges a chunk against: the ``previous`` one (Eq. 2), or the ``first`` one of its
            segment, which catches a slow drift but asks one after the other.
    """

    chunk_tokens: int = 500
    overlap: int = 0
    chunks: Literal["windows", "headings"] = "headings"
    prefix: Literal["key", "both"] = "both"
    domain: str = "product"
    anchor: Literal["previous", "first"] = "previous"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk with all that was decided about it.

    Attributes:
        cut: its span and tokens.
        section: the headings above it.
        segment: number of its segment in the document, from 1.
        continued: the continuity decision on it and the chunk before (Eq. 2); False for the first.
        cnm: what it is about (Eq. 3).
    """

    cut: Cut
    section: tuple[str, ...]
    segment: int
    continued: bool
    cnm: Cnm


def chop(sources: Iterable[Source], settings: ChopSettings, reporter: Reporter) -> Iterator[StreamPart]:
    """Chop each source by rules, without a model.

    Args:
        sources: the documents' texts, each of one document or of several run together.
        settings: how.
        reporter: told of documents without any text.

    Yields:
        A document for each source, with its chunks as units and a marker for each. Units ascend; without
        ``overlap`` they do not overlap, and together they hold every character that is not white space.
    """
    for source in sources:
        yield _group(source, _by_rules(source, settings), settings, digest(source, settings), reporter)


def chop_by_model(
    sources: Iterable[Source],
    settings: ChopSettings,
    client: Client,
    questions: Questions,
    reporter: Reporter,
    summary: Summary,
) -> Iterator[StreamPart]:
    """Chop each source with a model's decisions: continuity of neighbours (Eq. 2), one CNM a segment (Eq. 3).

    A reply out of schema is asked for once more; then the chunk continues, or the field is null. A document
    of
    which a call fails is left out and reported; what was paid for is kept. At most three times as many
    documents as calls run at once are in memory.

    Args:
        sources: the documents' texts.
        settings: how.
        client: asks the model; closed at the end.
        questions: makes the requests.
        reporter: told of failed documents and of documents without any text.
        summary: filled while documents pass.

    Yields:
        As `chop`.

    Raises:
        ModelError: no call can succeed.
        LimitReached: a limit is reached; every document before it has been yielded.
    """
    judge = Judge(client, questions, summary, anchor=settings.anchor)

    async def work(number: int, source: Source) -> tuple[Source, list[Chunk] | None, str]:
        try:
            return source, await _asked(source, settings, judge, number), ""
        except CallFailed as failed:
            return source, None, str(failed)

    ahead = 3 * client.settings.concurrency + 1
    model, asked = client.settings.model, asked_how(client, questions)
    for source, chunks, failure in in_order(sources, work, ahead, client.close):
        if chunks is None:
            reporter.failed(source.doc, failure)
        else:
            yield _group(source, chunks, settings, digest(source, settings, asked), reporter, model)


def asked_how(client: Client, questions: Questions) -> str:
    """Return what a model's decisions depend on besides the text, for `digest`."""
    told = [client.settings.model, client.settings.api_base, client.settings.temperature, questions.version]
    return orjson.dumps([*told, client.settings.params], option=orjson.OPT_SORT_KEYS).decode()


def estimate(
    sources: Iterable[Source], settings: ChopSettings, client: Client, questions: Questions, summary: Summary
) -> None:
    """Fill ``summary`` with what chopping by a model would need, making no call.

    The number of segments, each of which needs a CNM, is not known beforehand: one a document is counted.
    """
    for source in sources:
        texts = _texts(source.text, list(cuts(source.text, settings)))
        if not texts:
            continue
        requests = [questions.continuity(*pair) for pair in pairwise(texts)]
        summary.documents += 1
        summary.chunks += len(texts)
        summary.segments += 1
        summary.decisions += len(requests)
        for request in (questions.cnm(texts[0]), *requests):
            summary.prompt_tokens += request.prompt_tokens
            summary.cached += client.holds(request)


async def _asked(source: Source, settings: ChopSettings, judge: Judge, order: int) -> list[Chunk]:
    found = list(cuts(source.text, settings))
    above = Sections(headings(source.text))
    decided = await judge.decided(_texts(source.text, found), order)
    return [
        Chunk(
            cut,
            above.above(_first_word(source.text, cut)),
            decision.segment,
            decision.continued,
            decision.cnm,
        )
        for cut, decision in zip(found, decided, strict=True)
    ]


def _texts(text: str, found: Iterable[Cut]) -> list[str]:
    return [text[cut.start : cut.end].strip() for cut in found]


def only_changes(
    sources: Iterable[Source],
    chopped: Callable[[Iterable[Source]], Iterator[StreamPart]],
    digest_of: Callable[[Source], str],
    known: Mapping[str, str],
    vanished: Callable[[str], bool],
) -> Iterator[StreamPart]:
    """Chop the sources that are new or changed, then name the documents that are gone.

    Args:
        sources: all documents there are now.
        chopped: chops sources.
        digest_of: the ``sha256`` that a source's document would have.
        known: the ``sha256`` of each document that was chopped before, by id.
        vanished: tells, once all sources were read, whether a known document that was not among them is gone.

    Yields:
        A document for each source whose text or settings changed, then the deletions, in order of their ids.
    """
    present: set[str] = set()

    def changed() -> Iterator[Source]:
        for source in sources:
            present.add(source.doc)
            if known.get(source.doc) != digest_of(source):
                yield source

    yield from chopped(changed())
    for doc in sorted(known.keys() - present):
        if vanished(doc):
            yield Deletion(doc)


def digest(source: Source, settings: ChopSettings, asked: str = "") -> str:
    """Return the SHA-256, in hex digits, of all that the records depend on; ``asked``: how a model was."""
    frame = [
        "chop",
        CHOP_VERSION,
        settings.chunk_tokens,
        settings.overlap,
        settings.chunks,
        settings.prefix,
        settings.domain,
        settings.anchor if asked else "",
        asked,
        source.markup,
        source.title,
        source.fallback_title,
        source.meta,
    ]
    found = hashlib.sha256(orjson.dumps(frame, option=orjson.OPT_SORT_KEYS))
    found.update(source.text.encode())
    return found.hexdigest()


def _by_rules(source: Source, settings: ChopSettings) -> Iterator[Chunk]:
    text, domain = source.text, DOMAINS[settings.domain]
    outline = headings(text)
    mentioned = mentions(text)
    found = segments(text, outline, domain, mentioned)
    named = describe(text, found, outline, mentioned, domain, source.title or source.fallback_title)
    above = Sections(outline)
    for number, (segment, cnm) in enumerate(zip(found, named, strict=True), 1):
        continued = False
        for cut in cuts(text[segment.start : segment.end], settings):
            moved = cut._replace(start=cut.start + segment.start, end=cut.end + segment.start)
            section = above.above(_first_word(text, moved))
            yield Chunk(moved, section, number, continued, with_section(cnm, section, domain))
            continued = True


def cuts(text: str, settings: ChopSettings) -> Iterator[Cut]:
    """Yield the chunks of a text."""
    if settings.chunks == "headings":
        return sections(text, settings.chunk_tokens)
    return windows(text, settings.chunk_tokens, settings.overlap)


def _first_word(text: str, cut: Cut) -> int:
    chunk = text[cut.start : cut.end]
    return cut.start + len(chunk) - len(chunk.lstrip())


def _group(
    source: Source,
    chunks: Iterable[Chunk],
    settings: ChopSettings,
    sha256: str,
    reporter: Reporter,
    model: str | None = None,
) -> DocumentGroup:
    text = source.text
    units, markers = [], []
    for number, chunk in enumerate(chunks, 1):
        start, end, size = chunk.cut.start, chunk.cut.end, chunk.cut.tokens
        words = text[start:end]
        value = words.strip()
        units.append(Unit(source.doc, number, words, size, chunk.section, (start, end)))
        markers.append(
            Marker(
                doc=source.doc,
                key=key_of(chunk.cnm, chunk.section, value),
                value=value,
                pointers=(number,),
                origin="chop",
                tokens=size if value == words else tokens.count(value),
                header=header_of(chunk.cnm) if settings.prefix == "both" else "",
                model=model,
                cnm=chunk.cnm.record(segment=chunk.segment, continued=chunk.continued),
            )
        )
    if not units:
        reporter.notice(f"{source.doc}: no text; the document has no chunks")
    own_title = title(text, blocks(text, source.markup)) if source.markup == "markdown" else None
    return DocumentGroup(
        Document(
            doc=source.doc,
            sha256=sha256,
            title=source.title or own_title or source.fallback_title or source.doc,
            units=len(units),
            tokens=tokens.count(text),
            meta=source.meta,
        ),
        tuple(units),
        tuple(markers),
    )
