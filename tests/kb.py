"""Small indexes for the tests: documents from a few words, an embedder without a model, plain answers."""

import hashlib
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_cli.parts.embedders import Embedder
from mrag_cli.parts.store.disk import Disk
from mrag_cli.parts.store.manifest import LexicalSettings, Manifest, read_manifest
from mrag_cli.parts.store.segment_writer import SegmentSettings
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.parts.terms import query_terms, terms
from mrag_cli.records.models import Document, DocumentGroup, Marker, StreamPart, Unit
from mrag_cli.records.stream import write_lines
from mrag_cli.stages.index import IndexSettings, build_index
from mrag_cli.stages.query import Query, QueryResult, QuerySettings
from mrag_cli.stages.update import UpdateResult, UpdateSettings, update_index

DIMENSION = 16


class Silent:
    """A reporter that remembers what it was told."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.failures: list[tuple[str, str]] = []

    def notice(self, message: str) -> None:
        """Remember a notice."""
        self.notices.append(message)

    def failed(self, name: str, reason: str) -> None:
        """Remember a failure."""
        self.failures.append((name, reason))


@dataclass(frozen=True, slots=True)
class Entry:
    """A marker to be: its key, value, aliases and header."""

    key: str
    value: str
    aliases: tuple[str, ...] = ()
    header: str = ""


def group(
    doc: str, entries: Iterable[Entry | tuple[str, str]] = (), meta: Mapping[str, Any] | None = None
) -> DocumentGroup:
    """Return a document with one unit and one marker for each entry."""
    made = [entry if isinstance(entry, Entry) else Entry(*entry) for entry in entries]
    return DocumentGroup(
        Document(doc, hashlib.sha256(repr(made).encode()).hexdigest(), doc, len(made), 0, meta or {}),
        tuple(Unit(doc, number, f"{entry.value} In full.", 0) for number, entry in enumerate(made, 1)),
        tuple(
            Marker(doc, entry.key, entry.value, (number,), "llm", None, entry.aliases, entry.header)
            for number, entry in enumerate(made, 1)
        ),
    )


def vector_of(text: str) -> list[float]:
    """Return a vector that texts with the same words share in part; its numbers come from hashes."""
    found = np.zeros(DIMENSION)
    for word in terms(text) or ["nothing"]:
        seed = hashlib.blake2b(word.encode(), digest_size=4 * DIMENSION).digest()
        found += np.frombuffer(seed, "<i4") / 2**31
    return [float(number) for number in found]


def embedder(name: str = "hash") -> Embedder:
    """Return an embedder that hashes words."""
    return Embedder(name, lambda texts: [vector_of(text) for text in texts])


def settings(
    like: Manifest | None = None, *, dense: bool = False, dtype: str = "float32", threads: int = 1
) -> IndexSettings:
    """Return the settings of a new index, with those of another where ``like`` is given."""
    lexical = like.lexical if like else LexicalSettings()
    segment = SegmentSettings(
        lexical, embedder() if dense else None, threads, derive_pivot=like is None, dtype=dtype
    )
    return IndexSettings(segment)


def build(
    directory: Path,
    parts: Iterable[StreamPart],
    *,
    like: Manifest | None = None,
    dense: bool = False,
    dtype: str = "float32",
    disk: Disk | None = None,
) -> Manifest:
    """Build an index."""
    return build_index(parts, directory, settings(like, dense=dense, dtype=dtype), Silent(), disk=disk)


def update(
    directory: Path, parts: Iterable[StreamPart], *, compact: bool = False, disk: Disk | None = None
) -> UpdateResult:
    """Update an index."""
    return update_index(parts, directory, UpdateSettings(embedder, compact), Silent(), disk=disk)


def ask(directory: Path, question: str, **changed: Any) -> QueryResult:
    """Ask an index one question."""
    return asking(Snapshot.open(directory), **changed).answer(question)


def asking(snapshot: Snapshot, **changed: Any) -> Query:
    """Return a query of a snapshot."""

    def embed(questions: Sequence[str]) -> NDArray[np.float32]:
        return embedder().embed(questions)

    return Query(snapshot, QuerySettings(**changed), embed)


def ranking(directory: Path, question: str, **changed: Any) -> list[tuple[str, str, str, float]]:
    """Return document, key, value and score of everything an index finds, best first."""
    result = ask(directory, question, considered=10_000, **changed)
    return [(hit.marker.doc, hit.marker.key, hit.marker.value, hit.ranked.score) for hit in result.hits]


def plain_bm25(
    groups: Iterable[DocumentGroup], question: str, lexical: LexicalSettings
) -> dict[tuple[str, int], float]:
    """Return the BM25 score of each marker that has one, by document and number, as the formula says."""
    keys = [
        (marker.doc, number, Counter(terms(key)))
        for found in groups
        for number, marker in enumerate(found.markers)
        for key in marker.keys
    ]
    scores: dict[tuple[str, int], float] = {}
    for doc, number, counted in keys:
        score = 0.0
        length = sum(counted.values())
        norm = lexical.k1 * (1 - lexical.b + lexical.b * length / lexical.pivot)
        for term, repeated in Counter(query_terms(question)).items():
            frequency = sum(term in other for _, _, other in keys)
            if term in counted:
                idf = math.log(1 + (len(keys) - frequency + 0.5) / (frequency + 0.5))
                score += repeated * idf * counted[term] / (counted[term] + norm)
        if score > 0:
            scores[doc, number] = max(scores.get((doc, number), 0.0), score)
    return scores


def stream_file(path: Path, parts: Iterable[StreamPart]) -> Path:
    """Write a stream into a file."""
    path.write_bytes(b"".join(line for part in parts for line in write_lines(part)))
    return path


def mrag(*arguments: object, stdin: str = "", **changed: Any) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    return subprocess.run(
        [sys.executable, "-m", "mrag_cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **changed,
    )


def files_of(directory: Path) -> set[str]:
    """Return the names of all files of an index, but the lock."""
    return {
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if not path.is_dir() and path.name != "lock"
    }


def named_files(directory: Path) -> set[str]:
    """Return the names of the files that an index's manifest names, and its own."""
    manifest = read_manifest(directory)
    files = {f"segments/{entry.name}/{file}" for entry in manifest.segments for file in entry.files}
    dead = {f"segments/{entry.dead.name}" for entry in manifest.segments if entry.dead}
    return {"manifest.json", *files, *dead}
