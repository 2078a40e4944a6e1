"""Numbers and dates as English and Chinese write them, read so that spellings of the same compare equal.

A number is a canonical decimal string (``1000``, ``2.5``), whatever its separators, its words or its script.
A spelling that can be read in several ways (``1.000``) has several readings.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from mrag_cli.parts.numerals import (
    CJK_NUMERAL,
    NUMBER_WORDS,
    WORD_RUN,
    canonical,
    cjk_values,
    cluster_readings,
    roman_values,
    scale_of,
    words_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_STRAY_ACCENTS = re.compile("[\u0300-\u036f]+")
_MONTH_NAMES = "january february march april may june july august september october november december".split()
_MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_MONTH_NUMBERS |= {name[:3]: number for name, number in _MONTH_NUMBERS.items()} | {"sept": 9}
_MONTH = (
    r"(?P<month>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\b\.?"
)
_MONTH_WORDS = frozenset(_MONTH_NUMBERS)
_BEFORE_MONTH, _AFTER_MONTH = 10, 24
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\d:%]|[.,]\d)"
_YEAR = r"(?P<year>[12]\d{3})(?!\d)"
# Tried where a number starts, where a text has Chinese dates at all, and around an English month's name.
_NUMERIC_DATES = (
    re.compile(r"(?P<year>[12]\d{3})(?P<sep>[-/.])(?P<month>\d{1,2})(?P=sep)(?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?<![./-])(?P<first>\d{1,2})(?P<sep>[-/.])(?P<second>\d{1,2})(?P=sep)(?P<year>\d{4})(?!\d)"),
)
_CJK_MONTH = rf"(?P<month>\d{{1,2}}|{CJK_NUMERAL}{{1,2}})\s?月"
_CJK_DAY = rf"(?P<day>\d{{1,2}}|{CJK_NUMERAL}{{1,3}})\s?[日号號]"
_CJK_DATES = (
    re.compile(rf"(?<!\d)(?P<year>\d{{4}}|{CJK_NUMERAL}{{4}})\s?年\s?{_CJK_MONTH}(?:\s?{_CJK_DAY})?"),
    re.compile(rf"(?<!\d){_CJK_MONTH}\s?{_CJK_DAY}"),
)
_ENGLISH_DATES = (
    re.compile(rf"(?<![\d.,]){_DAY}(?: of)?[ \n-]{_MONTH}(?:,?[ \n-]{_YEAR})?"),
    re.compile(rf"(?<![A-Za-z]){_MONTH}[ \n]{_DAY}(?:,?[ \n]{_YEAR})?"),
    re.compile(rf"(?<![A-Za-z]){_MONTH},?(?: of)?[ \n]{_YEAR}"),
)
_CJK_MONTH_NEAR = re.compile(_CJK_MONTH)
_NEAR, _CJK_NEAR = 30, 12

_DIGITS = r"\d+(?:(?:[.,'’]|(?<=\d) (?=\d{3}(?!\d)))\d+)*"
_ASCII_PIECE = re.compile(f"(?P<digits>{_DIGITS})")
_PIECE = re.compile(f"(?P<digits>{_DIGITS})|(?P<cjk>第?{CJK_NUMERAL}+)")
_LATIN_WORD = re.compile(r"[a-z]+")
_ATTACHED = re.compile(r"[A-Za-z]-?\Z")
_SCALE_AFTER = re.compile(
    r"[ \n-]?(?P<word>(?i:hundred|thousand|million|billion|trillion)s?\b|(?:[kK]|[mM]n?|bn)(?![A-Za-z])|"
    r"[十百千万萬亿億]+)"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as a text has it.

    Attributes:
        start: where it begins, in code points of the normalised text.
        end: where it ends.
        text: its spelling.
        readings: what it may mean: each reading is canonical numbers that must all be meant.
        worded: it is spelled in English words.
        attached: a letter stands before it, as in codes ("B12", "COVID-19").
    """

    start: int
    end: int
    text: str
    readings: tuple[tuple[str, ...], ...]
    worded: bool = False
    attached: bool = False


@dataclass(frozen=True, slots=True)
class Date:
    """A date as a text has it.

    Attributes:
        start: where it begins, in code points of the normalised text.
        end: where it ends.
        text: its spelling.
        readings: the dates it may mean, as year, month and day, each 0 where it is not said.
    """

    start: int
    end: int
    text: str
    readings: tuple[tuple[int, int, int], ...]


def normalised(text: str) -> str:
    """Return ``text`` in Unicode's form NFKC, full-width digits and letters plain, without stray accents."""
    return text if text.isascii() else _STRAY_ACCENTS.sub("", unicodedata.normalize("NFKC", text))


def read(text: str) -> tuple[list[Date], list[Quantity]]:
    """Return the dates of a normalised text that name at least a month, and its numbers.

    Both are in order. Dates do not overlap; the numbers within a date are among the numbers.
    """
    dates: list[Date] = []
    numbers: list[Quantity] = []
    end = 0
    for match in (_ASCII_PIECE if text.isascii() else _PIECE).finditer(text):
        if match.start() < end:
            continue
        if match.lastgroup == "digits":
            number = _digits(match, text)
            end = number.end
            numbers.append(number)
            if text[match.end() : match.end() + 1] in ("-", "/") or match.group().count(".") == 2:
                dates.extend(_matched(filter(None, (p.match(text, match.start()) for p in _NUMERIC_DATES))))
        elif meant := cjk_values(match.group().lstrip("第")):
            readings = tuple((value,) for value in meant)
            numbers.append(Quantity(match.start(), match.end(), match.group(), readings))
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    words = set(_LATIN_WORD.findall(lowered))
    for start in _starts(lowered, words & _MONTH_WORDS):
        around = (max(0, start - _BEFORE_MONTH), start + _AFTER_MONTH)
        dates.extend(date for pattern in _ENGLISH_DATES for date in _matched(pattern.finditer(text, *around)))
    if said := words & NUMBER_WORDS:
        numbers.extend(list(_worded(lowered, said, numbers)))
        numbers.sort(key=lambda number: number.start)
    if "月" in text:
        dates.extend(date for pattern in _CJK_DATES for date in _matched(pattern.finditer(text)))
    return _apart(dates), numbers


def _starts(text: str, words: Iterable[str]) -> list[int]:
    """Return where ``words`` stand in a text as whole words, ascending."""
    result: list[int] = []
    for word in words:
        start = text.find(word)
        while start >= 0:
            end = start + len(word)
            if not (_is_letter(text, start - 1) or _is_letter(text, end)):
                result.append(start)
            start = text.find(word, end)
    return sorted(result)


def _is_letter(text: str, place: int) -> bool:
    return 0 <= place < len(text) and "a" <= text[place] <= "z"


def _worded(text: str, words: Iterable[str], numbers: Sequence[Quantity]) -> Iterator[Quantity]:
    """Yield the numbers that a text in lower case says in words, but the scale of a number in digits."""
    scales = [(number.start, number.end) for number in numbers if number.text[-1].isalpha()]
    end = 0
    for start in _starts(text, words):
        if start < end or any(begins <= start < ends for begins, ends in scales):
            continue
        if (said := WORD_RUN.match(text, start)) and (values := words_values(said.group())):
            end = said.end()
            yield Quantity(start, end, said.group(), (tuple(values),), worded=True)


def _matched(matches: Iterable[re.Match[str]]) -> Iterator[Date]:
    for match in matches:
        if readings := _date_readings(match.groupdict()):
            yield Date(match.start(), match.end(), match.group(), readings)


def _apart(dates: list[Date]) -> list[Date]:
    """Return the dates in order, the longest where several overlap."""
    result: list[Date] = []
    for date in sorted(dates, key=lambda date: (date.start, -date.end)):
        if not result or date.start >= result[-1].end:
            result.append(date)
    return result


def _date_readings(parts: dict[str, str | None]) -> tuple[tuple[int, int, int], ...]:
    year = _whole(parts.get("year"))
    if "first" in parts:
        first, second = _whole(parts["first"]), _whole(parts["second"])
        pairs = {(first, second), (second, first)}
    else:
        pairs = {(_whole(parts.get("month")), _whole(parts.get("day")))}
    return tuple((year, month, day) for month, day in sorted(pairs) if 1 <= month <= 12 and 0 <= day <= 31)


def _whole(text: str | None) -> int:
    if not text:
        return 0
    if text.isdecimal():
        return int(text)
    if (month := _MONTH_NUMBERS.get(text.lower())) is not None:
        return month
    return int(next(iter(cjk_values(text)), "0"))


def _digits(match: re.Match[str], text: str) -> Quantity:
    spelled = match.group()
    readings = cluster_readings(spelled)
    start, end = match.span()
    if scale := _SCALE_AFTER.match(text, end):
        factor = scale_of(scale["word"])
        base = readings[0][0]
        scaled = canonical(Decimal(base) * factor)
        # The unscaled number stands alone in a table "in millions", or was meant so: marked, so that
        # "2 million" is not found in "2 billion".
        return Quantity(start, scale.end(), text[start : scale.end()], ((scaled,), (f"={base}",)))
    if start >= 5 and text[start - 1] in "-–—/" and (before := text[start - 5 : start - 1]).isdecimal():
        # "1990-95" says 1995, "1990-1995" may stand for it.
        if len(spelled) == 2:
            readings = ((before[:2] + spelled,), *readings)
        elif len(spelled) == 4:
            readings = (*readings, (spelled[2:],))
    attached = _ATTACHED.search(text, max(0, start - 2), start) is not None
    return Quantity(start, end, spelled, readings, attached=attached)


class Quantities:
    """All numbers and dates of a text, to be asked for one of them.

    Args:
        text: the text, normalised.
    """

    __slots__ = ("_attached", "_bases", "_dates", "_months", "_numbers", "_roman", "_text", "_yearless")

    def __init__(self, text: str) -> None:
        self._text = text
        self._numbers: set[str] = set()
        self._bases: set[str] = set()
        self._attached: set[str] = set()
        self._dates: set[tuple[int, int, int]] = set()
        self._yearless: set[tuple[int, int]] = set()
        self._roman: frozenset[str] | None = None
        self._months: list[tuple[int, set[str]]] | None = None
        dates, numbers = read(text)
        for number in numbers:
            for reading in number.readings:
                if reading[0][0] == "=":
                    self._bases.add(reading[0][1:])
                elif number.attached and text[number.start - 1] != "-":
                    self._attached.update(reading)
                else:
                    self._numbers.update(reading)
        for date in dates:
            for year, month, day in date.readings:
                self._dates.update([(year, month, day), (0, month, day), (year, month, 0), (0, month, 0)])
                if not year:
                    self._yearless.add((month, day))

    def month_named(self, word: str) -> bool:
        """Tell whether ``word`` is an English month's name and the text has a date in that month."""
        return (0, _MONTH_NUMBERS.get(word, -1), 0) in self._dates

    def holds_number(self, number: Quantity) -> bool:
        """Tell whether the text has the number, in whatever spelling."""
        return any(
            all(self._holds(part) or (number.attached and part in self._attached) for part in reading)
            for reading in number.readings
        )

    def _holds(self, part: str) -> bool:
        if part[0] == "=":
            return part[1:] in self._numbers
        if part in self._numbers or part in self._bases:
            return True
        if len(part) > 2:
            return False
        if self._roman is None:
            self._roman = frozenset(roman_values(self._text))
        return part in self._roman

    def holds_date(self, date: Date) -> bool:
        """Tell whether the text has the date.

        Said at once; or its parts around one mention of the month ("from 3 to 5 March 2021"); or without the
        year, which is said elsewhere.
        """
        return any(self._holds_date(reading) for reading in date.readings)

    def _holds_date(self, reading: tuple[int, int, int]) -> bool:
        year, month, day = reading
        if reading in self._dates:
            return True
        if year and day and (month, day) in self._yearless and str(year) in self._numbers:
            return True
        if self._months is None:
            self._months = list(_months_near(self._text))
        wanted = {str(part) for part in (year, day) if part}
        return any(month == mentioned and wanted <= near for mentioned, near in self._months)


def _months_near(text: str) -> Iterator[tuple[int, set[str]]]:
    """Yield each mention of a month with the numbers that stand near it."""
    english = (match for match in re.finditer("[A-Za-z]+", text) if match.group().lower() in _MONTH_WORDS)
    for match in (*english, *_CJK_MONTH_NEAR.finditer(text)):
        distance = _CJK_NEAR if match.lastindex else _NEAR
        stretch = text[max(0, match.start() - distance) : match.end() + distance]
        near = {part for number in read(stretch)[1] for reading in number.readings for part in reading}
        yield _whole(match[1] if match.lastindex else match.group()), near
