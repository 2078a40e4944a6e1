"""What a spelled number says: digits with separators, English number words, Chinese and Roman numerals.

A number is a canonical decimal string: no separators, no zeros that say nothing (``1000``, ``2.5``).
"""

from __future__ import annotations

import re
from decimal import Decimal

_CJK_DIGITS = dict(
    zip("〇零○一二三四五六七八九两兩", (0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 2), strict=True)
)
_CJK_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
CJK_NUMERAL = f"[{''.join(_CJK_DIGITS)}{''.join(_CJK_SCALES)}]"
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORD_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WORD_VALUES = {word: value for value, word in enumerate(_ONES)}
_WORD_VALUES |= {word: 10 * value for value, word in enumerate(_TENS, 2)}
_WORD_VALUES |= {f"{word}th": value for word, value in _WORD_VALUES.items() if 3 < value < 20}
_WORD_VALUES |= {f"{word[:-1]}ieth": value for word, value in _WORD_VALUES.items() if word.endswith("ty")}
_WORD_VALUES |= {
    word: value
    for value, words in {
        1: "first single",
        2: "second once twice both double pair couple duo twin",
        3: "third triple trio trilogy",
        4: "quartet",
        5: "fifth quintet",
        8: "eighth",
        9: "ninth",
        12: "twelfth dozen",
    }.items()
    for word in words.split()
}
NUMBER_WORDS = frozenset(
    f"{word}{ending}" for word in (*_WORD_VALUES, *_WORD_SCALES) for ending in ("", "s", "th", "ths")
)
_ANY_WORD = "|".join(sorted({*_WORD_VALUES, *_WORD_SCALES}, key=len, reverse=True))
WORD_RUN = re.compile(
    rf"\b(?:{_ANY_WORD})(?:s|ths?)?"
    rf"(?:(?:[ \n-]|(?<=hundred) and |(?<=thousand) and )(?:{_ANY_WORD})(?:s|ths?)?)*\b"
)
_SCALE_SIGNS = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9}
_ROMAN = re.compile(r"\b(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\b")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_LARGEST = 30


def scale_of(word: str) -> int:
    """Return what a scale after digits multiplies by: "million", "bn", "k", 万, 千万."""
    lowered = word.lower().removesuffix("s")
    if (factor := _WORD_SCALES.get(lowered) or _SCALE_SIGNS.get(lowered)) is not None:
        return factor
    factor = 1
    for sign in word:
        factor *= _CJK_SCALES[sign]
    return factor


def cluster_readings(spelled: str) -> tuple[tuple[str, ...], ...]:
    """Return the readings of digits with separators between them, the likeliest first."""
    groups = re.split(r"[.,'’ ]", spelled)
    if len(groups) == 1:
        return ((_stripped(spelled),),)
    separators = re.findall(r"[.,'’ ]", spelled)
    readings: list[tuple[str, ...]] = []
    grouped = len(set(separators)) == 1 and _grouped(groups) and groups[0] != "0"
    if grouped:
        readings.append((_stripped("".join(groups)),))
    whole, mark, fraction = groups[:-1], separators[-1], groups[-1]
    pointed = mark in ".," and mark not in separators[:-1]
    pointed = pointed and (len(whole) == 1 or (_grouped(whole) and len(set(separators[:-1])) == 1))
    # "1,234" and "1.000" are thousands, "1.234" may be either.
    if pointed and not (grouped and (mark == "," or fraction == "000")):
        readings.append((canonical(Decimal(f"{''.join(whole)}.{fraction}")),))
    if not readings or " " in separators or (separators == [","] and not grouped):
        readings.append(tuple(map(_stripped, groups)))
    return tuple(dict.fromkeys(readings))


def _grouped(groups: list[str]) -> bool:
    return 1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])


def _stripped(digits: str) -> str:
    return digits.lstrip("0") or "0"


def canonical(number: Decimal) -> str:
    """Return a number without exponent, without zeros that say nothing."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return _stripped(text) if "." not in text else text


def words_values(words: str) -> list[str]:
    """Return the numbers that a run of number words says: "three hundred and five" one, "two thirds" two."""
    result: list[str] = []
    total = current = 0

    def finish() -> None:
        nonlocal total, current
        if total + current:
            result.append(str(total + current))
        total = current = 0

    for word in re.split(r"[ \n-]+", words):
        known = word in _WORD_VALUES or word in _WORD_SCALES
        singular = word if known else re.sub(r"(?:ths?|s)$", "", word)
        if (scale := _WORD_SCALES.get(singular)) is not None:
            current = max(current, 1) * scale
            if scale > 100:
                total, current = total + current, 0
        elif (value := _WORD_VALUES.get(singular)) is not None:
            # "forty" takes "two", "hundred" takes anything smaller; otherwise another number begins.
            takes = current % 100 == 0 or (value < 10 and current % 100 >= 20 and current % 10 == 0)
            if not takes:
                finish()
            current += value
    finish()
    return result


def cjk_values(numeral: str) -> list[str]:
    """Return what a Chinese numeral may mean: by place (二〇一九), or by scale (三千二百)."""
    if not any(sign in _CJK_SCALES for sign in numeral):
        return [_stripped("".join(str(_CJK_DIGITS[sign]) for sign in numeral))]
    if not any(sign in _CJK_DIGITS or sign == "十" for sign in numeral):
        return []
    total = section = digit = 0
    last = 1
    for sign in numeral:
        if (value := _CJK_DIGITS.get(sign)) is not None:
            digit, last = value, 1 if value == 0 else last
            continue
        scale = _CJK_SCALES[sign]
        if scale == 10**8:
            total, section = (total + section + digit) * scale, 0
        elif scale == 10**4:
            total, section = total + (section + digit) * scale, 0
        else:
            section += (digit or 1) * scale
        digit, last = 0, scale
    # 三千二 is 3,200: the last digit counts the next lower place.
    tail = digit * (last // 10 if last > 10 else 1)
    return [str(total + section + tail)]


def roman_values(text: str) -> list[str]:
    """Return the values, as canonical numbers, of the Roman numerals of a text."""
    found = []
    for match in _ROMAN.finditer(text):
        if not (numeral := match.group()):
            continue
        values = [_ROMAN_VALUES[sign] for sign in numeral]
        total = sum(
            -value if place + 1 < len(values) and values[place + 1] > value else value
            for place, value in enumerate(values)
        )
        if total <= _LARGEST:
            found.append(str(total))
    return found
