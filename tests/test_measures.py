"""The measures against cases worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.measures import answer_recall, content_words, evidence_recall, f1, normalised


def test_normalised_removes_case_punctuation_and_articles() -> None:
    """Case, punctuation, articles and repeated white space do not tell two texts apart."""
    assert normalised("The  U.S. Army, an\tarmy!") == "us army army"


def test_normalised_sets_cjk_characters_apart() -> None:
    """Each CJK character is a word, beside Latin words and digits."""
    assert normalised("厦门大学。") == "厦 门 大 学"
    assert normalised("共有2110户ABC") == "共 有 2110 户 abc"


def test_answer_recall_finds_any_answer_in_the_context() -> None:
    """One answer that occurs is enough, whatever its case and punctuation."""
    assert answer_recall("It was G. Stanley Hall, in 1904.", ["nobody", "g stanley hall"]) == 1.0
    assert answer_recall("It was G. Stanley Hall, in 1904.", ["nobody"]) == 0.0


def test_answer_recall_compares_whole_words() -> None:
    """A number inside a longer number is not found."""
    assert answer_recall("Founded in 2003.", ["20"]) == 0.0
    assert answer_recall("Founded by 20 people.", ["20"]) == 1.0


def test_answer_recall_in_chinese() -> None:
    """A Chinese answer is found between other characters, its full stop and spaces left out."""
    assert answer_recall("会议在 厦门 大学举行", ["厦门大学。"]) == 1.0
    assert answer_recall("会议在北京举行", ["厦门大学。"]) == 0.0


@pytest.mark.parametrize(
    "answers",
    [
        ["yes"],
        ["No."],
        ["是。"],
        ["...", "—"],
        [],
        ["one two three four five six seven eight nine ten eleven"],
    ],
)
def test_answer_recall_does_not_apply(answers: list[str]) -> None:
    """A yes or no, punctuation only, a whole sentence and no answer at all are left out."""
    assert answer_recall("yes no one two three", answers) is None


def test_evidence_recall_is_the_mean_over_passages() -> None:
    """Each gold passage counts the share of its distinct content words, and passages count alike."""
    passages = ["The river Ems floods the river bank", "a mill"]  # {river, ems, floods, bank}, {mill}
    assert evidence_recall("Ems and the BANK", passages) == pytest.approx((2 / 4 + 0) / 2)


def test_evidence_recall_in_chinese_counts_pairs() -> None:
    """Chinese passages are compared by overlapping pairs of characters."""
    assert content_words("锣鼓经") == {"锣鼓", "鼓经"}
    assert evidence_recall("锣鼓点", ["锣鼓经"]) == pytest.approx(1 / 2)


@pytest.mark.parametrize("passages", [[], ["..."], ["the of"]])
def test_evidence_recall_without_evidence(passages: list[str]) -> None:
    """No passage with a content word means that the measure does not apply."""
    assert evidence_recall("anything", passages) is None


def test_f1_takes_the_best_answer() -> None:
    """Precision and recall over words, articles and punctuation left out, best over the answers."""
    # prediction {red, mill}, gold {red, old, mill}: precision 1, recall 2/3
    assert f1("The red mill.", ["nothing", "a red old mill"]) == pytest.approx(2 * 1 * (2 / 3) / (5 / 3))
    assert f1("blue", ["red"]) == 0.0
    assert f1("", ["red"]) == 0.0
    assert f1("red", []) == 0.0


def test_f1_counts_repeated_words_once_each() -> None:
    """A word said three times matches a gold word said once only once."""
    # common 1, precision 1/3, recall 1
    assert f1("mill mill mill", ["mill"]) == pytest.approx(0.5)


def test_f1_in_chinese_compares_characters() -> None:
    """Chinese is compared character by character without punctuation."""
    # prediction 4 characters, gold 2, both found: precision 1/2, recall 1
    assert f1("厦门大学。", ["厦门"], "zh") == pytest.approx(2 * 0.5 / 1.5)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_measures_stay_between_0_and_1(context: str, gold: list[str]) -> None:
    """Whatever the texts are, each measure is a share or does not apply."""
    for share in (answer_recall(context, gold), evidence_recall(context, gold), f1(context, gold)):
        assert share is None or 0 <= share <= 1


@given(st.text(), st.text(), st.text())
def test_a_context_that_holds_the_evidence_recalls_all_of_it(before: str, passage: str, after: str) -> None:
    """Evidence that stands in the context on lines of its own is recalled in full."""
    assert evidence_recall(f"{before}\n{passage}\n{after}", [passage]) in (None, 1.0)
