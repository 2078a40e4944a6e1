"""Title lines: the lines that name a document, and the name in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mrag_cli.parts.chop.product import has_digit, name_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mrag_cli.parts.chop.domains import Domain

_MOST_WORDS = 14
_MOST_CHARACTERS = 160
_MOST_NAME_WORDS = 8
_AROUND = " \t:,;|·•*_\"“”'‘’-–—\ufeff"
_MARKS = re.compile(r"[™®©℠]|\((?:tm|r|c)\)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_][\w+.'’/-]*")
_CJK = re.compile("[\u3005-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be by for from if in into is it its no not of on or our that the their these this "
    "those to "
    "was with without your you we when where which who what why how all any each every other more "
    "about".split()
)
# A line that begins so tells the reader to do something, or counts; it names nothing.
_NO_NAME = frozenset(
    "see read view download open refer consult check visit find access get launch search print order learn "
    "follow "
    "keep use display show browse please note save store return go click tap press select choose install "
    "connect "
    "set turn scan welcome thank thanks step chapter section part figure table appendix page example "
    "tip".split()
)
# A statute's or policy's headings begin so where they speak of another one.
_ABOUT_ANOTHER = frozenset(
    "amendment amendments repeal repeals application commencement interpretation schedule title article "
    "subpart "
    "definitions meaning effect saving savings annex violations breach scope purpose related "
    "other".split()
)
_REFERRED = re.compile(r"\b(?:this|that|the|such|said|any)\s+\w+$", re.IGNORECASE)
_EDITION = re.compile(
    r"\s*[(\[]?(?:rev(?:ision)?|version|ver|v|edition|ed|issue|part no|p/n)\.?\s*[\w.]+[)\]]?$", re.IGNORECASE
)
_AFTER_KIND = re.compile(r"\s*(?:(?:for|of|to)\b|[:|–—-])\s*(?:(?:the|your)\s+)?(.+)$|\s+(.+)$")
_BARE_KIND = re.compile(
    r"(.+?)\s*[:|–—]\s*(?:the\s+)?(manual|guide|handbook|instructions)|(.*\d.*?)\s+(manual|handbook)",
    re.IGNORECASE,
)
_NUMBERED = (
    r"(?:[,\s(（]*"
    r"(?:(?:\w{2,4}[)]\s*)?\d{4}/\d+|no\.?\s*\d+|\d{4}|of\s+\d{4}|chapter\s+\d+|cap\.?\s*\d+)[)）]?)"
)
_BEFORE_NUMBER = r"\s+(?:\(\w+\)\s+)?(?:no\.?\s*)?\d[\w/.-]*(?:\s+of\b.*)?"
_REMARK = r"(?:\s*[(（][^()（）]{1,30}[)）])?"


@dataclass(frozen=True, slots=True)
class Title:
    """What a title line names.

    Attributes:
        name: the product's, statute's or policy's name, as written.
        kind: the words that say what kind of document it is.
    """

    name: str
    kind: str


def clean(line: str) -> str:
    """Return ``line`` without trade marks, emphasis and the signs around it."""
    return " ".join(_MARKS.sub(" ", line).split()).strip(_AROUND)


def title_of(line: str, domain: Domain) -> Title | None:
    """Return what ``line`` names if it is a title line of ``domain``, else None.

    A title line has at most 14 words: a name, mostly capitalised (up to its model number, where it has
    one), with
    a digit or of two capitalised words, beside the words for a kind of document; it does not begin with a
    verb or a function word.
    """
    line = clean(line)
    if not line or len(line) > _MOST_CHARACTERS or len(line.split()) > _MOST_WORDS or line[-1] in ".?!;":
        return None
    if domain.front.match(line) or domain.back.match(line):
        return None
    for name, kind in _split(_EDITION.sub("", line).rstrip(_AROUND), domain):
        if _names_something(name, domain):
            return Title(name, kind)
    return None


def is_kind(line: str, domain: Domain) -> bool:
    """Tell whether ``line`` says a kind of document and nothing else ("Owner's manual")."""
    return not domain.kind_belongs and bool(domain.kind.fullmatch(clean(line)))


def is_name(line: str, domain: Domain) -> bool:
    """Tell whether ``line`` could be the name above a line that says the kind."""
    cleaned = clean(line)
    return len(cleaned.split()) <= _MOST_NAME_WORDS and _names_something(cleaned, domain)


def names_model(line: str, domain: Domain) -> bool:
    """Tell whether ``line`` is a name with a model number in it ("Acme X100 dishwasher"), saying no kind."""
    words = _WORD.findall(clean(line))
    numbered = any(has_digit(word) for word in words[1:]) or any(
        has_digit(word) and word[0].isalpha() for word in words[:1]
    )
    return not domain.kind_belongs and numbered and not words[0].isdigit() and is_name(line, domain)


def _split(line: str, domain: Domain) -> Iterator[tuple[str, str]]:
    """Yield the ways to read ``line`` as a name and a kind of document, the likelier first."""
    if domain.kind_belongs:
        if _whole_name(domain).fullmatch(line) and not _REFERRED.search(line):
            yield line, line
        return
    kinds = list(domain.kind.finditer(line))
    if kinds and kinds[-1].end() == len(line):
        kind = kinds[-1]
        if kind.start() == 0 or not line[kind.start() - 1].isalpha() or _CJK.match(kind.group()):
            yield _without_article(line[: kind.start()]), kind.group()
    if kinds and kinds[0].start() == 0:
        rest = _AFTER_KIND.match(line[kinds[0].end() :])
        if rest:
            yield (rest.group(1) or rest.group(2)).strip(_AROUND), kinds[0].group()
    bare = _BARE_KIND.fullmatch(line)
    if bare:
        yield _without_article(bare.group(1) or bare.group(3)), bare.group(2) or bare.group(4)


def _without_article(name: str) -> str:
    return re.sub(r"^[Tt]he\s+", "", name.strip(_AROUND))


@lru_cache(maxsize=8)
def _whole_name(domain: Domain) -> re.Pattern[str]:
    """Match a name that its kind ends ("Data Protection Act 1998") or begins ("Directive 95/46")."""
    strong = rf"(?<![A-Za-z]){domain.kind.pattern}"
    patterns = [
        rf".*?{strong}{_NUMBERED}*{_REMARK}",
        rf"(?:\w+\s+){{0,3}}{strong}\s+(?:on|for|concerning|relating to)\s+.+",
        rf"{strong}{_BEFORE_NUMBER}",
    ]
    if domain.numbered_kind is not None:
        weak = rf"(?<![A-Za-z]){domain.numbered_kind.pattern}"
        patterns += [rf".*?{weak}{_NUMBERED}+{_REMARK}", rf".*\d\s+{weak}", rf"{weak}{_BEFORE_NUMBER}"]
    return re.compile("|".join(patterns), re.IGNORECASE)


def _names_something(name: str, domain: Domain) -> bool:
    words = _WORD.findall(name)
    if not words or not name_words(name):
        return False
    first = words[0].casefold()
    if first in _NO_NAME or (domain.kind_belongs and first in _ABOUT_ANOTHER):
        return False
    if first in _FUNCTION_WORDS and not (domain.kind_belongs and first == "the"):
        return False
    if first.endswith("ing") and not domain.kind_belongs:
        return False
    numbered = [at for at, word in enumerate(words) if has_digit(word)]
    # What follows the model number is the kind of product, which need not be capitalised.
    named = words[: numbered[-1] + 1] if numbered and not domain.kind_belongs else words
    content = [word for word in named if word.casefold() not in _FUNCTION_WORDS]
    titled = [word for word in content if not word[0].islower()]
    if len(titled) * 5 < len(content) * 3:
        return False
    return bool(numbered) or len(titled) >= 2 or bool(_CJK.search(name))
