"""The extraction stage against a real server on loopback that misbehaves in every way models do."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, Asked, Script, Server, faithful, marker, serving

from mrag_cli.ground.errors import LimitReached, ModelError, UsageError
from mrag_cli.parts import tokens
from mrag_cli.parts.llm.cache import ReplyCache
from mrag_cli.parts.llm.client import Client, ClientSettings
from mrag_cli.parts.llm.ledger import Ledger
from mrag_cli.parts.llm.prompt import ExtractionPrompt, shipped
from mrag_cli.parts.llm.replies import Record
from mrag_cli.parts.llm.summary import Summary, report, told
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Foreign, Marker, StreamPart, Unit
from mrag_cli.stages.extract import ExtractSettings, estimate, extract_by_model, extract_by_rules


@dataclass
class Said:
    """A reporter that remembers."""

    notices: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def notice(self, message: str) -> None:
        """Remember a notice."""
        self.notices.append(message)

    def failed(self, name: str, reason: str) -> None:
        """Remember a failed document."""
        self.failures[name] = reason


@dataclass
class Run:
    """What a run of the stage gave."""

    parts: list[StreamPart]
    said: Said
    server: Server
    summary: Summary
    client: Client

    def group(self, position: int = 0) -> DocumentGroup:
        """Return a document of the result."""
        found = self.parts[position]
        assert isinstance(found, DocumentGroup)
        return found

    def covered(self, position: int = 0) -> set[int]:
        """Return the units that a document's markers point to."""
        return {pointer for marker in self.group(position).markers for pointer in marker.pointers}


def document(name: str = "d", units: int = 6, words: int = 30) -> DocumentGroup:
    """Return a document whose every unit says something of its own."""
    texts = [
        f"Fact {number} of {name} is {number * 7}. " + "Water runs. " * words
        for number in range(1, units + 1)
    ]
    made = tuple(
        Unit(name, number, text.strip(), tokens.count(text.strip())) for number, text in enumerate(texts, 1)
    )
    return DocumentGroup(Document(name, "x", f"Title of {name}", units, sum(u.tokens for u in made)), made)


def extract(
    parts: Iterable[StreamPart],
    script: Script = faithful,
    *,
    cache: ReplyCache | None = None,
    ledger: Ledger | None = None,
    calling: dict[str, Any] | None = None,
    keys: int = 1,
    examples: Sequence[Record] = (),
    into: list[StreamPart] | None = None,
    summary: Summary | None = None,
    server: Server | None = None,
    said: Said | None = None,
    **changes: Any,
) -> Run:
    """Run the stage against a server; ``into`` receives what came before an error."""
    if server is None:
        with serving(script) as own:
            return extract(
                parts, cache=cache, ledger=ledger, calling=calling, keys=keys, examples=examples, into=into,
                summary=summary, server=own, said=said, **changes,
            )  # fmt: skip
    called: dict[str, Any] = {"backoff": 0.01, "timeout": 10.0, **(calling or {})}
    client = Client(ClientSettings("openai/loopback", server.url, **called), cache, ledger)
    prompt = ExtractionPrompt(shipped("extract_a.v1"), keys=keys, examples=examples)
    settings = ExtractSettings(prompt, examples=tuple(examples), **changes)
    run = Run([] if into is None else into, said or Said(), server, summary or Summary(), client)
    for part in extract_by_model(parts, client, settings, run.said, run.summary):
        run.parts.append(part)
    return run


def markers(asked: Asked, units: Iterable[int]) -> str:
    """Return a reply with a marker for each unit."""
    return json.dumps({"markers": [marker(asked, unit) for unit in units]})


def test_a_document_gets_a_marker_for_each_unit() -> None:
    """Markers say who wrote them, count their value's tokens, and stand in the document's order."""
    run = extract([document()])
    found = run.group().markers
    assert [m.pointers for m in found] == [(number,) for number in range(1, 7)]
    assert {(m.origin, m.model, m.doc) for m in found} == {("llm", "openai/loopback", "d")}
    assert all(m.tokens == tokens.count(m.value) for m in found)
    assert found[2].value.startswith("Fact 3 of d is 21.")
    assert run.summary.markers == 6
    assert not run.said.failures


def test_everything_else_passes_through_in_place_and_in_order() -> None:
    """Deletions, foreign records and documents without units keep their places, however long calls take."""
    empty = DocumentGroup(Document("empty", "x", "e", 0, 0))
    parts: list[StreamPart] = [
        Deletion("gone"),
        document("a"),
        Foreign(b"{}"),
        empty,
        document("b"),
        document("c"),
    ]

    def script(asked: Asked) -> Answer:
        return Answer(faithful(asked).text, delay=0.2 if "Title of a" in asked.prompt else 0.0)

    found = extract(parts, script).parts
    assert [type(part) for part in found] == [type(part) for part in parts]
    assert [part.document.doc for part in found if isinstance(part, DocumentGroup)] == [
        "a",
        "empty",
        "b",
        "c",
    ]
    assert found[3] is empty


def test_documents_with_markers_pass_through_untouched_unless_forced() -> None:
    """A rerun on a half-extracted stream pays for the other half alone."""
    done = extract([document("a")]).group()
    run = extract([done, document("b")])
    assert run.group(0) is done
    assert len(run.server.asked) == 1
    assert run.summary.skipped == 1
    assert any("--force" in notice for notice in run.said.notices)
    forced = extract([done, document("b")], force=True)
    assert len(forced.server.asked) == 2
    assert len(forced.group(0).markers) == len(done.markers)


def test_missing_units_are_asked_for_again_and_only_they() -> None:
    """A reply that leaves two units out is followed by one request for those two."""

    def script(asked: Asked) -> Answer:
        return Answer(markers(asked, [u for u in asked.units if asked.number or u not in (2, 5)]))

    run = extract([document(units=6)], script)
    assert [asked.units for asked in run.server.asked] == [[1, 2, 3, 4, 5, 6], [2, 5]]
    assert run.covered() == set(range(1, 7))
    assert run.summary.asked_again == 1


def test_coverage_above_the_threshold_is_left_to_the_fallback() -> None:
    """One unit of forty may be missing at 0.95; at 0.98 it is asked for."""

    def script(asked: Asked) -> Answer:
        return Answer(markers(asked, [unit for unit in asked.units if unit != 7]))

    run = extract([document(units=40, words=20)], script)
    assert len(run.server.asked) == 1
    assert run.summary.uncovered == 1
    strict = extract([document(units=40, words=20)], script, threshold=0.98)
    assert [asked.units for asked in strict.server.asked[1:]] == [[7], [7], [7]]


def test_at_most_windows_and_three_calls_are_made_for_a_document() -> None:
    """A model that never covers everything is asked three times more, one call each."""

    def script(asked: Asked) -> Answer:
        return Answer(markers(asked, asked.units[:1]))

    run = extract([document(units=60, words=40)], script, output_tokens=2_000)
    assert run.summary.windows > 2
    assert len(run.server.asked) == run.summary.windows + 3
    assert not run.said.failures


@pytest.mark.parametrize(
    "bad",
    [
        Answer(""),
        Answer(None),
        Answer("I'm sorry, I cannot help with that."),
        Answer("[]"),
        Answer('{"markers": []}'),
        Answer("", finish="content_filter"),
        Answer('{"markers": [{"key": "k", "value": "v", "pointers": [99]}]}'),
    ],
    ids=["empty", "null", "refusal", "empty-list", "no-markers", "filtered", "out-of-range"],
)
def test_a_bad_reply_is_asked_again_with_a_fresh_prompt(bad: Answer) -> None:
    """The second request is the first one anew: the bad reply is never fed back."""
    run = extract([document()], lambda asked: bad if asked.number == 0 else faithful(asked))
    first, second = (asked.body["messages"] for asked in run.server.asked)
    assert first == second
    assert run.covered() == set(range(1, 7))
    assert run.summary.bad == 1


def test_a_bad_record_costs_no_other_record() -> None:
    """Records without value or with wrong pointers are dropped alone and counted by reason."""

    def script(asked: Asked) -> Answer:
        good = [marker(asked, unit) for unit in asked.units]
        bad = [{"key": "k", "value": "", "pointers": [1]}, {"key": "k", "value": "v", "pointers": [70]}]
        return Answer(json.dumps({"markers": [*bad, *good]}))

    run = extract([document()], script)
    assert len(run.group().markers) == 6
    assert len(run.server.asked) == 1
    assert dict(run.summary.dropped) == {"no value": 1, "pointers out of range": 1}


def test_a_truncated_reply_is_salvaged_and_its_window_halved() -> None:
    """Complete records are kept; the rest is asked for in at most half the window, not again whole."""

    def script(asked: Asked) -> Answer:
        text = markers(asked, asked.units)
        if len(asked.units) > 4:
            return Answer(text[: text.index(f'"pointers": [{asked.units[2]}]')], finish="length")
        return Answer(text)

    run = extract([document(units=12)], script)
    first, *others = [asked.units for asked in run.server.asked]
    assert first == list(range(1, 13))
    assert all(len(units) <= 6 for units in others)
    assert not {1, 2} & {unit for units in others for unit in units}, (
        "what was salvaged is not asked for again"
    )
    values = [m.value for m in run.group().markers]
    assert values == [unit.text for unit in run.group().units]
    assert run.summary.truncated >= 1


def test_a_model_that_always_runs_on_is_given_up() -> None:
    """Endless replies end in a bounded number of calls and a failed document."""
    run = extract([document(units=30)], lambda _: Answer('{"markers": [{"key": "aaaa', finish="length"))
    assert len(run.server.asked) <= 1 + 2 + 4 + 8 + 3
    assert run.said.failures.keys() == {"d"}
    assert run.group().markers == ()


def test_a_reply_that_repeats_the_example_is_caught() -> None:
    """The example's text never becomes a marker; its units are asked for again."""
    shown = [Record("Example key?", "The Example Bridge in Exampleton was opened in 1871.", (1,))]

    def script(asked: Asked) -> Answer:
        assert "Exampleton" in asked.body["messages"][0]["content"]
        if asked.number == 0:
            echo = {"key": "Example key?", "value": shown[0].value, "pointers": asked.units[:3]}
            return Answer(json.dumps({"markers": [echo]}))
        return faithful(asked)

    run = extract([document()], script, examples=shown)
    assert all("Exampleton" not in m.value for m in run.group().markers)
    assert run.covered() == set(range(1, 7))
    assert dict(run.summary.dropped) == {"repeats the example": 1}


def test_several_keys_become_aliases_of_one_value() -> None:
    """--keys 3 gives each marker two further keys."""

    def script(asked: Asked) -> Answer:
        assert asked.body["response_format"]["json_schema"]["schema"]["properties"]["markers"]["items"][
            "required"
        ] == ["key", "aliases", "value", "pointers"]
        found = [
            {**marker(asked, unit), "aliases": ["one more?", "and one?", "too many?"]} for unit in asked.units
        ]
        return Answer(json.dumps({"markers": found}))

    run = extract([document()], script, keys=3, calling={"schema": "on"})
    assert {m.aliases for m in run.group().markers} == {("one more?", "and one?")}


def test_one_documents_failure_costs_no_other_and_is_retried_next_time(tmp_path: Path) -> None:
    """The failed one passes without markers and is named; the next run asks for it alone."""
    cache = ReplyCache(tmp_path / "c")
    parts = [document("a"), document("b"), document("c")]

    def failing(asked: Asked) -> Answer:
        return Answer("oops", status=500) if "Title of b" in asked.prompt else faithful(asked)

    run = extract(parts, failing, cache=cache, calling={"max_attempts": 2})
    assert [len(run.group(position).markers) for position in range(3)] == [6, 0, 6]
    assert run.said.failures.keys() == {"b"}
    assert "HTTP 500" in run.said.failures["b"]
    again = extract(parts, cache=cache)
    assert [len(again.group(position).markers) for position in range(3)] == [6, 6, 6]
    assert len(again.server.asked) == 1
    cache.close()


def test_a_document_refused_by_every_reply_is_asked_again_next_time(tmp_path: Path) -> None:
    """Replies that were no use are not kept as if they were."""
    cache = ReplyCache(tmp_path / "c")
    run = extract([document()], lambda _: Answer("I cannot."), cache=cache)
    assert run.said.failures == {"d": "no reply of the model held a usable marker"}
    assert len(run.server.asked) == 4
    assert run.covered() == set()
    assert extract([document()], cache=cache).covered() == set(range(1, 7))
    cache.close()


def test_a_failed_window_keeps_the_other_windows_replies(tmp_path: Path) -> None:
    """What a failed document's other windows were paid for is not paid again."""
    cache = ReplyCache(tmp_path / "c")
    long = document(units=60, words=40)

    def failing(asked: Asked) -> Answer:
        return Answer("oops", status=500) if 30 in asked.units else faithful(asked)

    first = extract([long], failing, cache=cache, output_tokens=2_000, calling={"max_attempts": 1})
    assert first.said.failures
    assert first.summary.windows > 2
    second = extract([long], cache=cache, output_tokens=2_000)
    assert len(second.server.asked) == 1
    assert second.covered() == set(range(1, 61))
    cache.close()


def test_a_wrong_key_stops_the_run_at_once() -> None:
    """A thousand documents are not tried one after another."""
    with serving(lambda _: Answer("Incorrect API key provided", status=401)) as server:
        with pytest.raises(ModelError):
            extract((document(f"d{n}") for n in range(1_000)), server=server, calling={"concurrency": 4})
        assert len(server.asked) <= 8


def test_a_model_whose_context_is_smaller_than_its_data_says_is_asked_in_shards() -> None:
    """Refused as too long, the document is asked for again in smaller requests, and no unit is lost."""

    def script(asked: Asked) -> Answer:
        if len(asked.prompt) > 12_000:
            return Answer("This model's maximum context length is 2500 tokens", status=400)
        return faithful(asked)

    run = extract([document(units=60, words=40)], script, context_tokens=20_000)
    assert run.covered() == set(range(1, 61))
    assert not run.said.failures
    assert not run.summary.uncovered


def test_a_long_documents_windows_share_their_prefix_and_the_first_goes_ahead() -> None:
    """The first call fills the provider's cache; what it reports as cached is counted."""
    active: list[int] = []

    def script(asked: Asked) -> Answer:
        active.append(asked.number)
        return Answer(faithful(asked).text, delay=0.1, cached=0 if asked.number == 0 else 500)

    run = extract([document(units=60, words=40)], script, output_tokens=2_000)
    starts = [asked.body["messages"][1]["content"].index("=== Task ===") for asked in run.server.asked]
    prefixes = {asked.body["messages"][1]["content"][: min(starts)] for asked in run.server.asked}
    assert len(run.server.asked) > 2
    assert len(prefixes) == 1
    assert run.server.asked[1].at - run.server.asked[0].at >= 0.09
    assert run.client.ledger.counts.cached_tokens == 500 * (len(run.server.asked) - 1)


def test_a_second_run_makes_no_call_and_gives_the_same(tmp_path: Path) -> None:
    """All replies are in the cache, those of retries and halved windows too."""
    cache = ReplyCache(tmp_path / "c")

    def script(asked: Asked) -> Answer:
        if asked.number == 0:
            return Answer(markers(asked, asked.units)[:400], finish="length")
        return Answer(markers(asked, asked.units[:-1] or asked.units))

    parts = [document("a", 12), document("b", 8)]
    first = extract(parts, script, cache=cache, calling={"concurrency": 1})
    second = extract(parts, lambda _: Answer("not used"), cache=cache)
    assert second.parts == first.parts
    assert second.server.asked == []
    assert second.client.ledger.counts.cached_replies == len(first.server.asked)
    cache.close()


def test_a_limit_ends_the_run_after_what_is_done_and_a_rerun_resumes(tmp_path: Path) -> None:
    """The documents before the limit are out, and the next run pays for the rest alone."""
    cache = ReplyCache(tmp_path / "c")
    parts = [document(f"d{n}") for n in range(6)]
    into: list[StreamPart] = []
    with serving(faithful) as server:
        with pytest.raises(LimitReached, match="--max-calls 4"):
            extract(
                parts,
                server=server,
                cache=cache,
                ledger=Ledger(max_calls=4),
                into=into,
                calling={"concurrency": 2},
            )
        assert len(server.asked) == 4
        assert [len(part.markers) for part in into if isinstance(part, DocumentGroup)] == [6] * len(into)
        resumed = extract(parts, server=server, cache=cache)
        assert len(server.asked) == 6
        assert len(resumed.parts) == 6
    cache.close()


def test_no_more_documents_than_the_look_ahead_are_held() -> None:
    """The input is read only a little ahead of what is written."""
    read = 0

    def parts() -> Iterable[StreamPart]:
        nonlocal read
        for number in range(200):
            read += 1
            yield document(f"d{number}", 2, 3)

    most = 0
    with serving(faithful) as server:
        client = Client(ClientSettings("openai/loopback", server.url, concurrency=2))
        settings = ExtractSettings(ExtractionPrompt(shipped("extract_a.v1")))
        for number, _ in enumerate(extract_by_model(parts(), client, settings, Said(), Summary())):
            most = max(most, read - number)
    assert read == 200
    assert most <= 9


def test_an_estimate_makes_no_call_and_knows_the_cache(tmp_path: Path) -> None:
    """Documents, windows, calls, tokens; what is held costs nothing."""
    cache = ReplyCache(tmp_path / "c")
    parts: list[StreamPart] = [document("a"), document("b"), Deletion("x")]
    with serving(faithful) as server:
        extract(parts[:1], server=server, cache=cache)
        client = Client(ClientSettings("openai/loopback", server.url, timeout=10.0), cache)
        summary = Summary()
        settings = ExtractSettings(ExtractionPrompt(shipped("extract_a.v1")))
        estimate(parts, client, settings, summary)
        assert len(server.asked) == 1
    assert (summary.documents, summary.windows, summary.cached_windows, summary.planned_calls) == (2, 2, 1, 1)
    assert summary.planned_prompt > 500
    assert summary.planned_output > 100
    cache.close()


def test_the_estimate_is_close_to_what_is_sent() -> None:
    """Calls are exact and prompt tokens within a tenth, on long and short documents."""
    run = extract([document("a", 5), document("b", 60, 40)], output_tokens=2_000, prefix_tokens=3_000)
    found = report(run.summary, run.client)
    assert found["estimate"]["calls"] == found["actual"]["calls"] == len(run.server.asked)
    real = sum(
        tokens.count(message["content"]) for asked in run.server.asked for message in asked.body["messages"]
    )
    assert found["estimate"]["prompt_tokens"] == pytest.approx(real, rel=0.1)


def test_the_report_and_the_sentence_say_what_was_done() -> None:
    """Unknown prices are unknown in both."""
    run = extract([document()])
    found = report(run.summary, run.client)
    assert found["actual"]["cost"] is None
    assert found["estimate"]["cost"] is None
    assert found["coverage"] == 1
    assert "an unknown price" in told(run.summary, run.client)
    assert "6 markers; 1 calls (0 retries)" in told(run.summary, run.client)


def test_limits_without_room_are_the_users_error() -> None:
    """An impossible context stops before any call."""
    with serving(faithful) as server:
        with pytest.raises(UsageError, match="--context-tokens"):
            extract([document()], server=server, context_tokens=300)
        assert server.asked == []


def test_rules_extract_without_a_model() -> None:
    """Each document gets what the rules find, unless it already holds markers."""

    def rules(group: DocumentGroup) -> tuple[Marker, ...]:
        return tuple(Marker(group.document.doc, u.text, u.text, (u.unit,), "extractive") for u in group.units)

    said = Said()
    parts = [document("a"), Deletion("x")]
    once = list(extract_by_rules(parts, rules, said))
    assert isinstance(once[0], DocumentGroup)
    assert len(once[0].markers) == 6
    assert once[1] == Deletion("x")
    assert list(extract_by_rules(once, lambda _: (), said)) == once
    assert len(said.notices) == 1
    forced = next(iter(extract_by_rules(once, lambda _: (), said, force=True)))
    assert isinstance(forced, DocumentGroup)
    assert forced.markers == ()


def test_cancelled_calls_leave_no_task_behind() -> None:
    """Abandoning the result stops the calls."""
    with serving(lambda asked: Answer(faithful(asked).text, delay=5)) as server:
        client = Client(ClientSettings("openai/loopback", server.url, concurrency=2))
        settings = ExtractSettings(ExtractionPrompt(shipped("extract_a.v1")))

        def parts() -> Iterable[StreamPart]:
            yield Deletion("first")
            for number in range(10):
                yield document(f"d{number}")

        results = extract_by_model(parts(), client, settings, Said(), Summary())
        assert next(iter(results)) == Deletion("first")
        results.close()  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
