"""The client: a request in, a reply out, paid for at most once."""

from __future__ import annotations

import asyncio
import hashlib
import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from mrag_cli.ground.errors import ModelError
from mrag_cli.parts import tokens
from mrag_cli.parts.llm.facts import ModelFacts, facts_of
from mrag_cli.parts.llm.failures import CallFailed, Failure
from mrag_cli.parts.llm.ledger import Ledger
from mrag_cli.parts.llm.limiter import Limiter
from mrag_cli.parts.llm.request import Reply, Request, Usage
from mrag_cli.parts.llm.transport import Target, transport_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mrag_cli.parts.llm.cache import ReplyCache
    from mrag_cli.parts.llm.transport import Arrived, Transport

_KEY_FORMAT = 1
_HOPELESS_FAILURES = 20
_LONGEST_BACKOFF = 30.0
_ATTEMPTS_AT_NOTHING = 3
_LONGEST_WAIT = 600.0


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a model is called.

    Attributes:
        model: litellm's name of the model, ``provider/name``.
        api_base: address of an OpenAI-compatible server, or None for the provider's own.
        temperature: 0 for the likeliest reply.
        params: further parameters of each call.
        concurrency: most calls at once.
        timeout: seconds after which a call is given up.
        max_attempts: times a request is sent before it is given up.
        schema: send JSON schemas: ``auto`` where litellm's data says the model takes them, ``on``, ``off``.
        backoff: seconds before the first repetition of a call that failed alone; doubled each time.
    """

    model: str
    api_base: str | None = None
    temperature: float = 0.0
    params: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 8
    timeout: float = 300.0
    max_attempts: int = 6
    schema: str = "auto"
    backoff: float = 1.0


class Client:
    """Asks a model, through a cache, a limiter and a ledger.

    A reply is in the cache before `ask` returns it. Requests that are the same and under way at the same time
    are sent once. All methods but `facts` and `holds` belong to one event loop.

    Args:
        settings: how the model is called.
        cache: the replies that were paid for, or None.
        ledger: counts the calls and sets their limits.
        transport: sends one request once; made from the settings when None.
    """

    def __init__(
        self,
        settings: ClientSettings,
        cache: ReplyCache | None = None,
        ledger: Ledger | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.settings = settings
        self.facts: ModelFacts = facts_of(settings.model)
        self.ledger = ledger or Ledger()
        self.takes_schema = settings.schema == "on" or (settings.schema == "auto" and self.facts.takes_schema)
        self._cache = cache
        self._target = Target(
            settings.model,
            settings.api_base,
            {"temperature": settings.temperature, **settings.params},
            settings.timeout,
        )
        self._transport = transport or transport_to(self._target)
        self._limiter = Limiter(settings.concurrency)
        self._under_way: dict[bytes, asyncio.Task[Reply]] = {}
        self._hopeless = 0
        self._answered = False
        self._stopped: ModelError | None = None

    def key(self, request: Request) -> bytes:
        """Return a request's place in the cache: a digest of all that decides the reply.

        The address is left out: a model is known by its name, and a local server that comes up at another
        port holds the same one.
        """
        request = self._sendable(request)
        told = {
            "format": _KEY_FORMAT,
            "model": self._target.model,
            "params": dict(self._target.params),
            "purpose": request.purpose,
            "attempt": request.attempt,
            "max_tokens": request.max_tokens,
            "schema": request.schema,
            "messages": [(message.role, message.text) for message in request.messages],
        }
        return hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).digest()

    def _sendable(self, request: Request) -> Request:
        return request if self.takes_schema or request.schema is None else replace(request, schema=None)

    def holds(self, request: Request) -> bool:
        """Tell whether the cache holds the reply, so that asking costs nothing."""
        return self._cache is not None and self._cache.holds(self.key(request))

    def cost(self, usage: Usage) -> float | None:
        """Return the US dollars of tokens by litellm's data, or None when the price is unknown."""
        return self.facts.prices.cost(usage) if self.facts.prices else None

    async def ask(self, request: Request) -> Reply:
        """Return the reply to a request, from the cache or by a call.

        Raises:
            CallFailed: this request failed for good (refused, too long, or given up); others may succeed.
            ModelError: no call can succeed: a wrong key, model name or address.
            LimitReached: the call would pass a limit.
        """
        return await self.stream(request, None)

    async def stream(self, request: Request, on_text: Callable[[str], None] | None) -> Reply:
        """Return the reply as `ask` does, and give each piece of it to ``on_text`` as it arrives.

        A reply that the cache holds comes in one piece. A call that breaks off after its first piece is not
        repeated, because what was shown cannot be taken back.

        Raises:
            CallFailed, ModelError, LimitReached: as `ask`.
        """
        key = self.key(request)
        under_way = self._under_way.get(key)
        if under_way is None:
            held = self._cache.get(key) if self._cache is not None else None
            if held is not None:
                self.ledger.counts.cached_replies += 1
                if on_text is not None and held.text:
                    on_text(held.text)
                return held
            task = asyncio.ensure_future(self._paid(key, self._sendable(request), on_text))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
            return await task
        reply = replace(await asyncio.shield(under_way), from_cache=True)
        self.ledger.counts.cached_replies += 1
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    async def _paid(self, key: bytes, request: Request, on_text: Callable[[str], None] | None) -> Reply:
        most = self.cost(Usage(request.prompt_tokens, request.max_tokens))
        shown = _Shown(on_text)
        for attempt in range(1, self.settings.max_attempts + 1):
            await self._limiter.acquire(request.order)
            reply = None
            try:
                if self._stopped is not None:
                    raise self._stopped
                await self.ledger.reserve(most)
                self.ledger.counts.retries += attempt > 1
                try:
                    arrived = await self._transport.send(request, shown if on_text is not None else None)
                    reply = self._kept(key, request, arrived)
                finally:
                    self.ledger.settle(most, reply)
                self._answered = True
                self._limiter.answered()
            except CallFailed as failed:
                if attempt >= self._attempts(failed) or shown.begun:
                    given_up = self._given_up(failed)
                    if isinstance(given_up, ModelError):
                        self._stopped = given_up
                    raise given_up from None
                pause = self._pause_after(failed, attempt)
            else:
                return reply
            finally:
                self._limiter.release()
            await asyncio.sleep(pause)
        raise AssertionError("the loop above returns or raises")

    def _kept(self, key: bytes, request: Request, arrived: Arrived) -> Reply:
        usage = arrived.usage or Usage(
            sum(tokens.count(message.text) for message in request.messages), tokens.count(arrived.text)
        )
        cost = arrived.cost if arrived.cost is not None else self.cost(usage)
        reply = Reply(arrived.text, arrived.finish_reason, usage, cost, key=key)
        if self._cache is not None:
            self._cache.put(key, reply, self.settings.model, request.purpose)
        return reply

    def _attempts(self, failed: CallFailed) -> int:
        """Return how often a request that failed like this is sent in all."""
        if failed.failure not in (Failure.BUSY, Failure.BROKEN, Failure.UNREACHABLE):
            return 1
        if failed.retry_after is not None and failed.retry_after > _LONGEST_WAIT:
            return 1
        if failed.failure is Failure.UNREACHABLE and not self._answered:
            return min(_ATTEMPTS_AT_NOTHING, self.settings.max_attempts)
        return self.settings.max_attempts

    def _pause_after(self, failed: CallFailed, attempt: int) -> float:
        """Return the seconds this caller waits on top of what the limiter makes all of them wait."""
        if failed.failure in (Failure.BUSY, Failure.UNREACHABLE):
            self._limiter.overloaded(failed.retry_after)
            return 0.0
        if failed.retry_after is not None:
            return failed.retry_after
        pause = min(_LONGEST_BACKOFF, self.settings.backoff * 2.0 ** (attempt - 1))
        return pause * random.uniform(0.75, 1.25)  # noqa: S311 - spreads repetitions, guards nothing

    def _given_up(self, failed: CallFailed) -> CallFailed | ModelError:
        self.ledger.counts.failures += 1
        if failed.failure is Failure.FATAL:
            return ModelError(
                f"{self.settings.model}: {failed}; check the model's name and the provider's key"
            )
        if failed.retry_after is not None and failed.retry_after > _LONGEST_WAIT:
            return ModelError(
                f"{self.settings.model}: the provider wants no call for {failed.retry_after:.0f} seconds: "
                f"{failed}; run again then, what was paid for is kept"
            )
        if failed.failure is Failure.UNREACHABLE and not self._answered:
            return ModelError(f"{self.settings.model}: no server answers: {failed}; a rerun resumes")
        if not self._answered:
            self._hopeless += 1
            if self._hopeless >= _HOPELESS_FAILURES:
                return ModelError(
                    f"{self.settings.model}: the first {self._hopeless} requests failed, "
                    f"the last with: {failed}; a rerun resumes"
                )
        return failed

    def forget(self, replies: list[Reply]) -> None:
        """Drop replies from the cache, so that the next run asks again."""
        if self._cache is not None:
            self._cache.forget([reply.key for reply in replies])

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()


class _Shown:
    """Passes pieces of a reply on and remembers that there was one."""

    __slots__ = ("_on_text", "begun")

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text = on_text
        self.begun = False

    def __call__(self, piece: str) -> None:
        self.begun = True
        if self._on_text is not None:
            self._on_text(piece)
