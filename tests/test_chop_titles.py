import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.chop.domains import DOMAINS
from mrag_cli.parts.chop.titles import is_kind, is_name, names_model, title_of

PRODUCT, LEGAL, POLICY = DOMAINS["product"], DOMAINS["legal"], DOMAINS["policy"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Orla Brew X10 user manual", "Orla Brew X10"),
        ("Orla™ Brew X10 (X10e, X10+) User Manual", "Orla Brew X10 (X10e, X10+)"),
        ("User Manual for the Orla X100", "Orla X100"),
        ("ORLA X100 — Owner's Guide", "ORLA X100"),
        ("WM28400 washing machine instruction manual", "WM28400 washing machine"),
        ("Tern 3 handheld meter: manual", "Tern 3 handheld meter"),
        ("Installation and Operating Instructions Orla GS 12", "Orla GS 12"),
        ("Orla Print TS31 User Guide, Rev. 2", "Orla Print TS31"),
        ("Bedienungsanleitung Orla W1", "Orla W1"),
        ("青鹭 X10 使用说明书", "青鹭 X10"),
    ],
)
def test_title_lines_name_a_product(line: str, name: str) -> None:
    """A capitalised name beside the words for a manual is a title, whichever comes first."""
    found = title_of(line, PRODUCT)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "line",
    [
        "User manual",
        "Quick Start Guide",
        "See the Orla Buds user guide",
        "Setting up the Orla X10 user manual",
        "Launching the e-Manual",
        "Health and Safety Guide",
        "Step 3 with the remote manual",
        "Read the Orla X10 user manual before use.",
        "View the user manual on your device",
        "",
    ],
)
def test_other_lines_name_nothing(line: str) -> None:
    """Instructions, sentences and mere kinds of documents are no titles."""
    assert title_of(line, PRODUCT) is None


@pytest.mark.parametrize(
    "line",
    [
        "Harbour Protection Act 2031",
        "General Ferry Regulation (EU) 2031/679",
        "Directive 95/46/EC",
        "Civil Ferry Rules 1998",
        "Convention on the Rights of Islands",
        "海港保护法",
    ],
)
def test_statutes_are_named_by_their_whole_title(line: str) -> None:
    """The kind belongs to a statute's name; common words count only with a number."""
    found = title_of(line, LEGAL)
    assert found is not None
    assert found.name == line


@pytest.mark.parametrize(
    "line",
    ["Offences under this Act", "General Rules", "Governing Law", "Repeal of the Ferry Act 1990", "Code"],
)
def test_a_statutes_own_headings_are_no_titles(line: str) -> None:
    """A heading that refers to an act, or uses a kind as a common word, names no statute."""
    assert title_of(line, LEGAL) is None


def test_policies_are_named_too() -> None:
    """A policy's title is told from its sections."""
    assert title_of("Travel and Expense Policy (HR-12)", POLICY) is not None
    assert title_of("Related Policies", POLICY) is None
    assert title_of("Violations of this policy", POLICY) is None


def test_a_title_over_two_lines() -> None:
    """A name and a kind are recognised apart from each other."""
    assert is_kind("Owner's Manual", PRODUCT)
    assert not is_kind("Harbour Act", LEGAL)
    assert is_name("Orla Brew X10", PRODUCT)
    assert not is_name("Cleaning the filter", PRODUCT)


def test_a_model_number_in_a_heading() -> None:
    """A name with a model number is told from a numbered chapter."""
    assert names_model("Orla X100 dishwasher", PRODUCT)
    assert not names_model("Chapter 3", PRODUCT)
    assert not names_model("3 Setup", PRODUCT)


@given(st.text(max_size=200))
def test_any_line_is_read(line: str) -> None:
    """No line raises, in any domain."""
    for domain in DOMAINS.values():
        title_of(line, domain)
        is_name(line, domain)
        names_model(line, domain)
