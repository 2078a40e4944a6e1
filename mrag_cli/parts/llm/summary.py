"""What a run of extraction was expected to do and did, as JSON and in one sentence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrag_cli.parts.llm.ledger import dollars
from mrag_cli.parts.llm.request import Usage

if TYPE_CHECKING:
    from mrag_cli.parts.llm.client import Client


@dataclass(slots=True)
class Summary:
    """What a run did and was expected to do; mutable, because it grows while documents pass.

    Attributes:
        documents: documents asked for.
        skipped: documents passed through because they already held markers.
        failed: documents that no marker came of.
        windows: windows planned.
        cached_windows: of those, windows whose reply the cache held beforehand.
        planned_calls: calls expected, repeated askings left out.
        planned_prompt: prompt tokens expected of those calls.
        planned_output: reply tokens expected of those calls.
        markers: markers written.
        uncovered: units that no marker points to, in the documents that did not fail.
        units: units of the documents that did not fail.
        truncated: replies that ran into their token limit.
        bad: replies without one good record.
        asked_again: askings for uncovered units.
        dropped: records dropped, by reason.
    """

    documents: int = 0
    skipped: int = 0
    failed: int = 0
    windows: int = 0
    cached_windows: int = 0
    planned_calls: int = 0
    planned_prompt: int = 0
    planned_output: int = 0
    markers: int = 0
    uncovered: int = 0
    units: int = 0
    truncated: int = 0
    bad: int = 0
    asked_again: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


def report(summary: Summary, client: Client) -> dict[str, Any]:
    """Return the run as a JSON object: what was expected, what was done, what it cost (null: unknown)."""
    planned = client.cost(Usage(summary.planned_prompt, summary.planned_output))
    covered = 1 - summary.uncovered / summary.units if summary.units else None
    return {
        "model": client.settings.model,
        "documents": summary.documents,
        "skipped": summary.skipped,
        "failed": summary.failed,
        "windows": summary.windows,
        "cached_windows": summary.cached_windows,
        "estimate": {
            "calls": summary.planned_calls,
            "prompt_tokens": summary.planned_prompt,
            "output_tokens": summary.planned_output,
            "cost": planned if summary.planned_calls else 0.0,
        },
        "actual": client.ledger.report(),
        "markers": summary.markers,
        "coverage": covered,
        "truncated": summary.truncated,
        "bad_replies": summary.bad,
        "asked_again": summary.asked_again,
        "dropped": dict(sorted(summary.dropped.items())),
    }


def told(summary: Summary, client: Client) -> str:
    """Return the run in one sentence for people."""
    counts = client.ledger.counts
    planned = client.cost(Usage(summary.planned_prompt, summary.planned_output))
    actual = None if counts.unpriced else counts.cost
    failed = f", {summary.failed} failed" if summary.failed else ""
    return (
        f"{summary.documents} documents{failed}, {summary.markers} markers; {counts.calls} calls "
        f"({counts.retries} retries), {counts.cached_replies} replies from the cache; "
        f"{counts.prompt_tokens} prompt tokens ({counts.cached_tokens} cached by the provider) and "
        f"{counts.completion_tokens} reply tokens for {dollars(actual)}; "
        f"estimated {summary.planned_calls} calls, {summary.planned_prompt} and {summary.planned_output} "
        f"tokens for {dollars(planned if summary.planned_calls else 0.0)}"
    )
