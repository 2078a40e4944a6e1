from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.store import lexical
from mrag_cli.parts.store.lexical import Postings, build, merge, run_together
from mrag_cli.parts.store.manifest import LexicalSettings

KEYS = st.lists(st.lists(st.sampled_from(["a", "b", "c", "é", "海港", "z" * 9]), max_size=6), max_size=8)
SETTINGS = LexicalSettings(1.2, 0.75, 4.0)


def _postings(keys: list[list[str]]) -> Postings:
    vocabulary: dict[str, int] = {}
    ids = array("I", [vocabulary.setdefault(term, len(vocabulary)) for key in keys for term in key])
    lengths = np.array([len(key) for key in keys], np.uint32)
    return build(vocabulary, np.array(ids, np.uint32), lengths, SETTINGS)


def _plain(keys: list[list[str]]) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for row, key in enumerate(keys):
        norm = 1.2 * (0.25 + 0.75 * len(key) / 4)
        for term in dict.fromkeys(key):
            frequency = key.count(term)
            found.setdefault(term, []).append((row, frequency / (frequency + norm)))
    return found


def _listed(postings: Postings) -> dict[str, list[tuple[int, float]]]:
    names = [
        postings.terms_text[start:end].tobytes().decode()
        for start, end in zip(
            postings.terms_offsets[:-1].tolist(), postings.terms_offsets[1:].tolist(), strict=True
        )
    ]
    assert [name.encode() for name in names] == sorted(name.encode() for name in names)
    found = {}
    for name in names:
        rows, weights = postings.of(name.encode())
        found[name] = list(zip(rows.tolist(), weights.tolist(), strict=True))
    return found


def _assert_same(
    found: dict[str, list[tuple[int, float]]], wanted: dict[str, list[tuple[int, float]]]
) -> None:
    assert found.keys() == wanted.keys()
    for term, postings in wanted.items():
        assert [row for row, _ in found[term]] == [row for row, _ in postings]
        assert [weight for _, weight in found[term]] == pytest.approx(
            [weight for _, weight in postings], 1e-6
        )


@given(KEYS)
def test_weights_are_the_formulas(keys: list[list[str]]) -> None:
    """Each term has the keys that hold it, ascending, with BM25's factor without idf."""
    _assert_same(_listed(_postings(keys)), _plain(keys))


@given(KEYS)
def test_a_term_that_is_not_there_has_no_postings(keys: list[list[str]]) -> None:
    """A term before, between or after the others is not found."""
    postings = _postings(keys)
    for term in (b"", b"A", b"aa", b"\xff"):
        assert postings.find(term) is None
        assert len(postings.of(term)[0]) == 0


@given(st.lists(KEYS, min_size=1, max_size=4), st.randoms())
def test_merging_is_building_afresh(parts: list[list[list[str]]], choose: object) -> None:
    """Merged postings are, bit for bit, those of a fresh build of the keys that stay."""
    kept = [np.array([choose.random() < 0.7 for _ in keys], np.bool_) for keys in parts]  # type: ignore[attr-defined]
    merged = merge([_postings(keys) for keys in parts], kept)
    fresh = _postings(
        [
            key
            for keys, stays in zip(parts, kept, strict=True)
            for key, stay in zip(keys, stays, strict=True)
            if stay
        ]
    )
    for mine, other in zip(merged, fresh, strict=True):
        assert mine.tolist() == other.tolist()


@given(KEYS)
def test_bm25s_builds_the_same(keys: list[list[str]]) -> None:
    """The way through bm25s's override point gives the same arrays as the direct one."""
    lengths = np.array([len(key) for key in keys], np.uint32)
    ids = np.array([ord(term[0]) % 5 for key in keys for term in key], np.uint32)
    mine = lexical._invert(ids, lengths, 5, SETTINGS)
    other = lexical._inverted_by_bm25s(ids, lengths, 5, SETTINGS)
    assert [own.tolist() for own in mine] == [own.tolist() for own in other]


def test_run_together() -> None:
    """Byte strings run together, with where each starts and where the last ends."""
    text, offsets = run_together([b"ab", b"", b"c"])
    assert text.tobytes() == b"abc"
    assert offsets.tolist() == [0, 2, 2, 3]
