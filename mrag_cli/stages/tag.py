"""Documents into numbered units (the paper's Eq. 1)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson

from mrag_cli.parts.blocks import blocks, title
from mrag_cli.parts.cutting import fixed_cuts, paragraph_cuts
from mrag_cli.parts.token_spans import TokenSpans
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.blocks import Block
    from mrag_cli.parts.sources import Source
    from mrag_cli.records.models import StreamPart

TAG_VERSION = 1
"""Raised whenever the same text and settings give other units: every document then counts as changed."""


@dataclass(frozen=True, slots=True)
class TagSettings:
    """How documents are cut.

    Attributes:
        unit_tokens: the most tokens a unit has, at least 1.
        units: ``paragraph`` follows the text's structure, ``fixed`` cuts strict windows.
    """

    unit_tokens: int = 128
    units: Literal["paragraph", "fixed"] = "paragraph"


def tag(sources: Iterable[Source], settings: TagSettings, reporter: Reporter) -> Iterator[StreamPart]:
    """Cut each source into units.

    Args:
        sources: the documents' texts.
        settings: how to cut.
        reporter: told of documents without any text.

    Yields:
        A document with its units for each source, in order. The units' spans ascend and do not overlap, a
        unit's text is the source text of its span, and together they hold every character that is not white
        space. A document without any text has no units.
    """
    for source in sources:
        yield _tagged(source, settings, reporter)


def tag_changes(
    sources: Iterable[Source],
    settings: TagSettings,
    reporter: Reporter,
    known: Mapping[str, str],
    vanished: Callable[[str], bool],
) -> Iterator[StreamPart]:
    """Cut the sources that are new or changed, then name the documents that are gone.

    Args:
        sources: all documents there are now.
        settings: how to cut.
        reporter: told of documents without any text.
        known: the ``sha256`` of each document that was cut before, by id.
        vanished: tells, once all sources were read, whether a known document that was not among them is gone,
            rather than of another root or unreadable this time.

    Yields:
        A document with its units for each source whose text or settings changed, then the deletions, in
        order of their ids.
    """
    present = set()
    for source in sources:
        present.add(source.doc)
        if known.get(source.doc) != digest(source, settings):
            yield _tagged(source, settings, reporter)
    for doc in sorted(known.keys() - present):
        if vanished(doc):
            yield Deletion(doc)


def digest(source: Source, settings: TagSettings) -> str:
    """Return the SHA-256, in hex digits, of all that a document's records depend on."""
    frame = [TAG_VERSION, settings.unit_tokens, settings.units, source.markup, source.title, source.meta]
    found = hashlib.sha256(orjson.dumps(frame, option=orjson.OPT_SORT_KEYS))
    found.update(source.text.encode())
    return found.hexdigest()


def _tagged(source: Source, settings: TagSettings, reporter: Reporter) -> DocumentGroup:
    text = source.text
    token_spans = TokenSpans(text)
    structure: Iterable[Block] = blocks(text, source.markup)
    if settings.units == "fixed":
        cuts = list(fixed_cuts(text, settings.unit_tokens, token_spans))
    else:
        structure = list(structure)
        cuts = list(paragraph_cuts(text, structure, settings.unit_tokens, token_spans))
    if not cuts:
        reporter.notice(f"{source.doc}: no text; the document has no units")
    own_title = title(text, structure) if source.markup == "markdown" and not source.title else None
    return DocumentGroup(
        Document(
            doc=source.doc,
            sha256=digest(source, settings),
            title=source.title or own_title or source.fallback_title or source.doc,
            units=len(cuts),
            tokens=token_spans.total,
            meta=source.meta,
        ),
        tuple(
            Unit(source.doc, number, text[cut.start : cut.end], cut.tokens, cut.heading, (cut.start, cut.end))
            for number, cut in enumerate(cuts, 1)
        ),
    )
