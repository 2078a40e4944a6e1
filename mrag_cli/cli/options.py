"""Options that several commands share."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def _something_to_read(context: typer.Context, path: Path | None) -> Path | None:
    if path is None and sys.stdin.isatty():
        typer.echo(context.get_usage(), err=True)
        typer.echo("Name a file, or pipe a stream in; `-` reads the terminal.", err=True)
        raise typer.Exit(2)
    return path


Stream = Annotated[
    Path | None,
    typer.Argument(
        metavar="[STREAM]",
        help="A JSONL marker stream; `-` or nothing reads standard input.",
        show_default=False,
        callback=_something_to_read,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write here instead of to standard output.", show_default=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notices; errors are still said.")]
IndexDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The index directory.", show_default=False)
]
Embedder = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="A litellm name, the URL of an OpenAI-compatible server (#MODEL), or fastembed:NAME-or-DIR; "
        "default: MRAG_EMBEDDER, and for an index that is there its own.",
        show_default=False,
    ),
]
Threads = Annotated[
    int, typer.Option(min=1, help="For hnswlib's graph; one gives the same bytes every time.")
]
Wait = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Wait this long for another writer.")]
