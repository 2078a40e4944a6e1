"""``mrag query``."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrag_cli.cli import model_options
from mrag_cli.cli.answering import Answering
from mrag_cli.cli.console import Console, as_text, escaped
from mrag_cli.cli.options import Embedder, IndexDirectory, Quiet
from mrag_cli.cli.streams import opened
from mrag_cli.ground.errors import UsageError

if TYPE_CHECKING:
    from mrag_cli.parts.llm.client import ClientSettings
    from mrag_cli.parts.refine import Steps
    from mrag_cli.parts.store.snapshot import Snapshot
    from mrag_cli.stages.query import Query, QueryResult

_TOGETHER = 64
"""Questions of a file that are embedded and searched for at a time."""


class Retriever(StrEnum):
    """How keys are ranked."""

    bm25 = "bm25"
    dense = "dense"
    hybrid = "hybrid"


class Fusion(StrEnum):
    """How the two paths of ``hybrid`` are joined."""

    sum = "sum"
    rrf = "rrf"


class Refinement(StrEnum):
    """The refinements of a ranking."""

    context = "context"
    types = "types"
    titles = "titles"
    bridge = "bridge"
    coverage = "coverage"


class Order(StrEnum):
    """How the context is laid out."""

    similarity = "similarity"
    position = "position"


def query(
    directory: IndexDirectory,
    question: Annotated[
        str | None, typer.Argument(help="The question; read from a pipe when left out.", show_default=False)
    ] = None,
    budget: Annotated[int, typer.Option(min=0, help="Tokens that the context may have.")] = 640,
    retriever: Annotated[
        Retriever | None, typer.Option(help="Default: hybrid where the index has vectors, else bm25.")
    ] = None,
    fusion: Annotated[
        Fusion, typer.Option(help="Of hybrid: normalised sum, or reciprocal ranks.")
    ] = Fusion.sum,
    order: Annotated[
        Order, typer.Option(help="Of the context: as ranked, or as in the documents.")
    ] = Order.similarity,
    strict_prefix: Annotated[
        bool,
        typer.Option("--strict-prefix", help="Stop at the first value that does not fit (the paper's rule)."),
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's plan exactly: no refinements, --strict-prefix.")
    ] = False,
    without: Annotated[
        list[Refinement] | None,
        typer.Option(
            help="Leave a refinement out: the unit around a value, answer types, titles in the question, "
            "the bridge to a page that a hit names, coverage of the question's words; may be repeated.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        bool, typer.Option("--source", help="Pack the units' own words, not the values.")
    ] = False,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", min=1, help="Hits that are considered and listed.", show_default=False),
    ] = None,
    doc: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Only documents whose id matches; may be repeated."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only documents with this in their meta; may be repeated."),
    ] = None,
    embedder: Embedder = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compare with every vector; --batch else searches hnswlib's graphs."),
    ] = False,
    ef: Annotated[
        int | None,
        typer.Option(min=1, help="Search width of hnswlib's graphs; default 200 with --batch, else exact."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="For searching hnswlib's graphs with --batch.")] = 1,
    batch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='JSON lines {"question": …} in, one JSON line each out, in order; `-` is standard input.',
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with context and hits.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each hit ranked, and why it was packed or not.")
    ] = False,
    answer: Annotated[
        bool,
        typer.Option("--answer", help="Have a model answer from the context, with citations; needs --model."),
    ] = False,
    model: model_options.Model = None,
    api_base: model_options.ApiBase = None,
    temperature: Annotated[
        float, typer.Option(min=0, max=2, help="Of the answer; 0 for the likeliest.")
    ] = 0.0,
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
    """Rank the keys for a question and pack their values into a context of at most --budget tokens.

    On a terminal the values are shown with where they came from; in a pipe the bare context is written.

    \b
    Example:
      mrag query kb "How long does the battery last?" --budget 384
      mrag query kb "..." --json | jq .hits[0]
      mrag query kb "..." --answer --model openai/gpt-4o-mini
    """
    from mrag_cli.parts.filters import Filters
    from mrag_cli.parts.store.graph import DEFAULT_EF
    from mrag_cli.parts.store.snapshot import Snapshot
    from mrag_cli.stages.query import Query, QuerySettings

    console = Console(quiet=quiet)
    if exact and ef:
        raise UsageError("--exact and --ef exclude each other")
    settings = QuerySettings(
        budget=budget,
        retriever=retriever.value if retriever else None,
        fusion=fusion.value,
        order=order.value,
        strict_prefix=strict_prefix or paper,
        source=source,
        considered=top_k,
        filters=Filters.parse(doc or (), where or ()),
        ef=None if exact else ef or (DEFAULT_EF if batch is not None else None),
        threads=threads,
        steps=None if paper else _steps(without or ()),
    )
    answering = None
    if answer:
        if model is None:
            raise UsageError("--answer needs --model (or MRAG_MODEL)")
        called = _client_settings(model, api_base, temperature, param, concurrency, timeout, max_attempts)
        answering = Answering(called, cache=cache, no_cache=no_cache, max_cost=max_cost, max_calls=max_calls)
    snapshot = Snapshot.open(directory)
    if embedder is not None and snapshot.manifest.embedder is None:
        raise UsageError(f"--embedder: {directory} has no vectors; `mrag index --embedder` makes some")
    asked = Query(snapshot, settings, _embedding(snapshot, embedder))
    if batch is not None:
        if question is not None:
            raise UsageError("a question and --batch exclude each other")
        _answer_all(asked, batch, answering, console, explain=explain)
        console.finish()
        return
    result = asked.answer(as_text(question) if question is not None else _piped_question())
    if not result.hits:
        console.notice("nothing found")
    if answering is not None:
        answering.one(result, console, as_json=as_json, explain=explain)
        return
    _show(result, as_json=as_json, explain=explain)


def _embedding(snapshot: "Snapshot", wanted: str | None) -> Callable[[Sequence[str]], Any]:
    def embed(questions: Sequence[str]) -> Any:
        from mrag_cli.parts.embedders import checked, embedder

        assert snapshot.manifest.embedder is not None  # noqa: S101 - asked for only where there are vectors
        vectors = embedder(checked(wanted, snapshot.manifest.embedder.name)).embed(questions)
        if vectors.shape[1] != snapshot.manifest.embedder.dimension:
            from mrag_cli.ground.errors import IndexUnsupported

            raise IndexUnsupported(
                f"the embedder returned {vectors.shape[1]} dimensions, the index has "
                f"{snapshot.manifest.embedder.dimension}: it is another model"
            )
        return vectors

    return embed


def _piped_question() -> str:
    if sys.stdin.isatty():
        raise UsageError("no question; name one, pipe one in, or use --batch FILE")
    return as_text(sys.stdin.buffer.read()).strip()


def _steps(without: Sequence[Refinement]) -> "Steps":
    from mrag_cli.parts.refine import Steps

    return Steps(**{name.value: name not in without for name in Refinement})


def _client_settings(
    model: str,
    api_base: str | None,
    temperature: float,
    param: list[str] | None,
    concurrency: int,
    timeout: float,
    max_attempts: int,
) -> "ClientSettings":
    from mrag_cli.parts.llm.client import ClientSettings

    return ClientSettings(
        model,
        api_base,
        temperature,
        model_options.parameters(param),
        concurrency,
        timeout,
        max_attempts,
    )


def _answer_all(
    asked: "Query", batch: Path, answering: Answering | None, console: Console, *, explain: bool
) -> None:
    import orjson

    from mrag_cli.stages.query import result_json

    with opened(batch) as (file, name):
        results = _results(asked, _questions(file, name), 1 if _is_fed(file) else _TOGETHER)
        if answering is not None:
            answering.all(results, console, explain=explain)
            return
        for extra, result in results:
            record = {**extra, **result_json(result, explain=explain)}
            sys.stdout.buffer.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
            sys.stdout.buffer.flush()


def _is_fed(file: Any) -> bool:
    """Tell whether the questions come one by one, so that each must be answered before the next comes."""
    return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _results(
    asked: "Query", questions: Iterator[tuple[dict[str, Any], str]], together: int
) -> Iterator[tuple[dict[str, Any], "QueryResult"]]:
    while block := list(islice(questions, together)):
        answers = asked.answers([question for _, question in block])
        yield from ((extra, answer) for (extra, _), answer in zip(block, answers, strict=True))


def _questions(file: Any, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    from mrag_cli.records.lines import Fields, read_json_lines

    for number, _, value in read_json_lines(file, name):
        fields = Fields(name, number, value)
        question = fields.text("question" if "question" in value or "input" not in value else "input")
        yield {key: value[key] for key in ("id", "_id") if key in value}, question


def _show(result: "QueryResult", *, as_json: bool, explain: bool) -> None:
    if as_json or (explain and not sys.stdout.isatty()):
        import orjson

        from mrag_cli.stages.query import result_json

        record = result_json(result, explain=explain)
        sys.stdout.buffer.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    elif not sys.stdout.isatty():
        if result.packed.context:
            sys.stdout.buffer.write(result.packed.context.encode() + b"\n")
    else:
        _show_on_terminal(result, explain=explain)


def _show_on_terminal(result: "QueryResult", *, explain: bool) -> None:
    from rich.console import Console as RichConsole
    from rich.text import Text

    terminal = RichConsole(highlight=False, emoji=False, markup=False)
    hits = {hit.rank: hit for hit in result.hits}
    for evidence in result.packed.evidence:
        hit = hits[evidence.rank]
        pointers = ", ".join(map(str, hit.marker.pointers))
        place = f"{evidence.doc} · unit {pointers} · {hit.marker.origin} · score {hit.ranked.score:.3f}"
        terminal.print(Text(f"[{evidence.rank}] ", "bold cyan") + Text(escaped(place), "dim"))
        if evidence.header:
            terminal.print(Text(escaped(evidence.header), "bold"))
        terminal.print(Text(escaped(evidence.text)))
        terminal.print()
    if explain:
        for hit in result.hits:
            dense = "" if hit.ranked.dense is None else f", cosine {hit.ranked.dense:.3f}"
            scores = f"score {hit.ranked.score:.3f}, BM25 {hit.ranked.lexical:.3f}{dense}"
            why = "; ".join((hit.reason, *hit.ranked.reasons))
            terminal.print(Text(f"{hit.rank:>3}  ", "cyan") + Text(escaped(f"{scores}: {why}")))
            terminal.print(Text("     " + escaped(hit.marker.key), "dim"))
        terminal.print()
    used = f"{result.packed.tokens} of {result.budget} tokens"
    packed = sum(hit.packed for hit in result.hits)
    terminal.print(
        Text(f"{packed} values, {used}, {result.retriever}, generation {result.generation}", "dim")
    )
