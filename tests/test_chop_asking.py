from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.chop.asking import OPENING, Questions, from_file, read_continuity, shipped
from mrag_cli.parts.chop.cnm import Cnm

GOOD = '{"category": "kettle", "nouns": ["kettle lid"], "model": "X10", "confidence": 0.9}'


@pytest.mark.parametrize("domain", ["product", "legal", "policy"])
def test_shipped_wordings_fill_both_prompts(domain: str) -> None:
    """Each domain words the fields; no placeholder is left in a request."""
    questions = Questions(shipped(domain))
    for request in (questions.cnm("text"), questions.continuity("one", "two")):
        assert "{{" not in request.messages[0].text
        assert domain in request.purpose


def test_the_first_thousand_characters_are_shown() -> None:
    """What comes later in a chunk changes neither request, and the attempt is part of it."""
    questions = Questions(shipped("product"))
    long = "x" * OPENING
    assert questions.cnm(long) == questions.cnm(long + "y")
    assert questions.continuity(long, long) == questions.continuity(long + "y", long + "z")
    assert questions.cnm("x", attempt=1).attempt == 1
    assert Questions(shipped("product"), reasons=True).cnm("x").max_tokens > questions.cnm("x").max_tokens


def test_an_own_wording_needs_its_sections(tmp_path: Path) -> None:
    """A file with the four sections is taken; one without, or none, is refused by name."""
    path = tmp_path / "own.txt"
    path.write_text(
        "# documents\nrecipes\n# fields\n- model: the dish\n# same\nit is\n# new\nit is not\n", "utf-8"
    )
    wording = from_file(path)
    assert "recipes" in Questions(wording).cnm("x").messages[0].text
    assert wording.version.startswith("own-")
    path.write_text("# documents\nrecipes\n", "utf-8")
    with pytest.raises(UsageError, match="fields"):
        from_file(path)
    with pytest.raises(UsageError, match="cannot be read"):
        from_file(tmp_path / "none.txt")


@pytest.mark.parametrize("reply", [GOOD, f"```json\n{GOOD}\n```", f"Sure: {GOOD} That is all."])
def test_a_cnm_is_read_from_whatever_surrounds_it(reply: str) -> None:
    """JSON alone, fenced, or in prose is the same CNM."""
    questions = Questions(shipped("product"))
    assert questions.read_cnm(reply) == (Cnm("kettle", ("kettle lid",), "X10", 0.9, "X10"), True)


def test_a_field_out_of_schema_is_null_alone() -> None:
    """The other fields stay; the reply counts as out of schema."""
    questions = Questions(shipped("product"))
    found, right = questions.read_cnm(
        '{"category": 7, "nouns": ["a", "b", "c"], "model": "X10", "confidence": 0.5}'
    )
    assert (found, right) == (Cnm(None, (), "X10", 0.5, "X10"), False)
    assert questions.read_cnm("no JSON") == (Cnm(), False)
    assert questions.read_cnm('{"category": null, "nouns": null, "model": "null", "confidence": 0}') == (
        Cnm(),
        True,
    )


def test_the_name_of_a_statute_is_its_category() -> None:
    """Ids come from the body of law, not from the article's number."""
    found, _ = Questions(shipped("legal")).read_cnm(
        '{"category": "Harbour Act", "nouns": null, "model": "Article 3", "confidence": 1}'
    )
    assert found.subject == "Harbour Act"


def test_a_decision_is_a_boolean_or_none() -> None:
    """Anything but true and false under "same" is no decision."""
    assert read_continuity('{"same": true}') is True
    assert read_continuity('Well: {"same": false}') is False
    for reply in ("", "true", '{"same": "yes"}', '{"same": null}', "{", "[true]"):
        assert read_continuity(reply) is None


@given(st.text(max_size=80))
def test_any_reply_is_read(reply: str) -> None:
    """No reply raises."""
    Questions(shipped("product")).read_cnm(reply)
    read_continuity(reply)
