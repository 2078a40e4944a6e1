"""A client that adds up what replies cost, those from the cache included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrag_cli.parts.evaluation.systems import Spent
from mrag_cli.parts.llm.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrag_cli.parts.llm.cache import ReplyCache
    from mrag_cli.parts.llm.client import ClientSettings
    from mrag_cli.parts.llm.ledger import Ledger
    from mrag_cli.parts.llm.request import Reply, Request


class MeteredClient(Client):
    """A `Client` whose replies are counted, whether they were paid for now or earlier."""

    def __init__(
        self, settings: ClientSettings, cache: ReplyCache | None = None, ledger: Ledger | None = None
    ) -> None:
        super().__init__(settings, cache, ledger)
        self._spent = Spent()

    async def stream(self, request: Request, on_text: Callable[[str], None] | None) -> Reply:
        """Return the reply as `Client.stream` does, and count it."""
        reply = await super().stream(request, on_text)
        usage = reply.usage
        self._spent.add(
            Spent(
                calls=1,
                prompt_tokens=usage.prompt,
                completion_tokens=usage.completion,
                dollars=reply.cost,
            )
        )
        return reply

    def taken(self) -> Spent:
        """Return calls, tokens and US dollars since this was last asked."""
        found, self._spent = self._spent, Spent()
        return found
