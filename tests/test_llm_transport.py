"""Both ways out against the same server; litellm is imported once for the file."""

import asyncio
import subprocess
import sys
from base64 import b64encode

import pytest
from loopback import Answer, Script, Server, serving

from mrag_cli.parts.llm.failures import CallFailed, Failure
from mrag_cli.parts.llm.request import Message, Request
from mrag_cli.parts.llm.transport import (
    Arrived,
    DirectTransport,
    LitellmTransport,
    Target,
    Transport,
    marked,
    transport_to,
)

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
REQUEST = Request((Message("system", "be brief"), Message("user", "hello")), 50, "test", SCHEMA)
BOTH = pytest.mark.parametrize("way", ["direct", "litellm"])


def transport(way: str, url: str, timeout: float = 20.0) -> Transport:
    """Return one of the two ways to a server."""
    params = {"temperature": 0.0, "top_p": 0.5}
    if way == "direct":
        return DirectTransport(Target("openai/loopback", url, params, timeout))
    return LitellmTransport(Target("hosted_vllm/loopback", url, params, timeout))


def send(
    way: str, script: Script, *, timeout: float = 20.0, pieces: list[str] | None = None
) -> tuple[Arrived | CallFailed, Server]:
    """Send the request once; returns what came, or the failure, and the server."""

    async def run(url: str) -> Arrived | CallFailed:
        made = transport(way, url, timeout)
        try:
            return await made.send(REQUEST, pieces.append if pieces is not None else None)
        except CallFailed as failed:
            return failed
        finally:
            await made.close()

    with serving(script) as server:
        return asyncio.run(run(server.url)), server


def arrived(outcome: Arrived | CallFailed) -> Arrived:
    """Return what came, which must not be a failure."""
    assert isinstance(outcome, Arrived), outcome
    return outcome


@BOTH
def test_a_request_arrives_whole(way: str) -> None:
    """Messages, limit, schema and parameters reach the server; text, finish reason and tokens come back."""
    outcome, server = send(way, lambda _: Answer("hi there", finish="length", cached=3))
    found = arrived(outcome)
    assert (found.text, found.finish_reason) == ("hi there", "length")
    assert found.usage is not None
    assert found.usage.cached == 3
    body = server.asked[0].body
    assert body["model"] == "loopback"
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
    ]
    assert body["max_tokens"] == 50
    assert body["temperature"] == 0
    assert body["top_p"] == 0.5
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA


@BOTH
def test_a_streamed_reply_comes_in_pieces_with_its_tokens(way: str) -> None:
    """The pieces make the text, and usage comes at the end."""
    pieces: list[str] = []
    found = arrived(send(way, lambda _: Answer("one two three"), pieces=pieces)[0])
    assert "".join(pieces) == found.text == "one two three"
    assert len(pieces) >= 2
    assert found.finish_reason == "stop"
    assert found.usage is not None
    assert found.usage.prompt > 0


@BOTH
def test_a_refusal_without_content_is_an_empty_text(way: str) -> None:
    """A message whose content is null is no error."""
    assert arrived(send(way, lambda _: Answer(None))[0]).text == ""


@BOTH
@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (Answer("Incorrect API key provided: sk-abcdefghijklmnop", status=401), Failure.FATAL),
        (Answer("The model `loopback` does not exist", status=404), Failure.FATAL),
        (Answer("slow down", status=429, headers={"Retry-After": "7"}), Failure.BUSY),
        (Answer("maximum context length is 512 tokens", status=400), Failure.TOO_LONG),
        (Answer("roles must alternate", status=400), Failure.REFUSED),
        (Answer("oops", status=500), Failure.BROKEN),
        (Answer("overloaded", status=503, headers={"Retry-After": "7"}), Failure.BUSY),
        (Answer(drop=True), Failure.BROKEN),
        (Answer(body=b"<html>"), Failure.BROKEN),
    ],
    ids=["401", "404", "429", "too-long", "400", "500", "503", "dropped", "html"],
)
def test_failures_mean_the_same_on_both_ways(way: str, answer: Answer, meaning: Failure) -> None:
    """Each failure is one attempt, is understood, carries the server's delay, and shows no key."""
    outcome, server = send(way, lambda _: answer)
    assert isinstance(outcome, CallFailed), outcome
    assert outcome.failure is meaning, str(outcome)
    assert outcome.retry_after == (7 if "Retry-After" in answer.headers else None)
    assert "abcdefgh" not in str(outcome)
    assert len(server.asked) == 1


@BOTH
def test_a_server_that_hangs_is_given_up(way: str) -> None:
    """The time limit ends the call."""
    outcome, _ = send(way, lambda _: Answer("late", delay=30), timeout=0.5)
    assert isinstance(outcome, CallFailed)
    assert outcome.failure is Failure.BROKEN
    assert "0.5 seconds" in str(outcome) or "time limit" in str(outcome)


@BOTH
def test_an_address_where_nobody_is_is_unreachable(way: str) -> None:
    """A refused connection is told from a server's failure."""

    async def run() -> None:
        made = transport(way, "http://127.0.0.1:9/v1")
        with pytest.raises(CallFailed) as failed:
            await made.send(REQUEST)
        assert failed.value.failure is Failure.UNREACHABLE
        await made.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("model", "told"), [("nonsense", "provider"), ("openai/gpt-4o-mini", "credentials")], ids=["model", "key"]
)
def test_a_missing_key_and_a_name_without_provider_are_fatal(
    model: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Litellm's own complaints end the run at once."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async def run() -> None:
        made = LitellmTransport(Target(model, None, {}, 10.0))
        with pytest.raises(CallFailed) as failed:
            await made.send(REQUEST)
        assert failed.value.failure is Failure.FATAL
        assert told in str(failed.value).lower()
        await made.close()

    asyncio.run(run())


def test_an_openai_model_at_an_address_is_asked_directly() -> None:
    """Everything else goes through litellm."""
    assert isinstance(transport_to(Target("openai/m", "http://h/v1", {}, 1.0)), DirectTransport)
    assert isinstance(transport_to(Target("openai/m", None, {}, 1.0)), LitellmTransport)
    assert isinstance(transport_to(Target("ollama/m", "http://h/v1", {}, 1.0)), LitellmTransport)


def test_claude_is_told_what_stays_the_same() -> None:
    """Its prompt cache wants a mark; other providers get plain text."""
    message = Message("user", "prefix rest", stable=6)
    content = marked(message, "anthropic/claude-haiku-4-5")["content"]
    assert [part["text"] for part in content] == ["prefix", " rest"]
    assert content[0]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in content[1]
    assert marked(message, "openai/gpt-4o-mini") == {"role": "user", "content": "prefix rest"}
    assert marked(Message("user", "rest"), "anthropic/claude-haiku-4-5")["content"] == "rest"


def test_litellm_prints_nothing_and_the_direct_way_does_not_import_it() -> None:
    """A process that fails and succeeds through litellm leaves stdout and stderr empty."""
    program = (
        "import asyncio, sys\n"
        "from mrag_cli.parts.llm.request import Message, Request\n"
        "from mrag_cli.parts.llm.transport import Target, transport_to\n"
        "from mrag_cli.parts.llm.failures import CallFailed\n"
        "request = Request((Message('user', 'hello'),), 5, 'test')\n"
        "async def main():\n"
        "    direct = transport_to(Target('openai/m', sys.argv[1], {}, 10.0))\n"
        "    await direct.send(request)\n"
        "    await direct.close()\n"
        "    assert 'litellm' not in sys.modules and 'openai' not in sys.modules\n"
        "    for url in (sys.argv[1], 'http://127.0.0.1:9/v1'):\n"
        "        made = transport_to(Target('hosted_vllm/m', url, {}, 10.0))\n"
        "        try:\n"
        "            await made.send(request)\n"
        "        except CallFailed:\n"
        "            pass\n"
        "        await made.close()\n"
        "asyncio.run(main())\n"
    )
    with serving(lambda _: Answer("hi")) as server:
        done = subprocess.run(
            [sys.executable, "-c", program, server.url], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request goes through the proxy that the environment names, unless it excepts the address."""
    with serving(lambda _: Answer("by the proxy")) as proxy, serving(lambda _: Answer("itself")) as server:
        address = proxy.url.removesuffix("/v1").replace("http://", "http://anna:secret@")
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert _said(server.url) == "by the proxy"
        assert proxy.asked[0].headers["proxy-authorization"] == f"Basic {b64encode(b'anna:secret').decode()}"
        monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
        assert _said(server.url) == "itself"


def _said(url: str) -> str:
    async def run() -> str:
        made = transport("direct", url)
        try:
            return (await made.send(REQUEST)).text
        finally:
            await made.close()

    return asyncio.run(run())
