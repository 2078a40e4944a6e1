"""Extraction: units to markers, by a language model or by rules (the paper's III-B, Eq. 8)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts import tokens
from mrag_cli.parts.llm import windows
from mrag_cli.parts.llm.ahead import in_order
from mrag_cli.parts.llm.failures import CallFailed, Failure
from mrag_cli.parts.llm.replies import parse
from mrag_cli.records.models import DocumentGroup, Marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.llm.client import Client
    from mrag_cli.parts.llm.prompt import ExtractionPrompt
    from mrag_cli.parts.llm.replies import Record
    from mrag_cli.parts.llm.request import Reply, Request
    from mrag_cli.parts.llm.summary import Summary
    from mrag_cli.parts.llm.windows import Limits, Piece, Plan
    from mrag_cli.records.models import StreamPart

_DEEPEST_HALVING = 3
_SMALLER_CONTEXTS = 3


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """How a model extracts.

    Attributes:
        prompt: makes the requests.
        examples: the few-shot examples the prompt shows.
        prefix_tokens: largest document that is shown whole with every request.
        context_tokens: the model's context, or None for what litellm's data says.
        output_tokens: the model's output limit, or None for what litellm's data says.
        threshold: coverage (Eq. 9) below which uncovered units are asked for again.
        retries: times that happens at most for a document, one call each.
        force: extract again where a document already holds markers.
    """

    prompt: ExtractionPrompt
    examples: tuple[Record, ...] = ()
    prefix_tokens: int = 12_000
    context_tokens: int | None = None
    output_tokens: int | None = None
    threshold: float = 0.95
    retries: int = 3
    force: bool = False


def extract_by_rules(
    parts: Iterable[StreamPart],
    markers: Callable[[DocumentGroup], tuple[Marker, ...]],
    reporter: Reporter,
    *,
    force: bool = False,
) -> Iterator[StreamPart]:
    """Give each document the markers that rules find in it, offline.

    Args:
        parts: the stream.
        markers: the rules: a document with its units to its markers.
        reporter: told how many documents already held markers.
        force: extract again where a document already holds markers; else it passes through untouched.
    """
    skipped = 0
    for part in parts:
        if not isinstance(part, DocumentGroup):
            yield part
        elif part.markers and not force:
            skipped += 1
            yield part
        else:
            yield replace(part, markers=markers(part), marker_lines=())
    _say_skipped(skipped, reporter)


def extract_by_model(
    parts: Iterable[StreamPart],
    client: Client,
    settings: ExtractSettings,
    reporter: Reporter,
    summary: Summary,
) -> Iterator[StreamPart]:
    """Give each document the markers that a model writes, in input order.

    A document that fails passes through without markers and is reported; what was paid for is kept. At most
    three times as many documents as calls run at once are in memory.

    Args:
        parts: the stream.
        client: asks the model; closed at the end.
        settings: how to extract.
        reporter: told of failed documents and of documents that already held markers.
        summary: filled while documents pass.

    Raises:
        ModelError: no call can succeed.
        LimitReached: a limit is reached; every document before it has been yielded.
        UsageError: the context or output limit leaves no room for units.
    """
    extractor = _Extractor(client, settings, summary)

    async def work(number: int, part: StreamPart) -> tuple[StreamPart, list[Record] | CallFailed | None]:
        if not isinstance(part, DocumentGroup) or not part.units:
            return part, None
        if part.markers and not settings.force:
            summary.skipped += 1
            return part, None
        summary.documents += 1
        try:
            return part, await extractor.extracted(part, number)
        except CallFailed as failed:
            return part, failed

    ahead = 3 * client.settings.concurrency + 1
    for part, outcome in in_order(parts, work, ahead, client.close):
        if outcome is None or not isinstance(part, DocumentGroup):
            yield part
        elif isinstance(outcome, CallFailed):
            summary.failed += 1
            reporter.failed(part.document.doc, str(outcome))
            yield replace(part, markers=(), marker_lines=())
        else:
            # Here and not among the calls, which counting tokens would hold up.
            yield _marked(part, outcome, client.settings.model, summary)
    _say_skipped(summary.skipped, reporter)


def _say_skipped(skipped: int, reporter: Reporter) -> None:
    if skipped:
        documents = "1 document already holds" if skipped == 1 else f"{skipped} documents already hold"
        reporter.notice(f"{documents} markers and passed through; --force extracts again")


def estimate(
    parts: Iterable[StreamPart], client: Client, settings: ExtractSettings, summary: Summary
) -> None:
    """Fill ``summary`` with what extracting a stream would need, making no call."""
    extractor = _Extractor(client, settings, summary)
    for part in parts:
        if not isinstance(part, DocumentGroup) or not part.units:
            continue
        if part.markers and not settings.force:
            summary.skipped += 1
            continue
        summary.documents += 1
        extractor.asking(part, 0).count()


class _Extractor:
    """Extracts one document after another with the same client and settings."""

    def __init__(self, client: Client, settings: ExtractSettings, summary: Summary) -> None:
        self._client = client
        self._settings = settings
        self._summary = summary
        facts = client.facts
        self._limits = windows.Limits(
            prefix=settings.prefix_tokens,
            context=settings.context_tokens or facts.context_tokens,
            output=settings.output_tokens or facts.output_tokens,
            instructions=settings.prompt.instruction_tokens,
            keys=settings.prompt.keys,
            reasons=facts.reasons,
        )

    def asking(self, group: DocumentGroup, order: int) -> _Asking:
        """Plan a document."""
        return _Asking(self._client, self._settings, self._limits, self._summary, group, order)

    async def extracted(self, group: DocumentGroup, order: int) -> list[Record]:
        """Return the markers that the model wrote for a document, as it wrote them.

        Raises:
            CallFailed: a call failed for good, or no reply held a good record.
        """
        asking = self.asking(group, order)
        for _ in range(_SMALLER_CONTEXTS):
            try:
                return await asking.extracted()
            except CallFailed as failed:
                if failed.failure is not Failure.TOO_LONG:
                    raise
            # The model's context is smaller than its data says, or its tokens are.
            limits = replace(
                asking.limits, context=asking.limits.context // 2, prefix=asking.limits.prefix // 2
            )
            try:
                asking = _Asking(
                    self._client, self._settings, limits, self._summary, group, order, counted=True
                )
            except UsageError:
                break
        return await asking.extracted()


class _Asking:
    """The askings for one document."""

    def __init__(
        self,
        client: Client,
        settings: ExtractSettings,
        limits: Limits,
        summary: Summary,
        group: DocumentGroup,
        order: int,
        *,
        counted: bool = False,
    ) -> None:
        self._counted = counted
        self._client = client
        self._settings = settings
        self.limits = limits
        self._summary = summary
        self._group = group
        self._order = order
        self._plan: Plan = windows.plan(group, limits)
        self._source = "\n".join(unit.text for unit in group.units) if settings.examples else ""
        self._bad: list[Reply] = []

    def count(self) -> None:
        """Add all windows to what the summary expects."""
        for window in self._plan.windows:
            self._count(self._settings.prompt.request(self._plan, window, self.limits), window)

    def _count(self, request: Request, window: Sequence[Piece]) -> None:
        summary = self._summary
        summary.windows += 1
        if self._client.holds(request):
            summary.cached_windows += 1
        else:
            summary.planned_calls += 1
            summary.planned_prompt += request.prompt_tokens
            summary.planned_output += self.limits.reply(_size(window))

    async def extracted(self) -> list[Record]:
        """Ask for all windows, then again for what is not covered.

        Raises:
            CallFailed: a call failed for good, or no reply held a good record.
        """
        first, *others = self._plan.windows
        # The first call fills the provider's prompt cache for the others.
        records = await self._records(first)
        records += await self._together(others)
        for attempt in range(1, self._settings.retries + 1):
            missing = _missing(self._group, records)
            if 1 - len(missing) / len(self._group.units) >= self._settings.threshold:
                break
            self._summary.asked_again += 1
            uncovered = [piece for piece in self._plan.pieces if piece.unit in missing]
            again = windows.first_of(uncovered, self._plan.window_tokens)
            records += await self._records(again, attempt=attempt, deepest=0)
        if not records:
            self._client.forget(self._bad)
            raise CallFailed(Failure.REFUSED, "no reply of the model held a usable marker")
        return records

    async def _together(self, several: Sequence[Sequence[Piece]], depth: int = 0) -> list[Record]:
        """Ask for several windows at once; what one of them fails with is raised when all have ended."""
        found = await asyncio.gather(
            *(self._records(window, depth=depth) for window in several), return_exceptions=True
        )
        for outcome in found:
            if isinstance(outcome, BaseException):
                raise outcome
        return [record for records in found if isinstance(records, list) for record in records]

    async def _records(
        self, window: Sequence[Piece], *, attempt: int = 0, depth: int = 0, deepest: int = _DEEPEST_HALVING
    ) -> list[Record]:
        """Ask for one window; what a truncated reply left out is asked for in smaller windows."""
        request = self._settings.prompt.request(
            self._plan, window, self.limits, attempt=attempt, order=self._order
        )
        if attempt == depth == 0 and not self._counted:
            self._count(request, window)
        reply = await self._client.ask(request)
        parsed = parse(
            reply.text,
            truncated=reply.truncated,
            visible=self._plan.visible(window),
            wanted={piece.unit for piece in window},
            keys=self._settings.prompt.keys,
            examples=self._settings.examples,
            source=self._source,
        )
        self._summary.dropped.update(parsed.dropped)
        self._summary.truncated += reply.truncated
        records = list(parsed.records)
        if not records:
            self._summary.bad += 1
            self._bad.append(reply)
        if not reply.truncated or depth >= deepest:
            return records
        covered = {pointer for record in records for pointer in record.pointers}
        rest = [piece for piece in window if piece.unit not in covered]
        if not rest or len(window) == 1:
            return records
        # Half a window at most: what was saved may already be more than half.
        smaller = windows.halves(rest) if 2 * _size(rest) > _size(window) else [tuple(rest)]
        return records + await self._together(smaller, depth + 1)


def _marked(group: DocumentGroup, records: Sequence[Record], model: str, summary: Summary) -> DocumentGroup:
    distinct: dict[tuple[str, str], Record] = {}
    for record in records:
        distinct.setdefault((record.key, record.value), record)
    ordered = sorted(distinct.values(), key=lambda record: record.pointers)
    markers = tuple(
        Marker(
            doc=group.document.doc,
            key=record.key,
            value=record.value,
            pointers=record.pointers,
            origin="llm",
            tokens=tokens.count(record.value),
            aliases=record.aliases,
            model=model,
        )
        for record in ordered
    )
    summary.markers += len(markers)
    summary.units += len(group.units)
    summary.uncovered += len(_missing(group, records))
    return replace(group, markers=markers, marker_lines=())


def _missing(group: DocumentGroup, records: Sequence[Record]) -> set[int]:
    return {unit.unit for unit in group.units} - {
        pointer for record in records for pointer in record.pointers
    }


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)
