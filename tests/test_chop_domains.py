import pytest

from mrag_cli.parts.chop.domains import DOMAINS


@pytest.mark.parametrize(
    ("domain", "front", "back"),
    [
        ("product", ["Contents", "1. Getting started", "What's in the box"], ["Warranty", "Technical data"]),
        (
            "legal",
            ["Preamble", "Short title and commencement", "第一章 总则"],
            ["Final provisions", "Schedule 2"],
        ),
        ("policy", ["Purpose", "2 Scope"], ["Revision history", "Related policies"]),
    ],
)
def test_front_and_back_matter(domain: str, front: list[str], back: list[str]) -> None:
    """Each domain knows how its documents begin and end, with or without a number before the heading."""
    found = DOMAINS[domain]
    assert all(found.front.match(heading) for heading in front)
    assert all(found.back.match(heading) for heading in back)
    assert not found.front.match("Cleaning the filter")
    assert not found.back.match("Cleaning the filter")


def test_numbers_of_articles_and_policies() -> None:
    """A heading's own number is found where the domain has one."""
    legal, policy = DOMAINS["legal"].numbered, DOMAINS["policy"].numbered
    assert legal is not None
    assert policy is not None
    for heading, number in (
        ("Article 17: Erasure", "Article 17"),
        ("§ 12 Notice", "§ 12"),
        ("第三条 范围", "第三条"),
    ):
        found = legal.search(heading)
        assert found is not None
        assert found.group(1) == number
    code = policy.search("Travel (HR-12)")
    assert code is not None
    assert code.group(1) == "HR-12"
    assert DOMAINS["product"].numbered is None
