"""A snapshot: one generation of an index, opened for reading."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mrag_cli.ground.errors import IndexCorrupt, IndexUnsupported
from mrag_cli.parts.store.layout import MARKERS, SEGMENTS
from mrag_cli.parts.store.manifest import Manifest, read_manifest
from mrag_cli.parts.store.segment import Segment
from mrag_cli.parts.terms import TERMS_VERSION
from mrag_cli.parts.tokens import ENCODING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ATTEMPTS = 20


class Place(NamedTuple):
    """Where a record is: the number of its segment in the snapshot, and its row there."""

    segment: int
    row: int


class Snapshot:
    """One generation of an index. It stays what it is, whatever a writer does meanwhile.

    Args:
        directory: the index directory.
        manifest: its manifest.
        segments: the open segments, in the manifest's order.
    """

    def __init__(self, directory: Path, manifest: Manifest, segments: tuple[Segment, ...]) -> None:
        self.directory = directory
        self.manifest = manifest
        self.segments = segments

    @classmethod
    def open(cls, directory: Path) -> Snapshot:
        """Open the index in ``directory`` as it is now. Takes no lock and writes nothing.

        Raises:
            IndexMissing: there is no index.
            IndexUnsupported: another format, or other lexical terms, than this version reads.
            IndexCorrupt: a file is missing or has another size than was written.
        """
        directory = Path(directory)
        manifest = read_manifest(directory)
        for _ in range(_ATTEMPTS):
            try:
                return cls(directory, manifest, _open_segments(directory, manifest))
            except FileNotFoundError as error:
                missing = error.filename
            # A commit between the two reads may have removed a segment; only then is it worth another look.
            earlier, manifest = manifest, read_manifest(directory)
            if manifest == earlier:
                break
        raise IndexCorrupt(f"{missing}: missing; restore the directory from a copy or build it again")

    @cached_property
    def live_keys(self) -> int:
        """Number of keys of live markers: BM25's ``N``."""
        return sum(entry.live("keys") for entry in self.manifest.segments)

    @cached_property
    def live_markers(self) -> int:
        """Number of live markers."""
        return sum(entry.live(MARKERS) for entry in self.manifest.segments)

    def find(self, doc: str) -> Place | None:
        """Return where the live document ``doc`` is, or None."""
        for number, segment in enumerate(self.segments):
            row = segment.find(doc)
            if row is not None and not segment.is_dead(row):
                return Place(number, row)
        return None

    def documents(self) -> Iterator[Place]:
        """Yield the places of all live documents."""
        for number, segment in enumerate(self.segments):
            for row in segment.live_document_rows().tolist():
                yield Place(number, row)

    def known_documents(self) -> dict[str, str]:
        """Return the ``sha256`` of each live document by its id."""
        documents = (self.segments[place.segment].document(place.row) for place in self.documents())
        return {document.doc: document.sha256 for document in documents}


def _open_segments(directory: Path, manifest: Manifest) -> tuple[Segment, ...]:
    if manifest.terms != TERMS_VERSION:
        raise IndexUnsupported(
            f"{directory}: built with version {manifest.terms} of the lexical terms, this version has "
            f"{TERMS_VERSION}; build the index again from its stream"
        )
    if manifest.encoding != ENCODING:
        raise IndexUnsupported(
            f"{directory}: its tokens are those of {manifest.encoding}, this version counts {ENCODING}; "
            "build the index again from its stream"
        )
    root = directory / SEGMENTS
    return tuple(Segment(root, entry, manifest.embedder) for entry in manifest.segments)
