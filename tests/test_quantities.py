import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.quantities import Quantities, normalised, read

_DATES = st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31))


def _spellings(date: datetime.date) -> list[str]:
    month = f"{date:%B}"
    return [
        date.isoformat(),
        f"{date.day} {month} {date.year}",
        f"{month} {date.day}, {date.year}",
        f"{month[:3]}. {date.day}, {date.year}",
        f"the {date.day}th of {month} {date.year}",
        f"{date.year}年{date.month}月{date.day}日",
        f"{date.year}/{date.month}/{date.day}",
        f"{date.day:02}.{date.month:02}.{date.year}",
    ]


@given(_DATES, st.integers(0, 7), st.integers(0, 7))
def test_every_spelling_of_a_date_is_the_same_date(date: datetime.date, first: int, second: int) -> None:
    """What one spelling claims, a text that has another spelling holds."""
    spellings = _spellings(date)
    claimed = read(f"It opened on {spellings[first]}.")[0]
    assert len(claimed) == 1
    assert Quantities(f"On {spellings[second]} it opened.").holds_date(claimed[0])


@given(_DATES, _DATES, st.integers(0, 6), st.integers(0, 6))
def test_another_date_is_not_held(date: datetime.date, other: datetime.date, first: int, second: int) -> None:
    """A text that has one date does not hold another."""
    claimed = read(_spellings(date)[first])[0][0]
    assert Quantities(_spellings(other)[second]).holds_date(claimed) == (date == other)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("4 March 2021", "from 3 to 5 March 2021, and on March 4"),
        ("3 March 2021", "from 3 to 5 March 2021"),
        ("5 May 1999", "On 5 May they met. That was in 1999."),
        ("March 2021", "on 4 March 2021"),
        ("4 March", "on 2021-03-04"),
        ("2019年3月", "二〇一九年三月五日"),
        ("July 5, 2005", "born 1923July 5, 2005"),
    ],
)
def test_parts_of_dates_are_held(claim: str, text: str) -> None:
    """Ranges, a year said elsewhere and parts of a full date support a date."""
    assert Quantities(text).holds_date(read(claim)[0][0])


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("1,000", "1000"),
        ("1000", "1.000"),
        ("1 000", "1,000"),
        ("2.5 million", "2,500,000"),
        ("2,500,000", "2.5m"),
        ("3.5万", "35000"),
        ("twenty-five", "25"),
        ("12", "a dozen"),
        ("21st", "twenty-first"),
        ("三千二百", "3200"),
        ("2019", "二〇一九年"),
        ("１２", "12"),
        ("1995", "1990–95"),
        ("1990–95", "from 1990 to 1995"),
        ("14", "Louis XIV"),
        ("30%", "30 percent"),
        ("B12", "vitamin B12"),
    ],
)
def test_spellings_of_a_number_are_the_same(claim: str, text: str) -> None:
    """A number is held in whatever spelling the text has it."""
    assert all(Quantities(normalised(text)).holds_number(number) for number in read(normalised(claim))[1])


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("2 million", "2 billion"),
        ("12", "vitamin B12"),
        ("5", "3.5"),
        ("1000", "100"),
        ("三千", "三百"),
        ("7", "77"),
    ],
)
def test_other_numbers_are_not_held(claim: str, text: str) -> None:
    """Another scale, a code's digits and a part of another number are not the number."""
    assert not any(Quantities(text).holds_number(number) for number in read(claim)[1])


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_a_text_holds_what_it_says(text: str) -> None:
    """Whatever a text says, in any script, it is found to say."""
    plain = normalised(text)
    dates, numbers = read(plain)
    held = Quantities(plain)
    assert all(held.holds_date(date) for date in dates)
    assert all(held.holds_number(number) for number in numbers)


@given(st.text(alphabet="0123456789.,'-/ 年月日千万亿第kmMay tworhundX", max_size=40))
def test_strange_numbers_are_held_too(text: str) -> None:
    """Digits, separators and scales in any order are read alike on both sides."""
    held = Quantities(text)
    assert all(held.holds_number(number) for number in read(text)[1])
