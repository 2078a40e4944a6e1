"""CHOP beside its baselines on manuals: breaks found, models named, right chunks ranked.

::

    python tests/benchmarks/chop.py breaks DATA
    python tests/benchmarks/chop.py retrieval DATA [--embedder SPEC] [--titles T|mixed|U] [--refined]

``DATA`` is a folder with ``manuals/*.md``, one manual a file, its first line a ``# Maker Product … manual``
title, and ``manuals_qa.jsonl`` and ``manuals_qa_siblings.jsonl``: questions with ``input``, ``manual`` (the
file) and ``evidence``.

``breaks`` joins all manuals in seeded orders and compares the segments that the rules find with the true
ones, within 400 tokens: with the title lines (T), with each by chance (mixed), without (U), and with all
``#`` marks removed (plain); then counts the breaks in each manual alone, and the models named rightly,
wrongly and not.

``retrieval`` indexes the joined text (or the files) and asks each question as it is and with its product
named. A chunk is right when most of it comes from the right manual and it holds at least half of the
distinct content words of a gold passage. ``true product`` is the same with each manual chopped alone, with
its title.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from bisect import bisect_right
from dataclasses import dataclass, replace
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mrag_cli.parts import tokens
from mrag_cli.parts.chop.boundaries import segments
from mrag_cli.parts.chop.domains import DOMAINS
from mrag_cli.parts.chop.families import mentions
from mrag_cli.parts.chop.outline import headings
from mrag_cli.parts.chop.product import query_ids
from mrag_cli.parts.chop.rules import describe
from mrag_cli.parts.chop.titles import title_of
from mrag_cli.parts.measures import content_words
from mrag_cli.parts.sources import Source
from mrag_cli.records.models import DocumentGroup
from mrag_cli.stages.chop import ChopSettings, chop
from mrag_cli.stages.chunk import ChunkSettings, chunk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mrag_cli.records.models import StreamPart

WITHIN = 400
DEPTH = 10
BUDGET = 640


def seeded(seed: int) -> random.Random:
    """Return the same chance each time."""
    return random.Random(seed)  # noqa: S311 - orders manuals, guards nothing


def say(line: str, file: TextIO = sys.stdout) -> None:
    """Print a line at once."""
    file.write(line + "\n")
    file.flush()


class Silent:
    """A reporter that says nothing."""

    def notice(self, message: str) -> None:
        """Say nothing."""

    def failed(self, name: str, reason: str) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Manuals run together: the text, where each begins, and their file names."""

    text: str
    starts: list[int]
    names: list[str]

    def at(self, place: int) -> str:
        """Return the manual that ``place`` belongs to."""
        return self.names[max(bisect_right(self.starts, place) - 1, 0)]


def variant(text: str, titles: str, chance: random.Random) -> str:
    """Return a manual with or without its title line, and with or without its marks."""
    _, rest = text.split("\n", 1)
    kept = titles.startswith("T") or (titles.startswith("mixed") and chance.random() < 0.5)
    shown = text if kept else rest.lstrip("\n")
    return re.sub(r"(?m)^#+[ \t]*", "", shown) if titles.endswith("plain") else shown


def join(manuals: dict[str, str], titles: str, seed: int) -> Joined:
    """Run the manuals together in a seeded order."""
    chance = seeded(seed)
    names = list(manuals)
    chance.shuffle(names)
    pieces, starts, length = [], [], 0
    for name in names:
        shown = variant(manuals[name], titles, chance)
        starts.append(length)
        pieces.append(shown)
        length += len(shown) + 2
    return Joined("\n\n".join(pieces), starts, names)


def read_manuals(data: Path) -> dict[str, str]:
    """Return the manuals by file name."""
    return {path.name: path.read_text("utf-8") for path in sorted((data / "manuals").glob("*.md"))}


def product_of(text: str) -> str:
    """Return the product that a manual's first line names, without its maker, as a user would write it."""
    title = title_of(text.split("\n", 1)[0].lstrip("# "), DOMAINS["product"])
    name = title.name if title else ""
    return " ".join(re.sub(r"\s*\(.*\)|\s+/.*", "", name).split()[1:])


def breaks(data: Path, seeds: Sequence[int]) -> None:
    """Print precision and recall of the breaks, and how many models are right."""
    manuals = read_manuals(data)
    domain = DOMAINS["product"]
    say("| titles | breaks P | R | models right | wrong | null |\n|---|---|---|---|---|---|")
    for titles in ("T", "mixed", "U", "T plain", "mixed plain", "U plain"):
        right = found_all = true_all = named = wrong = null = 0
        for seed in seeds:
            joined = join(manuals, titles, seed)
            outline, mentioned = headings(joined.text), mentions(joined.text)
            found = segments(joined.text, outline, domain, mentioned)
            right += _matched(joined, [segment.start for segment in found[1:]])
            found_all += len(found) - 1
            true_all += len(joined.starts) - 1
            described = describe(joined.text, found, outline, mentioned, domain)
            registry = {name for cnm in described for name in cnm.ids}
            for segment, cnm in zip(found, described, strict=True):
                wanted = query_ids(product_of(manuals[joined.at(segment.start + 1000)]), registry)
                null += cnm.model is None
                named += bool(cnm.model and set(wanted) & set(cnm.ids))
                wrong += bool(cnm.model and not set(wanted) & set(cnm.ids))
        say(
            f"| {titles} | {right / max(found_all, 1):.3f} | {right / true_all:.3f} "
            f"| {named / len(seeds):.1f} | {wrong / len(seeds):.1f} | {null / len(seeds):.1f} |"
        )
    for titles in ("T", "U", "T plain", "U plain"):
        shown = [variant(text, titles, seeded(0)) for text in manuals.values()]
        false = sum(len(segments(text, headings(text), domain, mentions(text))) - 1 for text in shown)
        say(f"single files, {titles}: {false} breaks in {len(shown)} manuals")


def _matched(joined: Joined, found: Sequence[int]) -> int:
    left = set(joined.starts[1:])
    for place in found:
        nearest = min(left, key=lambda start: abs(start - place), default=None)
        if nearest is not None and abs(nearest - place) < 10 * WITHIN:
            low, high = sorted((nearest, place))
            if tokens.count(joined.text[low:high]) <= WITHIN:
                left.discard(nearest)
    return len(joined.starts) - 1 - len(left)


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its text, the right manual, and the distinct content words of each gold passage."""

    text: str
    manual: str
    gold: list[set[str]]


def read_questions(path: Path) -> list[Question]:
    """Return the questions of a file."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [
        Question(row["input"], row["manual"], [content_words(passage) for passage in row["evidence"]])
        for row in rows
    ]


class Asked:
    """An index of one method's chunks, and which manual and words each chunk has."""

    def __init__(
        self,
        parts: Iterable[StreamPart],
        joined: Joined | None,
        directory: Path,
        embedder: Any,
        *,
        refined: bool,
    ) -> None:
        from mrag_cli.parts.refine import Steps
        from mrag_cli.parts.store.manifest import LexicalSettings
        from mrag_cli.parts.store.segment_writer import SegmentSettings
        from mrag_cli.parts.store.snapshot import Snapshot
        from mrag_cli.stages.index import IndexSettings, build_index

        self.chunks = self.tokens = 0
        self._of: dict[tuple[str, int], tuple[str, set[str]]] = {}
        settings = SegmentSettings(LexicalSettings(), embedder, derive_pivot=True)
        build_index(self._noted(parts, joined), directory, IndexSettings(settings), Silent())
        self._snapshot = Snapshot.open(directory)
        self._embedder = embedder
        self._steps = Steps() if refined else Steps(types=False, titles=False, bridge=False, coverage=False)

        self._vectors: dict[str, Any] = {}

    def _noted(self, parts: Iterable[StreamPart], joined: Joined | None) -> Iterator[StreamPart]:
        for part in parts:
            if isinstance(part, DocumentGroup):
                for unit in part.units:
                    manual = joined.at(sum(unit.span) // 2) if joined else unit.doc
                    self._of[unit.doc, unit.unit] = manual, content_words(unit.text)
                    self.chunks += 1
                    self.tokens += unit.tokens
            yield part

    def hits(self, text: str, retriever: str, fusion: str) -> list[tuple[str, set[str]]]:
        """Return manual and words of the ten best chunks."""
        found = self._asked(text, retriever, fusion, 1 << 20, DEPTH).hits
        return [self._of[hit.marker.doc, hit.marker.pointers[0]] for hit in found]

    def packed(self, text: str, retriever: str, fusion: str) -> list[tuple[str, set[str]]]:
        """Return manual and words of the chunks that are packed into the budget."""
        found = self._asked(text, retriever, fusion, BUDGET, None).hits
        return [self._of[hit.marker.doc, hit.marker.pointers[0]] for hit in found if hit.packed]

    def _asked(self, text: str, retriever: str, fusion: str, budget: int, considered: int | None) -> Any:
        from mrag_cli.stages.query import Query, QuerySettings

        settings = QuerySettings(
            budget=budget, retriever=retriever, fusion=fusion, considered=considered, steps=self._steps
        )
        return Query(self._snapshot, settings, self._embed).answer(text)

    def _embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = self._embedder.embed([text])[0]
        return np.stack([self._vectors[text] for text in texts])


def measured(
    asked: Asked, questions: Sequence[Question], named: dict[str, str], path: tuple[str, str]
) -> list[float]:
    """Return Hit@1, 3, 5, 10, MRR@10, NDCG@10, right manual first, and evidence packed, in per cent.

    The last is the mean share of the gold passages' distinct content words in what is packed of the right
    manual within 640 tokens.
    """
    sums = [0.0] * 8
    for question in questions:
        text = f"{named[question.manual]}: {question.text}" if named else question.text
        hits = asked.hits(text, *path)
        right = [
            manual == question.manual and any(2 * len(gold & words) >= len(gold) for gold in question.gold)
            for manual, words in hits
        ]
        first = right.index(True) + 1 if True in right else 0
        for place, depth in enumerate((1, 3, 5, 10)):
            sums[place] += 0 < first <= depth
        sums[4] += 1 / first if first else 0
        gain = sum(1 / log2(rank + 2) for rank, good in enumerate(right) if good)
        ideal = sum(1 / log2(rank + 2) for rank in range(sum(right)))
        sums[5] += gain / ideal if ideal else 0
        sums[6] += bool(hits) and hits[0][0] == question.manual
        packed = set().union(*(words for name, words in asked.packed(text, *path) if name == question.manual))
        sums[7] += sum(len(gold & packed) / len(gold) for gold in question.gold) / len(question.gold)
    return [100 * value / max(len(questions), 1) for value in sums]


def retrieval(data: Path, chosen: argparse.Namespace) -> None:
    """Print the measures of each method, ranking and set of questions."""
    manuals = read_manuals(data)
    named = {name: product_of(text) for name, text in manuals.items()}
    sets = {
        "all": read_questions(data / "manuals_qa.jsonl"),
        "SIB": read_questions(data / "manuals_qa_siblings.jsonl"),
    }
    sets["TV"] = [question for question in sets["all"] if "tv" in question.manual]
    embedder = _embedder(chosen.embedder)
    joined = None if chosen.separate else join(manuals, chosen.titles, chosen.seed)
    chance = seeded(chosen.seed)
    sources = (
        [Source("manuals.md", joined.text, "markdown")]
        if joined
        else [
            Source(name, variant(text, chosen.titles, chance), "markdown") for name, text in manuals.items()
        ]
    )
    single = [Source(name, text, "markdown") for name, text in manuals.items()]
    silent = Silent()
    methods = {
        "windows, no prefix": lambda: (chunk(sources, ChunkSettings("fixed", 500, 0), silent), joined),
        "headings, no prefix": lambda: (_bare(chop(sources, ChopSettings(), silent)), joined),
        "Naive-500T": lambda: (chunk(sources, ChunkSettings("naive", 500, 100), silent), joined),
        "Cosine-Chunking": lambda: (chunk(sources, ChunkSettings("cosine"), silent), joined),
        "CHOP, windows": lambda: (chop(sources, ChopSettings(chunks="windows"), silent), joined),
        "CHOP, headings": lambda: (chop(sources, ChopSettings(chunks="headings"), silent), joined),
        "true product, windows": lambda: (chop(single, ChopSettings(chunks="windows"), silent), None),
        "true product, headings": lambda: (chop(single, ChopSettings(chunks="headings"), silent), None),
    }
    paths = [("bm25", "sum")] + ([("dense", "sum"), ("hybrid", "sum"), ("hybrid", "rrf")] if embedder else [])
    say(
        "| method | ranking | questions | Hit@1 | @3 | @5 | @10 | MRR | NDCG | manual | @640 |\n|"
        + "---|" * 11
    )
    for method, made in methods.items():
        if chosen.methods and not any(part in method for part in chosen.methods.split(";")):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            parts, of = made()
            asked = Asked(parts, of, Path(scratch) / "kb", embedder, refined=chosen.refined)
            say(
                f"# {method}: {asked.chunks} chunks of {asked.tokens / asked.chunks:.0f} tokens",
                file=sys.stderr,
            )
            for path in paths:
                for label, questions in sets.items():
                    for naming in ({}, named):
                        for half, part in _halves(questions, halves=chosen.halves):
                            values = measured(asked, part, naming, path)
                            shown = " | ".join(f"{value:.0f}" for value in values)
                            way = path[0] if path[0] != "hybrid" else f"hybrid {path[1]}"
                            said = f"{label}{', named' if naming else ''}{half}"
                            say(f"| {method} | {way} | {said} | {shown} |")


def _bare(parts: Iterable[StreamPart]) -> Iterator[StreamPart]:
    """Take the prefixes off again."""
    for part in parts:
        if isinstance(part, DocumentGroup):
            markers = tuple(replace(mark, key=mark.value, header="", cnm=None) for mark in part.markers)
            yield replace(part, markers=markers)


def _halves(questions: Sequence[Question], *, halves: bool) -> Iterator[tuple[str, Sequence[Question]]]:
    if halves:
        yield ", even", questions[::2]
        yield ", odd", questions[1::2]
    else:
        yield "", questions


def _embedder(spec: str | None) -> Any:
    if spec is None:
        return None
    from mrag_cli.parts.embedders import embedder as embedder_of

    return embedder_of(spec)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["breaks", "retrieval"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3, help="of breaks")
    parser.add_argument("--titles", default="T")
    parser.add_argument("--separate", action="store_true")
    parser.add_argument("--embedder")
    parser.add_argument("--methods", help="parts of the methods' names, with ; between")
    parser.add_argument("--halves", action="store_true")
    parser.add_argument("--refined", action="store_true", help="with the default refinements of the ranking")
    chosen = parser.parse_args()
    if chosen.what == "breaks":
        breaks(chosen.data, range(chosen.seeds))
    else:
        retrieval(chosen.data, chosen)


if __name__ == "__main__":
    main()
