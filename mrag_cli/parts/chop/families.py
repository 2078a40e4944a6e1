"""Product families: model names that a text mentions in siblings, so that they tell its documents apart."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from mrag_cli.parts.chop.product import id_term

_NAME = re.compile(
    r"(?<![\w'’-])((?:[A-Z][A-Za-z]+[ \u00a0]){1,3})"
    r"((?:[A-Z]{1,3} )?[A-Za-z]{0,4}-?\d{1,5}(?:\.\d)?[A-Za-z]{0,3}\d{0,4}\+?)"
    r"((?: (?:Lite|Active|Edge|Ultra|Plus|Pro|Max|Mini|Air|Neo|Prime|Fold|Flip|SE|XL|XR|XS|FE|[45]G|"
    r"LTE))*)(?![\w-])"
)
# Words that stand before a number and make no product of it.
_NO_FAMILY = frozenset(
    "chapter section step table figure fig page part appendix annex article item note number no version "
    "android "
    "windows bluetooth usb hdmi type class category level channel port input output option mode phase "
    "stage zone "
    "line day week month year january february march april may june july august september october november "
    "december monday tuesday wednesday thursday friday saturday sunday in on at by for from to the use up "
    "about "
    "only over under wait top last first next model series rev revision iso en iec ip block group unit "
    "size".split()
)
_AFTER = re.compile(
    r"(?:compatible with|such as|like|including|e\.g\.,?|for example,?|similar to|unlike|compared (?:to|"
    r"with)|"
    r"works? with|supports?|than)\s+(?:an? |the |your )?(?:[\w+]+,? (?:and |or )?)?$",
    re.IGNORECASE,
)
_FEWEST_SIBLINGS = 3
_MOST_SEGMENTS = 0.4
_FRONT = 4_000


@dataclass(frozen=True, slots=True)
class Mention:
    """A model name in a text.

    Attributes:
        start: where it stands, in code points.
        family: the first word of the name.
        name: the name as written.
        id: its canonical id.
    """

    start: int
    family: str
    name: str
    id: str


def mentions(text: str) -> list[Mention]:
    """Return the mentions of model names of families with at least three models in ``text``, in order.

    A name after "compatible with", "such as" and the like is another product's and is left out.
    """
    found: list[Mention] = []
    models: dict[str, set[str]] = defaultdict(set)
    for match in _NAME.finditer(text):
        words = match.group(1).split()
        while words and words[0].casefold() in _NO_FAMILY:
            words.pop(0)
        if not words or (words[-1].casefold() in _NO_FAMILY and len(words) == 1):
            continue
        name = " ".join([*words, match.group(2) + match.group(3)])
        if _AFTER.search(text, max(0, match.start() - 60), match.start()):
            continue
        family = words[0]
        models[family].add(id_term(match.group(2)))
        found.append(Mention(match.start(), family, name, id_term(name)))
    return [mention for mention in found if len(models[mention.family]) >= _FEWEST_SIBLINGS]
