"""How fast documents are tagged, beside tiktoken's own rate and chonkie's SentenceChunker on the same text.

::

    python tests/benchmarks/tag.py PATH…          # files, folders, JSONL, as `mrag tag` takes them

Rates are megabytes of UTF-8 a second of processor time, the best of several rounds in which the contestants
take turns, so that a busy machine slows them alike. chonkie takes part if it is installed.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from mrag_cli.parts.sources import Source, Sources
from mrag_cli.parts.tokens import encoding
from mrag_cli.stages.tag import TagSettings, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Silent:
    """A reporter that says failures only."""

    def notice(self, message: str) -> None:
        """Drop a notice."""

    def failed(self, name: str, reason: str) -> None:
        """Say a failure."""
        print(f"failed: {name}: {reason}", file=sys.stderr)  # noqa: T201 - a benchmark prints


def contestants(sources: Sequence[Source], unit_tokens: int) -> dict[str, Callable[[], int]]:
    """Return what is timed; each function returns how many pieces or tokens it made."""
    texts = [source.text for source in sources]
    encode = encoding().encode_ordinary
    settings = {mode: TagSettings(unit_tokens, mode) for mode in ("paragraph", "fixed")}

    def tagged(mode: str) -> Callable[[], int]:
        return lambda: sum(len(part.units) for part in tag(sources, settings[mode], Silent()))

    found: dict[str, Callable[[], int]] = {
        "tiktoken": lambda: sum(len(encode(text)) for text in texts),
        "mrag tag": tagged("paragraph"),
        "mrag tag --units fixed": tagged("fixed"),
    }
    try:
        from chonkie import SentenceChunker
    except ImportError:
        return found
    chunker = SentenceChunker(encoding(), chunk_size=unit_tokens, chunk_overlap=0)
    found["chonkie SentenceChunker"] = lambda: sum(len(chunker(text)) for text in texts)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--unit-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    sources = list(Sources(arguments.paths, Silent()))
    size = sum(len(source.text.encode()) for source in sources) / 1e6
    timed = contestants(sources, arguments.unit_tokens)
    best = dict.fromkeys(timed, float("inf"))
    made = dict.fromkeys(timed, 0)
    for _ in range(arguments.rounds):
        for name, run in timed.items():
            begun = time.process_time()
            made[name] = run()
            best[name] = min(best[name], time.process_time() - begun)
    print(f"{len(sources)} documents, {size:.2f} MB, units of {arguments.unit_tokens} tokens")  # noqa: T201 - its result
    for name, seconds in best.items():
        ratio = best["tiktoken"] / seconds
        line = f"{name:26} {size / seconds:7.2f} MB/s   {ratio:5.2f} of tiktoken   {made[name]} made"
        print(line)  # noqa: T201 - its result


if __name__ == "__main__":
    main()
