"""The chunk baselines: documents into chunks that are key and value at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson

from mrag_cli.parts import tokens
from mrag_cli.parts.blocks import blocks, title
from mrag_cli.parts.chop.chunks import windows
from mrag_cli.parts.chop.cosine import THRESHOLD, cosine_cuts
from mrag_cli.parts.chop.outline import Sections, headings
from mrag_cli.parts.semantic_cuts import pic_cuts, semantic_cuts
from mrag_cli.parts.term_vectors import term_vectors
from mrag_cli.records.models import Document, DocumentGroup, Marker, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.cutting import Cut
    from mrag_cli.parts.semantic_cuts import Vectors
    from mrag_cli.parts.sources import Source
    from mrag_cli.records.models import StreamPart

CHUNK_VERSION = 1
"""Raised whenever the same text and settings give other chunks."""

Method = Literal["naive", "fixed", "overlap", "cosine", "semantic", "pic"]

SIZES: dict[str, tuple[int, int]] = {
    "naive": (500, 100),
    "fixed": (128, 0),
    "overlap": (128, 32),
    "semantic": (128, 0),
    "pic": (128, 0),
}
"""Tokens of a chunk and overlap of windows by method, unless told otherwise; ``cosine`` has no limit."""


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How documents are cut.

    Attributes:
        method: ``naive`` (windows of 500 tokens overlapping by 100), ``fixed`` (128), ``overlap`` (128 by
            32), ``cosine`` (whole sentences, cut where two consecutive ones are unlike), ``semantic`` (the
            same, cut at the widest breaks, within a limit) or ``pic`` (sentences grouped by their likeness
            to the document's summary).
        chunk_tokens: most tokens of a chunk, but for ``cosine``.
        overlap: tokens that a window repeats of the one before, fewer than ``chunk_tokens``.
        threshold: of ``cosine``.
    """

    method: Method = "naive"
    chunk_tokens: int = 500
    overlap: int = 100
    threshold: float = THRESHOLD


def chunk(
    sources: Iterable[Source],
    settings: ChunkSettings,
    reporter: Reporter,
    similarities: Callable[[Sequence[str]], Sequence[float]] | None = None,
    vectors: Vectors = term_vectors,
    summaries: Mapping[str, str] | None = None,
) -> Iterator[StreamPart]:
    """Cut each source into chunks.

    Args:
        sources: the documents' texts.
        settings: how.
        reporter: told of documents without any text.
        similarities: of consecutive sentences, for ``cosine``; by TF-IDF when None.
        vectors: of texts, for ``semantic`` and ``pic``.
        summaries: of documents by their ids, for ``pic``; made of a document's own sentences where none is.

    Yields:
        A document for each source, with its chunks as units and one marker each: key and value are the chunk,
        the origin is the method's name.
    """
    for source in sources:
        if settings.method == "cosine":
            cuts = cosine_cuts(source.text, settings.threshold, similarities)
        elif settings.method == "semantic":
            cuts = semantic_cuts(source.text, settings.chunk_tokens, vectors)
        elif settings.method == "pic":
            summary = (summaries or {}).get(source.doc, "")
            cuts = pic_cuts(source.text, settings.chunk_tokens, vectors, summary)
        else:
            cuts = windows(source.text, settings.chunk_tokens, settings.overlap)
        yield _group(source, cuts, settings, reporter)


def digest(source: Source, settings: ChunkSettings) -> str:
    """Return the SHA-256, in hex digits, of all that a document's records depend on."""
    frame = [
        "chunk",
        CHUNK_VERSION,
        settings.method,
        settings.chunk_tokens,
        settings.overlap,
        settings.threshold,
        source.markup,
        source.title,
        source.meta,
    ]
    found = hashlib.sha256(orjson.dumps(frame, option=orjson.OPT_SORT_KEYS))
    found.update(source.text.encode())
    return found.hexdigest()


def _group(source: Source, cuts: Iterable[Cut], settings: ChunkSettings, reporter: Reporter) -> DocumentGroup:
    text = source.text
    above = Sections(headings(text) if source.markup == "markdown" else [])
    units, markers = [], []
    for number, cut in enumerate(cuts, 1):
        words = text[cut.start : cut.end]
        value = words.strip()
        section = above.above(cut.start + len(words) - len(words.lstrip()))
        units.append(Unit(source.doc, number, words, cut.tokens, section, (cut.start, cut.end)))
        size = cut.tokens if value == words else tokens.count(value)
        markers.append(Marker(source.doc, value, value, (number,), settings.method, size))
    if not units:
        reporter.notice(f"{source.doc}: no text; the document has no chunks")
    own_title = title(text, blocks(text, source.markup)) if source.markup == "markdown" else None
    return DocumentGroup(
        Document(
            doc=source.doc,
            sha256=digest(source, settings),
            title=source.title or own_title or source.fallback_title or source.doc,
            units=len(units),
            tokens=tokens.count(text),
            meta=source.meta,
        ),
        tuple(units),
        tuple(markers),
    )
