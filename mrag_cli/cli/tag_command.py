"""``mrag tag``: documents into units."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Output, Quiet
from mrag_cli.cli.streams import sink, write_stream


class UnitMode(StrEnum):
    """How a document is cut."""

    paragraph = "paragraph"
    fixed = "fixed"


def tag(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Files, folders, patterns, JSONL with id and text, or `-` for standard input.",
            show_default=False,
        ),
    ] = None,
    unit_tokens: Annotated[
        int, typer.Option("--unit-tokens", min=1, help="The most tokens a unit has.")
    ] = 128,
    units: Annotated[
        UnitMode,
        typer.Option("--units", help="Along headings, paragraphs and sentences, or strict windows."),
    ] = UnitMode.paragraph,
    as_name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Put this in place of the root's own name in ids; JSONL ids are prefixed with it.",
            show_default=False,
        ),
    ] = None,
    changed_since: Annotated[
        Path | None,
        typer.Option(
            "--changed-since",
            metavar="INDEX",
            help="Only what is new or changed since this index, and a deletion for each document gone.",
            show_default=False,
        ),
    ] = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Cut documents into numbered units.

    \b
    Examples, with a folder, every Markdown file below one, and rows of JSONL:
      mrag tag docs -o units.jsonl
      mrag tag 'docs/**/*.md' | mrag extract | mrag validate | mrag index -o kb
      mrag tag questions.jsonl --as exam
    What changed since the last night:
      mrag tag docs --changed-since kb | mrag extract | mrag validate | mrag update kb
    """
    if not paths:
        if sys.stdin.isatty():
            typer.echo(context.get_usage(), err=True)
            typer.echo("Name files or folders, or pipe a document in; `-` reads the terminal.", err=True)
            raise typer.Exit(2)
        paths = ["-"]
    if as_name is not None and not (as_name.strip("/ ") and as_name.isprintable()):
        raise typer.BadParameter("a name of printable characters is expected", param_hint="--as")

    from mrag_cli.parts.sources import Sources
    from mrag_cli.stages import tag as stage

    console = Console(quiet=quiet)
    settings = stage.TagSettings(unit_tokens, units.value)
    known = None if changed_since is None else _known(changed_since)
    with console.progress("tag") as advance:
        sources = Sources(
            paths,
            console,
            as_name=as_name.strip("/") if as_name else None,
            stdin=sys.stdin.buffer,
            advance=advance,
        )
        advance(0, total=sources.files)
        if known is None:
            parts = stage.tag(sources, settings, console)
        else:
            parts = stage.tag_changes(sources, settings, console, known, sources.vanished)
        with sink(output) as file:
            write_stream(parts, file)
    console.finish()


def _known(index: Path) -> dict[str, str]:
    from mrag_cli.parts.store.snapshot import Snapshot

    return Snapshot.open(index).known_documents()
