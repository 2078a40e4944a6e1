"""``mrag validate``: a stream in, the same stream repaired and flagged out, and what was found on stderr."""

from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mrag_cli.cli import model_options
from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Output, Quiet, Stream
from mrag_cli.cli.streams import sink, stream, write_stream
from mrag_cli.ground.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mrag_cli.parts.validation_report import DocumentReport

REPORT_FORMAT = 1


def validate(
    path: Stream = None,
    output: Output = None,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Coverage below which a document is reported.")
    ] = 0.95,
    max_width: Annotated[int, typer.Option(min=1, help="Most units that an LLM's marker may point to.")] = 3,
    ungrounded: Annotated[
        Literal["repair", "flag", "drop"],
        typer.Option(
            help="A value with a number, date or name that its document lacks: repair puts its units' own "
            "words in its place, drop only drops it, flag keeps it."
        ),
    ] = "repair",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail a faulty document (exit code 3) instead of repairing it.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write all findings as JSON, with a row a document.", show_default=False
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Also ask this language model whether each value is supported by its units; a value that is "
            "not is treated as --ungrounded says.",
            show_default=False,
        ),
    ] = None,
    api_base: model_options.ApiBase = None,
    concurrency: model_options.Concurrency = 8,
    timeout: model_options.Timeout = 300.0,
    max_attempts: model_options.MaxAttempts = 6,
    max_cost: model_options.MaxCost = None,
    max_calls: model_options.MaxCalls = None,
    param: model_options.Params = None,
    cache: model_options.CacheFile = None,
    no_cache: model_options.NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Repair markers, cover every unit, flag doubtful values and keys.

    Pointers out of range and blank values are dropped, units that no marker covers get a fallback marker of
    their own words, values are checked against the document, keys against their values. A validated stream
    is left as it is.

    \b
    Examples:
      mrag tag docs | mrag extract | mrag validate --report report.json | mrag index -o kb
      mrag validate markers.jsonl --ungrounded flag -o checked.jsonl
      mrag validate markers.jsonl --judge openai/gpt-4o-mini --max-cost 1 -o checked.jsonl
    """
    from mrag_cli.parts.judging import Judged
    from mrag_cli.parts.validation_report import Summary
    from mrag_cli.stages.validate import ValidateSettings
    from mrag_cli.stages.validate import validate as run

    console = Console(quiet=quiet)
    if judge is None and any(given is not None for given in (api_base, max_cost, max_calls, param)):
        raise UsageError("--api-base, --max-cost, --max-calls and --param need --judge MODEL")
    settings = ValidateSettings(threshold, max_width, ungrounded, strict)
    summary, judged = Summary(), Judged()
    with ExitStack() as opened:
        parts = opened.enter_context(stream(path, console, check_pointers=False))
        client = None
        if judge is not None:
            from mrag_cli.parts.judging import judge as ask
            from mrag_cli.parts.llm.client import ClientSettings

            called = ClientSettings(
                judge,
                api_base,
                params=model_options.parameters(param),
                concurrency=concurrency,
                timeout=timeout,
                max_attempts=max_attempts,
            )
            client = opened.enter_context(
                model_options.client(
                    called, console, cache=cache, no_cache=no_cache, max_cost=max_cost, max_calls=max_calls
                )
            )
            parts = ask(parts, client, console, judged)

        def totals() -> dict[str, Any]:
            asked = {"judge": {**asdict(judged), **client.ledger.report()}} if client is not None else {}
            return {**summary.json(), **asked}

        file = opened.enter_context(sink(output))
        on_document = opened.enter_context(_report(report, totals))
        checked = run(parts, settings, console, summary, on_document)
        write_stream(console.counted(checked, "validating"), file)
        if client is not None:
            from mrag_cli.parts.llm.ledger import dollars

            spent = client.ledger.report()
            console.notice(
                f"{judge} judged {judged.statements - judged.unjudged} of {judged.statements} values, "
                f"{judged.unsupported} not supported; {spent['calls']} calls, "
                f"{spent['cached_replies']} replies from the cache, {dollars(spent['cost'])}"
            )
    if not quiet:
        from mrag_cli.cli.validate_view import show

        show(summary, console)
    console.finish()


@contextmanager
def _report(
    path: Path | None, totals: "Callable[[], dict[str, Any]]"
) -> "Iterator[Callable[[DocumentReport], None]]":
    """Yield what takes each document's report; with a ``path`` it is written there, the totals last."""
    if path is None:
        yield lambda _document: None
        return
    import orjson

    with sink(path) as file:
        file.write(b'{"format":%d,"documents":[' % REPORT_FORMAT)
        before = b"\n"

        def write(document: "DocumentReport") -> None:
            nonlocal before
            file.write(before + orjson.dumps(document.json()))
            before = b",\n"

        yield write
        file.write(b'\n],"totals":' + orjson.dumps(totals()) + b"}\n")
