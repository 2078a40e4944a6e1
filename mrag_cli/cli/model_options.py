"""Options of the commands that ask a language model, and the client they make of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from mrag_cli.ground.errors import UsageError

if TYPE_CHECKING:
    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.embedders import Embedder
    from mrag_cli.parts.llm.cache import ReplyCache
    from mrag_cli.parts.llm.client import Client, ClientSettings
    from mrag_cli.parts.llm.kept_embedder import KeptEmbedder
    from mrag_cli.parts.llm.ledger import Ledger

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        envvar="MRAG_MODEL",
        help="A language model by its litellm name, such as openai/gpt-4o-mini or ollama/llama3.",
        show_default=False,
    ),
]
ApiBase = Annotated[
    str | None,
    typer.Option(
        "--api-base",
        metavar="URL",
        help="Address of an OpenAI-compatible server, ending in /v1; its model is openai/NAME.",
        show_default=False,
    ),
]
CacheFile = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="FILE",
        envvar="MRAG_CACHE",
        help="Where replies and embeddings are kept, so that none is paid for twice; default: the platform's "
        "cache folder",
        show_default=False,
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache.")]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, max=1000, help="Most calls at once.")]
Timeout = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds after which a call is given up.")]
MaxAttempts = Annotated[
    int, typer.Option("--max-attempts", min=1, help="Times a call is made before it is given up.")
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="DOLLARS",
        min=0.0,
        help="Stop before the call that would pass this; a rerun with more resumes.",
        show_default=False,
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        "--max-calls",
        min=0,
        help="Stop before the call that would pass this number; a rerun with more resumes.",
        show_default=False,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="A further parameter of each call, such as top_p=0.9; may be given several times.",
        show_default=False,
    ),
]

_NOT_PARAMETERS = {
    "api_key": "keys of providers are read from the environment",
    "api_base": "use --api-base",
    "base_url": "use --api-base",
    "model": "use --model",
    "messages": "the prompt makes them",
    "stream": "the command decides it",
    "n": "one reply is read",
    "response_format": "use --schema",
    "max_tokens": "use --output-tokens",
    "max_completion_tokens": "use --output-tokens",
    "timeout": "use --timeout",
    "num_retries": "use --max-attempts",
}


def parameters(given: Sequence[str] | None) -> dict[str, Any]:
    """Return ``--param`` options as a mapping; a value that is JSON is read as such.

    Raises:
        UsageError: one has no ``=`` or names what another option sets.
    """
    import orjson

    found: dict[str, Any] = {}
    for option in given or []:
        name, sign, value = option.partition("=")
        if not sign or not name:
            raise UsageError(f"--param {option}: NAME=VALUE is expected")
        if name in _NOT_PARAMETERS:
            raise UsageError(f"--param {name} cannot be set; {_NOT_PARAMETERS[name]}")
        try:
            found[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            found[name] = value
    return found


@contextmanager
def client(
    settings: "ClientSettings",
    reporter: "Reporter",
    *,
    cache: Path | None = None,
    no_cache: bool = False,
    max_cost: float | None = None,
    max_calls: int | None = None,
    make: "Callable[[ClientSettings, ReplyCache | None, Ledger], Client] | None" = None,
) -> "Iterator[Client]":
    """Make a client, and close its cache at the end.

    Args:
        settings: how the model is called.
        reporter: told when the model's limits are assumed.
        cache: the file of replies; None for the platform's cache folder.
        no_cache: use no cache.
        max_cost: most US dollars.
        max_calls: most calls.
        make: makes the client itself; None for a plain one.

    Raises:
        UsageError: ``max_cost`` with a model whose price is unknown, or an address that is none.
        MragError: the cache cannot be opened.
    """
    from mrag_cli.parts.llm.cache import ReplyCache, default_cache_path
    from mrag_cli.parts.llm.client import Client
    from mrag_cli.parts.llm.ledger import Ledger

    if settings.api_base is not None and not _is_address(settings.api_base):
        raise UsageError(
            f"--api-base {settings.api_base}: http://HOST[:PORT][/PATH] or https://… is expected"
        )
    kept = None if no_cache else ReplyCache(cache or default_cache_path())
    try:
        made = (make or Client)(settings, kept, Ledger(max_calls=max_calls, max_cost=max_cost))
        if max_cost is not None and made.facts.prices is None:
            raise UsageError(
                f"the price of {settings.model} is unknown, so --max-cost cannot be kept; use --max-calls"
            )
        if not made.facts.known:
            reporter.notice(
                f"{settings.model} is not in litellm's data: its price is unknown, its limits are taken as "
                f"{made.facts.context_tokens} tokens of context and {made.facts.output_tokens} a reply"
            )
        yield made
    finally:
        if kept is not None:
            kept.close()


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that cannot be
        return False


@contextmanager
def embedders(
    *, cache: Path | None = None, no_cache: bool = False
) -> "Iterator[Callable[[str], KeptEmbedder | Embedder]]":
    """Yield what makes an embedder of a SPEC; the vectors of one that costs something are kept.

    The cache is opened with the first such embedder, and closed at the end.

    Args:
        cache: its file; None for the platform's cache folder.
        no_cache: use no cache.

    Raises:
        MragError: the cache cannot be opened.
    """
    opened: list[ReplyCache] = []

    def make(spec: str) -> "KeptEmbedder | Embedder":
        from mrag_cli.parts.embedders import embedder, identity, keepable

        made = embedder(spec)
        if no_cache or not keepable(spec):
            return made
        from mrag_cli.parts.llm.cache import ReplyCache, default_cache_path
        from mrag_cli.parts.llm.kept_embedder import KeptEmbedder

        if not opened:
            opened.append(ReplyCache(cache or default_cache_path()))
        return KeptEmbedder(made, identity(spec), opened[0])

    try:
        yield make
    finally:
        for one in opened:
            one.close()
