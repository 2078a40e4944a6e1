"""``mrag info`` and ``mrag verify``."""

from typing import Annotated, Any

import typer

from mrag_cli.cli.console import Console, as_text, escaped
from mrag_cli.cli.options import IndexDirectory, Quiet
from mrag_cli.ground.errors import IndexCorrupt


def info(
    directory: IndexDirectory,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what an index holds: documents, markers by origin, segments, bytes, settings.

    \b
    Example:
      mrag info kb
      mrag info kb --json
    """
    import orjson

    from mrag_cli.parts.store.snapshot import Snapshot
    from mrag_cli.stages.info import describe

    found = describe(Snapshot.open(directory))
    found["directory"] = as_text(str(directory))
    if as_json:
        typer.echo(orjson.dumps(found).decode())
        return
    for name, value in _rows(found):
        typer.echo(f"{name:<12} {escaped(value)}")


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    dead, lexical, embedder = found["dead"], found["lexical"], found["embedder"]
    origins = ", ".join(f"{count:,} {origin}" for origin, count in found["origins"].items()) or "none"
    return [
        ("index", f"{found['directory']}, format {found['format']}, written by {found['written_by']}"),
        ("generation", str(found["generation"])),
        ("documents", f"{found['documents']:,}"),
        ("units", f"{found['units']:,}"),
        ("markers", f"{found['markers']:,} ({origins})"),
        ("keys", f"{found['keys']:,}"),
        ("dead", f"{dead['documents']:,} documents, {dead['markers']:,} markers"),
        ("segments", str(len(found["segments"]))),
        ("bytes", f"{found['bytes']:,}"),
        (
            "lexical",
            f"BM25, k1 {lexical['k1']:g}, b {lexical['b']:g}, length pivot {lexical['pivot']:g} terms",
        ),
        ("tokens", found["encoding"]),
        ("embedder", f"{embedder['name']}, {embedder['dimension']} dimensions" if embedder else "none"),
    ]


def verify(
    directory: IndexDirectory,
    recall: Annotated[
        bool, typer.Option("--recall", help="Also compare hnswlib's graphs with exact search.")
    ] = False,
    ef: Annotated[int | None, typer.Option(min=1, help="Search width for --recall; default 200.")] = None,
    quiet: Quiet = False,
) -> None:
    """Check that every byte of an index is as it was written; name the files that are not.

    \b
    Example:
      mrag verify kb && rsync -a kb/ backup/kb/
      mrag verify kb --recall --ef 200
    """
    from mrag_cli.stages.verify import recall as measured
    from mrag_cli.stages.verify import verify as check

    console = Console(quiet=quiet)
    named = escaped(as_text(str(directory)))
    bad = 0
    total = 0
    for name, wrong in console.counted(check(directory), "checking files"):
        total += 1
        if wrong:
            bad += 1
            typer.echo(f"{named}/segments/{name}: {wrong}")
    if bad:
        raise IndexCorrupt(
            f"{directory}: {bad} of {total} files are not as they were written; "
            "restore the directory from a copy or build it again"
        )
    if not quiet:
        typer.echo(f"{named}: {total} files, all as they were written")
    if recall:
        from mrag_cli.parts.store.graph import DEFAULT_EF

        share = measured(directory, ef or DEFAULT_EF)
        told = "no graphs, every search is exact" if share is None else f"recall@10 of the graphs {share:.4f}"
        typer.echo(f"{named}: {told}")
