"""A question's view of an index, and rankings refined over it: several segments, dead documents, filters."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kb import Entry, ask, build, embedder, group, ranking, update

from mrag_cli.parts.filters import Filters
from mrag_cli.parts.pages import CONTEXT, QuestionPages, code, place_of, refined
from mrag_cli.parts.ranking import Scale, cosines, rank_dense, rank_hybrid, rank_lexical
from mrag_cli.parts.refine import AGAIN, BRIDGE, TITLE, TYPE, Steps
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Place, Snapshot
from mrag_cli.parts.titles import page_hash
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Marker, Unit

NOTHING = Steps(False, False, False, False, False)
QUESTION = "Who founded the Lenne ferry?"
FERRY = group(
    "ferry",
    [
        Entry("Who founded the Lenne ferry?", "The ferry was founded by Anna Brack.", (), "Lenne ferry"),
        Entry(
            "What does the Lenne ferry carry?", "It carries 14 cars.", ("load of the ferry",), "Lenne ferry"
        ),
    ],
)
BRACK = group(
    "people/brack",
    [
        Entry("When was Anna Brack born?", "She was born in 1871.", (), "Anna Brack"),
        Entry("Where did Anna Brack live?", "She lived in Holm.", ("home of Anna Brack",), "Anna Brack"),
    ],
)
HOLM = group("holm", [Entry("Where is Holm?", "Holm lies on the Lenne.", (), "Holm")])
OLD = group("people/old", [Entry("Who was Anna Brack?", "A dead page's words.", (), "Anna Brack")])


def only(step: str) -> Steps:
    """Return the steps with one of them on."""
    return Steps(**{field.name: field.name == step for field in fields(Steps)})


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of three segments; one document is dead, one was replaced."""
    directory = tmp_path_factory.mktemp("pages") / "kb"
    build(directory, [FERRY, OLD, group("holm", [("Old key of Holm", "old")])], dense=True)
    update(directory, [BRACK, Deletion("people/old")])
    update(directory, [HOLM])
    assert len(read_manifest(directory).segments) == 3
    return directory


def pages(index: Path, question: str = QUESTION, filters: Filters | None = None) -> QuestionPages:
    """Return a question's pages, ranked by terms."""
    snapshot = Snapshot.open(index)
    return QuestionPages(snapshot, question, Scale(1, 0), None, filters.masks(snapshot) if filters else None)


def values(index: Path, places: Any) -> list[str]:
    """Return the values of some markers."""
    snapshot = Snapshot.open(index)
    return [snapshot.segments[place.segment].marker(place.row).value for place in places]


def test_members_are_the_live_markers_of_a_page_in_order(index: Path) -> None:
    """A page's markers come from all segments by (doc, position), without dead ones."""
    found = pages(index).members(page_hash("Anna Brack"))
    assert values(index, map(place_of, found)) == ["She was born in 1871.", "She lived in Holm."]
    assert {pages(index).page(place) for place in found} == {page_hash("Anna Brack")}
    assert values(index, map(place_of, pages(index).members(page_hash("Holm")))) == [
        "Holm lies on the Lenne."
    ]
    assert list(pages(index).members(page_hash("Nobody"))) == []
    assert list(pages(index).members(0)) == []


def test_members_are_those_that_a_filter_lets_through(index: Path) -> None:
    """What the filters hide is no member, and its page is not known."""
    hidden = Filters(globs=("ferry", "holm"))
    titles = np.array([page_hash(title) for title in ("Anna Brack", "Holm", "Nobody", "")], np.uint64)
    assert pages(index).known(titles).tolist() == [True, True, False, False]
    assert pages(index, filters=hidden).known(titles).tolist() == [False, True, False, False]
    assert list(pages(index, filters=hidden).members(int(titles[0]))) == []
    assert pages(index).known(np.empty(0, np.uint64)).tolist() == []


def test_naming_counts_markers_of_other_pages_by_any_of_their_keys(index: Path) -> None:
    """A marker counts once whatever number of its keys name the title; its own page and dead ones do not."""
    ferry, brack = page_hash("Lenne ferry"), page_hash("Anna Brack")
    assert pages(index).naming(brack, ("anna", "brack")) == 0
    assert pages(index).naming(ferry, ("anna", "brack")) == 2
    assert pages(index).naming(brack, ("ferri",)) == 2
    assert pages(index, filters=Filters(globs=("holm",))).naming(ferry, ("anna", "brack")) == 0
    assert pages(index).naming(ferry, ("anna", "nobody")) == 0


def test_a_look_gives_each_marker_the_terms_of_its_best_key(index: Path) -> None:
    """Scores are the ranking's own, term by term, also of markers that have none of the terms."""
    snapshot = Snapshot.open(index)
    seen = pages(index, "Where is the home of the ferry?")
    places = [*seen.members(page_hash("Lenne ferry")), *seen.members(page_hash("Anna Brack"))]
    found = seen.look(places)
    by_place = {one.place: one.score for one in rank_lexical(snapshot, "Where is the home of the ferry?", 99)}
    assert list(found.places) == places
    assert found.parts.shape == (4, 2)
    np.testing.assert_allclose(found.scores, [by_place.get(place_of(one), 0) for one in places], atol=1e-6)
    np.testing.assert_allclose(found.scores, found.parts.sum(axis=1))
    assert found.scores[2] == 0 < found.scores[3]
    assert seen.look([]).parts.shape == (0, 2)


def test_a_look_of_hybrid_pages_adds_the_cosines(index: Path) -> None:
    """Both paths' scores are scaled as the ranking's; a cosine below 0 counts as 0."""
    snapshot = Snapshot.open(index)
    vector = embedder().embed([QUESTION])[0]
    ranking, scale = rank_hybrid(snapshot, QUESTION, vector, 99)
    seen = QuestionPages(snapshot, QUESTION, scale, vector)
    places = [one.place for one in ranking]
    looked = seen.look([code(place) for place in places])
    np.testing.assert_allclose(looked.scores, [one.score for one in ranking], atol=1e-6)
    assert min(cosines(snapshot, vector, places)) < 0


def test_a_question_of_unknown_words_looks_at_nothing(index: Path) -> None:
    """No term of the question is in the index: no part, no score."""
    found = pages(index, "zebra").look([code(Place(0, 0))])
    assert found.parts.shape == (1, 0)
    assert found.scores.tolist() == [0]
    assert pages(index, "zebra").contexts([code(Place(0, 0))]) == {}


def test_without_steps_a_ranking_is_unchanged(index: Path) -> None:
    """With every step off the ranking is the one that was given, scores included."""
    ranking = rank_lexical(Snapshot.open(index), QUESTION, 99)
    assert refined(ranking, QUESTION, pages(index), NOTHING, 99) == ranking
    assert refined([], QUESTION, pages(index), Steps(), 99) == []


def test_a_marker_that_is_bridged_in_comes_with_its_scores(index: Path) -> None:
    """A page that only a hit names comes along, with the scores of its markers and the reason."""
    question = "Who founded the ferry?"
    ranking = rank_lexical(Snapshot.open(index), question, 99)
    assert len(ranking) == 2
    found = refined(ranking, question, pages(index, question), only("bridge"), 99)
    assert [one.place for one in found[:1]] == [ranking[0].place]
    brought = [one for one in found if one.place not in {given.place for given in ranking}]
    assert values(index, [one.place for one in brought]) == ["She was born in 1871.", "She lived in Holm."]
    # five markers, none on another page names her
    for one in brought:
        assert (one.score, one.lexical, one.dense) == (
            pytest.approx(BRIDGE * np.log(6) / np.log(6)),
            0.0,
            None,
        )
        assert one.reasons == ("its page is named by a better hit (anna brack): +1.00",)


def test_a_bridge_in_a_dense_ranking_brings_cosines(index: Path) -> None:
    """A marker that is bridged into a dense ranking has its cosine."""
    snapshot = Snapshot.open(index)
    question = "Who founded the ferry?"
    vector = embedder().embed([question])[0]
    ranking = rank_dense(snapshot, vector, 1)
    assert values(index, [ranking[0].place]) == ["The ferry was founded by Anna Brack."]
    seen = QuestionPages(snapshot, question, Scale(0, 1), vector)
    found = refined(ranking, question, seen, only("bridge"), 99)
    assert len(found) == 3
    expected = cosines(snapshot, vector, [one.place for one in found])
    assert [one.dense for one in found] == pytest.approx(expected)
    assert found[1].score == pytest.approx(BRIDGE + max(expected[1], 0) / ranking[0].score)


@pytest.mark.parametrize(
    ("scale", "asked"), [(Scale(0, 1), False), (Scale(1, 0), True), (Scale(1, 1), True), (Scale(0, 0), True)]
)
def test_a_score_that_was_not_asked_for_is_not_given(index: Path, scale: Scale, asked: bool) -> None:
    """In a dense ranking what comes along has no BM25 score, as all others there; by ranks it has one."""
    seen = QuestionPages(Snapshot.open(index), QUESTION, scale)
    (found,) = seen.unranked([code(Place(0, 0))])
    assert (found.lexical > 0) is asked
    assert found.dense is None


def test_a_filter_holds_for_what_a_bridge_brings(index: Path) -> None:
    """A filtered question never gets a marker of a document that the filter hides."""
    hits = ask(index, "Who founded the ferry?", retriever="bm25", filters=Filters(globs=("ferry",))).hits
    assert {hit.marker.doc for hit in hits} == {"ferry"}


@pytest.mark.parametrize(
    ("step", "question", "reason"),
    [
        ("types", "How many cars does the Lenne ferry carry?", f"it holds a number: +{TYPE:.2f}"),
        ("titles", "What does the Lenne ferry carry?", f"its title is in the question: +{TITLE:.2f}"),
        ("bridge", "Who founded the ferry?", "its page is named by a better hit (anna brack): +1.00"),
    ],
)
def test_each_step_alone_and_each_left_out(index: Path, step: str, question: str, reason: str) -> None:
    """A step that is on gives its reason, and one that is left out does not."""
    without = Steps(**{step: False})
    for steps, there in ((only(step), True), (Steps(), True), (without, False)):
        hits = ask(index, question, retriever="bm25", steps=steps).hits
        assert any(reason in hit.ranked.reasons for hit in hits) is there


def test_coverage_alone(index: Path) -> None:
    """The second marker with the same terms counts for less by what was said already."""
    plain = ask(index, "ferry", retriever="bm25", steps=NOTHING).hits
    spread = ask(index, "ferry", retriever="bm25", steps=only("coverage")).hits
    assert spread[1].ranked.score == pytest.approx(AGAIN * plain[1].ranked.score / plain[0].ranked.score)


def cut(doc: str, units: list[list[str]], title: str = "", origin: str = "extractive") -> DocumentGroup:
    """Return a document whose units are cut into markers, key and value alike."""
    markers = [
        Marker(doc, sentence, sentence, (number,), origin)
        for number, sentences in enumerate(units, 1)
        for sentence in sentences
    ]
    made = tuple(Unit(doc, number, " ".join(sentences), 9) for number, sentences in enumerate(units, 1))
    return DocumentGroup(
        Document(doc, repr(units) + title, title or doc, len(units), 9, {}), made, tuple(markers)
    )


def test_a_marker_is_lifted_by_the_rest_of_its_unit(tmp_path: Path) -> None:
    """The sum over a unit's markers is as the module's formula has it, and the unit's others come along."""
    kb = tmp_path / "kb"
    build(kb, [cut("a", [["herons nest high", "the lamp burns", "no word of it"], ["lamp oil"]])])
    update(kb, [cut("b", [["herons fish"]]), cut("c", [["herons and lamp"]], origin="llm")])
    snapshot, question = Snapshot.open(kb), "herons lamp"
    seen = QuestionPages(snapshot, question, Scale(1, 0))
    ranking = rank_lexical(snapshot, question, 99)
    lifts = seen.contexts([code(one.place) for one in ranking])
    weights = seen.look([code(Place(0, 0)), code(Place(0, 1)), code(Place(1, 1))]).parts
    first = CONTEXT * weights[:2].sum()
    assert (
        lifts[code(Place(0, 0))]
        == lifts[code(Place(0, 1))]
        == lifts[code(Place(0, 2))]
        == pytest.approx(first)
    )
    assert lifts[code(Place(0, 3))] > 0
    assert code(Place(1, 1)) not in lifts
    hits = ask(kb, question, retriever="bm25", steps=only("context")).hits
    silent = next(hit for hit in hits if hit.marker.value == "no word of it")
    assert silent.ranked.lexical == 0
    assert silent.ranked.reasons[0].startswith("the unit around it: +")
    assert len(hits) == 6


def test_terms_repeated_within_a_unit_saturate(tmp_path: Path) -> None:
    """A term in every marker of a unit lifts by less than the sum, and never by more than its weight."""
    kb = tmp_path / "kb"
    build(kb, [cut("a", [["lamp"] * 20]), cut("b", [["oil"]])])
    seen = QuestionPages(Snapshot.open(kb), "lamp", Scale(1, 0))
    one = seen.look([code(Place(0, 0))]).scores[0]
    (lift,) = set(seen.contexts([code(Place(0, 0))]).values())
    weight = float(np.log(1 + (21 - 20 + 0.5) / (20 + 0.5)))
    assert CONTEXT * one < lift <= CONTEXT * weight + 1e-6


def test_what_is_far_down_keeps_its_place(tmp_path: Path) -> None:
    """Only the first hundred are refined; all markers stay, the rest in their order with scores as shares."""
    kb = tmp_path / "kb"
    build(kb, [cut(f"{n:03}", [["lamp " + "oil " * (n // 2)]]) for n in range(120)])
    snapshot = Snapshot.open(kb)
    ranking = rank_lexical(snapshot, "lamp", 1000)
    found = refined(ranking, "lamp", QuestionPages(snapshot, "lamp", Scale(1, 0)), Steps(), 999)
    assert sorted(one.place for one in found) == sorted(one.place for one in ranking)
    assert [one.place for one in found[100:]] == [one.place for one in ranking[100:]]
    best = max(one.score for one in found)
    assert all(0 < one.score <= best for one in found)
    for count in (7, 110):
        seen = QuestionPages(snapshot, "lamp", Scale(1, 0))
        assert refined(ranking, "lamp", seen, Steps(), count) == found[:count]


def test_what_comes_with_its_unit_keeps_its_own_score(tmp_path: Path) -> None:
    """A marker that a better one of its unit brings up has its own score and the lift of the unit."""
    kb = tmp_path / "kb"
    many = [cut(f"{n:03}", [["lamp " + "oil " * (n // 2)]]) for n in range(120)]
    build(kb, [*many, cut("unit", [["lamp shade", "lamp " + "oil " * 90]])])
    snapshot = Snapshot.open(kb)
    place = snapshot.find("unit")
    assert place is not None
    first = int(snapshot.segments[0].first_markers[place.row])
    ranking = rank_lexical(snapshot, "lamp", 1000)
    assert ranking[-1].place == Place(0, first + 1)
    seen = QuestionPages(snapshot, "lamp", Scale(1, 0))
    lifts = seen.contexts([code(one.place) for one in ranking])
    alone = {one.place: one.score + lifts.get(code(one.place), 0.0) for one in ranking}
    best = max(alone.values())
    found = {one.place: one.score for one in refined(ranking, "lamp", seen, only("context"), 1000)}
    for row in (first, first + 1):
        assert found[Place(0, row)] == pytest.approx(alone[Place(0, row)] / best)


_WORDS = st.sampled_from(
    ["Anna Brack", "Holm", "lamps", "oars", "14 boats", "founded", "the", "Lenne ferry", "水獭"]
)
_TEXTS = st.lists(_WORDS, min_size=1, max_size=4).map(" ".join)
_ENTRIES = st.builds(
    Entry,
    _TEXTS,
    _TEXTS,
    st.lists(_TEXTS, max_size=2).map(tuple),
    st.sampled_from(["", "Holm", "Anna Brack", "Lenne ferry"]),
)
_GROUPS = st.builds(group, st.sampled_from("abcdef"), st.lists(_ENTRIES, max_size=3)) | st.builds(
    cut,
    st.sampled_from("abcdef"),
    st.lists(st.lists(_TEXTS, min_size=1, max_size=3), min_size=1, max_size=3),
    st.sampled_from(["", "Holm", "Anna Brack"]),
)
_CHANGES = st.lists(_GROUPS | st.builds(Deletion, st.sampled_from("abcdef")), max_size=3)


@settings(max_examples=25)
@given(
    st.lists(_CHANGES, min_size=2, max_size=4),
    _TEXTS,
    st.builds(Steps, *[st.booleans()] * 5),
    st.sampled_from(["bm25", "hybrid", "dense"]),
    st.sampled_from([(), ("[abc]",)]),
)
def test_a_refined_ranking_of_an_updated_index_is_that_of_a_rebuilt_one(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[list[DocumentGroup | Deletion]],
    question: str,
    steps: Steps,
    retriever: str,
    globs: tuple[str, ...],
) -> None:
    """Whatever the updates, places, order and scores are those of an index built afresh."""
    folder = tmp_path_factory.mktemp("again")
    live: dict[str, DocumentGroup] = {}
    for number, parts in enumerate(changes):
        parts = list(
            {
                part.document.doc if isinstance(part, DocumentGroup) else part.doc: part for part in parts
            }.values()
        )
        if number:
            update(folder / "kb", parts)
        else:
            parts = [part for part in parts if isinstance(part, DocumentGroup)]
            build(folder / "kb", parts, dense=True)
        for part in parts:
            if isinstance(part, DocumentGroup):
                live[part.document.doc] = part
            else:
                live.pop(part.doc, None)
    build(folder / "new", live.values(), like=read_manifest(folder / "kb"), dense=True)
    asked: dict[str, Any] = {"steps": steps, "retriever": retriever, "filters": Filters(globs)}
    updated, rebuilt = (ranking(folder / name, question, **asked) for name in ("kb", "new"))
    assert [hit[:3] for hit in updated] == [hit[:3] for hit in rebuilt]
    assert [hit[3] for hit in updated] == pytest.approx([hit[3] for hit in rebuilt], abs=1e-9)
