"""``mrag update``."""

from typing import Annotated, Any

import typer

from mrag_cli.cli import model_options
from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Embedder, IndexDirectory, Quiet, Stream, Threads, Wait
from mrag_cli.cli.streams import stream
from mrag_cli.ground.errors import UsageError


def update(
    directory: IndexDirectory,
    source: Stream = None,
    embedder: Embedder = None,
    compact: Annotated[bool, typer.Option(help="Merge all segments into one afterwards.")] = False,
    cache: model_options.CacheFile = None,
    no_cache: model_options.NoCache = False,
    threads: Threads = 1,
    wait: Wait = 0.0,
    quiet: Quiet = False,
) -> None:
    """Add, replace and delete documents of an index from a stream, in one commit.

    A document that is there with the same content is left alone; an update that changes nothing writes
    nothing.

    \b
    Example:
      mrag tag docs --changed-since kb | mrag extract | mrag validate | mrag update kb
      mrag update kb /dev/null --compact
    """
    from mrag_cli.parts.store.manifest import read_manifest
    from mrag_cli.stages.update import UpdateSettings, update_index

    console = Console(quiet=quiet)
    if embedder is not None and read_manifest(directory).embedder is None:
        raise UsageError(f"--embedder: {directory} has no vectors; `mrag index --embedder` makes some")
    with model_options.embedders(cache=cache, no_cache=no_cache) as made, stream(source, console) as parts:

        def embedder_like(built_with: str) -> Any:
            from mrag_cli.parts.embedders import checked

            return made(checked(embedder, built_with))

        settings = UpdateSettings(embedder_like, compact, threads, wait)
        result = update_index(console.counted(parts, "documents"), directory, settings, console)
    if result.changed:
        console.notice(
            f"{directory}: {result.added} added, {result.replaced} replaced, {result.deleted} deleted, "
            f"{result.unchanged} unchanged, generation {result.generation}"
        )
    else:
        console.notice(f"{directory}: nothing to change, {result.unchanged} unchanged")
    console.finish()
