"""Names, types and versions of everything an index directory holds.

::

    kb/
      manifest.json                 the sole commit point: what is not named in it does not exist
      lock                          held by the one writer
      segments/<generation>/        written by the commit of that generation, then never changed
        documents.jsonl             a document record a line
        units.jsonl                 a unit record a line, in document order
        markers.jsonl               a marker record a line, in document order
        *.offsets, …                one little-endian array a file, listed in `ARRAYS`
        vectors                     float32, keys x dimension, of unit length; only with an embedder
        graph                       hnswlib's graph of the vectors; only in large segments
        <older generation>.dead     document rows of an older segment that are gone since
"""

from __future__ import annotations

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

VECTORS = "vectors"
GRAPH = "graph"

DEAD_TYPE = "<u4"
VECTOR_TYPE = "<f4"

ARRAYS = {
    # start of each record's line in its .jsonl file, and the file's end
    "documents.offsets": "<u8",
    "units.offsets": "<u8",
    "markers.offsets": "<u8",
    # document rows in ascending order of their ids, and each row's place in that order
    "documents.order": "<u4",
    "documents.ranks": "<u4",
    # 16 bytes a document: a digest of its record, units and markers
    "documents.digests": "|V16",
    # first unit row and first marker row of each document, and the number of all
    "documents.units": "<u4",
    "documents.markers": "<u4",
    # first key row of each marker, and the number of all
    "markers.keys": "<u4",
    # tokens of each value; of the value and the separator after it; of the header line above it
    "markers.tokens": "<u4",
    "markers.costs": "<u4",
    "markers.headers": "<u4",
    # tokens of each unit's text and the separator after it
    "units.costs": "<u4",
    # the terms in ascending order of their UTF-8 bytes, run together, and where each starts
    "terms.text": "|u1",
    "terms.offsets": "<u8",
    # where each term's postings start; the key row and the weight of each posting
    "postings.offsets": "<u8",
    "postings.rows": "<u4",
    "postings.weights": "<f4",
}
RECORDS = tuple(f"{name}.jsonl" for name in (DOCUMENTS, UNITS, MARKERS))
