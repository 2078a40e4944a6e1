"""``mrag chunk``: the chunk baselines as markers."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Output, Quiet
from mrag_cli.cli.streams import sink, write_stream
from mrag_cli.ground.errors import UsageError


class Method(StrEnum):
    """How a document is cut."""

    naive = "naive"
    fixed = "fixed"
    overlap = "overlap"
    cosine = "cosine"
    semantic = "semantic"
    pic = "pic"


def chunk(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Files, folders, patterns, JSONL with id and text, or `-` for standard input.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="naive: windows of 500 tokens by 100; fixed: 128; overlap: 128 by 32; cosine: sentences; "
            "semantic: the same up to 128 tokens; pic: grouped by likeness to the document's summary.",
        ),
    ] = Method.naive,
    chunk_tokens: Annotated[
        int | None,
        typer.Option(
            "--chunk-tokens", min=1, help="Tokens of a chunk, for another size.", show_default=False
        ),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option("--overlap", min=0, help="Tokens by which windows overlap.", show_default=False),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0.0, max=1.0, help="Of cosine: cut where sentences are less alike."),
    ] = 0.35,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="SPEC",
            envvar="MRAG_EMBEDDER",
            help="Of cosine, semantic and pic: compare by this embedder; by TF-IDF without one.",
            show_default=False,
        ),
    ] = None,
    as_name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Put this in place of the root's own name in ids; JSONL ids are prefixed with it.",
            show_default=False,
        ),
    ] = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Cut documents into chunks that are key and value at once: the baselines to compare with.

    \b
    Examples:
      mrag chunk docs | mrag index -o naive
      mrag chunk docs --method fixed --chunk-tokens 256 | mrag index -o fixed
      mrag chunk docs --method cosine --embedder ollama/bge-m3 -o chunks.jsonl
    """
    if not paths:
        if sys.stdin.isatty():
            typer.echo(context.get_usage(), err=True)
            typer.echo("Name files or folders, or pipe a document in; `-` reads the terminal.", err=True)
            raise typer.Exit(2)
        paths = ["-"]
    if as_name is not None and not as_name.strip("/ "):
        raise UsageError("--as: a name is expected")

    from mrag_cli.parts.sources import Sources
    from mrag_cli.stages import chunk as stage

    size, repeated = stage.SIZES.get(method.value, (0, 0))
    size, repeated = size if chunk_tokens is None else chunk_tokens, repeated if overlap is None else overlap
    if method is not Method.cosine and repeated >= size:
        raise UsageError(f"--overlap {repeated} must be less than the {size} tokens of a window")
    compared: dict[str, Any] = {}
    if method in (Method.cosine, Method.semantic, Method.pic) and embedder:
        from mrag_cli.parts.chop.cosine import vector_similarities
        from mrag_cli.parts.embedders import embedder as embedder_of

        vectors = embedder_of(embedder).embed
        compared = {"similarities": vector_similarities(vectors), "vectors": vectors}

    console = Console(quiet=quiet)
    settings = stage.ChunkSettings(method.value, size, repeated, threshold)
    with console.progress("chunk") as advance:
        sources = Sources(
            paths,
            console,
            as_name=as_name.strip("/") if as_name else None,
            stdin=sys.stdin.buffer,
            advance=advance,
        )
        advance(0, total=sources.files)
        with sink(output) as file:
            write_stream(stage.chunk(sources, settings, console, **compared), file)
    console.finish()
