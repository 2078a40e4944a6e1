"""Which systems a command line means."""

from pathlib import Path

import pytest

from mrag_cli.cli.console import Console
from mrag_cli.cli.eval_choice import chosen
from mrag_cli.ground.errors import IndexMissing, InputError, UsageError


def _chosen(named: str, *given: str) -> list[tuple[str, object, object]]:
    found = chosen(named, list(given), None, None, Console(quiet=True))
    return [(system.name, system.settings.get("refined"), system.order) for system in found]


def test_systems_keep_their_order_and_their_way_of_being_asked() -> None:
    """Baselines are asked by the paper's plan, mrag and CHOP with refinements, unless a suffix says so."""
    assert _chosen("mrag,fixed, dos,chop") == [
        ("mrag", True, None),
        ("fixed", False, None),
        ("dos", False, "position"),
        ("chop", True, None),
    ]
    assert _chosen("mrag+paper,fixed+refined") == [("mrag+paper", False, None), ("fixed+refined", True, None)]


@pytest.mark.parametrize(
    ("named", "given", "said"),
    [
        ("mragg", (), "no such system"),
        ("mrag+bold", (), "is none of"),
        ("mrag+b", (), "--extract-model"),
        ("fixed+b", (), "--extract-model"),
        ("mrag,mrag", (), "twice"),
        ("", (), "no system"),
        ("", ("kb",), "NAME=PATH"),
        ("", ("kb=",), "NAME=PATH"),
        ("", ("kb=/nowhere/at/all",), "cannot be read"),
        ("lightrag", (), "--extract-model and --embedder"),
    ],
)
def test_what_cannot_be_measured_is_refused(named: str, given: tuple[str, ...], said: str) -> None:
    """A system that is not there, comes twice or lacks what it needs stops the run before it starts."""
    with pytest.raises(UsageError, match=said):
        _chosen(named, *given)


def test_a_path_is_an_index_or_a_stream(tmp_path: Path) -> None:
    """A folder must hold an index, a file a marker stream."""
    with pytest.raises(IndexMissing):
        _chosen("", f"kb={tmp_path}")
    (tmp_path / "broken.jsonl").write_text("{", "utf-8")
    with pytest.raises(InputError):
        _chosen("", f"llm={tmp_path / 'broken.jsonl'}")
