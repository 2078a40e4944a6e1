"""Measure the index against bm25s, SQLite FTS5, tantivy, hnswlib and a memory-mapped matrix.

    python tests/benchmarks/index.py FOLDER [--markers 200000 1000000] [--dense 200000] [--rounds 7] [--alone]

Everything is made in FOLDER from a seed, once: what is there is used again. Every arm is a process of its own
with one thread and warm files; arms take turns, and figures are medians. Processor seconds are user and
system together, of the whole process, interpreter and imports included, unless a line says otherwise.
``--alone`` leaves the others out, for sizes such as 5000000.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import synthetic

HERE = Path(__file__).parent
RIVALS = [sys.executable, str(HERE / "index_rivals.py")]
MRAG = [sys.executable, "-m", "mrag_cli"]
RARE = "condition flight followers executive"
FREQUENT = "the condition of the flight with followers and an executive"
DIMENSION = 384


class Run(NamedTuple):
    """What a process took: processor and wall seconds, peak MiB, and what it printed last."""

    cpu: float
    wall: float
    peak: float
    said: str


def run(command: list[str]) -> Run:
    """Run a process to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    lines = said.splitlines() or [""]
    return Run(usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1024, lines[-1])


class Bench:
    """The folder, and the figures of what was built in it."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self._file = folder / "figures.json"
        self.figures: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}

    def once(self, name: str, made: Path, command: list[str]) -> Run:
        """Build something that is not there yet; return what that took."""
        if name not in self.figures or not made.exists():
            shutil.rmtree(made, ignore_errors=True) if made.is_dir() else made.unlink(missing_ok=True)
            self.figures[name] = run(command)
            self._file.write_text(json.dumps(self.figures))
        return Run(*self.figures[name])

    def turns(self, arms: dict[str, Callable[[], Run]]) -> dict[str, Run]:
        """Run arms in turn; return each one's median."""
        found: dict[str, list[Run]] = {name: [] for name in arms}
        for number in range(self.rounds + 1):
            for name, arm in arms.items():
                result = arm()
                if number:  # the first round warms the files up
                    found[name].append(result)
        return {
            name: Run(*(statistics.median(run[at] for run in runs) for at in range(3)), runs[-1].said)
            for name, runs in found.items()
        }


def table(title: str, rows: dict[str, list[str]], head: list[str]) -> None:
    """Print a table."""
    lines = [f"\n**{title}**\n", f"| | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


RIVAL_KINDS = {"bm25s": "bm25s", "SQLite FTS5": "fts5", "tantivy": "tantivy"}


def lexical(bench: Bench, markers: int, kinds: dict[str, str]) -> None:
    """Build, update, one question and many, by BM25, beside rivals of some kinds."""
    at = bench.folder
    stream, index = at / f"{markers}.jsonl", at / f"mrag-{markers}"
    few, asked = at / "100.jsonl", at / "questions.txt"
    size = str(markers)
    bench.once(f"stream {size}", stream, [*RIVALS, "stream", str(stream), size])
    bench.once("stream 100", few, [*RIVALS, "stream", str(few), "100", "extra"])
    whole = bench.once(f"mrag {size}", index, [*MRAG, "index", "-q", "-o", str(index), str(stream)])
    rivals = {}
    for name, kind in kinds.items():
        made = at / f"{kind}-{size}"
        rivals[name] = bench.once(f"{kind} {size}", made, [*RIVALS, f"{kind}_build", str(made), size])
    here = at / "here"
    here.touch()
    parts = {
        name: bench.once(f"{name} postings {size}", here, [*RIVALS, f"{name}_postings", size])
        for name in ("mrag", "bm25s")
        if kinds
    }
    rows = {
        **{
            f"{name}: the same terms, inverted": [_seconds(own), "", f"{own.peak:.0f}"]
            for name, own in parts.items()
        },
        "`mrag index`, reading, counting and storing everything": [
            f"{whole.cpu:.1f}",
            f"{whole.wall:.1f}",
            f"{whole.peak:.0f}",
        ],
        **{
            f"{name}, keys alone, own tokenizer": [_seconds(own), "", f"{own.peak:.0f}"]
            for name, own in rivals.items()
        },
    }
    table(f"Build, {markers:,} markers", rows, ["processor s", "wall s", "peak MiB"])

    changed = at / "changed"

    def update() -> Run:
        shutil.rmtree(changed, ignore_errors=True)
        subprocess.run(["cp", "-r", str(index), str(changed)], check=True)
        return run([*MRAG, "update", "-q", str(changed), str(few)])

    took = bench.turns({"update": update})["update"]
    rows = {
        "`mrag update` with 100 markers": [f"{took.cpu:.2f}", f"{took.wall:.2f}", f"{took.peak:.0f}"],
        "share of the build": [f"{took.cpu / whole.cpu:.1%}", "", ""],
    }
    if "bm25s" in rivals:
        rebuilt = json.loads(rivals["bm25s"].said)["seconds"]
        rows["bm25s rebuild / update"] = [f"{rebuilt / took.cpu:.1f}x", "", ""]
    table(f"Update, {markers:,} markers", rows, ["processor s", "wall s", "peak MiB"])

    def arm(*command: str) -> Callable[[], Run]:
        return lambda: run(list(command))

    arms: dict[str, Callable[[], Run]] = {
        "`python -c 'import typer, numpy, orjson'`": arm(sys.executable, "-c", "import typer, numpy, orjson")
    }
    for name, question in (("rare words", RARE), ("with very frequent words", FREQUENT)):
        arms[f"`mrag query`, {name}"] = arm(*MRAG, "query", str(index), question)
        arms[f"`mrag query --paper`, {name}"] = arm(*MRAG, "query", str(index), question, "--paper")
        for rival, kind in kinds.items():
            arms[f"{rival}, {name}"] = arm(*RIVALS, f"{kind}_query", str(at / f"{kind}-{size}"), question)
    found = bench.turns(arms)
    floor = next(iter(found.values()))
    rows = {
        name: [f"{own.cpu * 1e3:.0f}", f"{own.wall * 1e3:.0f}", f"{own.cpu / floor.cpu:.2f}"]
        for name, own in found.items()
    }
    table(f"One question, {markers:,} markers", rows, ["processor ms", "wall ms", "of the imports"])

    if not kinds:
        return
    asked.write_text("\n".join(synthetic.texts(500, 8, 11)))
    batch = at / "questions.jsonl"
    batch.write_text("".join(json.dumps({"question": one}) + "\n" for one in asked.read_text().splitlines()))
    ranked = run([*RIVALS, "lexical_batch", str(index), str(at / f"bm25s-{size}"), str(asked)])
    answered = run([*MRAG, "query", str(index), "--batch", str(batch)])
    rates = json.loads(ranked.said)
    rows = {
        "mrag, ranking": [f"{rates['mrag']:.0f}"],
        "bm25s.retrieve": [f"{rates['bm25s']:.0f}"],
        "refining a ranking, ms each": [f"{rates['refinements']:.1f}"],
        "`mrag query --batch`, refined, packed, as JSON": [f"{500 / answered.cpu:.0f}"],
    }
    table(f"500 questions of 8 words, {markers:,} markers", rows, ["questions a processor second"])


def _seconds(own: Run) -> str:
    return f"{json.loads(own.said)['seconds']:.1f}"


def dense(bench: Bench, markers: int) -> None:
    """One question and many, by vectors."""
    at = bench.folder
    stream, index, matrix = at / f"{markers}.jsonl", at / f"dense-{markers}", at / f"matrix-{markers}"
    bench.once(f"stream {markers}", stream, [*RIVALS, "stream", str(stream), str(markers)])
    with _embedding() as url:
        build = [*MRAG, "index", "-q", "-o", str(index), str(stream), "--embedder", f"{url}#synthetic"]
        whole = bench.once(f"dense {markers}", index, [*build, "--threads", "2"])
        shutil.copy(index / "segments/1/vectors", matrix)
        ask = [*MRAG, "query", str(index), RARE, "--retriever", "dense", "--embedder", f"{url}#synthetic"]
        found = bench.turns(
            {
                "memory-mapped matrix": lambda: run([*RIVALS, "dense_query", str(matrix), str(DIMENSION)]),
                "the same, which asks the server for the question's vector": lambda: run(
                    [*RIVALS, "dense_query", str(matrix), str(DIMENSION), url]
                ),
                "`mrag query --retriever dense`": lambda: run(ask),
            }
        )
    floor = next(iter(found.values()))
    rows = {
        name: [f"{own.cpu * 1e3:.0f}", f"{own.wall * 1e3:.0f}", f"{own.cpu / floor.cpu:.2f}"]
        for name, own in found.items()
    }
    rows["build, the embedder's own time left out"] = [
        f"{whole.cpu * 1e3:.0f}",
        f"{whole.wall * 1e3:.0f}",
        "",
    ]
    table(f"One question, {markers:,} vectors", rows, ["processor ms", "wall ms", "of the matrix"])
    rates = json.loads(run([*RIVALS, "dense_batch", str(index), "1000"]).said)
    rows = {name: [f"{rate:.4f}" if "recall" in name else f"{rate:.0f}"] for name, rate in rates.items()}
    table(f"1,000 questions, {markers:,} vectors", rows, ["a processor second"])
    sizes = [str(size) for size in (5_000, 10_000, 20_000, 50_000, 100_000, 200_000) if size <= markers]
    by_size = json.loads(run([*RIVALS, "dense_sizes", str(index), *sizes]).said)
    rows = {
        size: [
            f"{own['exact']:.2f}",
            f"{own['graph']:.2f}",
            f"{own['recall']:.3f}",
            f"{own['build']:.1f}",
            f"{own['half']:.4f}",
        ]
        for size, own in by_size.items()
    }
    head = ["exact, ms", "graph, ms", "its recall@10", "its build, s", "recall@10 of float16"]
    table("Exact search and graphs by size of a segment", rows, head)


class _embedding:  # noqa: N801 - used as a context
    """An embeddings server whose vectors follow from how many were asked for before."""

    def __enter__(self) -> str:
        given = [0]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                given[0] += 1
                found = synthetic.vectors(len(texts), DIMENSION, 100 + given[0])
                rows = [{"index": row, "embedding": own.tolist()} for row, own in enumerate(found)]
                content = json.dumps({"data": rows}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--markers", type=int, nargs="*", default=[200_000, 1_000_000])
    parser.add_argument("--dense", type=int, nargs="*", default=[200_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(given.folder, given.rounds)
    for markers in given.markers:
        lexical(bench, markers, {} if given.alone else RIVAL_KINDS)
    for markers in given.dense:
        dense(bench, markers)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"\n{os.cpu_count()} processors, numpy {np.__version__}, own peak {peak:.0f} MiB\n")


if __name__ == "__main__":
    main()
