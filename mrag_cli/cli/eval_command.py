"""``mrag eval``: which units, retriever, budget and order work on one's own documents."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrag_cli.cli import model_options
from mrag_cli.cli.console import Console
from mrag_cli.cli.options import Embedder, Output, Quiet
from mrag_cli.ground.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mrag_cli.cli.eval_models import Model
    from mrag_cli.parts.evaluation.cells import Cell
    from mrag_cli.parts.evaluation.datasets import Dataset
    from mrag_cli.parts.evaluation.systems import Plan, System
    from mrag_cli.parts.evaluation.vectors import KeptVectors
    from mrag_cli.stages.eval import EvalSettings

_RETRIEVERS = ("bm25", "dense", "hybrid")
_ORDERS = ("similarity", "position")


def evaluate(
    datasets: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATASET...",
            help="JSON lines with input, answers, context (or context_file), evidence.",
            show_default=False,
        ),
    ],
    systems: Annotated[
        str,
        typer.Option(
            help="What is compared, the reference first: mrag, fixed, overlap, semantic, pic, dos, naive, "
            "cosine, chop, lightrag; +paper or +refined sets how it is asked, mrag+b the prompt."
        ),
    ] = "mrag,fixed,overlap,semantic",
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="A ready index or a marker stream to compare too; may be repeated.",
            show_default=False,
        ),
    ] = None,
    retrievers: Annotated[
        str | None,
        typer.Option(
            help="bm25, dense, hybrid; default: bm25, and all three with --embedder.", show_default=False
        ),
    ] = None,
    budgets: Annotated[str, typer.Option(help="Tokens a context may have.")] = "128,384,640",
    orders: Annotated[str, typer.Option(help="Of the contexts: similarity, position.")] = "similarity",
    corpus: Annotated[
        bool, typer.Option("--corpus", help="One index over all documents of a data set.")
    ] = False,
    joined: Annotated[
        bool,
        typer.Option("--joined", help="Join all documents of a data set into one first (CHOP's setting)."),
    ] = False,
    contexts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder of the documents that rows name by context_file, doc or manual.",
            show_default=False,
        ),
    ] = None,
    cutoffs: Annotated[str, typer.Option(help="The k's of Hit, MRR and NDCG, up to 10.")] = "1,5,10",
    distractors: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES",
            help="Also measure with so many documents in each index, such as 1,5,10,25,50,100,all.",
            show_default=False,
        ),
    ] = None,
    embedder: Embedder = None,
    model: model_options.Model = None,
    api_base: model_options.ApiBase = None,
    repeat: Annotated[int, typer.Option(min=1, help="Times each answer is generated.")] = 1,
    extract_model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A model that writes the markers of mrag, PIC's summaries and LightRAG's graph.",
            show_default=False,
        ),
    ] = None,
    extract_api_base: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of its server; default: --api-base.", show_default=False),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where finished parts are kept, so that a run goes on; default: beside the report.",
            show_default=False,
        ),
    ] = None,
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, not as tables.")] = False,
    each_question: Annotated[
        bool, typer.Option("--each-question", help="Put every question's own scores into the report.")
    ] = False,
    plots: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Draw the figures here, as PNG and SVG (extra `plots`).", show_default=False
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
    quiet: Quiet = False,
) -> None:
    """Measure retrieval, and answers with --model, on one's own documents against the baselines.

    Tables go to standard output (Markdown in a pipe), the whole report to -o FILE. Baselines are asked by the
    paper's plan, mrag, CHOP, marker streams and ready indexes as `mrag query` asks.

    \b
    Examples:
      mrag eval questions.jsonl -o report.json
      mrag eval questions.jsonl --systems mrag,fixed --corpus --orders similarity,position
      mrag eval questions.jsonl --system llm=markers.jsonl --system kb=kb --budgets 128,256,384,512,640
      mrag eval questions.jsonl --systems mrag,fixed --distractors 1,5,10,25,50,100,all
      mrag eval questions.jsonl --systems mrag,mrag+b,mrag+c --extract-model openai/NAME --model openai/NAME
    """
    from mrag_cli.cli.eval_choice import chosen
    from mrag_cli.cli.eval_models import Limits, Model, Once
    from mrag_cli.parts.llm.client import ClientSettings

    console = Console(quiet=quiet)
    spec = embedder or os.environ.get("MRAG_EMBEDDER") or None
    settings = _settings(
        _plans(retrievers, budgets, orders, spec),
        corpus=corpus,
        joined=joined,
        cutoffs=_numbers("--cutoffs", cutoffs, most=10),
        sizes=_sizes(distractors),
        repeat=repeat if model else 1,
        model=repr((model, api_base, sorted(param or []))) if model else "",
        code=_code_digest(),
    )
    _check_folder(output)
    limits, once = Limits(cache, no_cache, max_cost, max_calls), Once(console)

    def asked(name: str | None, address: str | None) -> Model | None:
        if name is None:
            return None
        parameters = model_options.parameters(param)
        called = ClientSettings(name, address, 0.0, parameters, concurrency, timeout, max_attempts)
        return Model(called, limits, once)

    found = _datasets(datasets, contexts, console)
    folder = work or (output.with_name(f"{output.name}.work") if output and str(output) != "-" else None)
    with _vectors(spec, folder) as vectors:
        extracting = asked(extract_model, extract_api_base or api_base)
        compared = chosen(systems, system or [], extracting, vectors, console)
        cells = _measured(found, compared, settings, asked(model, api_base), folder, console)
        told = {"embedder": spec, "model": model, "extract_model": extract_model}
        report = _report(found, compared, cells, settings, told, each_question=each_question)
        if plots is not None:
            from mrag_cli.parts.evaluation.geometry import geometry
            from mrag_cli.parts.term_vectors import term_vectors

            report["geometry"] = geometry(found[0], compared, vectors.embed if vectors else term_vectors)
    _write(report, output, as_json=as_json)
    if plots is not None:
        from mrag_cli.parts.evaluation.plots import draw

        draw(report, plots)
    console.finish()


def _plans(retrievers: str | None, budgets: str, orders: str, spec: str | None) -> "tuple[Plan, ...]":
    from mrag_cli.parts.evaluation.systems import Plan

    ranked = _words("--retrievers", retrievers or ("bm25,dense,hybrid" if spec else "bm25"), _RETRIEVERS)
    if spec is None and set(ranked) != {"bm25"}:
        raise UsageError("--retrievers dense and hybrid need --embedder (or MRAG_EMBEDDER)")
    return tuple(
        Plan(retriever, budget, order)
        for retriever in ranked
        for budget in _numbers("--budgets", budgets)
        for order in _words("--orders", orders, _ORDERS)
    )


def _settings(plans: "tuple[Plan, ...]", **others: Any) -> "EvalSettings":
    from mrag_cli.stages.eval import EvalSettings

    return EvalSettings(plans, **others)


def _datasets(paths: list[Path], contexts: Path | None, console: Console) -> "list[Dataset]":
    """Read the data sets, and say what no measure applies to.

    Raises:
        UsageError: one cannot be read or has no question that can be used, or two have the same name.
    """
    from mrag_cli.parts.evaluation.datasets import read_dataset, read_library, unmeasured

    library = read_library(contexts, console) if contexts else None
    found = [read_dataset(path, console, library) for path in paths]
    names = [dataset.name for dataset in found]
    if len(set(names)) < len(names):
        raise UsageError(f"two data sets have the same name: {', '.join(names)}; rename a file")
    for dataset in found:
        for notice in unmeasured(dataset):
            console.notice(notice)
    return found


def _measured(
    datasets: "list[Dataset]",
    systems: "list[System]",
    settings: "EvalSettings",
    answering: "Model | None",
    folder: Path | None,
    console: Console,
) -> "list[Cell]":
    from functools import partial

    from mrag_cli.cli.eval_models import answers
    from mrag_cli.parts.evaluation.cells import WorkFolder
    from mrag_cli.stages.eval import Machinery, questions_to_ask
    from mrag_cli.stages.eval import evaluate as run

    for one in systems:
        if not one.plans(settings.plans):
            raise UsageError(f"{one.name} has only --retrievers {','.join(one.retrievers or ())}")
    with console.progress("measure", questions_to_ask(datasets, systems, settings)) as advance:
        generate = partial(answers, answering) if answering else None
        machinery = Machinery(WorkFolder(folder) if folder else None, generate, advance, console)
        return list(run(datasets, systems, settings, machinery))


def _report(
    datasets: "list[Dataset]",
    systems: "list[System]",
    cells: "list[Cell]",
    settings: "EvalSettings",
    told: dict[str, Any],
    *,
    each_question: bool,
) -> dict[str, Any]:
    from mrag_cli.parts.evaluation.report import report

    shown = {
        "corpus": settings.corpus,
        "joined": settings.joined,
        "cutoffs": settings.cutoffs,
        "repeat": settings.repeat,
        **told,
    }
    return report(datasets, [one.name for one in systems], cells, shown, each_question=each_question)


def _words(option: str, given: str, known: tuple[str, ...]) -> list[str]:
    found = list(dict.fromkeys(word.strip() for word in given.split(",") if word.strip()))
    for word in found:
        if word not in known:
            raise UsageError(f"{option} {given}: {word} is none of {', '.join(known)}")
    if not found:
        raise UsageError(f"{option} is empty; there are {', '.join(known)}")
    return found


def _numbers(option: str, given: str, most: int = 1_000_000) -> tuple[int, ...]:
    found = []
    for word in given.split(","):
        if not word.strip().isdecimal() or not 1 <= int(word) <= most:
            raise UsageError(f"{option} {given}: whole numbers from 1 to {most} are expected")
        found.append(int(word))
    return tuple(dict.fromkeys(found))


def _sizes(given: str | None) -> tuple[int | None, ...]:
    if given is None:
        return ()
    words = [word.strip() for word in given.split(",")]
    numbers = _numbers("--distractors", ",".join(word for word in words if word != "all") or "1")
    found: list[int | None] = list(dict.fromkeys((1, *sorted(numbers))))
    return (*found, None) if "all" in words else tuple(found)


def _code_digest() -> str:
    """Return a digest of the package's own code: a change of it makes kept cells void."""
    import hashlib

    import mrag_cli

    found = hashlib.sha256()
    for path in sorted(Path(mrag_cli.__file__).parent.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _check_folder(output: Path | None) -> None:
    """Refuse a place for the report that cannot be written to before anything is measured."""
    if output is None or str(output) == "-":
        return
    if output.is_dir() or not output.resolve().parent.is_dir():
        raise UsageError(f"-o {output}: a file in an existing folder is expected")


@contextmanager
def _vectors(spec: str | None, folder: Path | None) -> "Iterator[KeptVectors | None]":
    if spec is None:
        yield None
        return
    from mrag_cli.parts.embedders import embedder
    from mrag_cli.parts.evaluation.vectors import KeptVectors

    kept = KeptVectors(embedder(spec), folder / "vectors.sqlite" if folder else None)
    try:
        yield kept
    finally:
        kept.close()


def _write(report: dict[str, Any], output: Path | None, *, as_json: bool) -> None:
    import orjson

    from mrag_cli.cli.eval_view import markdown, render
    from mrag_cli.ground.files import replaced_on_success

    written = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if output is not None and str(output) != "-":
        with replaced_on_success(output) as file:
            file.write(written)
    if as_json or str(output) == "-":
        sys.stdout.buffer.write(written)
    elif sys.stdout.isatty():
        from rich.console import Console as RichConsole

        render(report, RichConsole(highlight=False, emoji=False, markup=False))
    else:
        sys.stdout.buffer.write(markdown(report).encode())
