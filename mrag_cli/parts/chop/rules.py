"""CNM by rules: what each of the documents in a text is about. No model is asked; null beats a guess."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from mrag_cli.parts.chop.cnm import Cnm
from mrag_cli.parts.chop.product import has_digit, id_term
from mrag_cli.parts.chop.titles import clean, title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.parts.chop.boundaries import Segment
    from mrag_cli.parts.chop.domains import Domain
    from mrag_cli.parts.chop.families import Mention
    from mrag_cli.parts.chop.outline import Heading

_FRONT = 4_000
_MOST_SEGMENTS = 0.4
_MODEL_LINE = re.compile(
    r"^[ \t*_|]*(?:model|type|product)(?:\s*(?:no\.?|number|name|code))?\s*\**\s*[:：]\s*\**\s*(\S[^\n|"
    r"]{1,60}?)[\s*|.]*$|"
    r"^[ \t]*(?:型号|产品型号)\s*[:：]\s*(\S[^\n]{1,40}?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_FOLLOWERS = (
    "is|are|to|in|on|with|and|or|can|may|must|will|has|from|for|before|after|at|if|when|as|by|does|should|was"
)
_POSSESSED = re.compile(
    rf"\b(?:[Yy]our|[Tt]his) ([a-z]{{2,}}|[A-Z]{{2,4}})\b(?: (?!(?:{_FOLLOWERS})\b)([a-z]{{3,}})\b)?"
)
_FEWEST_USES = 3
_NO_CATEGORY = frozenset(
    "own new first current other use time way case page section chapter manual guide handbook document "
    "information "
    "step option options feature features setting settings function mode menu screen button key button's "
    "name password account "
    "home hand hands country region area carrier dealer retailer consent data contacts contact content "
    "contents "
    "friends family location language number finger face files pictures photos messages music videos apps "
    "app "
    "needs preferences choice local nearest employer employee is will can may should does has was and "
    "or".split()
)
_CERTAIN, _LIKELY, _POSSIBLE = 0.95, 0.8, 0.5


def describe(
    text: str,
    found: Sequence[Segment],
    outline: Sequence[Heading],
    mentions: Sequence[Mention],
    domain: Domain,
    document_title: str = "",
) -> list[Cnm]:
    """Return the CNM of each segment; the nouns are left to each chunk's own headings (`with_section`).

    Args:
        text: the whole text.
        found: its segments.
        outline: its headings.
        mentions: the model names in it.
        domain: the trade's words.
        document_title: the document's own title, which names the one segment where no line in it does.
    """
    spread = _spread(found, mentions)
    described = []
    for segment in found:
        body = text[segment.start : segment.end]
        name, confidence = _name(segment, body, outline, mentions, spread, len(found))
        if name is None and len(found) == 1 and document_title:
            title = title_of(document_title, domain)
            name, confidence = (title.name, _LIKELY) if title else (None, 0.0)
        described.append(_cnm(name, confidence, body, domain))
    return described


def with_section(cnm: Cnm, section: Sequence[str], domain: Domain) -> Cnm:
    """Return ``cnm`` with the nouns of a chunk's own headings, and their number where the domain has one."""
    headings = [clean(heading) for heading in section]
    own = [
        heading for heading in headings if heading and heading != cnm.model and not title_of(heading, domain)
    ]
    nouns: list[str] = []
    if own:
        first = own[-1]
        category = cnm.category if domain.name == "product" else None
        nouns = [f"{category} {first}" if category and category.casefold() not in first.casefold() else first]
        nouns += own[-2:-1]
    model = cnm.model
    if domain.numbered is not None:
        numbers = [
            match.group(1) for heading in headings for match in [domain.numbered.search(heading)] if match
        ]
        model = numbers[-1] if numbers else cnm.model
    return Cnm(cnm.category, tuple(nouns), model, cnm.confidence, cnm.subject)


def _spread(found: Sequence[Segment], mentions: Sequence[Mention]) -> dict[str, int]:
    """Return in how many segments each model is mentioned."""
    seen: dict[str, set[int]] = defaultdict(set)
    number = 0
    for mention in mentions:
        while mention.start >= found[number].end:
            number += 1
        seen[mention.id].add(number)
    return {name: len(numbers) for name, numbers in seen.items()}


def _name(
    segment: Segment,
    body: str,
    outline: Sequence[Heading],
    mentions: Sequence[Mention],
    spread: dict[str, int],
    segments: int,
) -> tuple[str | None, float]:
    if segment.title is not None:
        return segment.title.name, _CERTAIN
    stated = _MODEL_LINE.search(body, 0, _FRONT)
    if stated:
        value = clean(stated.group(1) or stated.group(2))
        if has_digit(value) and len(value.split()) <= 6:
            return value, _LIKELY
    most = max(1.0, _MOST_SEGMENTS * segments)
    own = [
        mention
        for mention in mentions
        if segment.start <= mention.start < segment.end and spread[mention.id] <= most
    ]
    headed = _in_front_headings(segment, outline, own)
    if headed:
        return " / ".join(headed), _LIKELY
    counts = Counter(mention.id for mention in own)
    if counts:
        best, times = counts.most_common(1)[0]
        if times >= 5 and times * 10 >= 7 * counts.total():
            return next(mention.name for mention in own if mention.id == best), _POSSIBLE
    return None, 0.0


def _in_front_headings(
    segment: Segment, outline: Sequence[Heading], mentions: Sequence[Mention]
) -> list[str]:
    """Return the models that a heading near the segment's beginning names and nothing else."""
    names = {mention.id: mention.name for mention in mentions}
    found: dict[str, str] = {}
    for heading in outline:
        if segment.start <= heading.start < segment.start + _FRONT:
            name = id_term(heading.title)
            if name in names:
                found.setdefault(name, names[name])
    return list(found.values()) if len(found) <= 4 else []


def _cnm(name: str | None, confidence: float, body: str, domain: Domain) -> Cnm:
    if domain.kind_belongs:
        return Cnm(category=name, confidence=confidence, subject=name)
    category, model = _category(name, body)
    if category is None and model is None:
        return Cnm()
    return Cnm(category, (), model, confidence or _POSSIBLE, model)


def _category(name: str | None, body: str) -> tuple[str | None, str | None]:
    """Split a product's name into its category and its model."""
    if name is not None:
        words = name.split()
        modelled = [at for at, word in enumerate(words) if has_digit(word)]
        tail = words[modelled[-1] + 1 :] if modelled else []
        tail = [word for word in tail if not word.startswith("(")]
        if tail and "/" not in name and any(_is_common(" ".join(tail[at:]), body) for at in range(len(tail))):
            return _lowered(" ".join(tail)), " ".join(words[: modelled[-1] + 1]).rstrip(",:")
        head = name.split(" / ")[0].split("(")[0].split()
        if not modelled and len(head) > 1 and _is_common(head[-1], body):
            return _lowered(head[-1]), name
    return _possessed(body), name


def _possessed(body: str) -> str | None:
    """Return what the reader is most often told to own: "your <noun>"."""
    counts: Counter[str] = Counter()
    longer: Counter[str] = Counter()
    for match in _POSSESSED.finditer(body):
        noun, further = match.groups()
        if noun.casefold() not in _NO_CATEGORY:
            counts[noun] += 1
            if further:
                longer[f"{noun} {further}"] += 1
    if not counts or counts.most_common(1)[0][1] < _FEWEST_USES:
        return None
    noun, times = counts.most_common(1)[0]
    compound = max(
        (words for words in longer if words.split()[0] == noun), key=longer.__getitem__, default=noun
    )
    return compound if longer[compound] * 10 >= times * 7 else noun


def _is_common(words: str, body: str) -> bool:
    """Tell whether a manual speaks of its product by these words, as it would by no name."""
    written = "|".join({re.escape(_lowered(words)), re.escape(words.lower())})
    pattern = rf"\b(?:[Yy]our|[Tt]his|[Tt]he) (?:{written})(?=[.,;:)]|\s+(?:{_FOLLOWERS})\b)"
    return len(re.findall(pattern, body)) >= 3


def _lowered(words: str) -> str:
    """Lower the words' case, but for abbreviations."""
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words.split())
