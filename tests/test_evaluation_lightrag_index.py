"""LightRAG itself against a server on loopback, and the packing of what it finds."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from zlib import crc32

from evaluations import ROWS, write_rows
from loopback import Answer, Asked, serving

from mrag_cli.parts.evaluation.lightrag_index import pack_graph
from mrag_cli.parts.tokens import count


def test_each_kind_gets_its_share() -> None:
    """Entities have a fifth of the budget, relations 8/30, chunks the rest; the last chunk is cut."""
    sentence = "The north quay was rebuilt in nineteen thirty one by the town."
    found = {
        "entities": [{"entity_name": f"E{n}", "description": sentence, "file_path": "d"} for n in range(30)],
        "relationships": [
            {"src_id": "A", "tgt_id": f"B{n}", "description": sentence, "file_path": "d"} for n in range(30)
        ],
        "chunks": [{"content": " ".join([sentence] * 40), "file_path": "d"}],
    }
    packed = pack_graph(found, 300)
    texts = [evidence.text for evidence in packed.evidence]
    entities = [text for text in texts if re.match(r"E\d+: ", text)]
    relations = [text for text in texts if re.match(r"A - B\d+: ", text)]
    assert 0 < sum(map(count, entities)) <= 60
    assert 0 < sum(map(count, relations)) <= 80
    assert len(texts) == len(entities) + len(relations) + 1
    assert 290 <= packed.tokens <= 300
    assert packed.tokens == count(packed.context)


def test_nothing_found_gives_an_empty_context() -> None:
    """No result, or none that fits, is an empty context."""
    assert pack_graph({}, 100).context == ""
    assert pack_graph({"chunks": [{"content": "words of a chunk"}]}, 0).context == ""
    assert pack_graph({"chunks": [{"content": "  "}, {"content": "words"}]}, 9).context == "words"


class _Embeddings(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def do_POST(self) -> None:
        """Count words into 32 places."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        rows = []
        for number, text in enumerate(body["input"]):
            vector = [0.0] * 32
            for word in re.findall(r"\w+", text.lower()):
                vector[crc32(word.encode()) % 32] += 1.0
            rows.append({"index": number, "embedding": vector})
        reply = json.dumps({"data": rows}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


@contextmanager
def _embedding() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Embeddings)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1#words"
    finally:
        server.shutdown()
        server.server_close()


def _graph(asked: Asked) -> Answer:
    """Reply as LightRAG's prompts want it: keywords as JSON, entities and relations as delimited lines."""
    if "high_level_keywords" in asked.prompt:
        return Answer(json.dumps({"high_level_keywords": ["town"], "low_level_keywords": ["quay", "lamp"]}))
    lines = [
        "entity<|#|>North Quay<|#|>location<|#|>The north quay was rebuilt by Ida Marsh.",
        "entity<|#|>Ida Marsh<|#|>person<|#|>Ida Marsh rebuilt the north quay.",
        "relation<|#|>Ida Marsh<|#|>North Quay<|#|>builder<|#|>Ida Marsh rebuilt the quay.",
        "<|COMPLETE|>",
    ]
    return Answer("\n".join(lines))


def test_lightrag_is_measured_with_its_calls(tmp_path: Path) -> None:
    """It inserts, retrieves and is scored under the budgets; its calls and tokens are in the report."""
    data = write_rows(tmp_path / "town.jsonl", ROWS[:2])
    report = tmp_path / "report.json"
    with serving(_graph) as server, _embedding() as embedder:
        command = [
            *(sys.executable, "-m", "mrag_cli", "eval", str(data), "--systems", "fixed,lightrag"),
            *("--retrievers", "dense", "--budgets", "64,128", "--embedder", embedder),
            *("--extract-model", "openai/m", "--api-base", server.url),
            *("--cache", str(tmp_path / "cache.sqlite3"), "-o", str(report)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text("utf-8"))
    rows = {(row["system"], row["budget"]): row["measures"] for row in found["results"]}
    assert rows["lightrag", 128]["answer_recall"]["mean"] == 1.0
    assert rows["lightrag", 64]["tokens"]["mean"] <= 64
    assert "hit@1" not in rows["lightrag", 64]
    (own,) = [entry for entry in found["indexing"] if entry["system"] == "lightrag"]
    assert own["calls"] >= 2
    assert own["prompt_tokens"] > 1000
    assert own["cost"] is None
