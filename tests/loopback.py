"""A real HTTP server on loopback that speaks OpenAI's chat API and misbehaves as its script says.

A script is a callable from a request to an `Answer`; `faithful` writes one marker for each unit asked for.
``python tests/loopback.py --delay 0.2`` serves `faithful` from a process of its own and prints the address.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with a request.

    Attributes:
        text: the reply's text; None for a refusal without content.
        finish: its finish reason.
        delay: seconds before it is sent.
        cached: prompt tokens reported as cached.
        status: HTTP status; other than 200, ``text`` becomes the error's message.
        code: the error's code.
        headers: further headers.
        body: bytes sent in place of a chat completion.
        drop: close the connection without an answer.
        usage: report token counts.
    """

    text: str | None = ""
    finish: str = "stop"
    delay: float = 0.0
    cached: int = 0
    status: int = 200
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    drop: bool = False
    usage: bool = True


@dataclass(frozen=True)
class Asked:
    """A request as the server got it.

    Attributes:
        body: its JSON.
        number: how many came before it.
        at: when it came, in seconds of `time.monotonic`.
        headers: its headers, names in lower case.
    """

    body: dict[str, Any]
    number: int
    at: float
    headers: Mapping[str, str]

    @cached_property
    def prompt(self) -> str:
        """All messages' text."""
        return "\n".join(str(message["content"]) for message in self.body["messages"])

    @cached_property
    def units(self) -> list[int]:
        """The units that markers are asked for."""
        asked = re.search(r"units and no others: ([^.]*)\.", self.prompt)
        found: list[int] = []
        for first, last in re.findall(r"<(\d+)>(?:-<(\d+)>)?", asked[1] if asked else ""):
            found.extend(range(int(first), int(last or first) + 1))
        return found

    @cached_property
    def shown(self) -> dict[int, str]:
        """The text of each unit that the prompt shows."""
        pieces = re.split(r"^<(\d+)> ", self.prompt, flags=re.MULTILINE)
        found: dict[int, str] = {}
        for number, text in zip(pieces[1::2], pieces[2::2], strict=True):
            own = re.split(r"\n\n=== |\n\[[^\n]*\]$", text.rstrip("\n"), maxsplit=1)[0].strip()
            found[int(number)] = f"{found[int(number)]} {own}" if int(number) in found else own
        return found


Script = Callable[[Asked], Answer]


def marker(asked: Asked, unit: int) -> dict[str, Any]:
    """Return the marker that `faithful` writes for a unit."""
    text = asked.shown.get(unit, "")
    return {
        "key": f"What does unit {unit} say of {' '.join(text.split()[:6])}?",
        "value": text,
        "pointers": [unit],
    }


def faithful(asked: Asked) -> Answer:
    """Write one marker for each unit asked for."""
    return Answer(json.dumps({"markers": [marker(asked, unit) for unit in asked.units]}, ensure_ascii=False))


class Server:
    """The running server.

    Attributes:
        url: its address, for ``--api-base``.
        asked: the requests it got, in order of arrival.
        returned: number of requests that it answered in full.
        most: most requests that were open at once.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.returned = 0
        self.most = 0
        self.url = ""
        self._open = 0

    async def serve(self, port: int, ready: Callable[[], None]) -> None:
        """Serve until cancelled."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", port, backlog=1024, limit=1 << 26)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready()
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
            if name
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(json.loads(body), len(self.asked), time.monotonic(), headers)
        self.asked.append(asked)
        self._open += 1
        self.most = max(self.most, self._open)
        try:
            answer = self.script(asked)
            await asyncio.sleep(answer.delay)
            if answer.drop:
                return False
            writer.write(_response(asked, answer))
            await writer.drain()
            self.returned += 1
        finally:
            self._open -= 1
        return True


def _response(asked: Asked, answer: Answer) -> bytes:
    kind = "application/json"
    if answer.body is not None:
        body = answer.body
    elif answer.status != 200:
        body = json.dumps({"error": {"message": answer.text, "type": "error", "code": answer.code}}).encode()
    elif asked.body.get("stream"):
        kind, body = "text/event-stream", _events(asked, answer)
    else:
        body = json.dumps(_completion(asked, answer)).encode()
    lines = [f"HTTP/1.1 {answer.status} Scripted", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _usage(asked: Asked, answer: Answer) -> dict[str, Any]:
    prompt, completion = len(asked.prompt) // 4, len(answer.text or "") // 4
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": answer.cached},
    }


def _completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text}
    found: dict[str, Any] = {
        "id": "loopback",
        "object": "chat.completion",
        "created": 1,
        "model": asked.body["model"],
        "choices": [{"index": 0, "finish_reason": answer.finish, "message": message}],
    }
    return {**found, "usage": _usage(asked, answer)} if answer.usage else found


def _events(asked: Asked, answer: Answer) -> bytes:
    pieces = re.findall(r"\S+\s*", answer.text or "")
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"role": "assistant", "content": p}} for p in pieces
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": answer.finish})
    common = {"id": "loopback", "object": "chat.completion.chunk", "created": 1, "model": asked.body["model"]}
    events: list[dict[str, Any]] = [{**common, "choices": [choice]} for choice in choices]
    events.append({**common, "choices": [], "usage": _usage(asked, answer)})
    return (
        b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    )


@contextmanager
def serving(script: Script = faithful) -> Iterator[Server]:
    """Serve from a thread while the block runs."""
    server = Server(script)
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    task = loop.create_task(server.serve(0, ready.set))

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            rest = asyncio.all_tasks(loop)
            for other in rest:
                other.cancel()
            loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)


def main() -> None:
    """Serve `faithful` from this process; the first line printed is the address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument(
        "--count-file", type=Path, default=None, help="rewritten with requests and most at once"
    )
    chosen = parser.parse_args()

    def script(asked: Asked) -> Answer:
        asked_for = faithful(asked)
        if chosen.count_file is not None:
            chosen.count_file.write_text(f"{len(server.asked)} {server.most}")
        if len(server.asked) > 64:
            # Only the newest requests are kept, so that a long run's memory stays the server's own.
            server.asked[:-32] = [None] * len(server.asked[:-32])  # type: ignore[list-item]
        return Answer(asked_for.text, delay=chosen.delay)

    server = Server(script)
    asyncio.run(server.serve(0, lambda: print(server.url, flush=True)))  # noqa: T201 - its one result


if __name__ == "__main__":
    main()
