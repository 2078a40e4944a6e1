"""Product ids: one made-up term for a product, in the keys of its chunks and in the questions that name it.

How a query uses them. A key of a CHOP marker holds the `id_term` of its product, and so does the lexical
index's
vocabulary, where all of them stand together because they begin with `ID_MARK`, which begins no word of any
text. The registry of products is therefore the live part of that vocabulary: nothing else is stored, and
after any update it is what a rebuild would give. To rank a question::

    registry = the terms of all segments that begin with ID_MARK and occur in a live key
    named = query_ids(question, registry)
    lexical ranking: of the question with the terms `named` added (each once)
    dense ranking: DENSE_BONUS added to the cosine of each key whose postings hold one of `named`
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

ID_MARK = "\u01c0"
"""What an id begins with and what stands between its words: a letter (a click), so that an id is one term of
the index, that neither the unfolded nor the folded text of any other key begins a word with."""

DENSE_BONUS = 0.2
"""What a key's cosine gains when the question names its product."""

_SIGNS = re.compile(r"[™®©℠]|\((?:tm|r|c)\)", re.IGNORECASE)
_NAME_WORD = re.compile(r"[^\W_]+(?:[.,](?=\d)[^\W_]+)*\+*")
# What any product may carry; alone it names none.
_STANDARD = re.compile(
    r"[2-6]g|\d+k|\d+(?:gb|tb|mb|mah|ghz|mhz|hz|kw|w|v|mm|cm|m|kg|g|ml|l|inch|in|p|mp|fps|bit)?|hdr\d+\w*|"
    r"ip[x\d]\d\w?|"
    r"usb\d+|h26[45]|wifi\d\w?|\d+plus"
)
_LIST = re.compile(r"\s*[,/;]\s*|\s+(?:and|&)\s+")
_OUTER_LIST = re.compile(r"\s+/\s+|\s+(?:and|&)\s+|,\s+|(?<=\d)/(?=[A-Z]*\d)")
_PARENTHESES = re.compile(r"[(（]([^()（）]*)[)）]")
_LONGEST_RUN = 10


def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a product's name: case folded, ``+`` written out, other signs removed."""
    folded = unicodedata.normalize("NFKC", _SIGNS.sub(" ", name)).casefold()
    return tuple(re.sub(r"[.,]", "", word).replace("+", "plus") for word in _NAME_WORD.findall(folded))


def id_term(name: str) -> str:
    """Return the id of a product's name, one term of the index in any script; empty for a name without words.

    Names that differ in case, signs or trade marks have one id; those that differ in spacing have several,
    but
    `query_ids` looks past the spacing.
    """
    return "".join(ID_MARK + _ascii(word) for word in name_words(name))


def _ascii(word: str) -> str:
    """Spell a word so that the index does not cut it (it cuts Chinese, Japanese and Korean into pairs)."""
    return word if word.isascii() else "".join(f"{ord(character):x}x" for character in word)


def product_names(name: str) -> tuple[str, ...]:
    """Return the names of the products that a title's ``name`` lists, the main one first.

    "Acme X10 (X10e, X10+)" lists three, "Acme X100 / X200" two; a bare model takes the words before the
    first one's.
    """
    outer = _PARENTHESES.sub(" ", name).strip()
    inner = [part for group in _PARENTHESES.findall(name) for part in _LIST.split(group)]
    names: list[str] = []
    for part in [*_OUTER_LIST.split(outer), *inner]:
        words = part.split()
        if not words or not name_words(part):
            continue
        bare = bool(names) and has_digit(words[0])
        if names and not bare and len(words) < 2:
            continue
        names.append(" ".join([*_before_model(names[0]), *words] if bare else words))
    first_of: dict[str, str] = {}
    for found in names:
        first_of.setdefault(id_term(found), found)
    return tuple(first_of.values())


def _before_model(name: str) -> list[str]:
    words = name.split()
    return words[: next((at for at, word in enumerate(words) if has_digit(word)), 0)]


def has_digit(word: str) -> bool:
    """Tell whether a word holds a digit, as model names mostly do."""
    return any(character.isdigit() for character in word)


def query_ids(question: str, registry: Collection[str]) -> list[str]:
    """Return the ids in ``registry`` of the products that ``question`` names, in the order it names them.

    The longest run of words, spacing aside, that is a part of a registered name decides; a run that ends a
    name is preferred to one from its middle ("X10" is the X10 before it is the X10 Lite). A run counts when
    it holds two words of the name, or one with letters and digits that is no standard ("5G", "IP68");
    one that more than half of the registered names hold tells nothing. A question may name several products.

    Args:
        question: as the user asked it.
        registry: the ids (`id_term`) of the index's live products, in any order: the answer depends on the
        set
            alone.
    """
    runs = _runs(frozenset(registry))
    words = [_ascii(word) for word in name_words(question)]
    candidates = []
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _LONGEST_RUN) + 1):
            run = "".join(words[start:end])
            if run in runs:
                candidates.append((-len(run), start, end, runs[run]))
    taken: set[int] = set()
    chosen: list[tuple[int, tuple[str, ...]]] = []
    for _, start, end, found in sorted(candidates):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            chosen.append((start, found))
    return list(dict.fromkeys(name for _, found in sorted(chosen) for name in found))


@lru_cache(maxsize=4)
def _runs(registry: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Map each telling run of a registered name's words, joined, to the ids it may mean, sorted."""
    at_end: dict[str, set[str]] = {}
    within: dict[str, set[str]] = {}
    for name in registry:
        words = name.removeprefix(ID_MARK).split(ID_MARK)
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + _LONGEST_RUN) + 1):
                if _tells(words[start:end]):
                    place = at_end if end == len(words) else within
                    place.setdefault("".join(words[start:end]), set()).add(name)
    most = max(1, len(registry) // 2)
    found: dict[str, tuple[str, ...]] = {}
    for run in at_end.keys() | within.keys():
        ending = at_end.get(run, set())
        if len(ending | within.get(run, set())) <= most:
            found[run] = tuple(sorted(ending or within[run]))
    return found


def _tells(words: Sequence[str]) -> bool:
    if len(words) >= 2:
        return not all(_STANDARD.fullmatch(word) for word in words)
    return (
        has_digit(words[0])
        and any(character.isalpha() for character in words[0])
        and not _STANDARD.fullmatch(words[0])
    )
