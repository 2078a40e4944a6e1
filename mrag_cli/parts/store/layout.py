"""Names, types and versions of everything an index directory holds.

::

    kb/
      manifest.json                 the sole commit point: what is not named in it does not exist
      lock                          held by the one writer
      segments/<generation>/        written by the commit of that generation, then never changed
        documents.jsonl             a document record a line
        units.jsonl                 a unit record a line, in document order
        markers.jsonl               a marker record a line, in document order
        arrays                      the little-endian arrays of `ARRAYS`, one after the other
        vectors                     keys x dimension, of unit length; only with an embedder
        graph                       hnswlib's graph of the vectors; only in large segments
        <older generation>.dead     document rows of an older segment that are gone since
"""

from __future__ import annotations

from typing import NamedTuple

FORMAT = 1
"""The index format this version writes."""
OLDEST_READABLE = 1
"""The oldest index format this version reads."""

MANIFEST = "manifest.json"
LOCK = "lock"
SEGMENTS = "segments"

DOCUMENTS = "documents"
UNITS = "units"
MARKERS = "markers"
RECORDS = tuple(f"{kind}.jsonl" for kind in (DOCUMENTS, UNITS, MARKERS))

ARRAYS_FILE = "arrays"
VECTORS = "vectors"
GRAPH = "graph"

DEAD_TYPE = "<u4"
VECTOR_TYPES = {"float32": "<f4", "float16": "<f2"}


class Rows(NamedTuple):
    """How much of everything a segment holds, dead rows included; every array's size follows from it.

    Attributes:
        documents: document records.
        units: unit records.
        markers: marker records.
        keys: keys, a marker's aliases included.
        terms: different terms in the keys.
        term_bytes: bytes of those terms in UTF-8.
        postings: pairs of a term and a key that has it.
        paged: markers that stand under a page's title.
    """

    documents: int
    units: int
    markers: int
    keys: int
    terms: int
    term_bytes: int
    postings: int
    paged: int


class _Array(NamedTuple):
    type: str
    each: str
    more: int


ARRAYS = {
    # start of each record's line in its .jsonl file, and the file's end
    "documents.offsets": _Array("<u8", "documents", 1),
    "units.offsets": _Array("<u8", "units", 1),
    "markers.offsets": _Array("<u8", "markers", 1),
    # document rows in ascending order of their ids, and each row's place in that order
    "documents.order": _Array("<u4", "documents", 0),
    "documents.ranks": _Array("<u4", "documents", 0),
    # 16 bytes a document: a digest of its record, units and markers
    "documents.digests": _Array("|V16", "documents", 0),
    # first unit row and first marker row of each document, and the number of all
    "documents.units": _Array("<u4", "documents", 1),
    "documents.markers": _Array("<u4", "documents", 1),
    # first key row of each marker, and the number of all
    "markers.keys": _Array("<u4", "markers", 1),
    # tokens of each value; of the value and the separator after it; of the header line above it
    "markers.tokens": _Array("<u4", "markers", 0),
    "markers.costs": _Array("<u4", "markers", 0),
    "markers.headers": _Array("<u4", "markers", 0),
    # for a marker whose value is a part of a unit's own words the number of that unit, else 0
    "markers.contexts": _Array("<u4", "markers", 0),
    # hash of the title of each marker's page, 0 for none; those that are not 0 in ascending order with
    # their marker rows, which ascend where hashes are equal
    "markers.pages": _Array("<u8", "markers", 0),
    "pages.hashes": _Array("<u8", "paged", 0),
    "pages.rows": _Array("<u4", "paged", 0),
    # the terms in ascending order of their UTF-8 bytes, run together, and where each starts
    "terms.text": _Array("|u1", "term_bytes", 0),
    "terms.offsets": _Array("<u8", "terms", 1),
    # where each term's postings start; the key row and the weight of each posting
    "postings.offsets": _Array("<u8", "terms", 1),
    "postings.rows": _Array("<u4", "postings", 0),
    "postings.weights": _Array("<f4", "postings", 0),
}
"""Type and length of each array, in the order in which they stand in the file `arrays`."""

_ALIGNMENT = 64
_SIZES = {"<u8": 8, "<u4": 4, "<f4": 4, "|u1": 1, "|V16": 16}


class ArrayPlace(NamedTuple):
    """Where an array is in the file: first byte, entries, bytes an entry."""

    start: int
    length: int
    width: int

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.start + self.length * self.width


def padding(position: int) -> int:
    """Return the number of zero bytes between ``position`` and where the next array may start."""
    return -position % _ALIGNMENT


def array_places(rows: Rows) -> tuple[dict[str, ArrayPlace], int]:
    """Return where each array of a segment is in its file, and the file's size in bytes."""
    places: dict[str, ArrayPlace] = {}
    position = 0
    for name, array in ARRAYS.items():
        position += padding(position)
        length = getattr(rows, array.each) + array.more
        places[name] = ArrayPlace(position, length, _SIZES[array.type])
        position = places[name].end
    return places, position
