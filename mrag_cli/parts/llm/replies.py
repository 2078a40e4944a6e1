"""Markers out of a model's reply, however it is dressed; what is wrong is dropped alone and counted."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from json import JSONDecoder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

MOST_POINTERS = 6
"""A marker that claims to be made from more units than this is dropped: the prompt allows 3."""

_KEY_NAMES = ("key", "retrieval_key", "k", "question")
_VALUE_NAMES = ("value", "info_value", "v", "answer", "text")
_POINTER_NAMES = ("pointers", "paragraph_idx", "p", "pointer", "units", "unit")
_LIST_NAMES = ("markers", "meta_markers", "records", "items", "results", "data")
_RANGE = re.compile(r"(\d+)\s*[>\]]?\s*(?:-|–|—|to|bis|至|到|~|\.\.)\s*[<\[]?\s*(\d+)")
_NUMBER = re.compile(r"\d+")
_SHORTEST_ECHO = 24


@dataclass(frozen=True, slots=True)
class Record:
    """A marker as a model wrote it, not yet bound to a document."""

    key: str
    value: str
    pointers: tuple[int, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply held.

    Attributes:
        records: its good records, in its order.
        dropped: number of records dropped, by reason.
    """

    records: tuple[Record, ...]
    dropped: Counter[str]


def parse(
    text: str,
    *,
    truncated: bool,
    visible: Collection[int],
    wanted: Collection[int],
    keys: int = 1,
    examples: Sequence[Record] = (),
    source: str = "",
) -> Parsed:
    """Return the records of a reply.

    Args:
        text: the reply.
        truncated: it ran into its token limit, so that its last record is not to be trusted.
        visible: numbers of the units that were shown; pointers to others are dropped.
        wanted: numbers of the units that were asked for; a record that points to none of them is dropped.
        keys: most keys a record may have, the aliases counted.
        examples: the few-shot examples that the prompt showed; records that repeat one are dropped.
        source: the units' text: what it says is no repetition of an example.
    """
    dropped: Counter[str] = Counter()
    records: list[Record] = []
    seen: set[tuple[str, str]] = set()
    for found in _objects(text, truncated=truncated):
        record, reason = _record(found, visible, keys)
        if record is not None and not any(pointer in wanted for pointer in record.pointers):
            reason = "about units that were not asked for"
        elif record is not None and _echoes(record, examples, source):
            reason = "repeats the example"
        elif record is not None and (record.key, record.value) in seen:
            reason = "said twice"
        if record is None or reason:
            dropped[reason] += 1
            continue
        seen.add((record.key, record.value))
        records.append(record)
    return Parsed(tuple(records), dropped)


def read_examples(text: str) -> tuple[Record, ...]:
    """Return the few-shot examples of a file: a JSON array, ``{"markers": […]}``, or a JSON object a line."""
    found = [_record(entry, None, 1 + _count_aliases(entry))[0] for entry in _objects(text, truncated=False)]
    return tuple(record for record in found if record is not None)


def _count_aliases(entry: object) -> int:
    aliases = entry.get("aliases") if isinstance(entry, dict) else None
    return len(aliases) if isinstance(aliases, list) else 0


def _objects(text: str, *, truncated: bool) -> Iterator[object]:
    """Yield what stands where a reply's records are expected."""
    if truncated:
        yield from _complete_objects(text)
        return
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    end = max(text.rfind("}"), text.rfind("]"))
    if start < 0 or end < start:
        return
    body = text[start : end + 1]
    try:
        yield from _records_in(JSONDecoder(strict=False).decode(body))
    except (ValueError, RecursionError):
        complete = list(_complete_objects(body))
        # As many records as keys: the JSON is sound and only what surrounds it is not.
        if complete and len(complete) >= len(re.findall(r'"(?:key|retrieval_key|k)"\s*:', body)):
            yield from complete
        else:
            yield from _mended(body)


def _mended(body: str) -> Iterator[object]:
    from json_repair import repair_json

    # What follows the last closing brace is a record that was cut off.
    cut = body[: body.rfind("}") + 1]
    try:
        yield from _records_in(repair_json(cut, return_objects=True))
    except (ValueError, RecursionError, TypeError, IndexError):
        yield from _complete_objects(cut)


def _records_in(found: object) -> Iterator[object]:
    if isinstance(found, dict):
        for name in _LIST_NAMES:
            if isinstance(found.get(name), list):
                yield from found[name]
                return
        if any(name in found for name in _VALUE_NAMES):
            yield found
        return
    if isinstance(found, list):
        for entry in found:
            if isinstance(entry, list) or (isinstance(entry, dict) and not _is_record(entry)):
                yield from _records_in(entry)
            else:
                yield entry


def _is_record(entry: dict[Any, Any]) -> bool:
    return any(name in entry for name in (*_KEY_NAMES, *_VALUE_NAMES))


def _complete_objects(text: str) -> Iterator[object]:
    """Yield each complete JSON object of ``text`` that looks like a record."""
    decoder = JSONDecoder(strict=False)
    place = text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield from _records_in(found)
        place = text.find("{", end)


def _record(found: object, visible: Collection[int] | None, keys: int) -> tuple[Record | None, str]:
    """Return a record, or None and why not; ``visible`` None allows every pointer."""
    if not isinstance(found, dict):
        return None, "no record"
    key, value = _text(found, _KEY_NAMES), _text(found, _VALUE_NAMES)
    if not key:
        return None, "no key"
    if not value:
        return None, "no value"
    pointers = _pointers(next((found[name] for name in _POINTER_NAMES if name in found), None))
    kept = pointers if visible is None else [pointer for pointer in pointers if pointer in visible]
    if not kept:
        return None, "no pointer" if not pointers else "pointers out of range"
    if len(kept) > MOST_POINTERS:
        return None, "too many pointers"
    return Record(key, value, tuple(kept), _aliases(found.get("aliases"), key, keys)), ""


def _text(found: dict[Any, Any], names: Iterable[str]) -> str:
    for name in names:
        value = found.get(name)
        if isinstance(value, str):
            cleaned = value.strip()
            if not cleaned.isprintable():
                # A lone surrogate cannot be written to a stream, nor a NUL be searched.
                cleaned = cleaned.encode("utf-8", "ignore").decode().replace("\x00", "")
            return cleaned if any(character.isalnum() for character in cleaned) else ""
    return ""


def _aliases(found: object, key: str, keys: int) -> tuple[str, ...]:
    entries = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    aliases: dict[str, None] = {}
    for entry in entries:
        alias = _text({"key": entry}, ("key",))
        if alias and alias != key:
            aliases.setdefault(alias)
    return tuple(aliases)[: keys - 1]


def _pointers(found: object) -> list[int]:
    """Return unit numbers from numbers, text (``[3]``, ``<3>-<5>``, ``units 3 and 4``), or lists of them."""
    numbers: set[int] = set()
    for entry in found if isinstance(found, list) else [found]:
        if isinstance(entry, bool):
            continue
        if isinstance(entry, int):
            numbers.add(entry)
        elif isinstance(entry, float) and entry.is_integer():
            numbers.add(int(entry))
        elif isinstance(entry, list):
            numbers.update(_pointers(entry))
        elif isinstance(entry, str) and len(entry) < 200:
            for first, last in _RANGE.findall(entry):
                if 0 <= int(last) - int(first) <= 1000:
                    numbers.update(range(int(first), int(last) + 1))
            numbers.update(int(number) for number in _NUMBER.findall(entry) if len(number) < 10)
    return sorted(number for number in numbers if number > 0)


def _echoes(record: Record, examples: Sequence[Record], source: str) -> bool:
    """Tell whether a record repeats an example's key or value that the document does not hold itself."""
    value, key = _folded(record.value), _folded(record.key)
    for example in examples:
        told = _folded(example.value)
        same = value == told or (
            len(told) >= _SHORTEST_ECHO
            and (told in value or (len(value) >= _SHORTEST_ECHO and value in told))
        )
        if (same and told not in _folded(source)) or (key == _folded(example.key) and value == told):
            return True
    return False


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
