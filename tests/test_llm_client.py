import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from loopback import Answer, Asked, Script, Server, serving

from mrag_cli.ground.errors import LimitReached, ModelError
from mrag_cli.parts.llm.cache import ReplyCache
from mrag_cli.parts.llm.client import Client, ClientSettings
from mrag_cli.parts.llm.failures import CallFailed, Failure
from mrag_cli.parts.llm.ledger import Ledger
from mrag_cli.parts.llm.request import Message, Request

SCHEMA = {"type": "object", "properties": {}}


def request(text: str = "hello", **changes: object) -> Request:
    """Return a request."""
    given: dict[str, object] = {"max_tokens": 50, "purpose": "test", "prompt_tokens": 10, **changes}
    return Request((Message("system", "be brief"), Message("user", text)), **given)  # type: ignore[arg-type]


def with_client(
    script: Script,
    body: Callable[[Client, Server], Awaitable[None]],
    *,
    cache: ReplyCache | None = None,
    ledger: Ledger | None = None,
    **changes: object,
) -> Server:
    """Run a body with a client of a scripted server; returns the server."""
    with serving(script) as server:
        given: dict[str, object] = {"backoff": 0.01, "timeout": 5.0, **changes}
        settings = ClientSettings("openai/loopback", server.url, **given)  # type: ignore[arg-type]

        async def run() -> None:
            client = Client(settings, cache, ledger)
            try:
                async with asyncio.timeout(20):
                    await body(client, server)
            finally:
                await client.close()

        asyncio.run(run())
        return server


def test_a_request_is_sent_as_openai_has_it_and_the_reply_read() -> None:
    """Messages, limits and parameters arrive; text, finish reason and tokens come back."""

    async def body(client: Client, _: Server) -> None:
        reply = await client.ask(request("héllo"))
        assert reply.text == "hi"
        assert reply.finish_reason == "stop"
        assert reply.usage.cached == 3
        assert reply.usage.prompt > 0
        assert not reply.from_cache
        assert reply.cost is None

    server = with_client(lambda _: Answer("hi", cached=3), body, params={"top_p": 0.5})
    sent = server.asked[0].body
    assert sent == {
        "model": "loopback",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "héllo"}],
        "max_tokens": 50,
        "temperature": 0.0,
        "top_p": 0.5,
    }


def test_a_schema_is_sent_only_where_it_is_wanted() -> None:
    """An unknown model gets none by itself and one when the option says so."""

    async def body(client: Client, _: Server) -> None:
        await client.ask(request(schema=SCHEMA))

    auto = with_client(lambda _: Answer("{}"), body)
    forced = with_client(lambda _: Answer("{}"), body, schema="on")
    assert "response_format" not in auto.asked[0].body
    sent = forced.asked[0].body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == SCHEMA
    assert sent["json_schema"]["strict"] is True


def test_the_same_request_is_paid_for_once(tmp_path: Path) -> None:
    """The second asking, also by another client, is answered by the cache; the ledger says so."""
    cache = ReplyCache(tmp_path / "c")

    async def body(client: Client, _: Server) -> None:
        first = await client.ask(request())
        second = await client.ask(request())
        assert (first.text, first.from_cache) == ("n0", False)
        assert (second.text, second.from_cache) == ("n0", True)
        assert client.holds(request())
        assert not client.holds(request("other"))
        assert client.ledger.counts.calls == 1
        assert client.ledger.counts.cached_replies == 1

    server = with_client(lambda asked: Answer(f"n{asked.number}"), body, cache=cache)
    assert len(server.asked) == 1
    cache.close()


def test_whatever_decides_the_reply_is_part_of_the_key() -> None:
    """Another text, purpose, limit, attempt, schema, parameter or model is another request."""

    def key(asked: Request, model: str = "openai/m", base: str | None = None, **changes: object) -> bytes:
        return Client(ClientSettings(model, base, **changes)).key(asked)  # type: ignore[arg-type]

    keys = [
        key(request()),
        key(request("other")),
        key(request(purpose="other")),
        key(request(max_tokens=51)),
        key(request(attempt=1)),
        key(request(schema=SCHEMA), schema="on"),
        key(request(), params={"top_p": 1}),
        key(request(), temperature=1.0),
        key(request(), model="openai/n"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(request(order=5, prompt_tokens=99)) == keys[0]
    assert key(request(), base="http://localhost/v1") == keys[0], "a server may come up at another port"
    assert key(request(schema=SCHEMA)) == keys[0], "a schema that is not sent decides nothing"


def test_identical_requests_under_way_are_sent_once() -> None:
    """Ten callers with the same request share one call."""

    async def body(client: Client, _: Server) -> None:
        replies = await asyncio.gather(*(client.ask(request()) for _ in range(10)))
        assert {reply.text for reply in replies} == {"hi"}
        assert sum(reply.from_cache for reply in replies) == 9

    assert len(with_client(lambda _: Answer("hi", delay=0.1), body).asked) == 1


def test_a_reply_is_in_the_cache_before_it_is_used(tmp_path: Path) -> None:
    """A caller that is cut off right after the call still leaves the reply behind."""
    cache = ReplyCache(tmp_path / "c")

    async def body(client: Client, _: Server) -> None:
        asked = request()
        await client.ask(asked)
        other = ReplyCache(tmp_path / "c")
        assert other.holds(client.key(asked))
        other.close()

    with_client(lambda _: Answer("hi"), body, cache=cache)
    cache.close()


@pytest.mark.parametrize(
    "bad",
    [
        Answer("oops", status=500),
        Answer("bad gateway", status=502),
        Answer(drop=True),
        Answer(body=b"<html>not a completion</html>"),
        Answer(body=b'{"choices": []}'),
        Answer("slow down", status=429, headers={"Retry-After": "0.01"}),
    ],
    ids=["500", "502", "dropped", "html", "no-choice", "429"],
)
def test_a_call_that_fails_is_repeated(bad: Answer) -> None:
    """Two failures and a reply make a reply and two counted retries."""

    async def body(client: Client, _: Server) -> None:
        assert (await client.ask(request())).text == "hi"
        assert client.ledger.counts.calls == 3
        assert client.ledger.counts.retries == 2
        assert client.ledger.counts.replies == 1

    with_client(lambda asked: bad if asked.number < 2 else Answer("hi"), body)


def test_a_call_that_hangs_is_given_up_after_the_timeout() -> None:
    """Each attempt ends after --timeout; after --max-attempts the request has failed."""

    async def body(client: Client, _: Server) -> None:
        start = time.monotonic()
        with pytest.raises(CallFailed, match=r"no reply within 0\.2 seconds") as failed:
            await client.ask(request())
        assert failed.value.failure is Failure.BROKEN
        assert 0.4 <= time.monotonic() - start < 3
        assert client.ledger.counts.calls == 2
        assert client.ledger.counts.failures == 1

    with_client(lambda _: Answer("late", delay=30), body, timeout=0.2, max_attempts=2)


def test_retry_after_holds_up_all_callers() -> None:
    """After one 429 no request of anybody arrives until the server's time is over."""
    refused_at: list[float] = []

    def script(asked: Asked) -> Answer:
        if asked.number == 0:
            refused_at.append(asked.at)
            return Answer("slow down", status=429, headers={"Retry-After": "0.4"})
        return Answer("hi")

    async def body(client: Client, _: Server) -> None:
        first = asyncio.create_task(client.ask(request("first")))
        await asyncio.sleep(0.15)
        await asyncio.gather(first, *(client.ask(request(f"n{number}")) for number in range(5)))

    server = with_client(script, body)
    assert len(server.asked) == 7
    assert all(asked.at - refused_at[0] >= 0.38 for asked in server.asked[1:])


def test_at_most_the_concurrency_is_open_at_once() -> None:
    """The server never sees more calls than --concurrency."""

    async def body(client: Client, _: Server) -> None:
        await asyncio.gather(*(client.ask(request(f"n{number}")) for number in range(12)))

    server = with_client(lambda _: Answer("hi", delay=0.02), body, concurrency=3)
    assert server.most == 3
    assert len(server.asked) == 12


@pytest.mark.parametrize(
    "wrong",
    [
        Answer("Incorrect API key provided: sk-secretsecretsecret", status=401),
        Answer("The model `loopback` does not exist", status=404),
        Answer("model loopback not found", status=400),
        Answer("You exceeded your current quota", status=429, code="insufficient_quota"),
    ],
    ids=["key", "model-404", "model-400", "quota"],
)
def test_a_wrong_key_or_model_stops_at_the_first_call(wrong: Answer) -> None:
    """One call is made, the error says what to check, and shows no key."""

    async def body(client: Client, _: Server) -> None:
        with pytest.raises(ModelError, match="check the model's name") as error:
            await client.ask(request())
        assert "secretsecret" not in str(error.value)

    assert len(with_client(lambda _: wrong, body).asked) == 1


def test_a_refused_request_is_not_repeated() -> None:
    """A 400 about this request fails it alone, at once."""

    async def body(client: Client, _: Server) -> None:
        with pytest.raises(CallFailed) as failed:
            await client.ask(request())
        assert failed.value.failure is Failure.REFUSED

    assert len(with_client(lambda _: Answer("content policy", status=400), body).asked) == 1


def test_where_no_server_is_the_run_stops_soon() -> None:
    """An address that nobody answers at is an error of the run, not of a document."""

    async def run() -> None:
        client = Client(ClientSettings("openai/m", "http://127.0.0.1:9/v1"))
        with pytest.raises(ModelError, match="no server answers"):
            await client.ask(request())
        await client.close()

    start = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - start < 8


def test_when_nothing_ever_succeeds_the_run_stops() -> None:
    """Twenty requests that failed without one success end the run."""

    async def body(client: Client, _: Server) -> None:
        outcomes = [
            await asyncio.gather(client.ask(request(f"n{number}")), return_exceptions=True)
            for number in range(20)
        ]
        assert [type(outcome[0]) for outcome in outcomes] == [CallFailed] * 19 + [ModelError]

    with_client(lambda _: Answer("oops", status=500), body, max_attempts=1)


def test_a_provider_that_wants_no_call_for_hours_ends_the_run() -> None:
    """Waiting that long is the user's to decide; nobody else calls meanwhile."""

    async def body(client: Client, _: Server) -> None:
        outcomes = await asyncio.gather(
            *(client.ask(request(f"n{number}")) for number in range(5)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [ModelError] * 5
        assert "for 7200 seconds" in str(outcomes[0])

    refused = Answer("daily limit", status=429, headers={"Retry-After": "7200"})
    assert len(with_client(lambda _: refused, body, concurrency=1).asked) == 1


def test_a_limit_on_calls_counts_what_is_sent() -> None:
    """--max-calls 3 sends three requests, retries among them."""

    async def body(client: Client, _: Server) -> None:
        await client.ask(request("a"))
        with pytest.raises(LimitReached):
            await client.ask(request("b"))

    def script(asked: Asked) -> Answer:
        return Answer("hi") if asked.number == 0 else Answer("oops", status=500)

    assert len(with_client(script, body, ledger=Ledger(max_calls=3)).asked) == 3


def test_a_server_that_reports_no_tokens_has_them_counted() -> None:
    """Without usage the tokens are counted here."""

    async def body(client: Client, _: Server) -> None:
        reply = await client.ask(request())
        assert reply.usage.completion == 2
        assert reply.usage.prompt >= 3

    with_client(lambda _: Answer("hello world", usage=False), body)


def test_a_streamed_reply_arrives_in_pieces_and_is_kept(tmp_path: Path) -> None:
    """Pieces are passed on as they come; the whole is cached, counted, and comes in one piece next time."""
    cache = ReplyCache(tmp_path / "c")

    async def body(client: Client, _: Server) -> None:
        pieces: list[str] = []
        reply = await client.stream(request(), pieces.append)
        assert "".join(pieces) == reply.text == "one two three"
        assert len(pieces) == 3
        assert reply.finish_reason == "stop"
        assert reply.usage.completion > 0
        again: list[str] = []
        assert (await client.stream(request(), again.append)).from_cache
        assert again == ["one two three"]

    assert len(with_client(lambda _: Answer("one two three"), body, cache=cache).asked) == 1
    cache.close()


def test_a_stream_that_breaks_off_is_not_begun_again() -> None:
    """What was shown cannot be taken back; a failure before the first piece is repeated."""
    broken = b'data: {"choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n'

    async def body(client: Client, _: Server) -> None:
        pieces: list[str] = []
        with pytest.raises(CallFailed, match="ended before"):
            await client.stream(request(), pieces.append)
        assert pieces == ["half"]

    server = with_client(
        lambda asked: Answer("oops", status=500) if asked.number == 0 else Answer(body=broken), body
    )
    assert len(server.asked) == 2


def test_the_key_is_sent_and_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's key reaches the server's header and never the cache's file."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key-123456")
    cache = ReplyCache(tmp_path / "c")

    async def body(client: Client, _: Server) -> None:
        await client.ask(request())

    server = with_client(lambda _: Answer("hi"), body, cache=cache)
    cache.close()
    assert server.asked[0].headers["authorization"] == "Bearer sk-very-secret-key-123456"
    assert all(b"very-secret" not in file.read_bytes() for file in tmp_path.iterdir())


def test_many_callers_at_an_impatient_server_all_get_their_reply() -> None:
    """A server that takes four at a time and refuses the rest with 429 is served in the end."""
    window: list[float] = []

    def script(asked: Asked) -> Answer:
        window[:] = [at for at in window if asked.at - at < 0.05]
        if len(window) >= 4:
            return Answer("slow down", status=429, headers={"Retry-After": "0.05"})
        window.append(asked.at)
        return Answer(json.dumps({"n": asked.number}))

    async def body(client: Client, _: Server) -> None:
        replies = await asyncio.gather(*(client.ask(request(f"n{number}")) for number in range(60)))
        assert len(replies) == 60

    with_client(script, body, concurrency=50, max_attempts=12)
