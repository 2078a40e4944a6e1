import re
from pathlib import Path

import pytest

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.llm.prompt import (
    PLACEHOLDERS,
    VARIANTS,
    ExtractionPrompt,
    PromptFile,
    fill,
    from_file,
    marker_schema,
    shipped,
)
from mrag_cli.parts.llm.replies import Record
from mrag_cli.parts.llm.windows import Limits, plan
from mrag_cli.records.models import Document, DocumentGroup, Unit

DOCUMENT = DocumentGroup(
    Document("d", "x", "Pumps", 2, 8),
    (Unit("d", 1, "Pump A is old.", 4), Unit("d", 2, "Pump {{units}} is new.", 4)),
)


def texts(prompt: ExtractionPrompt, prefix: int = 12_000) -> tuple[str, str]:
    """Return the system's and the user's message for the document's window."""
    limits = Limits(prefix, 16_000, 4_000, prompt.instruction_tokens, prompt.keys)
    made = plan(DOCUMENT, limits)
    system, user = prompt.request(made, made.windows[0], limits).messages
    return system.text, user.text


def test_the_three_variants_hold_the_same_sections_in_other_orders() -> None:
    """B swaps output format and requirements, C puts the keys below the requirements."""

    def sections(name: str) -> list[str]:
        return [
            part.strip() for part in re.split(r"^(?=## )", shipped(VARIANTS[name]).text, flags=re.MULTILINE)
        ]

    def titles(name: str) -> list[str]:
        return [section.partition("\n")[0] for section in sections(name)[1:]]

    # The placeholders after the last section belong to no section.
    whole = {
        name: sorted(re.sub(r"\{\{examples.*", "", s, flags=re.DOTALL).strip() for s in sections(name))
        for name in "abc"
    }
    assert whole["a"] == whole["b"] == whole["c"]
    assert titles("a") == ["## Input", "## Keys", "## Values", "## Output format", "## Requirements"]
    assert titles("b") == ["## Input", "## Keys", "## Values", "## Requirements", "## Output format"]
    assert titles("c") == ["## Input", "## Values", "## Output format", "## Requirements", "## Keys"]


@pytest.mark.parametrize("name", list(VARIANTS.values()))
def test_a_shipped_prompt_is_filled_whole(name: str) -> None:
    """No placeholder of its own is left, and the document's text is not filled."""
    system, user = texts(ExtractionPrompt(shipped(name)))
    assert "{{" not in system
    assert user.count("{{") == 1
    assert "Pump {{units}} is new." in user
    assert "<1>-<2>" in user
    assert "Pump A" not in system


def test_language_keys_and_examples_are_said_in_the_constant_part() -> None:
    """What the options ask for stands in the system message."""
    example = Record("Example key?", "Example value.", (4,), ("Other key?", "Third key?"))
    system, _ = texts(
        ExtractionPrompt(shipped("extract_a.v1"), keys=2, language="French", examples=[example])
    )
    assert "Write keys and values in French." in system
    assert '"aliases": a list of 1 further keys' in system
    assert '{"key":"Example key?","aliases":["Other key?"],"value":"Example value.","pointers":[4]}' in system
    plain, _ = texts(ExtractionPrompt(shipped("extract_a.v1")))
    assert "in the language of the document" in plain
    assert "aliases" not in plain
    assert "Example" not in plain


def test_units_that_the_prefix_lacks_come_with_the_window() -> None:
    """In a long document the window's units stand between prefix and task."""
    _, user = texts(ExtractionPrompt(shipped("extract_a.v1")), prefix=0)
    assert user.startswith("Title: Pumps")
    assert user.index("=== Units") < user.index("<1> Pump A is old.") < user.index("=== Task ===")


def test_what_fills_a_placeholder_is_not_filled_again() -> None:
    """A document that talks of placeholders stays as it is."""
    assert fill("{{a}} {{b}} {{c}}", {"a": "{{b}}", "b": "x"}) == "{{b}} x {{c}}"


def test_the_purpose_names_the_prompts_version() -> None:
    """A changed prompt is another request, also when its text came out the same."""
    made = {}
    for prompt in (shipped("extract_a.v1"), PromptFile(shipped("extract_a.v1").text, "own-1")):
        limits = Limits(12_000, 16_000, 4_000, 500)
        whole = plan(DOCUMENT, limits)
        made[prompt.version] = ExtractionPrompt(prompt).request(whole, whole.windows[0], limits).purpose
    assert made == {"extract_a.v1": "extract extract_a.v1", "own-1": "extract own-1"}


def test_an_own_prompt_is_read_and_versioned_by_its_text(tmp_path: Path) -> None:
    """Two texts have two versions."""
    path = tmp_path / "p.txt"
    path.write_text("Do it in {{language}}\n{{document}}\n{{window}} {{units}} {{count}}", "utf-8")
    first = from_file(path)
    path.write_text("Do it\n{{document}}\n{{window}} {{units}}", "utf-8")
    assert first.version != from_file(path).version
    assert first.version.startswith("own-")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{{document}} {{units}}", r"\{\{window\}\} must stand in it once"),
        ("{{window}} {{units}}", r"\{\{document\}\} must"),
        ("{{document}} {{document}} {{window}} {{units}}", r"\{\{document\}\} must"),
        ("{{document}} {{window}} {{units}} {{nonsense}}", r"no placeholder \{\{nonsense\}\}"),
        ("{{units}} {{document}} {{window}}", r"\{\{units\}\} stands before \{\{document\}\}"),
    ],
)
def test_a_prompt_that_cannot_work_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """The message names the placeholder and what to do."""
    (tmp_path / "p.txt").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=told):
        from_file(tmp_path / "p.txt")


def test_a_prompt_that_cannot_be_read_is_the_users_error(tmp_path: Path) -> None:
    """A missing file and one that is no text name themselves."""
    with pytest.raises(UsageError, match=r"none\.txt"):
        from_file(tmp_path / "none.txt")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"bad\.txt"):
        from_file(tmp_path / "bad.txt")


def test_the_help_names_every_placeholder() -> None:
    """What --help says and what is allowed are the same."""
    from mrag_cli.cli.extract_command import extract

    documented = set(re.findall(r"^ +\{\{(\w+)\}\}", extract.__doc__ or "", re.MULTILINE))
    assert documented == PLACEHOLDERS.keys()


def test_the_schema_asks_for_aliases_only_when_more_keys_are_wanted() -> None:
    """Every field is required and none other allowed, as strict structured output demands."""
    for keys, names in ((1, ["key", "value", "pointers"]), (3, ["key", "aliases", "value", "pointers"])):
        marker = marker_schema(keys)["properties"]["markers"]["items"]
        assert list(marker["properties"]) == marker["required"] == names
        assert marker["additionalProperties"] is False
