"""How often the grounding check is right: `python tests/benchmarks/grounding.py STREAM...`.

For each stream and origin: the values that raise an alarm as they are; and of the values in which one number,
date or name was replaced by another of its kind that the document does not have, the share that raises one.
What is replaced is found here, by other means than the check's own; a name has at least one word that no
document of the stream writes small.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_cli.parts.grounding import Evidence
from mrag_cli.records.models import DocumentGroup
from mrag_cli.records.stream import read_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_HAN = "[\u4e00-\u9fff]"
_DATES = (
    re.compile(rf"\b(?:\d{{1,2}} {_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}})\b"),
    re.compile(r"\d{4}年\d{1,2}月(?:\d{1,2}日)?"),
)
_NUMBER = re.compile(
    r"(?<![\w.,/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w/-]|[.,]\d)|"
    rf"(?<={_HAN})\d+(?:\.\d+)?(?={_HAN})"
)
_PLAIN = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_OPENERS = (
    "The A An In On At It He She They This That These Those His Her Its Their As For From By With After When"
).split()
_NAMES = {
    "name": re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b|(?<=[a-z,] )[A-Z][a-z]{2,}\b(?! [A-Z])"),
    "title (zh)": re.compile(f"《{_HAN}{{2,12}}》"),
}
_PLACE_ENDING = re.compile(f"(?<=^{_HAN}{{2}})(?:省|市|县|镇|大学|医院)$")
_SURNAME = "[王李张刘陈杨黄赵吴周徐孙朱胡郭何林罗郑梁宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋杜苏魏吕丁沈姚卢姜崔谭]"
_PLACE = re.compile(
    f"(?=((?!{_HAN}?[和的在于对各等是将向以为了全有个我该本中省市县成大非]){_HAN}{{2}}(?:省|市|县|镇|大学|医院)))"
)
_PERSON = re.compile(f"(?=({_SURNAME}{_HAN}{{2}}))")


class _Silent:
    def notice(self, message: str) -> None:
        """Ignore it."""

    def failed(self, name: str, reason: str) -> None:
        """Ignore it."""


def _text(group: DocumentGroup) -> str:
    return "\n".join([group.document.title, *("\n".join([*unit.heading, unit.text]) for unit in group.units)])


def _chinese_names(text: str) -> dict[str, str]:
    """Return names with their kinds: what stands between different neighbours often enough to be a word.

    A surname and two characters, or two characters and the word for a place or body.
    """
    found: dict[str, str] = {}
    for kind, pattern, least in (("person (zh)", _PERSON, 3), ("place or body (zh)", _PLACE, 2)):
        around: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for match in pattern.finditer(text):
            before, after = around[match[1]]
            before.add(text[match.start() - 1 : match.start()])
            after.add(text[match.end(1) : match.end(1) + 1])
        for name, (before, after) in around.items():
            # "一张专辑" has a measure word, no surname.
            if (
                len(before) >= least
                and len(after) >= least
                and not before & set("一二两三四五几每0123456789")
            ):
                found[name] = kind
    return found


def _found(value: str, known: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the kind and spelling of each number, date and name of a value."""
    rest = value
    for pattern in _DATES:
        for match in pattern.finditer(value):
            yield "date (zh)" if "年" in match.group() else "date", match.group()
        rest = pattern.sub("#", rest)
    chinese = " (zh)" if re.search(_HAN, value) else ""
    for match in _NUMBER.finditer(rest):
        yield f"number{chinese}", match.group()
    for kind, pattern in _NAMES.items():
        for match in pattern.finditer(rest):
            if match.group().split()[0] not in _OPENERS and not re.fullmatch(_MONTH, match.group()):
                yield kind, match.group()
    for name, kind in known.items():
        if name in rest:
            yield kind, name


class _Measured:
    """What one stream's values came to."""

    def __init__(self) -> None:
        self.values: Counter[str] = Counter()
        self.alarms: Counter[str] = Counter()
        self.tried: Counter[str] = Counter()
        self.missed: dict[str, list[str]] = defaultdict(list)
        self.seconds = 0.0


def measure(path: Path) -> _Measured:
    """Check the values of a stream as they are and corrupted."""
    with path.open("rb") as file:
        parts = read_stream(file, str(path), _Silent(), check_pointers=False)
        groups = [part for part in parts if isinstance(part, DocumentGroup) and part.units]
    texts = [_text(group) for group in groups]
    chinese = [_chinese_names(text) for text in texts]
    pools: dict[str, dict[str, None]] = defaultdict(dict)
    for group, known in zip(groups, chinese, strict=True):
        for marker in group.markers:
            for kind, spelling in _found(marker.value, known):
                pools[kind][spelling] = None
    # "Language Model" is no name: other sentences write both words small.
    small = {word for text in texts for word in re.findall(r"\b[a-z]+\b", text)}
    pools["name"] = {name: None for name in pools["name"] if set(name.lower().split()) - small}
    choices = {kind: list(pool) for kind, pool in pools.items()}
    chance = random.Random(7)  # noqa: S311 - the same sample each time, no secret
    result = _Measured()
    for group, text, known in zip(groups, texts, chinese, strict=True):
        evidence = Evidence(group)
        for marker in group.markers:
            start = time.perf_counter()
            alarm = evidence.not_found(marker.value, marker.pointers)
            result.seconds += time.perf_counter() - start
            result.values[marker.origin] += 1
            result.alarms[marker.origin] += bool(alarm)
            if alarm:
                continue
            for kind, spelling, other in _swaps(marker.value, known, choices, text, chance):
                corrupted = re.sub(rf"(?<!\d){re.escape(spelling)}(?!\d)", other, marker.value)
                if corrupted == marker.value:
                    continue
                result.tried[kind] += 1
                if not evidence.not_found(corrupted, marker.pointers):
                    result.missed[kind].append(f"{spelling} -> {other}")
    return result


def _swaps(
    value: str, known: dict[str, str], choices: dict[str, list[str]], text: str, chance: random.Random
) -> Iterator[tuple[str, str, str]]:
    """Yield, for each kind a value has, one of its claims and another that the document does not have."""
    found = list(_found(value, known))
    for kind in dict(found):
        spelling = chance.choice([each for its, each in found if its == kind])
        if choices[kind] and (other := _other(choices[kind], text, chance)):
            yield kind, spelling, other


def table(name: str, measured: _Measured) -> str:
    """Return the lines that say what was measured."""
    total = measured.values.total()
    lines = [f"{name}: {total} values, {total / max(measured.seconds, 1e-9):,.0f} a second"]
    for origin, number in measured.values.items():
        alarms = measured.alarms[origin]
        lines.append(f"  {origin}: alarms {alarms} ({100 * alarms / number:.2f} %)")
    for kind, tried in sorted(measured.tried.items()):
        missed = measured.missed[kind]
        share = 100 * (tried - len(missed)) / tried
        lines.append(f"  {kind}: replaced {tried}, caught {share:.1f} %; missed: {'; '.join(missed[:5])}")
    return "\n".join(lines)


def _other(pool: list[str], text: str, chance: random.Random) -> str | None:
    """Return another of a kind that the document does not have, or None after many tries."""
    for _ in range(50):
        other = chance.choice(pool)
        if _PLAIN.fullmatch(other):
            amounts = (float(found.replace(",", "")) for found in _PLAIN.findall(text))
            there = float(other.replace(",", "")) in amounts
        else:
            bare = _PLACE_ENDING.sub("", other.strip("《》"))
            there = (
                re.search(rf"\b{re.escape(bare)}\b" if bare.isascii() else re.escape(bare), text) is not None
            )
        if not there:
            return other
    return None


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        stream = Path(argument)
        print(table(stream.name, measure(stream)), flush=True)  # noqa: T201 - the benchmark's result
