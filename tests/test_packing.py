from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from kb import Entry, ask, build, group

from mrag_cli.parts.costs import costs, header_cost
from mrag_cli.parts.packing import Evidence, Sealed, pack
from mrag_cli.parts.tokens import count

TEXT = st.text(st.sampled_from("ab. \n'?é海。”\x1c1"), min_size=0, max_size=30).map(str.strip)
HEADERS = st.sampled_from(["", "", "Harbour", "海港。", "It's"])


@st.composite
def candidates(draw: st.DrawFn) -> list[Evidence]:
    """Draw evidence in rank order; some ranks have several pieces."""
    found = []
    rank = 0
    for _ in range(draw(st.integers(0, 12))):
        rank += draw(st.integers(0, 1)) or not rank
        text, header = draw(TEXT), draw(HEADERS)
        (tokens,), (cost,) = costs([text])
        doc = draw(st.sampled_from("xyz"))
        position = (draw(st.integers(1, 5)), len(found))
        found.append(Evidence(rank, doc, position, text, tokens, cost, header, header_cost(header)))
    return found


def _same(evidence: Evidence) -> Evidence:
    return evidence


@given(candidates(), st.integers(0, 80), st.booleans(), st.sampled_from(["similarity", "position"]))
def test_the_budget_holds_in_the_encodings_own_count(
    found: list[Evidence], budget: int, strict: bool, order: str
) -> None:
    """A context has at most the budget, and exactly the tokens that are reported."""
    packed = pack(found, budget, strict_prefix=strict, order=order)
    sealed = [Sealed(own.rank, own.tokens, own.cost, partial(_same, own)) for own in found]
    assert pack(sealed, budget, strict_prefix=strict, order=order)[:2] == packed[:2]
    assert packed.tokens == count(packed.context)
    assert packed.tokens <= budget
    texts = [evidence.text for evidence in packed.evidence]
    assert len(texts) == len(set(texts))
    assert "" not in texts
    ranks = {evidence.rank for evidence in packed.evidence}
    assert {rank for rank, reason in packed.reasons.items() if reason == "packed"} == ranks


@given(candidates(), st.integers(0, 80))
def test_strict_packing_is_a_prefix(found: list[Evidence], budget: int) -> None:
    """The paper's rule takes what comes before the first that does not fit, and nothing after."""
    packed = pack(found, budget, strict_prefix=True, order="similarity")
    texts = list(dict.fromkeys(evidence.text for evidence in found if evidence.text))
    assert {evidence.text for evidence in packed.evidence} == set(texts[: len(packed.evidence)])


@given(candidates(), st.integers(0, 80))
def test_skipping_leaves_nothing_out_that_would_fit_alone(found: list[Evidence], budget: int) -> None:
    """Skipping packs something whenever something fits."""
    packed = pack(found, budget, strict_prefix=False, order="similarity")
    fits = [
        evidence for evidence in found if evidence.text and evidence.tokens + evidence.header_cost <= budget
    ]
    assert bool(packed.evidence) == bool(fits)


def _piece(rank: int, doc: str, position: int, text: str, header: str = "") -> Evidence:
    (tokens,), (cost,) = costs([text])
    return Evidence(rank, doc, (position,), text, tokens, cost, header, header_cost(header))


def test_values_under_one_header_stand_together() -> None:
    """Under a header values stand in document order, where the first of them ranks; the header comes once."""
    found = [
        _piece(1, "x", 3, "Third.", "Title"),
        _piece(2, "y", 1, "Other."),
        _piece(3, "x", 1, "First.", "Title"),
    ]
    packed = pack(found, 100, strict_prefix=False, order="similarity")
    assert packed.context == "Title\nFirst.\n\nThird.\n\nOther."


def test_position_groups_by_document() -> None:
    """By position documents stand by their best rank, each in its own order."""
    found = [_piece(1, "x", 3, "Third."), _piece(2, "y", 1, "Other."), _piece(3, "x", 1, "First.")]
    packed = pack(found, 100, strict_prefix=False, order="position")
    assert packed.context == "First.\n\nThird.\n\nOther."


def test_why_each_was_packed_or_not() -> None:
    """Each rank has a reason: packed, said already, or how much was wanted and left."""
    found = [
        _piece(1, "x", 1, "One two."),
        _piece(2, "y", 1, "One two."),
        _piece(3, "y", 2, "word " * 9 + "x"),
    ]
    packed = pack(found, 6, strict_prefix=False, order="similarity")
    assert packed.reasons == {
        1: "packed",
        2: "the same text is in the context already",
        3: "10 tokens do not fit into the 3 left",
    }


def test_a_rank_with_one_piece_in_is_packed() -> None:
    """Of a marker with two units one may fit; the marker then counts as packed."""
    found = [_piece(1, "x", 1, "One."), _piece(1, "x", 2, "word " * 20 + "x")]
    packed = pack(found, 6, strict_prefix=False, order="similarity")
    assert packed.reasons == {1: "packed"}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.builds(Entry, st.just("lamp"), TEXT, st.just(()), HEADERS), max_size=6),
    st.integers(0, 60),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["similarity", "position"]),
)
def test_an_index_keeps_the_budget(
    entries: list[Entry], budget: int, strict: bool, source: bool, order: str
) -> None:
    """Of values and of the units' own words, an answer's tokens are tiktoken's, within budget."""
    with TemporaryDirectory() as folder:
        build(Path(folder) / "kb", [group("a", entries[:3]), group("b", entries[3:])])
        result = ask(
            Path(folder) / "kb", "lamp", budget=budget, strict_prefix=strict, source=source, order=order
        )
    assert result.packed.tokens == count(result.packed.context) <= budget
