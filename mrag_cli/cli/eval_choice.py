"""Which systems ``mrag eval`` compares, from what its command line names."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_cli.cli import eval_makers, eval_systems
from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.evaluation.lightrag_index import lightrag

if TYPE_CHECKING:
    from mrag_cli.cli.console import Console
    from mrag_cli.cli.eval_models import Model
    from mrag_cli.parts.evaluation.systems import System
    from mrag_cli.parts.evaluation.vectors import KeptVectors


def chosen(
    named: str,
    given: list[str],
    extracting: Model | None,
    vectors: KeptVectors | None,
    console: Console,
) -> list[System]:
    """Return the systems that are compared, in the order given.

    Args:
        named: names with commas between them, each with its suffixes.
        given: ``NAME=PATH`` of ready indexes and marker streams.
        extracting: writes markers and summaries; None for the extractive ones.
        vectors: of keys and questions; None for BM25 alone.
        console: told what the stages have to say.

    Raises:
        UsageError: one does not exist, comes twice, or needs what was not given.
    """
    found: list[System] = []
    for name in [word.strip() for word in named.split(",") if word.strip()]:
        base, refined, variant = _parts_of(name)
        if base == "lightrag":
            if extracting is None or vectors is None:
                raise UsageError("lightrag needs --extract-model and --embedder")
            found.append(lightrag(name, extracting.client, extracting.spent, extracting.identity, vectors))
            continue
        maker = eval_makers.maker(base, variant, extracting, vectors, console)
        found.append(eval_systems.made(name, maker.asked(refined), vectors, console))
    for option in given:
        name, sign, path = option.partition("=")
        if not sign or not name or not path:
            raise UsageError(f"--system {option}: NAME=PATH is expected")
        _, refined, _ = _parts_of(name)
        wanted = True if refined is None else refined
        if Path(path).is_dir():
            found.append(eval_systems.ready(name, Path(path), vectors, refined=wanted))
        else:
            checked = partial(eval_makers.checked, reporter=console)
            found.append(eval_systems.of_stream(name, Path(path), checked, vectors, console, refined=wanted))
    if not found:
        raise UsageError("no system to measure; name one with --systems")
    order = [one.name for one in found]
    if len(set(order)) < len(order):
        raise UsageError(f"a system comes twice: {', '.join(order)}")
    return found


def _parts_of(name: str) -> tuple[str, bool | None, str]:
    """Return a system's own name, whether it is asked with the refinements, and its prompt variant."""
    base, *suffixes = name.split("+")
    refined: bool | None = None
    variant = ""
    for suffix in suffixes:
        if suffix in ("paper", "refined"):
            refined = suffix == "refined"
        elif suffix in ("a", "b", "c"):
            variant = suffix
        else:
            raise UsageError(f"{name}: +{suffix} is none of +paper, +refined, +a, +b, +c")
    return base, refined, variant
