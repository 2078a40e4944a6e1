"""Texts into chunks: windows of so many tokens, or along the headings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrag_cli.parts.blocks import blocks
from mrag_cli.parts.cutting import Cut, paragraph_cuts
from mrag_cli.parts.token_spans import TokenSpans

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALL = 120
"""Tokens below which a section is joined with the next one."""


def windows(text: str, limit: int, overlap: int = 0) -> Iterator[Cut]:
    """Yield strict windows of ``limit`` tokens, each beginning with the last ``overlap`` ones of the last.

    A window has fewer tokens only where the next character has several, or at the end of the text; one of
    nothing
    but white space is left out.

    Args:
        text: the source.
        limit: tokens of a window, at least 1; only a character that has more by itself exceeds it.
        overlap: tokens, fewer than ``limit``.
    """
    spans = TokenSpans(text)
    start = reached = 0
    while start < len(text):
        end = max(start + 1, spans.token_end(spans.before(start) + limit - 1))
        tokens = spans.exact(start, end)
        while tokens > limit and end > start + 1:
            end = max(start + 1, min(end - 1, spans.token_end(max(spans.before(end) - 2, 0))))
            tokens = spans.exact(start, end)
        if end <= reached:  # the overlap alone fills the window
            start = reached
            continue
        reached = end
        if not text[start:end].isspace():
            yield Cut(start, end, tokens)
        if end >= len(text):
            return
        back = spans.token_end(spans.before(end) - overlap - 1) if overlap else end
        start = back if start < back else end


def sections(text: str, limit: int) -> Iterator[Cut]:
    """Yield chunks along the headings: split at each, joined while below 120 tokens, cut at ``limit`` tokens.

    A section that is too long is cut between its paragraphs and sentences.
    """
    spans = TokenSpans(text)
    waiting: Cut | None = None
    for cut in paragraph_cuts(text, blocks(text, "markdown"), limit, spans):
        if waiting is not None:
            tokens = spans.exact(waiting.start, cut.end)
            if waiting.tokens < min(_SMALL, limit) and tokens <= limit:
                waiting = Cut(waiting.start, cut.end, tokens, waiting.heading)
                continue
            yield waiting
        waiting = cut
    if waiting is not None:
        yield waiting
