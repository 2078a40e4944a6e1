"""Validation: every marker usable, every unit covered, and what a user should know about the rest.

A validated stream is a fixed point: validating it again changes nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mrag_cli.parts import keys, tokens
from mrag_cli.parts.coverage import coverage, uncovered_units
from mrag_cli.parts.grounding import Evidence
from mrag_cli.parts.judging import UNSUPPORTED
from mrag_cli.parts.marker_statistics import MarkerTally
from mrag_cli.parts.terms import terms
from mrag_cli.parts.validation_report import DocumentReport, Finding, Summary
from mrag_cli.records.models import DocumentGroup, Marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mrag_cli.ground.report import Reporter
    from mrag_cli.records.models import StreamPart, Unit

FALLBACK = "fallback"
UNGROUNDED = "ungrounded"
"""Flag: a number, date or name of the value is nowhere in the document."""
WIDE = "wide"
"""Flag: the marker points to more units than allowed, and the stream has no units to choose among."""

_OWN_FLAGS = frozenset({UNGROUNDED, UNSUPPORTED, WIDE, *keys.FLAGS})
# Above every badness of a key alone.
_UNGROUNDED_BADNESS = 1 << 10
_NOTICES_OF_A_KIND = 10
_FAULTS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ValidateSettings:
    """How to validate.

    Attributes:
        threshold: coverage (0 to 1) below which a document is reported.
        max_width: the most units that an LLM's marker may point to.
        ungrounded: what becomes of a marker whose value says what the document does not, or that is
            flagged as unsupported: ``repair`` puts a fallback marker for each of its units in its place,
            ``drop`` drops it (a unit that nothing else covers still gets its fallback marker), ``flag``
            keeps it.
        strict: a document that has a fault or too little coverage fails instead of being repaired.
    """

    threshold: float = 0.95
    max_width: int = 3
    ungrounded: str = "repair"
    strict: bool = False


def validate(
    parts: Iterable[StreamPart],
    settings: ValidateSettings,
    reporter: Reporter,
    summary: Summary,
    on_document: Callable[[DocumentReport], None] = lambda _report: None,
) -> Iterator[StreamPart]:
    """Repair each document's markers, cover its units, and flag what is doubtful.

    Guarantees for each document that has units: all pointers are in range, every unit is covered (Eq. 9 is
    1), no key or value is blank, ``tokens`` is the value's count. Markers keep their order; the fallback
    marker of a unit stands before the first marker that starts at a later unit. Flags of earlier
    validations are replaced, others are kept. A document without unit records is checked as far as the
    number of its units allows, and gets no fallback.

    Args:
        parts: the stream, read without checking pointers.
        settings: how to validate.
        reporter: told what was repaired, the first times of each kind with path and line; with ``strict``
            told which documents failed, which are then left out.
        summary: counts what was found.
        on_document: called with each document's report before the document is yielded.
    """
    notices = _Notices(reporter)
    for part in parts:
        if not isinstance(part, DocumentGroup):
            yield part
            continue
        check = _Check(part, settings)
        markers = check.run()
        failed = settings.strict and bool(check.faults)
        report = check.report(() if failed else markers, failed=failed)
        summary.add(report)
        on_document(report)
        if failed:
            more = len(check.faults) - _FAULTS_SHOWN
            shown = [f"{part.path}:{line}: {fault}" for _, line, fault in check.faults[:_FAULTS_SHOWN]]
            reporter.failed(
                part.document.doc, "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])
            )
            continue
        for kind, line, fault in (*check.faults, *check.remarks):
            notices.say(kind, f"{part.path}:{line}: {fault}")
        yield replace(part, markers=tuple(markers), marker_lines=())
    notices.finish()


class _Notices:
    """Says the first faults of each kind and counts the others."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._said: Counter[str] = Counter()

    def say(self, kind: str, message: str) -> None:
        self._said[kind] += 1
        if self._said[kind] <= _NOTICES_OF_A_KIND:
            self._reporter.notice(message)

    def finish(self) -> None:
        for kind, times in self._said.items():
            if times > _NOTICES_OF_A_KIND:
                self._reporter.notice(f"{kind}: {times - _NOTICES_OF_A_KIND} more, not listed")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A marker of the output, with its line in the input (0 for none) and what its value claims falsely."""

    marker: Marker
    line: int = 0
    doubts: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()


class _Check:
    """One document under validation."""

    def __init__(self, group: DocumentGroup, settings: ValidateSettings) -> None:
        self.group = group
        self.settings = settings
        self.units = group.document.units
        self.faults: list[tuple[str, int, str]] = []
        self.repairs: Counter[str] = Counter()
        self.remarks: list[tuple[str, int, str]] = []
        self.coverage = 1.0
        self.findings: list[Finding] = []
        self.origins: dict[str, MarkerTally] = {}

    def run(self) -> list[Marker]:
        """Return the document's markers after repair; what was wrong is then in `faults` and `remarks`."""
        lines = (*self.group.marker_lines, *[self.group.line] * len(self.group.markers))
        kept: list[_Kept] = []
        owed: set[int] = set()
        evidence = Evidence(self.group)
        for marker, line in zip(self.group.markers, lines, strict=False):
            sound = self._repaired(marker, line)
            if sound is None:
                continue
            entry = self._doubted(sound, line, evidence)
            if not entry.doubts or self.settings.ungrounded == "flag":
                kept.append(entry)
                continue
            self.repairs["ungrounded_dropped"] += 1
            badness = (_UNGROUNDED_BADNESS, len(entry.not_found))
            self.findings.append(
                Finding(line, sound.key, entry.doubts, entry.not_found, 0, badness, dropped=True)
            )
            if self.settings.ungrounded == "repair":
                owed.update(sound.pointers)
        return self._flagged(self._covered(kept, owed))

    def _doubted(self, marker: Marker, line: int, evidence: Evidence) -> _Kept:
        """Return the marker with what speaks against its value, which is said."""
        if marker.origin == FALLBACK:
            return _Kept(marker, line)
        say = self.remarks if self.settings.ungrounded == "flag" else self.faults
        not_found = evidence.not_found(marker.value, marker.pointers)
        doubts = [UNGROUNDED] if not_found else []
        if not_found:
            say.append(("ungrounded", line, f"not in the document: {', '.join(not_found)}"))
        if UNSUPPORTED in marker.flags:
            doubts.append(UNSUPPORTED)
            say.append(("unsupported", line, "its units do not support the value, a model found"))
        return _Kept(marker, line, tuple(doubts), not_found)

    def _fault(self, kind: str, line: int, message: str) -> None:
        self.faults.append((kind, line, message))

    def _repaired(self, marker: Marker, line: int) -> Marker | None:
        """Return the marker made usable, or None when nothing can be made of it."""
        if not marker.value.strip():
            self.repairs["blank_value_dropped"] += 1
            self._fault("blank value", line, "the value is blank; the marker is dropped")
            return None
        pointers = tuple(pointer for pointer in marker.pointers if 1 <= pointer <= self.units)
        if len(pointers) < len(marker.pointers) or not pointers:
            wrong = [pointer for pointer in marker.pointers if not 1 <= pointer <= self.units]
            self.repairs["pointer_dropped"] += len(wrong)
            what = f"pointer {', '.join(map(str, wrong[:5]))} is out of range 1 to {self.units}"
            what = what if wrong else "the marker points to no unit"
            if not pointers:
                self.repairs["pointerless_dropped"] += 1
                self._fault("pointers", line, f"{what}; the marker is dropped")
                return None
            self._fault("pointers", line, f"{what}; it is dropped")
        if (
            marker.origin == keys.WRITTEN_ORIGIN
            and len(pointers) > self.settings.max_width
            and self.group.units
        ):
            self.repairs["narrowed"] += 1
            kept = _best_units(marker.value, pointers, self.group.units, self.settings.max_width)
            self._fault(
                "width", line, f"the marker points to {len(pointers)} units; the {len(kept)} nearest are kept"
            )
            pointers = kept
        key = marker.key
        if not key.strip():
            self.repairs["blank_key_replaced"] += 1
            self._fault("blank key", line, "the key is blank; the value takes its place")
            key = marker.value
        aliases = tuple(dict.fromkeys(alias for alias in marker.aliases if alias.strip() and alias != key))
        if (key, pointers, aliases) == (marker.key, marker.pointers, marker.aliases):
            return marker
        return replace(marker, key=key, pointers=pointers, aliases=aliases)

    def _covered(self, kept: list[_Kept], owed: set[int]) -> list[_Kept]:
        """Return the markers with a fallback marker for each unit that needs one."""
        markers = [entry.marker for entry in kept]
        self.coverage = coverage((marker for marker in markers if marker.origin != FALLBACK), self.units)
        if self.coverage < self.settings.threshold:
            share, least = f"{100 * self.coverage:.1f} %", f"{100 * self.settings.threshold:.1f} %"
            self._fault(
                "coverage",
                self.group.line,
                f"the markers of {self.group.document.doc!r} cover {share} of its units, less than {least}",
            )
        if not self.group.units:
            return kept
        there = {pointer for marker in markers if marker.origin == FALLBACK for pointer in marker.pointers}
        missing = {*uncovered_units(markers, self.units), *(owed - there)}
        self.repairs["fallback_added"] += len(missing)
        waiting = deque(_Kept(_fallback(unit)) for unit in self.group.units if unit.unit in missing)
        result: list[_Kept] = []
        for entry in kept:
            while waiting and waiting[0].marker.pointers[0] < entry.marker.pointers[0]:
                result.append(waiting.popleft())
            result.append(entry)
        return [*result, *waiting]

    def _flagged(self, entries: list[_Kept]) -> list[Marker]:
        """Count tokens, judge keys and return the markers with their flags."""
        markers = [entry.marker for entry in entries]
        value_tokens = tokens.counts([marker.value for marker in markers])
        own_keys = iter(tokens.counts([marker.key for marker in markers if marker.key != marker.value]))
        key_tokens = [
            size if marker.key == marker.value else next(own_keys)
            for marker, size in zip(markers, value_tokens, strict=True)
        ]
        judged = keys.judge_keys(markers, key_tokens, value_tokens)
        result: list[Marker] = []
        for entry, key_size, size, key in zip(entries, key_tokens, value_tokens, judged, strict=True):
            marker = entry.marker
            if marker.tokens is not None and marker.tokens != size:
                self.repairs["tokens_recounted"] += 1
            found = {*key.flags, *entry.doubts}
            if marker.origin == keys.WRITTEN_ORIGIN and len(marker.pointers) > self.settings.max_width:
                found.add(WIDE)
            if found:
                badness = (key.badness[0] + (_UNGROUNDED_BADNESS if entry.doubts else 0), key.rank)
                self.findings.append(
                    Finding(entry.line, marker.key, tuple(sorted(found)), entry.not_found, key.rank, badness)
                )
            flags = tuple(sorted({*marker.flags} - _OWN_FLAGS | found))
            marker = replace(marker, tokens=size, flags=flags)
            self.origins.setdefault(marker.origin, MarkerTally()).add(marker, key_size, size)
            result.append(marker)
        return result

    def report(self, markers: Sequence[Marker], *, failed: bool) -> DocumentReport:
        """Return what was found; ``markers`` are those of the output."""
        return DocumentReport(
            doc=self.group.document.doc,
            path=self.group.path,
            line=self.group.line,
            units=self.units,
            coverage=self.coverage,
            below=self.coverage < self.settings.threshold,
            origins=self.origins if markers else {},
            repairs={} if failed else {kind: times for kind, times in self.repairs.items() if times},
            findings=tuple(sorted(self.findings, key=lambda finding: finding.badness, reverse=True)),
            failed=failed,
        )


def _fallback(unit: Unit) -> Marker:
    """Return the marker of a unit that no other covers: its own words, to be searched and to be read."""
    return Marker(unit.doc, unit.text, unit.text, (unit.unit,), FALLBACK)


def _best_units(value: str, pointers: Sequence[int], units: Sequence[Unit], width: int) -> tuple[int, ...]:
    """Return the ``width`` units that together hold the most of a value's different terms."""
    wanted = set(terms(value))
    held = {pointer: wanted & set(terms(units[pointer - 1].text)) for pointer in pointers}
    chosen: list[int] = []
    while len(chosen) < width:
        best = max(sorted(held.keys() - set(chosen)), key=lambda pointer: len(held[pointer] & wanted))
        chosen.append(best)
        wanted -= held[best]
    return tuple(sorted(chosen))
