from pathlib import Path

import pytest
from kb import Entry, ask, asking, build, group, update

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.parts.tokens import count
from mrag_cli.records.models import Document, DocumentGroup, Marker
from mrag_cli.stages.query import result_json


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small index with vectors in two generations."""
    directory = tmp_path_factory.mktemp("query") / "kb"
    long = " ".join(["harbour"] * 200)
    entries = [
        Entry("lamp of the harbour", "The lamp is green.", ("light",), "Lamps"),
        Entry("lamp oil", "It burns oil.", (), "Lamps"),
        ("harbour depth", "Nine metres."),
        ("harbour harbour", long),
    ]
    build(directory, [group("port", entries)], dense=True)
    update(directory, [group("kelp", [("kelp drying", "Two days."), ("kelp lamp", "The lamp is green.")])])
    return directory


def test_a_result_says_everything(index: Path) -> None:
    """The JSON object names question, retriever, budget, tokens, generation, context, and each hit."""
    result = ask(index, "harbour lamp", retriever="bm25", budget=100, steps=None)
    found = result_json(result, explain=True)
    assert list(found) == ["question", "retriever", "budget", "tokens", "generation", "context", "hits"]
    assert found["generation"] == 2
    assert found["tokens"] == count(found["context"]) <= 100
    first = found["hits"][0]
    assert (first["rank"], first["doc"], first["pointers"], first["packed"]) == (1, "port", (1,), True)
    assert first["header"] == "Lamps"
    assert all(hit["tokens"] == count(hit["value"]) for hit in found["hits"])
    assert first["explain"]["packing"] == "packed"
    reasons = {hit["value"][:9]: hit["explain"]["packing"] for hit in found["hits"]}
    assert "do not fit into the" in reasons["harbour h"]
    assert [hit["score"] for hit in found["hits"]] == sorted(
        (hit["score"] for hit in found["hits"]), reverse=True
    )
    assert result_json(result)["hits"][0].get("explain") is None


def test_the_same_text_comes_once(index: Path) -> None:
    """Of two markers with the same value the better one is packed, and the other says why not."""
    result = ask(index, "lamp green kelp", retriever="bm25", steps=None)
    assert result.packed.context.count("The lamp is green.") == 1
    assert any(hit.reason == "the same text is in the context already" for hit in result.hits)


def test_an_alias_finds_its_value(index: Path) -> None:
    """A marker is found by any of its keys, and listed once."""
    result = ask(index, "light", retriever="bm25")
    assert [hit.marker.value for hit in result.hits] == ["The lamp is green."]


@pytest.mark.parametrize("retriever", [None, "bm25", "dense", "hybrid"])
def test_several_questions_at_a_time(index: Path, retriever: str | None) -> None:
    """Questions asked together are answered as if alone; blank ones find nothing."""
    questions = ["lamp", " ", "kelp drying", ""]
    query = asking(Snapshot.open(index), retriever=retriever)
    together = query.answers(questions)
    assert together == [query.answer(question) for question in questions]
    assert [bool(result.hits) for result in together] == [True, False, True, False]
    assert together[0].retriever == (retriever or "hybrid")


def test_the_units_own_words(index: Path) -> None:
    """--source packs the pointed-to units in place of values, counted exactly."""
    result = ask(index, "depth", retriever="bm25", source=True)
    assert result.packed.context == "Nine metres. In full."
    assert result.packed.tokens == count(result.packed.context)
    assert result.hits[0].packed


def test_a_unit_that_fits_beside_one_that_does_not(tmp_path: Path) -> None:
    """A marker of two units of which one fits is packed, and is among the hits."""
    made = group("a", [("x", "Short."), ("y", "long " * 100)])
    both = Marker("a", "lamp", "value", (1, 2), "llm")
    build(tmp_path / "kb", [DocumentGroup(made.document, made.units, (both,))])
    result = ask(tmp_path / "kb", "lamp", source=True, budget=20)
    assert result.packed.context == "Short. In full."
    assert [hit.packed for hit in result.hits] == [True]


def test_markers_without_their_units(tmp_path: Path) -> None:
    """Where the stream had no units, --source has nothing to show and says so."""
    bare = DocumentGroup(Document("a", "", "a", 3, 0), (), (Marker("a", "lamp", "value", (2,), "llm"),))
    build(tmp_path / "kb", [bare, group("b", [("kelp", "two")])])
    result = ask(tmp_path / "kb", "lamp", source=True)
    assert result.packed.context == ""
    assert result.hits[0].reason == "its units are not in the index"
    assert ask(tmp_path / "kb", "lamp").packed.context == "value"


def test_vectors_are_needed_for_dense(tmp_path: Path) -> None:
    """An index without vectors is asked by BM25; dense is a usage error."""
    build(tmp_path / "kb", [group("a", [("lamp", "one")])])
    assert ask(tmp_path / "kb", "lamp").retriever == "bm25"
    for retriever in ("dense", "hybrid"):
        with pytest.raises(UsageError, match="has no vectors"):
            ask(tmp_path / "kb", "lamp", retriever=retriever)


@pytest.mark.parametrize("budget", [0, 1, 3, 5, 10, 30])
def test_small_budgets(index: Path, budget: int) -> None:
    """However small the budget, it holds."""
    for strict in (False, True):
        result = ask(index, "lamp harbour kelp", budget=budget, strict_prefix=strict)
        assert result.packed.tokens == count(result.packed.context) <= budget


def test_strict_packing_stops(index: Path) -> None:
    """With --strict-prefix what comes after the first that does not fit is not considered."""
    result = ask(index, "harbour", retriever="bm25", budget=50, strict_prefix=True, steps=None)
    assert result.hits[0].marker.value.startswith("harbour harbour")
    assert result.packed.context == ""
    assert result.hits[1].reason == "packing had stopped before it"
