import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts import tokens
from mrag_cli.parts.llm.prompt import ExtractionPrompt, shipped
from mrag_cli.parts.llm.windows import WINDOW_TOKENS, Limits, Plan, first_of, halves, numbers, plan
from mrag_cli.records.models import Document, DocumentGroup, Unit

PROMPT = ExtractionPrompt(shipped("extract_a.v1"))


def group(sizes: list[int], *, heading_every: int = 10) -> DocumentGroup:
    """Return a document with units of about so many tokens, a heading over every few."""
    units = []
    for number, size in enumerate(sizes, 1):
        text = " ".join([f"Fact{number}"] + ["water"] * max(0, size - 3))
        heading = ("Guide", f"Part {(number - 1) // heading_every}")
        units.append(Unit("d", number, text, tokens.count(text), heading))
    total = sum(unit.tokens for unit in units)
    return DocumentGroup(Document("d", "x", "The Guide", len(units), total), tuple(units))


def limits(prefix: int = 12_000, context: int = 128_000, output: int = 16_384, keys: int = 1) -> Limits:
    """Return limits of a large model."""
    return Limits(prefix, context, output, PROMPT.instruction_tokens, keys)


def prompt_tokens(made: Plan, given: Limits) -> int:
    """Return the prompt tokens of all of a plan's requests."""
    return sum(PROMPT.request(made, window, given).prompt_tokens for window in made.windows)


def test_a_short_document_is_shown_whole_and_asked_for_at_once() -> None:
    """The prefix holds every unit with its number; there is one window."""
    made = plan(group([60] * 12), limits())
    assert made.whole
    assert len(made.windows) == 1
    assert all(f"<{number}> Fact{number}" in made.prefix for number in range(1, 13))
    assert made.carried(made.windows[0]) == ("", 0)


def test_a_long_document_is_shown_by_its_outline_and_each_windows_own_units() -> None:
    """The prefix has title and outline; a window brings its units and neighbours, and no others."""
    made = plan(group([100] * 300), limits())
    assert not made.whole
    assert "The Guide" in made.prefix
    assert "Part 7 <71>" in made.prefix
    assert "Fact1 " not in made.prefix
    window = made.windows[2]
    text, size = made.carried(window)
    first, last = window[0].unit, window[-1].unit
    assert all(f"<{number}> Fact{number} " in text for number in range(first - 1, last + 2))
    assert f"<{first - 20}>" not in text
    assert size == pytest.approx(tokens.count(text), rel=0.1)


def test_the_prefix_is_the_same_for_all_of_a_documents_calls() -> None:
    """System message and the start of the user's are identical byte for byte, whatever is asked."""
    for most in (limits(), limits(prefix=0)):
        made = plan(group([100] * 110), most)
        requests = [PROMPT.request(made, window, most) for window in made.windows]
        requests.append(PROMPT.request(made, made.pieces[3:5], most, attempt=2))
        assert len(requests) > 2
        assert len({request.messages[0].text for request in requests}) == 1
        stable = {request.messages[1].text[: request.messages[1].stable] for request in requests}
        assert stable == {made.prefix}


def test_cost_stays_linear_in_the_documents_length() -> None:
    """Prompt tokens a document token: about 2 at 12k, and no more at 48k and 128k."""
    ratios = {}
    for size in (12_000, 48_000, 128_000):
        document = group([100] * (size // 100))
        made = plan(document, limits())
        assert made.whole == (size == 12_000)
        ratios[size] = prompt_tokens(made, limits()) / document.document.tokens
    assert ratios[12_000] < 2.3
    assert ratios[48_000] < 1.6
    assert ratios[128_000] < 1.6


def test_windows_fit_the_models_output_limit() -> None:
    """The reply to a window, four fifths of it with room to spare, is below the limit."""
    for output in (1_000, 4_096, 8_192, 100_000):
        given = limits(output=output)
        made = plan(group([100] * 100), given)
        for window in made.windows:
            size = sum(piece.tokens for piece in window)
            assert given.reply(size) <= output
            assert size <= WINDOW_TOKENS
            assert PROMPT.request(made, window, given).max_tokens <= output


def test_more_keys_make_smaller_windows() -> None:
    """Further keys lengthen the reply, so less is asked for at once."""
    document = group([100] * 100)
    one, five = plan(document, limits(output=4_096)), plan(document, limits(output=4_096, keys=5))
    assert len(five.windows) > len(one.windows)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(3, 400), min_size=1, max_size=60),
    prefix=st.sampled_from([0, 500, 12_000]),
    context=st.integers(2_600, 20_000),
    output=st.integers(300, 8_000),
)
def test_every_unit_is_asked_for_once_and_every_request_fits(
    sizes: list[int], prefix: int, context: int, output: int
) -> None:
    """A document over the context is sharded: no unit is lost, and prompt and reply fit the context."""
    given = limits(prefix, context, output)
    made = plan(group(sizes), given)
    asked = [piece for window in made.windows for piece in window]
    assert asked == list(made.pieces)
    assert sorted({piece.unit for piece in asked}) == list(range(1, len(sizes) + 1))
    for window in made.windows:
        request = PROMPT.request(made, window, given)
        real = sum(tokens.count(message.text) for message in request.messages)
        assert real <= request.prompt_tokens * 1.05 + 20
        assert real + request.max_tokens <= context
        assert {piece.unit for piece in window} <= made.visible(window)
        for piece in window:
            assert piece.render() in request.messages[1].text


def test_shards_overlap() -> None:
    """Neighbouring windows show some of each other's units."""
    made = plan(group([100] * 120), limits(context=6_000, output=2_000))
    assert len(made.windows) > 2
    for before, after in zip(made.windows, made.windows[1:], strict=False):
        assert made.visible(before) & made.visible(after)


def test_a_unit_too_large_for_any_window_is_shown_in_parts() -> None:
    """All of its text is shown, under the same number."""
    text = " ".join(f"word{number}" for number in range(3_000))
    unit = Unit("d", 1, text, tokens.count(text))
    document = DocumentGroup(Document("d", "x", "t", 1, unit.tokens), (unit,))
    made = plan(document, limits(context=4_000, output=2_000))
    assert len(made.pieces) > 3
    assert {piece.unit for piece in made.pieces} == {1}
    assert "".join(piece.text for piece in made.pieces) == text
    assert all(piece.tokens <= made.window_tokens for piece in made.pieces)


def test_units_without_counts_are_counted() -> None:
    """A stream that does not say how long its units are is planned all the same."""
    units = tuple(Unit("d", number, "water " * 200, 0) for number in range(1, 31))
    made = plan(DocumentGroup(Document("d", "x", "t", 30, 0), units), limits(output=2_000))
    assert len(made.windows) > 2


def test_limits_without_room_are_refused_with_the_options_to_change() -> None:
    """A context smaller than the instructions is the user's to fix."""
    with pytest.raises(UsageError, match="--context-tokens"):
        plan(group([60] * 12), limits(context=800))
    with pytest.raises(UsageError, match="--output-tokens"):
        plan(group([60] * 12), limits(output=128))


def test_headings_stand_where_they_change_and_only_if_the_text_lacks_them() -> None:
    """A heading that the unit's own text shows is not said again."""
    units = (
        Unit("d", 1, "# Setup\nGet the pump.", 8, ("Setup",)),
        Unit("d", 2, "Fill it.", 3, ("Setup", "Linux")),
        Unit("d", 3, "Start it.", 3, ("Setup", "Linux")),
    )
    made = plan(DocumentGroup(Document("d", "x", "t", 3, 14), units), limits())
    assert made.prefix.endswith("<1> # Setup\nGet the pump.\n[Setup > Linux]\n<2> Fill it.\n<3> Start it.")


def test_endless_titles_and_headings_are_cut() -> None:
    """A line that a reader took for a title does not fill the context."""
    unit = Unit("d", 1, "Water.", 2, ("x" * 100_000,))
    made = plan(DocumentGroup(Document("d", "x", "y" * 100_000, 1, 2), (unit,)), limits())
    assert made.prefix_tokens < 500


def test_an_outline_of_thousands_of_headings_stays_small() -> None:
    """The deepest levels go first, then the end."""
    units = tuple(
        Unit("d", number, "water " * 60, 61, ("Guide", f"Chapter {number // 50}", f"Section {number}"))
        for number in range(1, 2_001)
    )
    made = plan(DocumentGroup(Document("d", "x", "t", 2_000, 122_000), units), limits())
    assert "Chapter 30" in made.prefix
    assert "Section 7" not in made.prefix
    assert made.prefix_tokens < 1_000


def test_halves_are_even_and_lose_nothing() -> None:
    """A window is cut where both sides are near equal; one piece stays whole."""
    pieces = plan(group([100] * 9), limits()).pieces
    left, right = halves(pieces)
    assert (*left, *right) == pieces
    assert abs(len(left) - len(right)) == 1
    assert halves(pieces[:1]) == [pieces[:1]]
    assert first_of(pieces, 250) == pieces[:2]
    assert first_of(pieces, 1) == pieces[:1]


def test_unit_numbers_are_named_in_runs() -> None:
    """Neighbouring numbers are a range."""
    assert numbers({4, 1, 2, 3, 9}) == "<1>-<4>, <9>"
