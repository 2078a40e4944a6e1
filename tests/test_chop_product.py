import random

from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.chop.product import ID_MARK, id_term, product_names, query_ids
from mrag_cli.parts.terms import query_terms, terms

NAMES = [
    "Orla S8",
    "Orla S8+",
    "Orla Note 10",
    "Orla Note 10+",
    "Orla X10 Lite",
    "Orla X10",
    "Orla Tab A 8.4",
    "Orla Tab A 8.0",
    "Orla Vision 5G",
]
REGISTRY = {id_term(name) for name in NAMES}


def asked(question: str, registry: set[str] = REGISTRY) -> list[str]:
    """Return what a question names."""
    return query_ids(question, registry)


@given(st.text(max_size=40))
def test_an_id_is_one_term_of_the_index(name: str) -> None:
    """Whatever the name's script, its id is one term in a key and in a question."""
    found = id_term(name)
    if found:
        assert terms(found) == [found]
        assert query_terms(f"what is {found}")[-1] == found
        assert found.startswith(ID_MARK)


def test_signs_and_case_do_not_matter_but_plus_does() -> None:
    """Trade marks and case are dropped, a plus is a word's own."""
    assert id_term("ORLA® S8") == id_term("Orla S8") != id_term("Orla S8+")
    assert id_term("!?") == ""


def test_the_longest_run_decides_whatever_its_spacing() -> None:
    """Spaces and a written-out plus make no difference; the longer name wins."""
    assert asked("How do I charge the S8+?") == [id_term("Orla S8+")]
    assert asked("s8 plus battery") == [id_term("Orla S8+")]
    assert asked("Note10+ pen") == [id_term("Orla Note 10+")]
    assert asked("Orla X10: lamp") == [id_term("Orla X10")]
    assert asked("x10 lite lamp") == [id_term("Orla X10 Lite")]


def test_what_many_share_and_standards_name_nothing() -> None:
    """A family's name, a standard, a bare number or an unknown product add no id."""
    for question in (
        "Orla: why?",
        "does it have 5G",
        "the first 10 songs",
        "Orla S9 charger",
        "10+ contacts",
    ):
        assert asked(question) == []


def test_a_series_means_all_of_it_and_a_comparison_both() -> None:
    """A part of several names gives them all; two products are named in the question's order."""
    assert asked("tab a screen") == sorted({id_term("Orla Tab A 8.4"), id_term("Orla Tab A 8.0")})
    assert asked("is the X10 lighter than the S8?") == [id_term("Orla X10"), id_term("Orla S8")]


@given(st.sets(st.sampled_from(NAMES), min_size=1), st.randoms(use_true_random=False))
def test_the_answer_depends_on_the_set_alone(names: set[str], chance: random.Random) -> None:
    """The order in which products were registered makes no difference."""
    ids = [id_term(name) for name in names]
    shuffled = chance.sample(ids, len(ids))
    for name in NAMES:
        assert query_ids(f"{name}: how?", ids) == query_ids(f"{name}: how?", shuffled)


def test_a_title_may_list_several_products() -> None:
    """Parentheses, slashes and "and" list products; a bare model takes the family's words."""
    assert product_names("Orla X10 (X10e, X10+)") == ("Orla X10", "Orla X10e", "Orla X10+")
    assert product_names("Orla X100/X200") == ("Orla X100", "Orla X200")
    assert product_names("Orla Clear TV / Magic Remote") == ("Orla Clear TV", "Magic Remote")
    assert product_names("Orla S8") == ("Orla S8",)
