"""The two ways a call leaves: straight to an OpenAI-compatible server, or through litellm to any provider.

litellm takes seconds to import and some milliseconds of processor time a call, more than a server
that answers quickly; a server that speaks OpenAI's own protocol needs none of it.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import orjson

from mrag_cli.parts.llm.failures import CallFailed, Failure, meaning_of, retry_after
from mrag_cli.parts.llm.request import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import aiohttp

    from mrag_cli.parts.llm.request import Message, Request


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a provider sent: text, finish reason, tokens (None: not reported), cost if it is known."""

    text: str
    finish_reason: str
    usage: Usage | None
    cost: float | None = None


class Transport(Protocol):
    """Sends one request once."""

    async def send(self, request: Request, on_text: Callable[[str], None] | None = None) -> Arrived:
        """Send a request; with ``on_text`` the reply is streamed, and each piece is given to it.

        Raises:
            CallFailed: no reply came.
        """

    async def close(self) -> None:
        """Close what is open."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where calls go and what they carry.

    Attributes:
        model: litellm's name of the model, ``provider/name``.
        api_base: address of an OpenAI-compatible server, or None for the provider's own.
        params: further parameters of each call, temperature among them.
        timeout: seconds after which a call is given up.
    """

    model: str
    api_base: str | None
    params: Mapping[str, Any]
    timeout: float


def transport_to(target: Target) -> Transport:
    """Return the way to a target: direct for ``openai/…`` at an ``api_base``, else litellm."""
    if target.api_base is not None and target.model.startswith("openai/"):
        return DirectTransport(target)
    return LitellmTransport(target)


def _response_format(request: Request) -> dict[str, Any]:
    if request.schema is None:
        return {}
    schema = {"name": "reply", "strict": True, "schema": request.schema}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


class DirectTransport:
    """OpenAI's chat protocol over HTTP. The key, if the server wants one, is ``OPENAI_API_KEY``."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._url = f"{(target.api_base or '').rstrip('/')}/chat/completions"
        # looked up once: aiohttp itself would ask a thread for it before every request
        self._proxy = _proxy(self._url)
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, on_text: Callable[[str], None] | None = None) -> Arrived:
        """Send a request; see `Transport`."""
        import aiohttp

        if self._session is None:
            key = os.environ.get("OPENAI_API_KEY")
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers={"Authorization": f"Bearer {key}"} if key else {},
                timeout=aiohttp.ClientTimeout(total=self._target.timeout),
            )
        try:
            async with self._session.post(
                self._url,
                data=orjson.dumps(self._body(request, stream=on_text is not None)),
                headers={"Content-Type": "application/json"},
                proxy=self._proxy,
            ) as answer:
                if answer.status != 200:
                    headers = {name.lower(): value for name, value in answer.headers.items()}
                    raise _failed(answer.status, await answer.text(errors="replace"), headers)
                if on_text is None:
                    return _arrived(await answer.read())
                return await _streamed(_events(answer.content), on_text)
        except TimeoutError:
            raise CallFailed(Failure.BROKEN, f"no reply within {self._target.timeout:g} seconds") from None
        except aiohttp.ClientConnectorError as error:
            raise CallFailed(Failure.UNREACHABLE, str(error)) from None
        except aiohttp.ClientError as error:
            raise CallFailed(Failure.BROKEN, f"{type(error).__name__}: {error}") from None

    def _body(self, request: Request, *, stream: bool) -> dict[str, Any]:
        body = {
            "model": self._target.model.removeprefix("openai/"),
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
            "max_tokens": request.max_tokens,
            **_response_format(request),
            **self._target.params,
        }
        return {**body, "stream": True, "stream_options": {"include_usage": True}} if stream else body

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment (``HTTPS_PROXY``, ``NO_PROXY``) names for an address."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc.rpartition("@")[2]) else getproxies().get(parts.scheme)


def _failed(status: int, body: str, headers: Mapping[str, str]) -> CallFailed:
    try:
        found = orjson.loads(body)
        error = found.get("error", found)
        told = (
            error
            if isinstance(error, str)
            else f"{error.get('message', '')} {error.get('code') or ''}".strip()
        )
    except (orjson.JSONDecodeError, AttributeError):
        told = ""
    return CallFailed(
        meaning_of(status, body), f"HTTP {status}: {(told or body.strip())[:300]}", retry_after(headers)
    )


def _arrived(body: bytes) -> Arrived:
    """Read a whole answer.

    Raises:
        CallFailed: it is not what the protocol says.
    """
    try:
        found = orjson.loads(body)
        choice = found["choices"][0]
        text = choice["message"].get("content") or ""
        if isinstance(text, list):
            text = "".join(part.get("text", "") for part in text)
        return Arrived(text, choice.get("finish_reason") or "stop", _usage(found.get("usage")))
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError):
        shown = body[:120].decode(errors="replace")
        raise CallFailed(Failure.BROKEN, f"the answer is no chat completion: {shown!r}") from None


def _usage(found: Mapping[str, Any] | None) -> Usage | None:
    if not found or found.get("prompt_tokens") is None:
        return None
    details = found.get("prompt_tokens_details") or {}
    return Usage(
        int(found["prompt_tokens"]),
        int(found.get("completion_tokens") or 0),
        # DeepSeek reports its cache under a name of its own.
        int(details.get("cached_tokens") or found.get("prompt_cache_hit_tokens") or 0),
    )


async def _events(content: aiohttp.StreamReader) -> AsyncIterator[Mapping[str, Any]]:
    rest = b""
    async for piece in content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            told = line.strip().removeprefix(b"data:").strip()
            if line.startswith(b"data:") and told and told != b"[DONE]":
                try:
                    yield orjson.loads(told)
                except orjson.JSONDecodeError:
                    raise CallFailed(Failure.BROKEN, f"a broken stream: {told[:80]!r}") from None


async def _streamed(events: AsyncIterator[Mapping[str, Any]], on_text: Callable[[str], None]) -> Arrived:
    pieces: list[str] = []
    finish, usage = "", None
    async for event in events:
        if event.get("error"):
            raise CallFailed(Failure.BROKEN, f"the stream broke off: {str(event['error'])[:200]}")
        usage = _usage(event.get("usage")) or usage
        for choice in event.get("choices") or []:
            piece = (choice.get("delta") or {}).get("content") or ""
            if piece:
                pieces.append(piece)
                on_text(piece)
            finish = choice.get("finish_reason") or finish
    if not finish:
        raise CallFailed(Failure.BROKEN, "the stream ended before the reply did")
    return Arrived("".join(pieces), finish, usage)


class LitellmTransport:
    """Any provider that litellm knows. Keys are read by litellm from the environment."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._litellm: Any = None

    async def send(self, request: Request, on_text: Callable[[str], None] | None = None) -> Arrived:
        """Send a request; see `Transport`."""
        if self._litellm is None:
            self._litellm = silent_litellm()
        try:
            async with asyncio.timeout(self._target.timeout):
                answer = await self._litellm.acompletion(
                    **self._arguments(request, stream=on_text is not None)
                )
                if on_text is None:
                    return _read(answer)
                return await _streamed(_dictionaries(answer), on_text)
        except CallFailed:
            raise
        except TimeoutError:
            raise CallFailed(Failure.BROKEN, f"no reply within {self._target.timeout:g} seconds") from None
        except Exception as error:  # noqa: BLE001 - providers' errors have no common class
            raise translated(error) from None

    def _arguments(self, request: Request, *, stream: bool) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._target.model,
            "messages": [marked(message, self._target.model) for message in request.messages],
            "max_tokens": request.max_tokens,
            "timeout": self._target.timeout,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            **_response_format(request),
            **self._target.params,
        }
        if self._target.api_base is not None:
            arguments["api_base"] = self._target.api_base
        if stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        return arguments

    async def close(self) -> None:
        """Close the connections that litellm keeps open."""
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()


def marked(message: Message, model: str) -> dict[str, Any]:
    """Return a message as litellm takes it; Claude's prompt cache wants to be told what stays the same."""
    if not message.stable or "claude" not in model:
        return {"role": message.role, "content": message.text}
    stable = {
        "type": "text",
        "text": message.text[: message.stable],
        "cache_control": {"type": "ephemeral"},
    }
    rest = message.text[message.stable :]
    return {"role": message.role, "content": [stable, {"type": "text", "text": rest}] if rest else [stable]}


def silent_litellm() -> Any:
    """Import litellm so that it prints nothing, fetches nothing, tells nobody anything."""
    import logging
    import warnings

    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # litellm points tiktoken at its own vocabularies when it is imported; the user's own choice stands.
    if "TIKTOKEN_CACHE_DIR" in os.environ:
        os.environ.setdefault("CUSTOM_TIKTOKEN_CACHE_DIR", os.environ["TIKTOKEN_CACHE_DIR"])
    # Some of its models are made when they are first used, so the filter stays.
    warnings.filterwarnings("ignore", module=r"(?:pydantic|litellm|openai)\b")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _read(answer: Any) -> Arrived:
    choice = answer.choices[0]
    found = answer.get("usage")
    usage = _usage(found.model_dump() if found is not None else None)
    cost = getattr(answer, "_hidden_params", {}).get("response_cost")
    return Arrived(choice.message.content or "", choice.finish_reason or "stop", usage, cost)


async def _dictionaries(answer: Any) -> AsyncIterator[Mapping[str, Any]]:
    async for piece in answer:
        yield piece.model_dump()


def translated(error: Exception) -> CallFailed:
    """Return what an exception of litellm means."""
    status = getattr(error, "status_code", None)
    text = str(error)
    headers = getattr(error, "litellm_response_headers", None) or {}
    found = {str(name).lower(): str(value) for name, value in dict(headers).items()}
    name = type(error).__name__
    if name == "Timeout":
        return CallFailed(Failure.BROKEN, "no reply within the time limit")
    meaning = meaning_of(status if isinstance(status, int) else None, text)
    if name == "ContextWindowExceededError":
        meaning = Failure.TOO_LONG
    return CallFailed(meaning, " ".join(text.split())[:300], retry_after(found))
