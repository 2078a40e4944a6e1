"""Decisions by a model: which chunks belong together, what each segment is about (the paper's Eq. 2, 3)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeVar

from mrag_cli.parts.chop.asking import read_continuity
from mrag_cli.parts.chop.cnm import Cnm

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from mrag_cli.parts.chop.asking import Questions
    from mrag_cli.parts.llm.client import Client

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about a chunk.

    Attributes:
        segment: number of its segment, from 1.
        continued: it continues the chunk before (Eq. 2); False for the first.
        cnm: its segment's (Eq. 3).
    """

    segment: int
    continued: bool
    cnm: Cnm


@dataclass(slots=True)
class Summary:
    """What a run with a model did or would do; mutable, because it grows while documents pass.

    Attributes:
        documents: documents chopped.
        chunks: their chunks.
        segments: their segments.
        decisions: continuity decisions.
        asked_again: replies out of schema that were asked for again.
        unread: replies out of schema for the second time.
        prompt_tokens: of all first askings, estimated.
        cached: of those, askings that the cache held beforehand; counted by `estimate` alone.
    """

    documents: int = 0
    chunks: int = 0
    segments: int = 0
    decisions: int = 0
    asked_again: int = 0
    unread: int = 0
    prompt_tokens: int = 0
    cached: int = 0


class Judge:
    """Asks for the decisions on one document after another.

    Args:
        client: asks the model.
        questions: makes the requests.
        summary: grows with each document.
        anchor: what a chunk is judged against: the ``previous`` one, or the ``first`` one of its segment.
    """

    def __init__(
        self,
        client: Client,
        questions: Questions,
        summary: Summary,
        *,
        anchor: Literal["previous", "first"] = "previous",
    ) -> None:
        self._client = client
        self._questions = questions
        self._summary = summary
        self._anchor = anchor

    async def decided(self, texts: Sequence[str], order: int) -> list[Decision]:
        """Return the decision on each chunk of a document.

        Neighbours are judged all at once, then one CNM a segment is asked for, all at once; with the anchor
        ``first`` the judgements come one after the other.

        Args:
            texts: the chunks.
            order: smaller goes first when calls of several documents wait for each other.

        Raises:
            CallFailed: a call failed for good.
        """
        if self._anchor == "first":
            continued = await self._one_after_the_other(texts, order)
        else:
            continued = await _all(self._continues(*pair, order) for pair in pairwise(texts))
        heads = [at for at in range(len(texts)) if at == 0 or not continued[at - 1]]
        named = dict(zip(heads, await _all(self._cnm(texts[at], order) for at in heads), strict=True))
        found: list[Decision] = []
        segment, cnm = 0, Cnm()
        for at in range(len(texts)):
            if at in named:
                segment, cnm = segment + 1, named[at]
            found.append(Decision(segment, at not in named, cnm))
        self._summary.documents += 1
        self._summary.chunks += len(found)
        self._summary.segments += segment
        self._summary.decisions += len(continued)
        return found

    async def _one_after_the_other(self, texts: Sequence[str], order: int) -> list[bool]:
        continued: list[bool] = []
        anchor = 0
        for at in range(1, len(texts)):
            same = await self._continues(texts[anchor], texts[at], order)
            anchor = anchor if same else at
            continued.append(same)
        return continued

    async def _continues(self, anchor: str, text: str, order: int) -> bool:
        for attempt in (0, 1):
            request = self._questions.continuity(anchor, text, attempt=attempt, order=order)
            same = read_continuity((await self._client.ask(request)).text)
            if same is not None:
                return same
            self._count_bad(attempt)
        return True

    async def _cnm(self, text: str, order: int) -> Cnm:
        cnm = Cnm()
        for attempt in (0, 1):
            request = self._questions.cnm(text, attempt=attempt, order=order)
            cnm, right = self._questions.read_cnm((await self._client.ask(request)).text)
            if right:
                break
            self._count_bad(attempt)
        return cnm

    def _count_bad(self, attempt: int) -> None:
        self._summary.asked_again += attempt == 0
        self._summary.unread += attempt == 1


async def _all(several: Iterable[Awaitable[T]]) -> list[T]:
    """Await all at once; what one of them fails with is raised when all have ended."""
    found = await asyncio.gather(*several, return_exceptions=True)
    done: list[T] = []
    for outcome in found:
        if isinstance(outcome, BaseException):
            raise outcome
        done.append(outcome)
    return done
