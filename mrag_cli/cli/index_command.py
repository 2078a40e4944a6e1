"""``mrag index``."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mrag_cli.cli import model_options
from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Embedder, Quiet, Stream, Threads, Wait
from mrag_cli.cli.streams import stream


class VectorType(StrEnum):
    """How vectors are stored."""

    float32 = "float32"
    float16 = "float16"


def index(
    directory: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="The index directory to make.", show_default=False
        ),
    ],
    source: Stream = None,
    embedder: Embedder = None,
    vector_dtype: Annotated[
        VectorType, typer.Option(help="Of stored vectors; float16 takes half the space.")
    ] = VectorType.float32,
    like: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Take the settings of this index.", show_default=False),
    ] = None,
    length_pivot: Annotated[
        float | None,
        typer.Option(
            min=1, help="BM25's length pivot in terms; default: the mean key length, rounded coarsely."
        ),
    ] = None,
    k1: Annotated[float | None, typer.Option(min=0, max=100, help="BM25's k1; default 0.9.")] = None,
    b: Annotated[float | None, typer.Option(min=0, max=1, help="BM25's b; default 0.4.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an index that is there, in one commit.")] = False,
    cache: model_options.CacheFile = None,
    no_cache: model_options.NoCache = False,
    threads: Threads = 1,
    wait: Wait = 0.0,
    quiet: Quiet = False,
) -> None:
    """Index a stream's markers in a new directory: only keys are searched, values are returned.

    \b
    Example:
      mrag tag docs | mrag extract | mrag validate | mrag index -o kb
      mrag index markers.jsonl -o kb --embedder openai/text-embedding-3-small
    """
    from mrag_cli.parts.store.manifest import LexicalSettings, read_manifest
    from mrag_cli.parts.store.segment_writer import SegmentSettings
    from mrag_cli.stages.index import IndexSettings, build_index

    console = Console(quiet=quiet)
    spec = embedder or os.environ.get("MRAG_EMBEDDER") or None
    lexical = LexicalSettings()
    dtype = vector_dtype.value
    if like is not None:
        manifest = read_manifest(like)
        lexical = manifest.lexical
        spec = embedder or (manifest.embedder.name if manifest.embedder else None)
        dtype = manifest.embedder.dtype if manifest.embedder else dtype
    chosen = {
        name: value for name, value in (("k1", k1), ("b", b), ("pivot", length_pivot)) if value is not None
    }
    with (
        model_options.embedders(cache=cache, no_cache=no_cache) as embedder_of,
        stream(source, console) as parts,
    ):
        segment = SegmentSettings(
            lexical._replace(**chosen),
            embedder_of(spec) if spec else None,
            threads,
            dtype=dtype,
            derive_pivot=like is None and length_pivot is None,
        )
        counted = console.counted(parts, "indexing documents")
        manifest = build_index(counted, directory, IndexSettings(segment, overwrite, wait), console)
    made = manifest.segments
    console.notice(
        f"{directory}: {sum(entry.live('documents') for entry in made)} documents, "
        f"{sum(entry.live('markers') for entry in made)} markers, generation {manifest.generation}"
    )
    console.finish()
