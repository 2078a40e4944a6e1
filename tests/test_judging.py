"""A model as judge, over HTTP on loopback."""

import json
import re
from pathlib import Path

import pytest
from heard import Heard
from loopback import Answer, Asked, Server, serving
from typer.testing import CliRunner

from mrag_cli.cli.main import app
from mrag_cli.ground.errors import LimitReached
from mrag_cli.parts.judging import UNSUPPORTED, Judged, judge
from mrag_cli.parts.llm.cache import ReplyCache
from mrag_cli.parts.llm.client import Client, ClientSettings
from mrag_cli.parts.llm.ledger import Ledger
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Marker, StreamPart, Unit
from mrag_cli.records.stream import write_lines

_UNITS = ("The lock was rebuilt in 1902.", "Herons nest on the moor.")


def _group(*values: str, doc: str = "a") -> DocumentGroup:
    units = tuple(Unit(doc, number, text, 9, ("Part",)) for number, text in enumerate(_UNITS, 1))
    markers = tuple(Marker(doc, f"What about {value}?", value, (1, 2), "llm") for value in values)
    return DocumentGroup(Document(doc, "0", "Hale", 2, 18), units, markers)


def _verdicts(asked: Asked) -> Answer:
    """Find unsupported what says "never"."""
    statements = re.findall(r"^(\d+)\. \(passages .*?\) (.*)$", asked.prompt, re.MULTILINE)
    verdicts = [{"statement": int(number), "supported": "never" not in text} for number, text in statements]
    return Answer(json.dumps({"verdicts": verdicts}))


def _run(
    server: Server, *parts: StreamPart, cache: Path | None = None, ledger: Ledger | None = None
) -> tuple[list[StreamPart], Judged, Heard]:
    settings = ClientSettings("openai/loopback", server.url, max_attempts=2, backoff=0.01)
    kept = ReplyCache(cache) if cache else None
    judged, heard = Judged(), Heard()
    try:
        return list(judge(parts, Client(settings, kept, ledger), heard, judged)), judged, heard
    finally:
        if kept:
            kept.close()


def _flags(part: StreamPart) -> list[tuple[str, ...]]:
    assert isinstance(part, DocumentGroup)
    return [marker.flags for marker in part.markers]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")


def test_unsupported_values_are_flagged() -> None:
    """The model's verdicts become flags, also taking back an earlier one; the order of the stream stays."""
    again = _group("It never was rebuilt.", "Rebuilt in 1902, the lock is old.")
    flagged = tuple(
        Marker(m.doc, m.key, m.value, m.pointers, m.origin, flags=("mine", UNSUPPORTED))
        for m in again.markers
    )
    with serving(_verdicts) as server:
        parts, judged, heard = _run(
            server,
            DocumentGroup(again.document, again.units, flagged),
            Deletion("x"),
            _group("Herons never nest."),
        )
    assert _flags(parts[0]) == [("mine", UNSUPPORTED), ("mine",)]
    assert parts[1] == Deletion("x")
    assert _flags(parts[2]) == [(UNSUPPORTED,)]
    assert (judged.statements, judged.unsupported, judged.unjudged) == (3, 2, 0)
    assert heard.failures == []


def test_only_written_values_are_shown() -> None:
    """A unit's own words and markers that no model wrote are not paid for."""
    group = _group(_UNITS[0])
    extractive = Marker("a", "k", "Never.", (1,), "extractive")
    with serving(_verdicts) as server:
        parts, judged, _ = _run(
            server, DocumentGroup(group.document, group.units, (*group.markers, extractive))
        )
        assert server.asked == []
    assert (judged.statements, _flags(parts[0])) == (0, [(), ()])


def test_many_values_are_several_requests() -> None:
    """At most twenty statements go into a request, and each gets its own verdict."""
    values = [f"Statement {'never ' if number % 7 == 0 else ''}{number}." for number in range(50)]
    with serving(_verdicts) as server:
        parts, judged, _ = _run(server, _group(*values))
        assert len(server.asked) == 3
    assert [bool(flags) for flags in _flags(parts[0])] == [number % 7 == 0 for number in range(50)]
    assert judged.statements == 50


@pytest.mark.parametrize("text", ["I cannot say.", "", '{"verdicts":[{"statement":9,"supported":false}]}'])
def test_a_reply_without_verdicts_flags_nothing(text: str) -> None:
    """What is not judged is counted, not flagged."""
    with serving(lambda _asked: Answer(text)) as server:
        parts, judged, _ = _run(server, _group("It never was."))
    assert (_flags(parts[0]), judged.unjudged) == ([()], 1)


def test_verdicts_amid_prose_are_read() -> None:
    """A fence and prose around the verdicts do no harm."""
    text = 'Here:\n```json\n{"verdicts": [{"statement": 1, "supported": false}]}\n```\nDone.'
    with serving(lambda _asked: Answer(text)) as server:
        parts, *_ = _run(server, _group("It never was."))
    assert _flags(parts[0]) == [(UNSUPPORTED,)]


def test_a_failing_document_costs_no_other() -> None:
    """A document whose call fails passes without verdicts and is reported; the next is judged."""

    def script(asked: Asked) -> Answer:
        return Answer("refused", status=400) if "Bad" in asked.prompt else _verdicts(asked)

    with serving(script) as server:
        parts, judged, heard = _run(server, _group("It never was."), _group("Bad, never.", doc="b"))
    assert [_flags(part) for part in parts] == [[(UNSUPPORTED,)], [()]]
    assert [name for name, _ in heard.failures] == ["b"]
    assert judged.unjudged == 1


def test_verdicts_are_paid_once_and_limits_hold(tmp_path: Path) -> None:
    """A second run asks nothing; a call limit stops before the call that would pass it."""
    with serving(_verdicts) as server:
        first = _run(server, _group("It never was."), cache=tmp_path / "cache")[0]
        assert _run(server, _group("It never was."), cache=tmp_path / "cache")[0] == first
        assert len(server.asked) == 1
        with pytest.raises(LimitReached):
            _run(server, _group("Another never."), ledger=Ledger(max_calls=0))


def test_the_command_replaces_unsupported_values(tmp_path: Path) -> None:
    """`validate --judge` puts the units' words in an unsupported value's place and sums up the calls."""
    source = tmp_path / "s.jsonl"
    source.write_bytes(b"".join(write_lines(_group("Herons never nest there.", "The lock was rebuilt."))))
    out, report = tmp_path / "out.jsonl", tmp_path / "report.json"
    with serving(_verdicts) as server:
        arguments = [
            "validate",
            str(source),
            "--judge",
            "openai/loopback",
            "--api-base",
            server.url,
            "--no-cache",
        ]
        done = CliRunner().invoke(app, [*arguments, "-o", str(out), "--report", str(report)])
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in out.read_bytes().splitlines()]
    origins = [record["origin"] for record in records if record["type"] == "marker"]
    assert origins == ["llm", "fallback", "fallback"]
    assert "openai/loopback judged 2 of 2 values, 1 not supported; 1 calls" in done.stderr
    asked = json.loads(report.read_bytes())["totals"]["judge"]
    assert (asked["statements"], asked["unsupported"], asked["calls"]) == (2, 1, 1)


def test_call_options_need_a_judge(tmp_path: Path) -> None:
    """Limits of calls that nobody makes are a usage error."""
    source = tmp_path / "s.jsonl"
    source.write_bytes(b"")
    assert CliRunner().invoke(app, ["validate", str(source), "--max-calls", "3"]).exit_code == 2
