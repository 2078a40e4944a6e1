"""What an index holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mrag_cli.parts.store.layout import GRAPH
from mrag_cli.parts.store.manifest import plain
from mrag_cli.parts.store.merge import live_origins

if TYPE_CHECKING:
    from mrag_cli.parts.store.manifest import SegmentEntry
    from mrag_cli.parts.store.snapshot import Snapshot


def describe(snapshot: Snapshot) -> dict[str, Any]:
    """Return the numbers and settings of an index as a JSON object.

    ``documents``, ``units``, ``markers`` and ``keys`` count live rows, ``dead`` those that are gone but
    still take space; ``bytes`` is the size of all files that the manifest names.
    """
    manifest = snapshot.manifest
    origins: dict[str, int] = {}
    for segment in snapshot.segments:
        for origin, count in live_origins(segment).items():
            origins[origin] = origins.get(origin, 0) + count
    rows = ("documents", "units", "markers", "keys")
    dead = {
        name: sum(getattr(entry.dead, name) for entry in manifest.segments if entry.dead) for name in rows
    }
    return {
        "directory": str(snapshot.directory),
        "format": manifest.format,
        "generation": manifest.generation,
        "written_by": manifest.written_by,
        **{name: sum(entry.live(name) for entry in manifest.segments) for name in rows},
        "origins": dict(sorted(origins.items())),
        "dead": dead,
        "bytes": sum(entry.size for entry in manifest.segments),
        "segments": [_segment(entry) for entry in manifest.segments],
        "lexical": plain(manifest.lexical),
        "terms": manifest.terms,
        "encoding": manifest.encoding,
        "embedder": plain(manifest.embedder) if manifest.embedder else None,
    }


def _segment(entry: SegmentEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "documents": entry.rows.documents,
        "markers": entry.rows.markers,
        "dead_documents": entry.dead.documents if entry.dead else 0,
        "dead_markers": entry.dead.markers if entry.dead else 0,
        "graph": GRAPH in entry.files,
        "bytes": entry.size,
    }
