import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts import keys
from mrag_cli.parts.keys import is_generic, judge_keys
from mrag_cli.parts.terms import query_terms
from mrag_cli.records.models import Marker

_WORDS = st.sampled_from("pump valve lock river bridge iron wheel heron nest moor the of".split())
_TEXT = st.lists(_WORDS, min_size=1, max_size=8).map(" ".join)


def _judged(*pairs: tuple[str, str], origin: str = "llm") -> list[tuple[str, ...]]:
    markers = [Marker("d", key, value, (1,), origin) for key, value in pairs]
    sizes = [(len(key.split()), len(value.split())) for key, value in pairs]
    findings = judge_keys(markers, [key for key, _ in sizes], [value for _, value in sizes])
    return [finding.flags for finding in findings]


@pytest.mark.parametrize(
    "key",
    [
        "Introduction",
        "machine learning",
        "Overview of machine learning",
        "The results",
        "What is it?",
        "---",
        "机器学习",
        "简介",
        "机器学习概述",
    ],
)
def test_a_topic_is_generic(key: str) -> None:
    """A section's name, a bare topic or no content word at all names nothing that a value says."""
    assert is_generic(key)


@pytest.mark.parametrize(
    "key",
    [
        "How does supervised learning differ from unsupervised learning?",
        "Who founded the mill?",
        "When the lock at Hale was rebuilt in stone",
        "Pump P200 maximum flow rate in litres",
        "水泵的最大流量是多少？",
        "谁发明了蒸汽机",
    ],
)
def test_a_relation_is_not_generic(key: str) -> None:
    """A question or a description that names what is said is good enough."""
    assert not is_generic(key)


def test_good_keys_have_no_flags() -> None:
    """Keys that are short, different and find their own values pass."""
    assert _judged(
        (
            "Who built the iron bridge at Hale?",
            "The Marsh brothers built the iron bridge at Hale in a summer.",
        ),
        (
            "Where do grey herons nest on the moor?",
            "Grey herons nest in tall pines on the north of the moor.",
        ),
    ) == [(), ()]


def test_each_fault_has_its_flag() -> None:
    """A repeated value, a topic, another's value, a duplicate and an over-long key are told apart."""
    found = _judged(
        ("The bridge is made of iron plates.", "The bridge is  made of iron plates."),
        ("The moor", "Grey herons nest in pines on the moor near the bridge."),
        ("Where do grey herons nest in the tall pines?", "The lock keeper lives by the river with two dogs."),
        ("where do grey herons nest in the tall pines?", "Grey herons nest in the tall pines every spring."),
        ("Which lock was rebuilt in stone, and by whom, and when?", "The lock was rebuilt in stone."),
    )
    assert found == [
        (keys.MISSING,),
        (keys.GENERIC,),
        (keys.MISSES,),
        (keys.DUPLICATE,),
        (keys.LONG,),
    ]


@pytest.mark.parametrize("origin", ["extractive", "fallback", "chop", "fixed"])
def test_keys_cut_from_the_text_are_not_judged(origin: str) -> None:
    """Where key and value are alike by design, nothing is flagged."""
    assert _judged(("Herons", "Herons"), ("Herons", "Herons"), origin=origin) == [(), ()]


@given(st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=12))
def test_the_rank_is_that_of_scoring_every_value(pairs: list[tuple[str, str]]) -> None:
    """Leaving out values that cannot overtake changes no rank."""
    markers = [Marker("d", key, value, (1,), "llm") for key, value in pairs]
    findings = judge_keys(markers, [1] * len(pairs), [1] * len(pairs))
    index = keys._Values([value for _, value in pairs])
    for place, (finding, (key, _)) in enumerate(zip(findings, pairs, strict=True)):
        asked = set(query_terms(key))
        scores = [
            sum(index._postings.get(term, {}).get(other, 0.0) for term in asked)
            for other in range(len(pairs))
        ]
        expected = 1 + sum(score > scores[place] + 1e-9 for score in scores) if scores[place] else len(pairs)
        assert finding.rank == expected


def test_the_work_is_not_quadratic() -> None:
    """Sixteen times the markers of one document take nowhere near 256 times as long."""
    chance = random.Random(1)  # noqa: S311 - the same sample each time, no secret
    names = [f"name{number}" for number in range(400)]

    def seconds(size: int) -> float:
        markers = [
            Marker("d", f"When was {name} {number} opened?", f"{name} {number} was opened.", (1,), "llm")
            for number, name in ((number, chance.choice(names)) for number in range(size))
        ]
        start = time.process_time()
        judge_keys(markers, [8] * size, [9] * size)
        return time.process_time() - start

    seconds(100)
    assert seconds(4000) < 64 * max(seconds(250), 0.005)
