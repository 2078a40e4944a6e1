from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.numerals import (
    canonical,
    cjk_values,
    cluster_readings,
    roman_values,
    scale_of,
    words_values,
)

_DIGITS = "零一二三四五六七八九"


def _chinese(number: int) -> str:
    """Spell a number below 10,000 as Chinese does."""
    text, pending = "", False
    for scale, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, scale)
        if digit:
            text += ("零" if pending and text else "") + _DIGITS[digit] + sign
        pending = not digit and bool(text)
    return text


@pytest.mark.parametrize(
    ("spelled", "readings"),
    [
        ("1,000", {("1000",)}),
        ("1.000", {("1000",)}),
        ("1'000'000", {("1000000",)}),
        ("1 000", {("1000",), ("1", "0")}),
        ("2.50", {("2.5",)}),
        ("1.234", {("1234",), ("1.234",)}),
        ("1,234.50", {("1234.5",)}),
        ("1.234,50", {("1234.5",)}),
        ("0.05", {("0.05",)}),
        ("1.2.3", {("1", "2", "3")}),
        ("007", {("7",)}),
    ],
)
def test_separators_are_read(spelled: str, readings: set[tuple[str, ...]]) -> None:
    """Thousands and decimals are told apart, and both readings kept where both are possible."""
    assert set(cluster_readings(spelled)) == readings


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("twenty-five", ["25"]),
        ("three hundred and five", ["305"]),
        ("two hundred thousand", ["200000"]),
        ("twenty-first", ["21"]),
        ("two thirds", ["2", "3"]),
        ("nineteen ninety", ["19", "90"]),
    ],
)
def test_english_words_are_read(words: str, values: list[str]) -> None:
    """Number words make one number as far as they belong together."""
    assert words_values(words) == values


@pytest.mark.parametrize(
    ("numeral", "values"),
    [
        ("二〇一九", ["2019"]),
        ("三千二百", ["3200"]),
        ("三千二", ["3200"]),
        ("十二", ["12"]),
        ("三亿五千万", ["350000000"]),
        ("十万零三百", ["100300"]),
        ("千万", []),
    ],
)
def test_chinese_numerals_are_read(numeral: str, values: list[str]) -> None:
    """By place or by scale; scales alone are words such as 千万, no numbers."""
    assert cjk_values(numeral) == values


@given(st.integers(1, 9999))
def test_every_chinese_numeral_says_its_number(number: int) -> None:
    """A number spelled out is read as that number."""
    assert cjk_values(_chinese(number)) == [str(number)]


@given(st.integers(0, 10**15), st.integers(0, 10**6))
def test_grouping_does_not_change_a_number(whole: int, fraction: int) -> None:
    """A number with thousands separators has the plain number among its readings."""
    plain = cluster_readings(f"{whole}.{fraction}1")[-1]
    assert plain == (canonical(Decimal(f"{whole}.{fraction}1")),)
    assert (str(whole),) in cluster_readings(f"{whole:,}")


def test_scales_and_roman_numerals() -> None:
    """Scales after digits multiply; Roman numerals up to thirty are read."""
    assert [scale_of(word) for word in ("million", "k", "bn", "千万")] == [10**6, 10**3, 10**9, 10**7]
    assert roman_values("Louis XIV, World War II, part IX") == ["14", "2", "9"]
