"""A model's opinion on whether values are supported by their units."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mrag_cli.parts import tokens
from mrag_cli.parts.llm.ahead import in_order
from mrag_cli.parts.llm.failures import CallFailed
from mrag_cli.parts.llm.prompt import shipped
from mrag_cli.parts.llm.request import Message, Request
from mrag_cli.records.models import DocumentGroup, Marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.llm.client import Client
    from mrag_cli.records.models import StreamPart

UNSUPPORTED = "unsupported"
"""Flag: a model found that the marker's units do not support its value."""
PROMPT = "judge.v1"

_JUDGED_ORIGIN = "llm"
_REQUEST_TOKENS = 3000
_REQUEST_STATEMENTS = 20
_VERDICT_TOKENS = 24
_VERDICT = re.compile(
    r"""["']?statement["']?\s*:\s*["']?(\d+)["']?\s*,\s*["']?supported["']?\s*:\s*["']?(true|false)""",
    re.IGNORECASE,
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"statement": {"type": "integer"}, "supported": {"type": "boolean"}},
                "required": ["statement", "supported"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["verdicts"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class Judged:
    """What a run of judging came to; mutable, because it grows while documents pass.

    Attributes:
        statements: values that were shown to the model.
        unsupported: those that it found unsupported.
        unjudged: those that it gave no verdict on.
    """

    statements: int = 0
    unsupported: int = 0
    unjudged: int = 0


def judge(
    parts: Iterable[StreamPart], client: Client, reporter: Reporter, judged: Judged
) -> Iterator[StreamPart]:
    """Set or clear the flag `UNSUPPORTED` of each marker that a language model wrote.

    A marker whose value is its unit's own words is not asked about. Documents are asked about at the same
    time and come out in input order; one whose calls fail keeps its markers without verdicts and is reported.

    Args:
        parts: the stream.
        client: asks the model; closed at the end.
        reporter: told of documents that could not be judged.
        judged: counts the verdicts.

    Raises:
        ModelError: no call can succeed.
        LimitReached: a limit is reached; a rerun with more resumes.
    """

    async def work(number: int, part: StreamPart) -> tuple[StreamPart, str | None]:
        if not isinstance(part, DocumentGroup) or not part.units:
            return part, None
        verdicts: dict[int, bool] = {}
        failure = None
        for batch in _batches(part):
            judged.statements += len(batch)
            try:
                reply = await client.ask(_request(part, batch, number))
            except CallFailed as failed:
                failure = str(failed)
                judged.unjudged += len(batch)
                continue
            found = {int(match[1]): match[2].lower() == "true" for match in _VERDICT.finditer(reply.text)}
            judged.unjudged += sum(place not in found for place in range(1, len(batch) + 1))
            verdicts |= {batch[place - 1]: said for place, said in found.items() if 1 <= place <= len(batch)}
        judged.unsupported += sum(not supported for supported in verdicts.values())
        markers = (_flagged(marker, verdicts.get(place)) for place, marker in enumerate(part.markers))
        return replace(part, markers=tuple(markers)), failure

    ahead = 3 * client.settings.concurrency + 1
    for part, failure in in_order(parts, work, ahead, client.close):
        if failure is not None and isinstance(part, DocumentGroup):
            reporter.failed(part.document.doc, f"not judged: {failure}")
        yield part


def _flagged(marker: Marker, supported: bool | None) -> Marker:
    if supported is None or supported == (UNSUPPORTED not in marker.flags):
        return marker
    flags = {*marker.flags} - {UNSUPPORTED} if supported else {*marker.flags, UNSUPPORTED}
    return replace(marker, flags=tuple(sorted(flags)))


def _batches(group: DocumentGroup) -> Iterator[list[int]]:
    """Yield the places of the markers to judge, as many at a time as make a request of moderate size."""
    batch: list[int] = []
    shown: set[int] = set()
    size = 0
    for place, marker in enumerate(group.markers):
        pointers = _pointers(marker, group)
        if marker.origin != _JUDGED_ORIGIN or not pointers or not marker.value.strip():
            continue
        if any(marker.value in group.units[pointer - 1].text for pointer in pointers):
            continue
        more = tokens.count(marker.value) + sum(
            tokens.count(group.units[pointer - 1].text) for pointer in pointers if pointer not in shown
        )
        if batch and (size + more > _REQUEST_TOKENS or len(batch) == _REQUEST_STATEMENTS):
            yield batch
            batch, shown, size = [], set(), 0
        batch.append(place)
        shown.update(pointers)
        size += more
    if batch:
        yield batch


def _pointers(marker: Marker, group: DocumentGroup) -> list[int]:
    return [pointer for pointer in marker.pointers if 1 <= pointer <= len(group.units)]


def _request(group: DocumentGroup, batch: Sequence[int], order: int) -> Request:
    markers = [group.markers[place] for place in batch]
    numbers = sorted({pointer for marker in markers for pointer in _pointers(marker, group)})
    lines = [f"## Title\n\n{group.document.title}\n\n## Passages\n"]
    for number in numbers:
        unit = group.units[number - 1]
        lines.append(f"<{number}> {' > '.join(unit.heading)}\n{unit.text}\n")
    lines.append("## Statements\n")
    for place, marker in enumerate(markers, 1):
        named = ", ".join(f"<{pointer}>" for pointer in _pointers(marker, group))
        lines.append(f"{place}. (passages {named}) {marker.value}")
    before, _, after = shipped(PROMPT).text.partition("{{material}}")
    messages = (
        Message("system", before.strip(), len(before.strip())),
        Message("user", "\n".join(lines) + after),
    )
    return Request(
        messages=messages,
        max_tokens=64 + _VERDICT_TOKENS * len(batch),
        purpose=f"judge {PROMPT}",
        schema=_SCHEMA,
        prompt_tokens=sum(tokens.count(message.text) for message in messages),
        order=order,
    )
