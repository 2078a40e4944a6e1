"""``mrag cache``: what the cache of replies holds, and pruning it."""

import time
from typing import Annotated

import typer

from mrag_cli.cli import model_options
from mrag_cli.ground.errors import UsageError

_DAY = 86_400


def cache(
    path: model_options.CacheFile = None,
    unused_for: Annotated[
        float | None,
        typer.Option(
            "--unused-for",
            metavar="DAYS",
            min=0.0,
            help="Drop replies not used for so long.",
            show_default=False,
        ),
    ] = None,
    keep_mb: Annotated[
        float | None,
        typer.Option(
            "--keep-mb",
            metavar="MB",
            min=0.0,
            help="Drop the replies longest unused until the rest takes at most this.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what the cache of language models' replies holds; with an option, drop some first.

    \b
    Examples:
      mrag cache
      mrag cache --unused-for 90
      mrag cache --keep-mb 0
    """
    import orjson

    from mrag_cli.ground.report import visible
    from mrag_cli.parts.llm.cache import ReplyCache, default_cache_path

    file = path or default_cache_path()
    if not file.exists():
        if path is not None:
            raise UsageError(f"there is no cache {file}")
        typer.echo(
            orjson.dumps({"path": str(file), "replies": 0}).decode() if json else f"{file}: nothing yet"
        )
        return
    replies = ReplyCache(file)
    try:
        dropped = 0
        if unused_for is not None or keep_mb is not None:
            dropped = replies.prune(
                unused_since=None if unused_for is None else time.time() - unused_for * _DAY,
                keep_bytes=None if keep_mb is None else int(keep_mb * 1_000_000),
            )
        size = replies.size()
    finally:
        replies.close()
    if json:
        found = {
            "path": str(file),
            "bytes": size.bytes,
            "replies": size.replies,
            "embeddings": size.vectors,
            "dropped": dropped,
            "models": dict(size.models),
            "cost": size.cost,
            "oldest_use": size.oldest_use,
        }
        typer.echo(orjson.dumps(found).decode())
        return
    typer.echo(
        visible(f"{file}: {size.replies} replies, {size.bytes / 1e6:.1f} MB, paid with ${size.cost:.2f}")
    )
    if size.vectors:
        typer.echo(f"{size.vectors:>10} embeddings")
    for model, number in size.models:
        typer.echo(visible(f"{number:>10} {model}"))
    if dropped:
        typer.echo(f"{dropped} dropped")
