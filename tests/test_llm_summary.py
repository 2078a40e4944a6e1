"""What a run of extraction says of itself, as JSON and in one sentence."""

import json

import pytest

from mrag_cli.parts.llm.client import Client, ClientSettings
from mrag_cli.parts.llm.ledger import Ledger
from mrag_cli.parts.llm.request import Reply, Usage
from mrag_cli.parts.llm.summary import Summary, report, told

PRICED, UNPRICED = "openai/gpt-4o-mini", "openai/nobody-knows"


def client(model: str, *replies: Reply) -> Client:
    """Return a client whose ledger holds these replies."""
    ledger = Ledger()
    for reply in replies:
        ledger.counts.calls += 1
        ledger.settle(None, reply)
    return Client(ClientSettings(model), None, ledger)


def summary() -> Summary:
    """Return what a run of four documents may have counted."""
    found = Summary(documents=4, skipped=1, failed=1, windows=5, cached_windows=2, markers=30)
    found.planned_calls, found.planned_prompt, found.planned_output = 3, 1_000_000, 500_000
    found.units, found.uncovered, found.truncated, found.bad, found.asked_again = 40, 4, 1, 2, 3
    found.dropped.update(["pointer", "empty", "pointer"])
    return found


def test_a_report_holds_what_was_expected_and_what_was_done() -> None:
    """Expected and actual calls, tokens and dollars stand side by side, and dropped records by reason."""
    asked = client(PRICED, Reply("", "stop", Usage(1000, 200, 400), 0.25))
    found = report(summary(), asked)
    assert json.loads(json.dumps(found)) == found
    prices = asked.facts.prices
    assert prices is not None
    planned = 1_000_000 * prices.prompt + 500_000 * prices.completion
    assert found["estimate"] == {
        "calls": 3,
        "prompt_tokens": 1_000_000,
        "output_tokens": 500_000,
        "cost": pytest.approx(planned),
    }
    assert found["actual"] == asked.ledger.report()
    assert found["actual"]["cost"] == 0.25
    assert (found["model"], found["documents"], found["skipped"], found["failed"]) == (PRICED, 4, 1, 1)
    assert (found["windows"], found["cached_windows"], found["markers"]) == (5, 2, 30)
    assert found["coverage"] == 0.9
    assert (found["truncated"], found["bad_replies"], found["asked_again"]) == (1, 2, 3)
    assert list(found["dropped"].items()) == [("empty", 1), ("pointer", 2)]


def test_an_unknown_price_is_unknown() -> None:
    """Without a price neither the estimate nor the total is a number; nothing to ask costs nothing."""
    found = report(summary(), client(UNPRICED, Reply("", "stop", Usage(10, 2))))
    assert found["estimate"]["cost"] is None
    assert found["actual"]["cost"] is None
    assert report(Summary(), client(UNPRICED))["estimate"]["cost"] == 0.0


def test_nothing_asked_has_no_coverage() -> None:
    """Coverage of no units is not 1 and not 0."""
    assert report(Summary(), client(PRICED))["coverage"] is None
    assert told(Summary(), client(PRICED)).startswith("0 documents, 0 markers; 0 calls")


def test_the_sentence_names_failures_calls_and_dollars() -> None:
    """One sentence says what was made, what it took, and what it was expected to take."""
    asked = client(
        PRICED, Reply("", "stop", Usage(1000, 200, 400), 0.25), Reply("", "stop", Usage(10, 2), 1.0)
    )
    asked.ledger.counts.retries = 7
    asked.ledger.counts.cached_replies = 9
    said = told(summary(), asked)
    assert "4 documents, 1 failed, 30 markers; 2 calls (7 retries), 9 replies from the cache" in said
    assert "1010 prompt tokens (400 cached by the provider) and 202 reply tokens for $1.25" in said
    assert "estimated 3 calls, 1000000 and 500000 tokens for $0." in said
    assert "failed" not in told(Summary(documents=1), asked)


def test_the_sentence_says_that_a_price_is_unknown() -> None:
    """An unknown price is never shown as a number."""
    said = told(summary(), client(UNPRICED, Reply("", "stop", Usage(10, 2))))
    assert said.count("an unknown price") == 2
    assert "$" not in said
