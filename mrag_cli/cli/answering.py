"""The answering half of ``mrag query``: ask the model, show or write its answer with citations."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mrag_cli.cli import model_options
from mrag_cli.cli.console import Console, escaped

if TYPE_CHECKING:
    from mrag_cli.parts.llm.client import Client, ClientSettings
    from mrag_cli.stages.answer import Answer
    from mrag_cli.stages.query import QueryResult


class Answering:
    """Everything ``--answer`` needs besides the index.

    Args:
        settings: how the model is called.
        cache: the file of replies; None for the platform's cache folder.
        no_cache: use no cache.
        max_cost: most US dollars.
        max_calls: most calls.
    """

    def __init__(
        self,
        settings: "ClientSettings",
        *,
        cache: Path | None,
        no_cache: bool,
        max_cost: float | None,
        max_calls: int | None,
    ) -> None:
        self._settings = settings
        self._limits: dict[str, Any] = {
            "cache": cache,
            "no_cache": no_cache,
            "max_cost": max_cost,
            "max_calls": max_calls,
        }

    def one(self, result: "QueryResult", console: Console, *, as_json: bool, explain: bool) -> None:
        """Answer one question: streamed to a terminal or a pipe with the sources after it, or as JSON.

        Raises:
            ModelError, LimitReached: see `mrag_cli.ground.errors`.
        """
        from mrag_cli.ground.errors import ModelError

        shown = None if as_json else _Shown()
        (answered,) = self._answers([result], console, shown)
        if isinstance(answered, str):
            raise ModelError(f"{self._settings.model}: {answered}; a rerun resumes")
        if as_json:
            _write_json(_record(result, answered, explain=explain))
            return
        typer.echo("" if shown and shown.begun else answered.text)
        for line in _sources(result, answered):
            typer.echo(escaped(line))
        for notice in _doubts(answered):
            console.notice(notice)

    def all(
        self, results: Iterable[tuple[dict[str, Any], "QueryResult"]], console: Console, *, explain: bool
    ) -> None:
        """Answer many questions, some at a time, and write one JSON line each, in order.

        A question whose call failed gets ``"answer": null`` and ``error``, and is a failure of the run.

        Raises:
            ModelError, LimitReached: see `mrag_cli.ground.errors`; what was answered is written.
        """
        asked: list[tuple[dict[str, Any], QueryResult]] = []

        def noted() -> "Iterator[QueryResult]":
            for extra, result in results:
                asked.append((extra, result))
                yield result

        for answered in self._answers(noted(), console, None):
            extra, result = asked.pop(0)
            if isinstance(answered, str):
                console.failed(result.question, answered)
            _write_json({**extra, **_record(result, answered, explain=explain)})

    def _answers(
        self, results: "Iterable[QueryResult]", console: Console, on_text: Callable[[str], None] | None
    ) -> "Iterator[Answer | str]":
        """Yield each question's answer, or why its call failed."""
        from mrag_cli.parts.llm.ahead import in_order
        from mrag_cli.parts.llm.failures import CallFailed
        from mrag_cli.stages.answer import answer

        with model_options.client(self._settings, console, **self._limits) as client:

            async def work(_number: int, result: "QueryResult") -> "Answer | str":
                try:
                    return await answer(client, result.question, result.packed, on_text)
                except CallFailed as failed:
                    return str(failed)

            try:
                yield from in_order(results, work, self._settings.concurrency, client.close)
            finally:
                console.notice(_told(client))


class _Shown:
    """Writes pieces of an answer as they arrive, and remembers that there was one."""

    def __init__(self) -> None:
        self.begun = False

    def __call__(self, piece: str) -> None:
        self.begun = True
        sys.stdout.write(escaped(piece))
        sys.stdout.flush()


def _record(result: "QueryResult", answered: "Answer | str", *, explain: bool) -> dict[str, Any]:
    from mrag_cli.stages.answer import answer_json
    from mrag_cli.stages.query import result_json

    given = (
        {"answer": None, "error": answered}
        if isinstance(answered, str)
        else answer_json(answered, result.packed)
    )
    return {**given, **result_json(result, explain=explain)}


def _write_json(record: dict[str, Any]) -> None:
    import orjson

    sys.stdout.buffer.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def _sources(result: "QueryResult", answered: "Answer") -> Iterator[str]:
    if not answered.citations:
        return
    markers = {hit.rank: hit.marker for hit in result.hits}
    yield ""
    yield "Sources:"
    for number in sorted(answered.citations):
        evidence = result.packed.evidence[number - 1]
        units = ", ".join(map(str, markers[evidence.rank].pointers))
        yield f"[{number}] {evidence.doc}, unit {units}"


def _doubts(answered: "Answer") -> Iterator[str]:
    if not answered.known:
        return
    if answered.wrong_citations:
        numbers = ", ".join(map(str, answered.wrong_citations))
        yield f"the answer cites passages that are not there: {numbers}"
    if answered.uncited:
        number = len(answered.uncited)
        sentences = "1 sentence" if number == 1 else f"{number} sentences"
        yield f"{sentences} of the answer cite nothing, beginning with: {answered.uncited[0]}"
    if answered.truncated:
        yield "the answer was cut off by the model's output limit"


def _told(client: "Client") -> str:
    from mrag_cli.parts.llm.ledger import dollars

    found = client.ledger.report()
    return (
        f"{found['calls']} calls, {found['cached_replies']} replies from the cache, "
        f"{found['prompt_tokens']} prompt and {found['completion_tokens']} completion tokens, "
        f"cost {dollars(found['cost'])}"
    )
