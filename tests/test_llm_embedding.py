import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mrag_cli.ground.errors import ModelError
from mrag_cli.parts.embedders import embedder
from mrag_cli.parts.llm.embedding import embed


@contextmanager
def serving(
    status: int = 200, *, short: bool = False, most: int = 99
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve OpenAI's embeddings: a text's length and its order, last first; yields address and requests."""
    asked: list[dict[str, Any]] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer a request."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            texts = body["input"][:-1] if short else body["input"]
            found = [
                {"object": "embedding", "index": n, "embedding": [float(len(text)), float(n)]}
                for n, text in enumerate(texts)
            ]
            told: dict[str, Any] = {"object": "list", "model": body["model"], "data": found[::-1]}
            told["usage"] = {"prompt_tokens": 1, "total_tokens": 1}
            if len(texts) > most:
                told = {"error": {"message": f"at most {most} texts are taken", "code": None}}
            elif status != 200:
                told = {"error": {"message": "Incorrect API key provided: sk-abcdefghijklmnop", "code": None}}
            sent = json.dumps(told).encode()
            self.send_response(400 if len(texts) > most else status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", asked
        finally:
            server.shutdown()


def test_embeddings_come_in_the_order_of_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever order the provider answers in."""
    with serving() as (url, asked):
        monkeypatch.setenv("OPENAI_API_BASE", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert embed("openai/text-embedding-3-small", ["a", "bbb", "cc"]) == [[1, 0], [3, 1], [2, 2]]
    assert asked[0]["input"] == ["a", "bbb", "cc"]


def test_too_few_embeddings_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text never gets another text's vector."""
    with serving(short=True) as (url, _):
        monkeypatch.setenv("OPENAI_API_BASE", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with pytest.raises(ModelError, match="1 embeddings came for 2 texts"):
            embed("openai/text-embedding-3-small", ["a", "b"])


def test_a_wrong_key_is_an_error_that_shows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to check."""
    with serving(401) as (url, _):
        monkeypatch.setenv("OPENAI_API_BASE", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with pytest.raises(ModelError, match="check the model's name") as error:
            embed("openai/text-embedding-3-small", ["a"])
    assert "abcdefgh" not in str(error.value)


def test_a_provider_that_takes_few_texts_gets_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of too many texts is answered with fewer of them, and no text is lost."""
    with serving(most=2) as (url, asked):
        monkeypatch.setenv("OPENAI_API_BASE", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        found = embedder("openai/text-embedding-3-small").embed(["a", "bb", "ccc", "dddd"])
    assert found.shape == (4, 2)
    assert [body["input"] for body in asked if len(body["input"]) <= 2] == [["a", "bb"], ["ccc", "dddd"]]
