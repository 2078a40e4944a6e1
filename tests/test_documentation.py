"""README, CHANGELOG and help say what the code does."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

import mrag_cli
from mrag_cli.cli.main import app
from mrag_cli.ground import errors

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
COMMANDS = dict(GROUP.commands)


def _options(name: str) -> set[str]:
    found = {"--help", "-h"}
    for parameter in COMMANDS[name].params:
        found.update(parameter.opts, parameter.secondary_opts)
    return found


def _command_lines(text: str) -> list[list[str]]:
    """Return each `mrag …` of the indented lines of a text as words, pipelines taken apart."""
    parts = [
        part
        for line in re.findall(r"^(?: {2,})(?:\$ )?(.*)$", text.replace("\\\n", " "), re.MULTILINE)
        for part in re.split(r"[|;]|&&", line)
    ]
    return [
        shlex.split(re.split(r" [<>]", part)[0], comments=True)
        for part in parts
        if re.match(r"\s*mrag\s+\w", part)
    ]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented(name: str) -> None:
    """Each command is in the README, and its help has an example that calls it."""
    assert f"mrag {name}" in README
    text = COMMANDS[name].help or ""
    assert "Example" in text
    assert f"mrag {name} " in text


@pytest.mark.parametrize("words", _command_lines(README), ids=" ".join)
def test_command_lines_of_the_readme_are_real(words: list[str]) -> None:
    """Each command line in the README names a command that exists and options that it has."""
    options = [word for word in words[1:] if word.startswith("-") and word != "-"]
    if words[1].startswith("-"):
        return
    assert words[1] in COMMANDS
    for option in options:
        if option.startswith("--") or len(option) == 2:
            assert option.split("=")[0] in _options(words[1]), option


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_examples_are_real(name: str) -> None:
    """Each `mrag` line in a command's help names commands and options that exist."""
    for words in _command_lines(COMMANDS[name].help or ""):
        assert words[1] in COMMANDS
        for option in (word for word in words[2:] if word.startswith("--")):
            assert option.split("=")[0] in _options(words[1]), (words, option)


def test_every_option_has_a_help_text() -> None:
    """No option is without an explanation."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name}: {parameter.name}"


def test_the_changelog_keeps_a_changelog() -> None:
    """CHANGELOG.md has the sections of Keep a Changelog, and what is not released yet first."""
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(r"\d+\.\d+\.\d+", mrag_cli.__version__)


def test_the_exit_codes_of_the_readme_are_those_of_the_errors() -> None:
    """Every exit code of an error class is in the README."""
    codes = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.MragError)
    }
    for code in {*codes, 130, 141}:
        assert re.search(rf"^\|.*\b{code}\b", README, re.MULTILINE), code
