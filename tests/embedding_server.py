"""A real HTTP server on loopback that speaks OpenAI's embeddings API and misbehaves as its script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kb import vector_of


@dataclass(frozen=True, slots=True)
class Given:
    """What the server answers with.

    Attributes:
        body: JSON, or bytes that are sent as they are.
        status: HTTP status.
        headers: further headers.
        delay: seconds before it is sent.
        announced: the Content-Length, where it is not the body's own.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    announced: int | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """A request as the server got it: its path, its JSON, its headers with names in lower case."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        found: list[str] = self.body["input"]
        return found


Script = Callable[[Post, int], Given]


def rows(vectors: list[list[float]]) -> dict[str, Any]:
    """Return the JSON of a reply with these vectors, in this order."""
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return {"object": "list", "data": data}


def faithful(post: Post, number: int) -> Given:  # noqa: ARG001 - a script gets both
    """Answer with vectors that hash words, the last text's first."""
    reply = rows([vector_of(text) for text in post.texts])
    return Given({**reply, "data": reply["data"][::-1]})


@contextmanager
def serving(script: Script = faithful) -> Iterator[tuple[str, list[Post]]]:
    """Serve from a thread while the block runs; yields the address and the requests so far."""
    posts: list[Post] = []
    over = threading.Event()

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer a request as the script says."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            posts.append(Post(self.path, body, headers))
            given = script(posts[-1], len(posts) - 1)
            over.wait(given.delay)
            sent = given.body if isinstance(given.body, bytes) else json.dumps(given.body).encode()
            try:
                self.send_response(given.status)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(given.announced or len(sent)))
                self.end_headers()
                self.wfile.write(sent)
            except ConnectionError:
                pass  # the client has given up

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", posts
        finally:
            over.set()
            server.shutdown()
            thread.join(5)


def unused_address() -> str:
    """Return an address at which nobody listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return f"http://127.0.0.1:{server.server_port}"
