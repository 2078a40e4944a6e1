"""What ``mrag eval`` asks of language models: markers, summaries, answers; each within the run's limits."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrag_cli.cli import model_options
from mrag_cli.parts import tokens
from mrag_cli.parts.evaluation.metering import MeteredClient
from mrag_cli.parts.evaluation.systems import Spent
from mrag_cli.parts.llm.ahead import in_order
from mrag_cli.parts.llm.failures import CallFailed
from mrag_cli.parts.llm.prompt import fill, shipped
from mrag_cli.parts.llm.request import Message, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.llm.cache import ReplyCache
    from mrag_cli.parts.llm.client import Client, ClientSettings
    from mrag_cli.parts.llm.ledger import Ledger
    from mrag_cli.parts.packing import Packed
    from mrag_cli.parts.sources import Source

ANSWER_PROMPT = "short_answer.v1"
SUMMARY_PROMPT = "summary.v1"
UNKNOWN = "unanswerable"
"""What a model says when the passages do not hold the answer."""
_ANSWER_TOKENS = 128
_SUMMARY_TOKENS = 400
_SUMMARY_OF_TOKENS = 12_000


@dataclass(slots=True)
class Limits:
    """What may still be spent; mutable, because several clients share it.

    Attributes:
        cache: the file of replies; None for the platform's cache folder.
        no_cache: use no cache.
        max_cost: most US dollars that are left.
        max_calls: most calls that are left.
    """

    cache: Path | None = None
    no_cache: bool = False
    max_cost: float | None = None
    max_calls: int | None = None


class Once:
    """Says each notice once, however many clients have it to say."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._said: set[str] = set()

    def notice(self, message: str) -> None:
        """Say a notice that was not said yet."""
        if message not in self._said:
            self._said.add(message)
            self._reporter.notice(message)

    def failed(self, name: str, reason: str) -> None:
        """Pass a failure on."""
        self._reporter.failed(name, reason)


class Model:
    """A language model for several tasks, one after another, that share cache and limits.

    Args:
        settings: how it is called.
        limits: what all models of the run may spend.
        reporter: told when the model's limits are assumed.
    """

    def __init__(self, settings: ClientSettings, limits: Limits, reporter: Reporter) -> None:
        self.settings = settings
        self._limits = limits
        self._reporter = reporter
        self._clients: list[MeteredClient] = []

    @property
    def identity(self) -> list[object]:
        """All that decides its replies."""
        called = self.settings
        return [called.model, called.api_base, called.temperature, sorted(called.params.items())]

    def spent(self) -> Spent:
        """Return what its replies took since this was last asked, those from the cache included."""
        found = Spent()
        for client in self._clients:
            found.add(client.taken())
        return found

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Make a client for one task; its event loop ends with the task."""

        def make(settings: ClientSettings, cache: ReplyCache | None, ledger: Ledger) -> Client:
            self._clients.append(MeteredClient(settings, cache, ledger))
            return self._clients[-1]

        limits, earlier = self._limits, len(self._clients)
        try:
            with model_options.client(
                self.settings,
                self._reporter,
                cache=limits.cache,
                no_cache=limits.no_cache,
                max_cost=limits.max_cost,
                max_calls=limits.max_calls,
                make=make,
            ) as client:
                yield client
        finally:
            for client in self._clients[earlier:]:
                counts = client.ledger.counts
                if limits.max_calls is not None:
                    limits.max_calls = max(0, limits.max_calls - counts.calls)
                if limits.max_cost is not None:
                    limits.max_cost = max(0.0, limits.max_cost - counts.cost)

    def replies(self, requests: Sequence[Request | None]) -> list[str | None]:
        """Return the text of each reply; None where there was nothing to ask or the call failed for good.

        Raises:
            ModelError, LimitReached: as `Client.ask`.
        """
        with self.client() as client:

            async def work(_number: int, request: Request | None) -> str | None:
                if request is None:
                    return None
                try:
                    return (await client.ask(request)).text
                except CallFailed as failed:
                    self._reporter.notice(f"a call failed: {failed}")
                    return None

            return list(in_order(requests, work, 3 * self.settings.concurrency + 1, client.close))


def answers(model: Model, number: int, asked: Sequence[tuple[str, Packed]]) -> list[str | None]:
    """Answer questions from contexts, as briefly as LongBench's F1 wants it.

    Args:
        model: answers.
        number: of the repetition, from 0; each is generated anew.
        asked: questions and contexts; an empty context is answered with no call, by an empty string.
    """
    requests = [_answer_request(question, packed, number) for question, packed in asked]
    replies = model.replies(requests)
    model.spent()
    return [
        "" if request is None else None if reply is None else _answer(reply)
        for request, reply in zip(requests, replies, strict=True)
    ]


def _answer(reply: str) -> str:
    said = reply.strip()
    return "" if said.strip(".\"'").lower() == UNKNOWN else said


def _answer_request(question: str, packed: Packed, number: int) -> Request | None:
    if not packed.context.strip():
        return None
    values = {"unknown": UNKNOWN, "passages": packed.context, "question": question}
    text = fill(shipped(ANSWER_PROMPT).text, values)
    return Request(
        (Message("user", text),), _ANSWER_TOKENS, ANSWER_PROMPT, None, tokens.count(text), attempt=number
    )


def summaries(model: Model, sources: Sequence[Source]) -> list[str]:
    """Return a short summary of each document, of a long one's beginning; empty where the call failed."""
    requests = []
    for source in sources:
        starts = tokens.boundaries(source.text)
        shown = source.text[: starts[_SUMMARY_OF_TOKENS]] if len(starts) > _SUMMARY_OF_TOKENS else source.text
        text = fill(shipped(SUMMARY_PROMPT).text, {"document": shown})
        requests.append(
            Request((Message("user", text),), _SUMMARY_TOKENS, SUMMARY_PROMPT, None, tokens.count(text))
        )
    return [reply or "" for reply in model.replies(requests)]
