"""``mrag chop``: documents into chunks whose keys say what they are about."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrag_cli.cli import model_options
from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Output, Quiet
from mrag_cli.cli.streams import sink, write_stream
from mrag_cli.ground.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mrag_cli.parts.chop.asking import Questions
    from mrag_cli.parts.llm.client import Client
    from mrag_cli.parts.sources import Source, Sources
    from mrag_cli.records.models import StreamPart
    from mrag_cli.stages.chop import ChopSettings


class ChunkMode(StrEnum):
    """How a document is cut."""

    windows = "windows"
    headings = "headings"


class PrefixPlace(StrEnum):
    """Where the prefix goes."""

    key = "key"
    both = "both"


class Anchor(StrEnum):
    """What a chunk is judged against."""

    previous = "previous"
    first = "first"


class Schema(StrEnum):
    """When a JSON schema is sent along."""

    auto = "auto"
    on = "on"
    off = "off"


DOMAINS = ("product", "legal", "policy")


def chop(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Files, folders, patterns, JSONL with id and text, or `-` for standard input.",
            show_default=False,
        ),
    ] = None,
    chunks: Annotated[
        ChunkMode, typer.Option("--chunks", help="Along the headings, or windows of a fixed size.")
    ] = ChunkMode.headings,
    chunk_tokens: Annotated[
        int, typer.Option("--chunk-tokens", min=1, help="The most tokens a chunk has.")
    ] = 500,
    overlap: Annotated[
        int, typer.Option("--overlap", min=0, help="Tokens that a window repeats of the one before.")
    ] = 0,
    prefix: Annotated[
        PrefixPlace,
        typer.Option("--prefix", help="Put the prefix into the key alone, or above the packed values too."),
    ] = PrefixPlace.both,
    domain: Annotated[
        str,
        typer.Option(
            "--domain",
            metavar="NAME|FILE",
            help="product, legal or policy; with --model also a file that words the fields.",
        ),
    ] = "product",
    model: model_options.Model = None,
    api_base: model_options.ApiBase = None,
    anchor: Annotated[
        Anchor,
        typer.Option(
            "--anchor",
            help="With --model: judge a chunk by the previous one, or in turn by its segment's first.",
        ),
    ] = Anchor.previous,
    schema: Annotated[
        Schema, typer.Option("--schema", help="Send a JSON schema: auto where the model takes one.")
    ] = Schema.auto,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --model: print what a run would ask; no call is made."),
    ] = False,
    concurrency: model_options.Concurrency = 8,
    timeout: model_options.Timeout = 300.0,
    max_attempts: model_options.MaxAttempts = 6,
    max_cost: model_options.MaxCost = None,
    max_calls: model_options.MaxCalls = None,
    param: model_options.Params = None,
    cache: model_options.CacheFile = None,
    no_cache: model_options.NoCache = False,
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
    """Cut near-identical documents (manuals, statutes, policies) into chunks that say what they belong to.

    A file may hold several documents run together. Which product a chunk is about, and where the next
    document
    begins, is found by rules, or decided by a language model (--model). The prefix makes a question that
    names
    its product find that product's chunk.

    \b
    Examples:
      mrag chop manuals | mrag index -o kb
      mrag query kb "X100: how do I clean the filter?"
      mrag chop manuals --changed-since kb | mrag update kb
      mrag chop statutes --domain legal --chunks windows -o markers.jsonl
      mrag chop manuals --model openai/gpt-4o-mini --dry-run

    \b
    Sections of a --domain file, each under a line of its own:
      # documents   the kind of documents, in the plural
      # fields      what "category", "nouns" and "model" mean
      # same        when two chunks belong to the same document
      # new         what is strong evidence for another one
    """
    if not paths:
        if sys.stdin.isatty():
            typer.echo(context.get_usage(), err=True)
            typer.echo("Name files or folders, or pipe a document in; `-` reads the terminal.", err=True)
            raise typer.Exit(2)
        paths = ["-"]
    _check(chunks, chunk_tokens, overlap, domain, as_name, model=model)
    _check_model_options(
        model, {"--dry-run": dry_run, "--api-base": api_base, "--anchor": anchor is not Anchor.previous}
    )

    from mrag_cli.parts.sources import Sources
    from mrag_cli.stages import chop as stage

    console = Console(quiet=quiet)
    settings = stage.ChopSettings(
        chunk_tokens=chunk_tokens,
        overlap=overlap,
        chunks=chunks.value,
        prefix=prefix.value,
        domain=domain if domain in DOMAINS else "product",
        anchor=anchor.value,
    )
    with console.progress("chop") as advance:
        sources = Sources(
            paths,
            console,
            as_name=as_name.strip("/") if as_name else None,
            stdin=sys.stdin.buffer,
            advance=advance,
        )
        advance(0, total=sources.files)
        if model is None:
            parts = _changed(
                sources, settings, changed_since, lambda given: stage.chop(given, settings, console)
            )
            with sink(output) as file:
                write_stream(parts, file)
        else:
            from mrag_cli.parts.llm.client import ClientSettings

            called = ClientSettings(
                model=model,
                api_base=api_base,
                params=model_options.parameters(param),
                concurrency=concurrency,
                timeout=timeout,
                max_attempts=max_attempts,
                schema=schema.value,
            )
            with model_options.client(
                called, console, cache=cache, no_cache=no_cache, max_cost=max_cost, max_calls=max_calls
            ) as client:
                questions = _questions(domain, client)
                if dry_run:
                    _print_estimate(sources, settings, client, questions, output)
                else:
                    _by_model(sources, settings, changed_since, client, questions, output, console)
    console.finish()


def _check(
    chunks: ChunkMode, chunk_tokens: int, overlap: int, domain: str, as_name: str | None, *, model: str | None
) -> None:
    if overlap and chunks is not ChunkMode.windows:
        raise UsageError("--overlap belongs to --chunks windows; chunks along headings do not overlap")
    if overlap >= chunk_tokens:
        raise UsageError(f"--overlap {overlap} must be less than --chunk-tokens {chunk_tokens}")
    if domain not in DOMAINS and model is None:
        raise UsageError(
            f"--domain {domain}: {', '.join(DOMAINS)} is expected; a file that words the fields needs --model"
        )
    if as_name is not None and not as_name.strip("/ "):
        raise UsageError("--as: a name is expected")


def _check_model_options(model: str | None, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if model is None and value:
            raise UsageError(f"{option} needs --model; without a model, rules decide")


def _questions(domain: str, client: "Client") -> "Questions":
    from mrag_cli.parts.chop.asking import Questions, from_file, shipped

    wording = shipped(domain) if domain in DOMAINS else from_file(Path(domain))
    return Questions(wording, reasons=client.facts.reasons)


def _changed(
    sources: "Sources",
    settings: "ChopSettings",
    index: Path | None,
    chopped: "Callable[[Iterable[Source]], Iterator[StreamPart]]",
    asked: str = "",
) -> "Iterator[StreamPart]":
    from mrag_cli.stages import chop as stage

    if index is None:
        return chopped(sources)
    from mrag_cli.parts.store.snapshot import Snapshot

    known = Snapshot.open(index).known_documents()
    return stage.only_changes(
        sources, chopped, lambda source: stage.digest(source, settings, asked), known, sources.vanished
    )


def _by_model(
    sources: "Sources",
    settings: "ChopSettings",
    changed_since: Path | None,
    client: "Client",
    questions: "Questions",
    output: Path | None,
    console: Console,
) -> None:
    from mrag_cli.parts.chop.judge import Summary
    from mrag_cli.parts.llm.ledger import dollars
    from mrag_cli.stages import chop as stage

    summary = Summary()
    parts = _changed(
        sources,
        settings,
        changed_since,
        lambda given: stage.chop_by_model(given, settings, client, questions, console, summary),
        stage.asked_how(client, questions),
    )
    try:
        with sink(output) as file:
            write_stream(parts, file)
    finally:
        counts = client.ledger.counts
        cost = None if counts.unpriced and not counts.cost else counts.cost
        console.notice(
            f"{summary.chunks} chunks in {summary.segments} segments of {summary.documents} documents; "
            f"{counts.calls} calls, {counts.cached_replies} replies from the cache, {dollars(cost)}; "
            f"{summary.asked_again} replies out of schema, {summary.unread} of them twice"
        )


def _print_estimate(
    sources: "Sources",
    settings: "ChopSettings",
    client: "Client",
    questions: "Questions",
    output: Path | None,
) -> None:
    from mrag_cli.parts.chop.judge import Summary
    from mrag_cli.stages import chop as stage

    summary = Summary()
    stage.estimate(sources, settings, client, questions, summary)
    rows = {
        "documents": summary.documents,
        "chunks": summary.chunks,
        "continuity decisions": summary.decisions,
        "CNMs, at least": summary.segments,
        "cached already": summary.cached,
        "prompt tokens, at least": summary.prompt_tokens,
    }
    with sink(output) as file:
        file.write("".join(f"{name:<24}{value:>14}\n" for name, value in rows.items()).encode())
