"""What extraction by a model costs in time, memory, calls and tokens, measured with the real command.

::

    python tests/benchmarks/extract.py throughput          # 1,000 documents, a 200 ms server, 100 at once
    python tests/benchmarks/extract.py memory              # 10, 1,000 and 10,000 documents
    python tests/benchmarks/extract.py cost FILE.jsonl…    # calls and tokens beside LightRAG's formula

``throughput`` and ``memory`` write their own documents. ``cost`` takes JSONL files with ``id``/``text`` or in
LongBench's shape, the first five documents of each, and adds a document of 48,000 tokens made of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
DELAY = 0.2
CONCURRENCY = 100
# LightRAG 1.5.7 with its defaults: chunks of 1,200 tokens overlapping by 100, two calls each; a chunk of c
# tokens whose reply has r sends 3,895 + 2c + r prompt tokens in all.
LIGHTRAG_CHUNK, LIGHTRAG_STRIDE, LIGHTRAG_PROMPT, LIGHTRAG_REPLY = 1_200, 1_100, 3_895, 900


def say(line: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def document(number: int, units: int) -> Iterator[str]:
    """Yield the records of a document of units of some sixty tokens."""
    name = f"notes/{number:05}.md"
    yield json.dumps(
        {"type": "document", "format": 1, "doc": name, "title": name, "units": units, "tokens": 60 * units}
    )
    for unit in range(1, units + 1):
        text = (
            f"Pump {number}-{unit} was built in {1900 + unit} and stands at gate {unit}. It moves water "
            f"from the lower basin to the upper one at {40 + unit} litres a second; it is inspected each "
            f"spring by the keeper of lock {number}, who notes the pressure in a book."
        )
        yield json.dumps({"type": "unit", "doc": name, "unit": unit, "text": text, "tokens": 60})


def write_documents(path: Path, documents: int, units: int) -> None:
    """Write a stream of units."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(documents):
            file.writelines(line + "\n" for line in document(number, units))


@contextmanager
def loopback(delay: float) -> Iterator[str]:
    """Serve in a process of its own; yields the address."""
    command = [sys.executable, str(HERE.parent / "loopback.py"), "--delay", str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds, seconds of processor time, peak memory in MiB, and the command's own report."""

    seconds: float
    processor: float
    memory: int
    report: dict[str, Any]


def run(stream: Path, url: str, folder: Path, *options: str) -> Run:
    """Run the command in a process that says at its end what it used."""
    report = folder / "report.json"
    command = [
        sys.executable,
        "-c",
        _MEASURED,
        "extract",
        str(stream),
        "--model",
        "openai/loopback",
        "--api-base",
        url,
    ]
    command += [
        "--cache",
        str(folder / "cache.sqlite3"),
        "-o",
        str(folder / "out.jsonl"),
        "--report",
        str(report),
    ]
    start = time.monotonic()
    done = subprocess.run([*command, "--quiet", *options], check=True, stderr=subprocess.PIPE, text=True)
    seconds = time.monotonic() - start
    processor, memory = done.stderr.split()[-2:]
    return Run(seconds, float(processor), int(memory), json.loads(report.read_bytes()))


# The command in a process that says its peak memory at the end; its exit is by SystemExit.
_MEASURED = """
import resource, sys
from mrag_cli.__main__ import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, file=sys.stderr)
"""


def throughput(units: int) -> None:
    """Print the time of 1,000 documents of one window against the ideal: documents x delay / concurrency."""
    with tempfile.TemporaryDirectory() as name, loopback(DELAY) as url, loopback(0.0) as quick:
        folder = Path(name)
        write_documents(folder / "one.jsonl", 1, units)
        write_documents(folder / "many.jsonl", 1_000, units)
        start_up = run(folder / "one.jsonl", quick, folder, "--no-cache").seconds
        ideal = 1_000 * DELAY / CONCURRENCY
        for label, options in (("without cache", ["--no-cache"]), ("with cache", [])):
            done = run(folder / "many.jsonl", url, folder, "--concurrency", str(CONCURRENCY), *options)
            ratio = (done.seconds - start_up) / ideal
            say(
                f"{units} units, {label}: {done.seconds:.2f} s, of which {start_up:.2f} s to start; "
                f"ideal {ideal:.2f} s; ratio {ratio:.2f} ({done.seconds / ideal:.2f} with the start); "
                f"{done.processor:.2f} s of processor time; {done.memory} MiB; "
                f"{done.report['actual']['calls']} calls"
            )


def memory() -> None:
    """Print peak memory and time by number of documents."""
    with tempfile.TemporaryDirectory() as name, loopback(0.0) as url:
        folder = Path(name)
        for documents in (10, 1_000, 10_000):
            write_documents(folder / "many.jsonl", documents, 12)
            (folder / "cache.sqlite3").unlink(missing_ok=True)
            done = run(folder / "many.jsonl", url, folder)
            say(f"{documents:>6} documents: {done.memory:>4} MiB, {done.seconds:6.2f} s")


def cost(files: list[Path], model: str) -> None:
    """Print calls and prompt tokens by ``--dry-run`` and by the server, beside LightRAG's formula."""
    say(
        f"{'':<28}{'tokens':>8}{'windows':>9}{'calls':>7}{'+1 retry':>9}{'LightRAG':>10}{'x':>6}"
        f"{'prompt':>9}{'+1 retry':>10}{'LightRAG':>10}{'x':>6}"
    )
    with tempfile.TemporaryDirectory() as name, loopback(0.0) as url:
        folder = Path(name)
        for path in files:
            texts = _texts(path)
            for label, chosen in (
                (f"{path.stem}, first five", texts[:5]),
                (f"{path.stem}, 48k joined", [_joined(texts)]),
            ):
                _compare(label, chosen, folder, url, model)


def _compare(label: str, texts: list[str], folder: Path, url: str, model: str) -> None:
    rows = folder / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(texts)), "utf-8"
    )
    units = folder / "units.jsonl"
    mrag = [sys.executable, "-m", "mrag_cli"]
    subprocess.run([*mrag, "tag", str(rows), "-o", str(units), "--quiet"], check=True)
    dry = subprocess.run(
        [*mrag, "extract", str(units), "--model", model, "--dry-run", "--json", "--no-cache", "--quiet"],
        check=True,
        stdout=subprocess.PIPE,
    )
    expected = json.loads(dry.stdout)
    sizes = [json.loads(line)["tokens"] for line in units.open("rb") if b'"type":"document"' in line]
    actual = run(units, url, folder, "--no-cache", "--model", model).report["actual"]
    estimate = expected["estimate"]
    assert actual["calls"] == estimate["calls"], "the server got other calls than the dry run announced"
    # One retry a document sends the prefix once more; an average window's prompt stands for it.
    windows = expected["windows"]
    retried = estimate["prompt_tokens"] + len(texts) * estimate["prompt_tokens"] // windows
    chunks = [
        -(-max(1, size - LIGHTRAG_CHUNK) // LIGHTRAG_STRIDE) + (size > LIGHTRAG_CHUNK) for size in sizes
    ]
    light_calls = 2 * sum(chunks)
    light_prompt = sum(
        count * (LIGHTRAG_PROMPT + LIGHTRAG_REPLY)
        + 2 * (size + (count - 1) * (LIGHTRAG_CHUNK - LIGHTRAG_STRIDE))
        for count, size in zip(chunks, sizes, strict=True)
    )
    calls = estimate["calls"] + len(texts)
    say(
        f"{label:<28}{sum(sizes):>8}{windows:>9}{estimate['calls']:>7}{calls:>9}{light_calls:>10}"
        f"{light_calls / calls:>6.1f}{estimate['prompt_tokens']:>9}{retried:>10}{light_prompt:>10}"
        f"{light_prompt / retried:>6.1f}"
    )


def _texts(path: Path) -> list[str]:
    found: dict[str, None] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            found.setdefault(row.get("text") or row["context"])
    return list(found)


def _joined(texts: list[str]) -> str:
    from mrag_cli.parts import tokens

    joined: list[str] = []
    size = 0
    for text in texts:
        joined.append(text)
        size += tokens.count(text)
        if size >= 48_000:
            break
    whole = "\n\n".join(joined)
    starts = tokens.boundaries(whole)
    return whole[: starts[48_000]] if len(starts) > 48_000 else whole


def main() -> None:
    """Run one measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["throughput", "memory", "cost"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--model", default="openai/gpt-4o-mini", help="whose limits and prices count (cost)")
    parser.add_argument("--units", type=int, default=4, help="units a document (throughput)")
    chosen = parser.parse_args()
    if chosen.what == "throughput":
        throughput(chosen.units)
    elif chosen.what == "memory":
        memory()
    else:
        cost(chosen.files, chosen.model)


if __name__ == "__main__":
    main()
