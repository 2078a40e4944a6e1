"""Refining a ranking, over markers that a test writes down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.refine import BRIDGE, TITLE, TYPE, Candidates, Steps, asked_for, refine
from mrag_cli.parts.terms import query_terms, terms
from mrag_cli.parts.titles import title_hash, title_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NOTHING = Steps(types=False, titles=False, bridge=False, coverage=False)


@dataclass
class _Index:
    """Markers as (page title, value); a term of the question in either gives a marker 1."""

    question: str
    markers: list[tuple[str, str]]
    pages: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.total = len(self.markers)
        self.words = [set(terms(f"{title} {value}")) for title, value in self.markers]
        for place, (title, _) in enumerate(self.markers):
            if page := title_hash(title_terms(title)):
                self.pages.setdefault(page, []).append(place)

    def value(self, place: int) -> str:
        return self.markers[place][1]

    def page(self, place: int) -> int:
        return title_hash(title_terms(self.markers[place][0]))

    def known(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return np.isin(hashes, np.array(list(self.pages), np.uint64))

    def members(self, page: int) -> Sequence[int]:
        return self.pages[page]

    def naming(self, page: int, named: tuple[str, ...]) -> int:
        others = set(range(self.total)) - set(self.pages[page])
        return sum(self.words[place].issuperset(named) for place in others)

    def look(self, places: Sequence[int]) -> Candidates[int]:
        asked = list(dict.fromkeys(query_terms(self.question)))
        parts = np.array([[float(term in self.words[place]) for term in asked] for place in places])
        parts = parts.reshape(len(places), len(asked))
        return Candidates(list(places), parts.sum(axis=1), parts)

    def candidates(self) -> Candidates[int]:
        scores = self.look(range(self.total)).scores
        return self.look(
            [place for place in np.argsort(-scores, kind="stable").tolist() if scores[place] > 0]
        )

    def ranked(self, steps: Steps) -> list[tuple[int, float]]:
        found = refine(self.question, self.candidates(), self, steps)
        return [(refined.place, round(refined.score, 3)) for refined in found]


def test_a_value_of_the_answer_type_is_lifted() -> None:
    """A question for a number lifts a value that holds one."""
    index = _Index("How many boats were there?", [("", "The boats were old."), ("", "The boats were 14.")])
    assert index.ranked(Steps(titles=False, bridge=False, coverage=False)) == [(1, 1 + TYPE), (0, 1.0)]


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("How many boats?", "fourteen, or 14"),
        ("有多少艘船？", "共有14艘"),
        ("When was it sold?", "in May 1932"),
        ("它是何时开放的？", "一九三二年开放"),
        ("Who founded it?", "founded by Anna Brack"),
    ],
)
def test_answer_types(question: str, value: str) -> None:
    """Numbers, dates and names are asked for and recognised, in English and Chinese."""
    wanted = asked_for(question)
    assert wanted is not None
    assert wanted.is_in(value)
    assert not wanted.is_in("nothing of the kind")


def test_no_answer_type() -> None:
    """A question that asks for none of them lifts nothing."""
    assert asked_for("Why was the ferry sold?") is None


def test_a_title_in_the_question_lifts_its_page() -> None:
    """The page that the question names comes before another that matches as well."""
    index = _Index(
        "What did Anna Brack own?", [("Lenne", "Anna Brack was here."), ("Anna Brack", "Two barges.")]
    )
    steps = Steps(types=False, bridge=False, coverage=False)
    assert index.ranked(steps) == [(1, 1 + TITLE), (0, 1.0)]


def test_a_bridge_leads_to_the_page_that_a_hit_names() -> None:
    """The markers of a page that only a hit names are found, though no word of the question is in them."""
    index = _Index(
        "Where was the founder of the Lenne ferry born?",
        [("Lenne ferry", "Its founder was Anna Brack."), ("Holm", "A town."), ("Anna Brack", "Of Ulm.")],
    )
    assert [place for place, _ in index.ranked(NOTHING)] == [0]
    (first, _), (second, score) = index.ranked(Steps(types=False, titles=False, coverage=False))
    # one marker of another page names it, of three: ln(1 + 3/2) / ln(1 + 3)
    assert (first, second, score) == (0, 2, round(BRIDGE * np.log(2.5) / np.log(4), 3))


def test_no_bridge_to_what_the_question_names() -> None:
    """A page that the question names itself needs no bridge."""
    index = _Index("What of Holm and Lenne?", [("Lenne", "Near Holm."), ("Holm", "A town.")])
    steps = Steps(types=False, titles=False, coverage=False)
    assert index.ranked(steps) == index.ranked(NOTHING)


def test_coverage_prefers_what_is_not_yet_said() -> None:
    """Of two markers that match as well, the one with other words of the question comes second."""
    index = _Index("boats barges oars", [("", "boats barges"), ("", "barges boats"), ("", "boats oars")])
    assert [place for place, _ in index.ranked(NOTHING)] == [0, 1, 2]
    found = index.ranked(Steps(types=False, titles=False, bridge=False))
    assert [place for place, _ in found] == [0, 2, 1]
    assert found == sorted(found, key=lambda pair: -pair[1])


def test_every_change_has_its_reason() -> None:
    """A lifted marker says what lifted it and by how much."""
    index = _Index("How many boats were in Holm?", [("Holm", "There were 14 boats.")])
    (found,) = refine(index.question, index.candidates(), index)
    assert found.reasons == ("it holds a number: +0.20", "its title is in the question: +0.15")


def test_nothing_found_stays_nothing() -> None:
    """An empty ranking is refined to an empty one."""
    index = _Index("boats", [("", "oars")])
    assert refine(index.question, index.candidates(), index) == []


_WORDS = st.sampled_from(["Anna Brack", "Holm", "boats", "oars", "14", "founded", "the", "Lenne ferry"])
_TEXTS = st.lists(_WORDS, min_size=1, max_size=5).map(" ".join)
_TITLES = st.sampled_from(["", "Holm", "Anna Brack", "Lenne ferry"])


@given(_TEXTS, st.lists(st.tuples(_TITLES, _TEXTS), max_size=12), st.booleans(), st.booleans())
def test_every_candidate_stays_and_none_comes_twice(
    question: str, markers: list[tuple[str, str]], bridge: bool, coverage: bool
) -> None:
    """Whatever the steps, all candidates are there once; without a bridge nothing else is."""
    index = _Index(question, markers)
    candidates = index.candidates()
    steps = Steps(bridge=bridge, coverage=coverage)
    found = [refined.place for refined in refine(question, candidates, index, steps)]
    assert len(found) == len(set(found))
    assert set(found) >= set(candidates.places)
    assert bridge or len(found) == len(candidates.places)


@given(_TEXTS, st.lists(st.tuples(_TITLES, _TEXTS), max_size=12))
def test_without_steps_the_ranking_stays(question: str, markers: list[tuple[str, str]]) -> None:
    """With every step off, order and proportions are those of the ranking."""
    index = _Index(question, markers)
    candidates = index.candidates()
    found = refine(question, candidates, index, NOTHING)
    assert [refined.place for refined in found] == list(candidates.places)
    assert all(not refined.reasons for refined in found)
