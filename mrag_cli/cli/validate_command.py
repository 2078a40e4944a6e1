"""``mrag validate``: a stream in, the same stream repaired and flagged out, and what was found on stderr."""

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Output, Quiet, Stream
from mrag_cli.cli.streams import sink, stream, write_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mrag_cli.parts.validation_report import DocumentReport, Summary

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
    quiet: Quiet = False,
) -> None:
    """Repair markers, cover every unit, flag doubtful values and keys.

    Pointers out of range and blank values are dropped, units that no marker covers get a fallback marker of
    their own words, values are checked against the document, keys against their values. A validated stream
    is left as it is.

    \b
    mrag tag docs | mrag extract | mrag validate --report report.json | mrag index -o kb
    mrag validate markers.jsonl --ungrounded flag -o checked.jsonl
    """
    from mrag_cli.parts.validation_report import Summary
    from mrag_cli.stages.validate import ValidateSettings
    from mrag_cli.stages.validate import validate as run

    console = Console(quiet=quiet)
    settings = ValidateSettings(threshold, max_width, ungrounded, strict)
    summary = Summary()
    with ExitStack() as opened:
        parts = opened.enter_context(stream(path, console, check_pointers=False))
        file = opened.enter_context(sink(output))
        on_document = opened.enter_context(_report(report, summary))
        checked = run(parts, settings, console, summary, on_document)
        write_stream(console.counted(checked, "validating"), file)
    if not quiet:
        from mrag_cli.cli.validate_view import show

        show(summary, console)
    console.finish()


@contextmanager
def _report(path: Path | None, summary: "Summary") -> "Iterator[Callable[[DocumentReport], None]]":
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
        file.write(b'\n],"totals":' + orjson.dumps(summary.json()) + b"}\n")
