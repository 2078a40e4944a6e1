import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb import (
    DIMENSION,
    Entry,
    build,
    embedder,
    group,
    plain_bm25,
    ranking,
    update,
    vector_of,
)

from mrag_cli.parts.chop.product import DENSE_BONUS, id_term
from mrag_cli.parts.ranking import Masks, cosines, products_of, rank_dense, rank_hybrid, rank_lexical
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Place, Snapshot
from mrag_cli.records.models import Deletion, DocumentGroup

GROUPS = [
    group(
        "b", [Entry("harbour lamp", "one", ("kelp oven",)), ("lamp lamp valve", "two"), ("the of", "three")]
    ),
    group("a", [("lamp", "four"), ("harbour lamp", "five"), ("海港灯塔", "six")]),
    group("c", []),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, one document of which is dead."""
    directory = tmp_path_factory.mktemp("ranking") / "kb"
    build(directory, [GROUPS[0], group("gone", [("lamp harbour", "gone")])], dense=True)
    update(directory, [*GROUPS[1:], Deletion("gone")])
    assert len(read_manifest(directory).segments) == 2
    return directory


@pytest.mark.parametrize(
    "question", ["harbour lamp", "lamp lamp", "the", "kelp the oven", "灯塔", "海港 lamp"]
)
def test_bm25_is_the_formula(index: Path, question: str) -> None:
    """Scores are those of the plain formula over live keys; a marker has that of its best key."""
    snapshot = Snapshot.open(index)
    plain = plain_bm25(GROUPS, question, snapshot.manifest.lexical)
    found = rank_lexical(snapshot, question, 50)
    markers = [snapshot.segments[one.place.segment].marker(one.place.row) for one in found]
    scores = {
        (marker.doc, marker.pointers[0] - 1): one.score for marker, one in zip(markers, found, strict=True)
    }
    assert scores == pytest.approx(plain, abs=1e-6)
    order = [(-one.score, marker.doc, marker.pointers) for marker, one in zip(markers, found, strict=True)]
    assert order == sorted(order)


def test_a_question_of_stop_words_only_is_ranked_by_them(index: Path) -> None:
    """Where nothing but stop words is left, they count."""
    assert [value for _, _, value, _ in ranking(index, "the of", retriever="bm25", steps=None)] == ["three"]


@pytest.mark.parametrize("question", ["", "?!", "unheard"])
def test_nothing_found_is_no_hit(index: Path, question: str) -> None:
    """A question without a known term finds nothing by BM25: no hit has score 0."""
    assert ranking(index, question, retriever="bm25") == []


@pytest.mark.parametrize("count", range(1, 8))
def test_a_short_list_is_the_beginning_of_a_long_one(index: Path, count: int) -> None:
    """The best few are the first of all, ties included."""
    snapshot = Snapshot.open(index)
    vector = np.array(vector_of("lamp"), np.float32)
    vector /= np.linalg.norm(vector)
    assert rank_lexical(snapshot, "lamp", count) == rank_lexical(snapshot, "lamp", 50)[:count]
    assert rank_dense(snapshot, vector, count) == rank_dense(snapshot, vector, 50)[:count]


def test_cosines_are_exact(index: Path) -> None:
    """A dense score is the cosine of the question and the marker's best key; all live markers have one."""
    snapshot = Snapshot.open(index)
    vector = embedder().embed(["kelp oven"])[0]
    found = rank_dense(snapshot, vector, 50)
    assert len(found) == 6
    best = snapshot.segments[found[0].place.segment].marker(found[0].place.row)
    assert best.value == "one"
    assert found[0].score == pytest.approx(1.0)
    for one in found:
        marker = snapshot.segments[one.place.segment].marker(one.place.row)
        wanted = max(
            float(np.dot(vector.astype(np.float64), embedder().embed([key])[0])) for key in marker.keys
        )
        assert one.score == pytest.approx(wanted, abs=1e-6)


@given(st.integers(1, 9), st.integers(0, 8), st.integers(0, 2**32 - 1))
def test_a_cosine_depends_on_its_own_row_alone(count: int, row: int, seed: int) -> None:
    """The same vector gets the same bits whatever rows are computed beside it."""
    rows = np.random.default_rng(seed).standard_normal((9, 100)).astype(np.float32)
    wide = rows[0].astype(np.float64)
    alone = (rows[row].astype(np.float64) * wide).sum()
    together = (rows[[row] * count].astype(np.float64) * wide).sum(axis=1)
    assert set(together.tolist()) == {float(alone)}


def test_hybrid_adds_shares(index: Path) -> None:
    """Hybrid scores are sums of BM25 and of the cosine above 0, each over its maximum."""
    snapshot = Snapshot.open(index)
    vector = embedder().embed(["lamp"])[0]
    found, _ = rank_hybrid(snapshot, "lamp", vector, 50)
    best_lexical = max(one.lexical for one in found)
    best_dense = max(one.dense or 0.0 for one in found)
    for one in found:
        assert one.score == pytest.approx(one.lexical / best_lexical + max(one.dense or 0, 0) / best_dense)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_reciprocal_ranks(index: Path) -> None:
    """``rrf`` adds 1 / (60 + rank) over the paths that found the marker."""
    snapshot = Snapshot.open(index)
    vector = embedder().embed(["kelp"])[0]
    found, _ = rank_hybrid(snapshot, "kelp", vector, 50, fusion="rrf")
    assert found[0].score == pytest.approx(2 / 61)


def test_hybrid_where_every_cosine_is_negative(tmp_path: Path) -> None:
    """Negative cosines give nothing and break nothing."""
    opposite = [-number for number in vector_of("lamp")]
    build(tmp_path / "kb", [group("a", [("lamp", "one"), ("lamp", "two"), ("kelp", "three")])], dense=True)
    snapshot = Snapshot.open(tmp_path / "kb")
    vector = np.array(opposite, np.float32) / np.float32(np.linalg.norm(opposite))
    found, _ = rank_hybrid(snapshot, "lamp", vector, 10)
    assert all(math.isfinite(one.score) for one in found)
    assert [one.score for one in found[:2]] == [1.0, 1.0]


def test_masks_act_before_the_best_are_taken(index: Path) -> None:
    """What a filter hides takes no place in the list."""
    snapshot = Snapshot.open(index)
    masks = Masks(tuple(np.zeros(segment.entry.rows.markers, np.bool_) for segment in snapshot.segments))
    last = rank_lexical(snapshot, "lamp", 50)[-1].place
    shown = masks.by_segment[last.segment]
    assert shown is not None
    shown[last.row] = True
    assert [one.place for one in rank_lexical(snapshot, "lamp", 1, masks)] == [last]
    vector = embedder().embed(["lamp"])[0]
    assert [one.place for one in rank_dense(snapshot, vector, 1, masks)] == [last]


def test_half_precision_loses_little(tmp_path: Path) -> None:
    """Vectors of float16 give cosines within a thousandth of those of float32."""
    build(tmp_path / "whole", GROUPS, dense=True)
    build(tmp_path / "half", GROUPS, dense=True, dtype="float16")
    vector = embedder().embed(["harbour kelp"])[0]
    places = [Place(0, row) for row in range(6)]
    whole = cosines(Snapshot.open(tmp_path / "whole"), vector, places)
    half = cosines(Snapshot.open(tmp_path / "half"), vector, places)
    assert whole == pytest.approx(half, abs=1e-3)
    assert whole != half
    ranked = rank_dense(Snapshot.open(tmp_path / "half"), vector, 3)
    assert [one.score for one in ranked] == sorted(half, reverse=True)[:3]
    sizes = [(tmp_path / kind / "segments/1/vectors").stat().st_size for kind in ("whole", "half")]
    assert sizes == [7 * DIMENSION * 4, 7 * DIMENSION * 2]


def _of_product(doc: str, product: str, *texts: str) -> DocumentGroup:
    """Return a CHOP document about one product: each key holds the product's id."""
    made = group(doc, [(f"{id_term(product)} {text}", f"{product}: {text}") for text in texts])
    return replace(made, markers=tuple(replace(marker, origin="chop") for marker in made.markers))


def test_a_named_product_ranks_its_own_keys_first(tmp_path: Path) -> None:
    """In an index of CHOP's, the product that a question names decides between equal texts, on both paths."""
    texts = ("Clean the filter with a brush.", "Charge the battery for two hours.")
    manuals = [_of_product(f"m{n}", f"Acme X{n}00", *texts) for n in range(1, 5)]
    build(tmp_path / "kb", manuals, dense=True)
    snapshot = Snapshot.open(tmp_path / "kb")
    question = "Acme X300: how do I clean the filter?"
    products = products_of(snapshot, question)
    assert products == (id_term("Acme X300"),)
    assert products_of(snapshot, "How do I clean the filter?") == ()
    vector = embedder().embed(["clean the filter"])[0]
    by_terms = rank_lexical(snapshot, question, 8, None, products)
    by_vectors = rank_dense(snapshot, vector, 8, None, None, products)
    by_both, _ = rank_hybrid(snapshot, question, vector, 8, products=products)
    for found in (by_terms, by_vectors, by_both):
        assert snapshot.segments[0].marker(found[0].place.row).doc == "m3"
    assert "filter" in snapshot.segments[0].marker(by_terms[0].place.row).value
    plain = rank_dense(snapshot, vector, 8)
    gained = {one.place: one.score for one in by_vectors}
    for one in plain:
        own = snapshot.segments[0].marker(one.place.row).doc == "m3"
        assert gained[one.place] == pytest.approx(one.score + (DENSE_BONUS if own else 0), abs=1e-6)
