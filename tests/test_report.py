import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.ground.report import visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, tabs\tand\nlines", "plain, tabs\tand\nlines"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\u2028b\u202ec\ufeff", "a\\u2028b\\u202ec\\ufeff"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("水泵 é 👨\u200d👩", "水泵 é 👨\u200d👩"),
        ("[red] :warning: \\x1b", "[red] :warning: \\x1b"),
    ],
)
def test_control_characters_are_spelled_out(text: str, expected: str) -> None:
    """What could drive a terminal is spelled out, everything else stays."""
    assert visible(text) == expected


@given(st.text(max_size=30))
def test_nothing_drives_the_terminal(text: str) -> None:
    """No control, format, surrogate or separator character is left but newline, tab and the joiners."""
    left = set(visible(text)) - set("\n\t\u200c\u200d")
    assert not {unicodedata.category(character) for character in left} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
