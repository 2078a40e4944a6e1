from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.store.layout import (
    ARRAYS,
    ARRAYS_FILE,
    GRAPH,
    LOCK,
    MANIFEST,
    RECORDS,
    VECTORS,
    Rows,
    array_places,
    padding,
)

ROWS = st.builds(Rows, *[st.integers(0, 1 << 40)] * len(Rows._fields))


@given(ROWS)
def test_arrays_follow_each_other(rows: Rows) -> None:
    """Arrays are aligned, do not overlap, and the file ends with the last of them."""
    places, size = array_places(rows)
    assert [*places] == [*ARRAYS]
    end = 0
    for name, place in places.items():
        assert place.start == end + padding(end)
        assert place.start % 64 == 0
        assert place.width == np.dtype(ARRAYS[name].type).itemsize
        end = place.end
    assert size == end


def test_types_are_little_endian_or_bytes() -> None:
    """Every array reads the same on every machine, and none can hold a Python object."""
    assert all(array.type[0] in "<|" and array.type[1] in "ufV" for array in ARRAYS.values())


def test_the_readme_describes_the_format() -> None:
    """Every array, file and count of the format is in the README."""
    text = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    for name in (*ARRAYS, *Rows._fields, *RECORDS, ARRAYS_FILE, VECTORS, GRAPH, MANIFEST, LOCK):
        assert name in text, name
