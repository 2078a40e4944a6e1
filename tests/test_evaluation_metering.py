"""Replies are counted whether paid for now or earlier."""

import asyncio
from pathlib import Path

from loopback import Answer, serving

from mrag_cli.parts.evaluation.metering import MeteredClient
from mrag_cli.parts.llm.cache import ReplyCache
from mrag_cli.parts.llm.client import ClientSettings
from mrag_cli.parts.llm.request import Message, Request


def test_a_reply_from_the_cache_counts_like_a_call(tmp_path: Path) -> None:
    """What an index costs does not depend on what the cache happens to hold."""
    request = Request((Message("user", "Name a bird, please."),), 16, "test")
    cache = ReplyCache(tmp_path / "cache.sqlite3")
    with serving(lambda _asked: Answer("heron heron heron")) as server:

        async def twice() -> list[int]:
            client = MeteredClient(ClientSettings("openai/m", server.url), cache)
            taken = []
            for _ in range(2):
                await client.ask(request)
                spent = client.taken()
                taken += [spent.calls, spent.prompt_tokens, spent.completion_tokens]
                assert spent.dollars is None
            assert client.taken().calls == 0
            await client.close()
            return taken

        found = asyncio.run(twice())
    cache.close()
    assert len(server.asked) == 1
    assert found[:3] == found[3:] == [1, 5, 4]
