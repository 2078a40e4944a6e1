"""How good a packed context, or an answer made from it, is: recalls and LongBench's F1.

All measures are shares between 0 and 1. A measure that does not apply to a question is None, and stays out of
means: a yes or no for `answer_recall`, an answer of punctuation only, a question without evidence.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from mrag_cli.parts.terms import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

YES_NO = frozenset(
    ["yes", "no", "true", "false", "是", "否", "不是", "对", "不对", "有", "没有", "能", "不能", "会", "不会"]
)
"""Answers that a context cannot be said to hold."""

SHORT = 10
"""A longer answer is not looked for, because a context may say it in other words; two CJK characters count
as one word."""

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_ASCII_SIGNS = str.maketrans("", "", string.punctuation)
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_CHARACTER = re.compile(f"([{_CJK}])")
_CJK_RUN = re.compile(f"([{_CJK}]+)")


def normalised(text: str) -> str:
    """Return ``text`` folded for comparison: lower case, no punctuation, no English articles, single spaces.

    Every CJK character becomes a word of its own, so that one rule of whole words fits all scripts.
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    plain = "".join("" if unicodedata.category(sign)[0] in "PS" else sign for sign in folded)
    return " ".join(_CJK_CHARACTER.sub(r" \1 ", _ARTICLE.sub(" ", plain)).split())


def answer_recall(context: str, answers: Sequence[str]) -> float | None:
    """Return 1.0 if the words of any short answer occur in ``context`` next to each other, 0.0 if none does.

    Returns:
        None where there is no short answer to look for: only yes, no, punctuation, or sentences of more
        than `SHORT` words.
    """
    wanted = {answer for given in answers if _is_short(answer := normalised(given))}
    if not wanted:
        return None
    words = f" {normalised(context)} "
    return float(any(f" {answer} " in words for answer in wanted))


def _is_short(answer: str) -> bool:
    words = len(answer.split()) - len(_CJK_CHARACTER.findall(answer)) / 2
    return 0 < words <= SHORT and answer.replace(" ", "") not in YES_NO


def evidence_recall(context: str, passages: Sequence[str]) -> float | None:
    """Return the mean, over the gold passages, of the share of their distinct content words in ``context``.

    Content words are all but stop words; a run of CJK characters counts as its overlapping pairs.

    Returns:
        None where no passage has a content word.
    """
    gold = [words for passage in passages if (words := content_words(passage))]
    if not gold:
        return None
    found = content_words(context)
    return sum(len(words & found) / len(words) for words in gold) / len(gold)


def content_words(text: str) -> set[str]:
    """Return the distinct words of ``text`` without stop words; CJK runs as overlapping pairs."""
    folded = unicodedata.normalize("NFKC", text).lower()
    found: set[str] = set()
    for part in _CJK_RUN.split(folded):
        if _CJK_RUN.match(part):
            found.update(part[at : at + 2] for at in range(max(len(part) - 1, 1)))
        else:
            found.update(re.findall(r"[^\W_]+", part))
    return found - STOP_WORDS


def f1(prediction: str, answers: Sequence[str], language: str = "en") -> float:
    """Return LongBench's F1 of a generated answer: the best over the gold answers, 0.0 where there are none.

    Its normalisation: lower case, ASCII punctuation and articles removed, split at white space. In Chinese
    (``language`` begins with ``zh``) punctuation and white space are removed and characters are compared.
    """
    parts = _characters if language.startswith("zh") else _words
    return max((_overlap(parts(prediction), parts(answer)) for answer in answers), default=0.0)


def _words(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.lower().translate(_ASCII_SIGNS)).split()


def _characters(text: str) -> list[str]:
    return [sign for sign in text.lower() if not sign.isspace() and unicodedata.category(sign)[0] not in "PS"]


def _overlap(prediction: list[str], answer: list[str]) -> float:
    common = sum((Counter(prediction) & Counter(answer)).values())
    if not common:
        return 0.0
    precision, recall = common / len(prediction), common / len(answer)
    return 2 * precision * recall / (precision + recall)
