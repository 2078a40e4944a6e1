from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts import tokens
from mrag_cli.parts.chop.chunks import sections, windows

TEXTS = st.text(alphabet=st.sampled_from("ab c.\n#é水🙂"), max_size=300)


@given(TEXTS, st.integers(1, 20))
def test_windows_hold_everything_and_keep_the_limit(text: str, limit: int) -> None:
    """Windows touch, leave out white space alone, and have at most the limit of tokens."""
    end = 0
    for cut in windows(text, limit):
        assert not text[end : cut.start].strip()
        assert cut.tokens == tokens.count(text[cut.start : cut.end])
        assert cut.tokens <= limit or cut.end == cut.start + 1
        end = cut.end
    assert not text[end:].strip()


@given(TEXTS, st.integers(2, 20), st.data())
def test_overlapping_windows_advance(text: str, limit: int, data: st.DataObject) -> None:
    """Each window begins within the one before and ends behind it."""
    overlap = data.draw(st.integers(1, limit - 1))
    cuts = list(windows(text, limit, overlap))
    for one, two in pairwise(cuts):
        assert one.start < two.start
        assert one.end < two.end
        assert not text[one.end : two.start].strip()


def test_windows_overlap_by_the_tokens_asked_for() -> None:
    """The last tokens of a window are the first of the next."""
    text = " ".join(f"word{number}" for number in range(200))
    one, two, *_ = windows(text, 50, 10)
    assert tokens.count(text[two.start : one.end]) == 10


def test_sections_follow_the_headings() -> None:
    """A section is a chunk; a small one is joined with the next, a large one cut."""
    body = "The pump moves water from the lower basin to the upper one. " * 12
    text = f"# A\n\n{body}\n\n# B\n\nshort\n\n# C\n\n{body}\n\n# D\n\n{body * 6}\n"
    found = [text[cut.start : cut.end] for cut in sections(text, 300)]
    assert found[0].startswith("# A")
    assert "# B" not in found[0]
    assert found[1].startswith("# B")
    assert "# C" in found[1]
    assert all(tokens.count(chunk) <= 300 for chunk in found)
    assert len(found) > 4


@given(TEXTS, st.integers(5, 40))
def test_sections_hold_everything(text: str, limit: int) -> None:
    """No character but white space is outside the chunks, none in two."""
    end = 0
    for cut in sections(text, limit):
        assert not text[end : cut.start].strip()
        end = cut.end
    assert not text[end:].strip()
