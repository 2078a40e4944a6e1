"""Hit, MRR and NDCG against cases worked out by hand, and what counts as relevant."""

import math

import pytest

from mrag_cli.parts.evaluation.ranking_metrics import MarkerWords, ranking_scores
from mrag_cli.records.models import Document, DocumentGroup, Marker, Unit


def _group(doc: str, *values: str, header: str = "") -> DocumentGroup:
    units = tuple(
        Unit(doc, number, value, 1, (), (10 * number, 10 * number + 9))
        for number, value in enumerate(values, 1)
    )
    markers = tuple(
        Marker(doc, f"key {number}", value, (number,), "llm", header=header)
        for number, value in enumerate(values, 1)
    )
    return DocumentGroup(Document(doc, "", doc, len(units), 1), units, markers)


def test_scores_of_one_ranking() -> None:
    """With two relevant markers, one at rank 2: MRR is a half, NDCG 1/log2(3) over 1 + 1/log2(3)."""
    scores = ranking_scores({"q": [7, 3, 9]}, {"q": {3, 4}}, (1, 3))["q"]
    gain = 1 / math.log2(3)
    assert scores["hit@1"] == scores["mrr@1"] == scores["ndcg@1"] == 0.0
    assert scores["hit@3"] == 1.0
    assert scores["mrr@3"] == 0.5
    assert scores["ndcg@3"] == pytest.approx(gain / (1 + gain))


def test_a_question_without_a_relevant_marker_scores_nothing() -> None:
    """Evidence that no marker holds cannot be found: that is a miss, not a gap in the table."""
    scores = ranking_scores({"q": [1, 2], "r": [5]}, {"q": set(), "r": {5}}, (5,))
    assert scores["q"] == {"hit@5": 0.0, "mrr@5": 0.0, "ndcg@5": 0.0}
    assert scores["r"] == {"hit@5": 1.0, "mrr@5": 1.0, "ndcg@5": 1.0}
    assert ranking_scores({"q": []}, {"q": {1}}, (5,))["q"]["hit@5"] == 0.0
    assert ranking_scores({}, {}, (5,)) == {}


def test_half_of_a_passage_is_enough() -> None:
    """A marker is relevant when it holds half of the distinct content words of a passage."""
    words = MarkerWords()
    words.add(_group("a", "The heron nests high above lakes.", "Herons eat fish."))
    assert words.relevant(["heron nests high lakes quietly silently unseen always"]) == {0}
    assert words.relevant(["heron nests high quietly silently unseen always"]) == set()
    assert words.relevant(["the of and"]) == set()


def test_the_header_counts() -> None:
    """What a packed context shows above a value is read with it."""
    words = MarkerWords()
    words.add(_group("a", "It nests high.", header="Grey heron"))
    assert words.relevant(["grey heron nests"]) == {0}


def test_a_named_document_must_match() -> None:
    """The same words in a sibling document are not what was asked for."""
    words = MarkerWords()
    words.add(_group("one", "Hold the power key for ten seconds."))
    words.add(_group("two", "Hold the power key for ten seconds."))
    passage = ["Hold the power key for ten seconds."]
    assert words.relevant(passage) == {0, 1}
    assert words.relevant(passage, ["two"]) == {1}


def test_joined_documents_keep_their_names() -> None:
    """In a document that was joined of several, a marker belongs to the one that its middle stands in."""
    words = MarkerWords([(0, "first"), (25, "second")])
    group = _group("joined", "alpha beta", "gamma delta", "alpha beta again")
    words.add(group)
    assert words.relevant(["alpha beta"], ["first"]) == {0}
    assert words.relevant(["alpha beta"], ["second"]) == {2}
    assert words.row(group.markers[1]) == 1


def test_chinese_passages_are_compared_by_pairs() -> None:
    """Words of a language without spaces are its overlapping pairs."""
    words = MarkerWords()
    words.add(_group("a", "锣鼓经是打击乐记谱方法", "会议在北京举行"))
    assert words.relevant(["锣鼓经是大陆的打击乐记谱方法"]) == {0}
