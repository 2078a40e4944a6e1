"""``mrag extract``: units to markers."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrag_cli.cli import model_options, options
from mrag_cli.cli.console import Console
from mrag_cli.cli.streams import sink, stream, write_stream
from mrag_cli.ground.errors import UsageError

if TYPE_CHECKING:
    from mrag_cli.parts.llm.client import Client
    from mrag_cli.parts.llm.replies import Record
    from mrag_cli.parts.llm.summary import Summary


class Variant(StrEnum):
    """The orders of the shipped prompt's sections."""

    A = "a"
    B = "b"
    C = "c"


class Schema(StrEnum):
    """When a JSON schema is sent along."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


def extract(
    stream_path: options.Stream = None,
    output: options.Output = None,
    model: model_options.Model = None,
    api_base: model_options.ApiBase = None,
    force: Annotated[
        bool, typer.Option("--force", help="Extract again where a document already holds markers.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print what a run would ask and cost, and what the cache holds; no call is made.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the dry run as JSON.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write calls, tokens, cost and failures here as JSON.",
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        int, typer.Option("--keys", min=1, max=10, help="Keys a marker; each finds the same value.")
    ] = 1,
    language: Annotated[
        str | None,
        typer.Option(
            "--language", help="Language to write in; the document's own by default.", show_default=False
        ),
    ] = None,
    examples: Annotated[
        Path | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            help="Few-shot examples: markers (key, value, pointers) as JSON or JSONL.",
            show_default=False,
        ),
    ] = None,
    variant: Annotated[
        Variant, typer.Option("--variant", help="Order of the prompt's sections.", case_sensitive=False)
    ] = Variant.A,
    prompt: Annotated[
        Path | None,
        typer.Option(
            "--prompt",
            metavar="FILE",
            help="Your own prompt; its placeholders are below.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Schema,
        typer.Option(
            "--schema", help="Send a JSON schema: where litellm says the model takes it, always, or never."
        ),
    ] = Schema.AUTO,
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold", min=0.0, max=1.0, help="Coverage below which missing units are asked for again."
        ),
    ] = 0.95,
    retries: Annotated[
        int, typer.Option("--retries", min=0, help="Times missing units are asked for again, one call each.")
    ] = 3,
    prefix_tokens: Annotated[
        int,
        typer.Option(
            "--prefix-tokens", min=0, help="Largest document that is shown whole with every request."
        ),
    ] = 12_000,
    context_tokens: Annotated[
        int | None,
        typer.Option(
            "--context-tokens",
            min=256,
            help="The model's context; by default from litellm's data. Ollama wants --param num_ctx=N too.",
            show_default=False,
        ),
    ] = None,
    output_tokens: Annotated[
        int | None,
        typer.Option(
            "--output-tokens",
            min=128,
            help="Longest reply; by default from litellm's data.",
            show_default=False,
        ),
    ] = None,
    concurrency: model_options.Concurrency = 8,
    timeout: model_options.Timeout = 300.0,
    max_attempts: model_options.MaxAttempts = 6,
    max_cost: model_options.MaxCost = None,
    max_calls: model_options.MaxCalls = None,
    param: model_options.Params = None,
    cache: model_options.CacheFile = None,
    no_cache: model_options.NoCache = False,
    quiet: options.Quiet = False,
) -> None:
    """Write markers for each document's units: by a language model, or without --model by rules, offline.

    Every reply is kept in a cache before it is used: after a crash, Ctrl-C or a limit, the same command goes
    on where it was and pays for nothing twice. Providers' keys are read from the environment.

    \b
    Examples:
      mrag tag docs | mrag extract | mrag validate | mrag index -o kb
      mrag extract units.jsonl --model openai/gpt-4o-mini --dry-run
      mrag extract units.jsonl --model openai/gpt-4o-mini --max-cost 5 -o markers.jsonl
      mrag extract units.jsonl --model openai/NAME --api-base http://localhost:8080/v1

    \b
    Placeholders of --prompt (what stands before {{document}} is the system message):
      {{keys}}      the wish for further keys, empty when one is enough
      {{language}}  a sentence that names the language to write in
      {{examples}}  the few-shot examples, empty without --examples
      {{document}}  the document, or its title and outline when it is long; required
      {{window}}    units that {{document}} does not show; required, after {{document}}
      {{units}}     the numbers of the units to write markers for; required, after {{document}}
      {{count}}     how many markers to expect; after {{document}}
    """
    from mrag_cli.stages import extract as stage

    console = Console(quiet=quiet)
    if model is None:
        wanting = {
            "--dry-run": dry_run,
            "--api-base": api_base,
            "--report": report,
            "--examples": examples,
            "--prompt": prompt,
            "--max-cost": max_cost is not None,
            "--max-calls": max_calls is not None,
            "--keys": keys > 1,
        }
        for option, given in wanting.items():
            if given:
                raise UsageError(f"{option} needs --model; without a model, rules extract")
        _by_rules(stream_path, output, console, force=force)
        return

    from mrag_cli.parts.llm.client import ClientSettings
    from mrag_cli.parts.llm.prompt import VARIANTS, ExtractionPrompt, from_file, shipped
    from mrag_cli.parts.llm.summary import Summary

    shots = _examples(examples)
    settings = stage.ExtractSettings(
        prompt=ExtractionPrompt(
            from_file(prompt) if prompt else shipped(VARIANTS[variant.value]),
            keys=keys,
            language=language,
            examples=shots,
        ),
        examples=shots,
        prefix_tokens=prefix_tokens,
        context_tokens=context_tokens,
        output_tokens=output_tokens,
        threshold=threshold,
        retries=retries,
        force=force,
    )
    called = ClientSettings(
        model=model,
        api_base=api_base,
        params=model_options.parameters(param),
        concurrency=concurrency,
        timeout=timeout,
        max_attempts=max_attempts,
        schema=schema.value,
    )
    summary = Summary()
    with (
        model_options.client(
            called, console, cache=cache, no_cache=no_cache, max_cost=max_cost, max_calls=max_calls
        ) as client,
        stream(stream_path, console) as parts,
    ):
        if dry_run:
            stage.estimate(parts, client, settings, summary)
            _print_estimate(summary, client, output, json=json)
            return
        with _reported(summary, client, console, report), sink(output) as file:
            marked = stage.extract_by_model(parts, client, settings, console, summary)
            write_stream(console.counted(marked, "extract"), file)
    console.finish()


def _by_rules(stream_path: Path | None, output: Path | None, console: Console, *, force: bool) -> None:
    from mrag_cli.parts.extractive import markers
    from mrag_cli.stages.extract import extract_by_rules

    with stream(stream_path, console) as parts, sink(output) as file:
        marked = extract_by_rules(parts, markers, console, force=force)
        write_stream(console.counted(marked, "extract"), file)
    console.finish()


def _examples(path: Path | None) -> "tuple[Record, ...]":
    if path is None:
        return ()
    from mrag_cli.parts.llm.replies import read_examples

    try:
        found = read_examples(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--examples {path} cannot be read: {error}") from None
    if not found:
        raise UsageError(
            f"--examples {path}: no marker in it; JSON objects with key, value, pointers are expected"
        )
    return found


@contextmanager
def _reported(summary: "Summary", client: "Client", console: Console, path: Path | None) -> Iterator[None]:
    """Say and write what was done, also when the run is stopped by a limit, an error or an interrupt."""
    import orjson

    from mrag_cli.ground.files import replaced_on_success
    from mrag_cli.parts.llm.summary import report as report_of
    from mrag_cli.parts.llm.summary import told

    try:
        yield
    finally:
        console.notice(told(summary, client))
        if path is not None:
            found = {
                **report_of(summary, client),
                "failures": [{"doc": doc, "reason": reason} for doc, reason in console.failures],
            }
            with replaced_on_success(path) as file:
                file.write(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _print_estimate(summary: "Summary", client: "Client", output: Path | None, *, json: bool) -> None:
    import orjson

    from mrag_cli.parts.llm.ledger import dollars
    from mrag_cli.parts.llm.summary import report as report_of

    found = report_of(summary, client)
    estimate = found["estimate"]
    rows = {
        "documents": found["documents"],
        "already with markers": found["skipped"],
        "windows": found["windows"],
        "cached already": found["cached_windows"],
        "calls": estimate["calls"],
        "prompt tokens": estimate["prompt_tokens"],
        "output tokens": estimate["output_tokens"],
        "cost": dollars(estimate["cost"]),
    }
    wanted = ("model", "documents", "skipped", "windows", "cached_windows", "estimate")
    with sink(output) as file:
        if json:
            file.write(orjson.dumps({name: found[name] for name in wanted}) + b"\n")
        else:
            file.write("".join(f"{name:<22}{value:>16}\n" for name, value in rows.items()).encode())
