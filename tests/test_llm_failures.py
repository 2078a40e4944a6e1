import time
from email.utils import formatdate

import pytest

from mrag_cli.parts.llm.failures import CallFailed, Failure, meaning_of, retry_after, scrubbed


@pytest.mark.parametrize(
    ("status", "message", "meaning"),
    [
        (401, "Incorrect API key provided", Failure.FATAL),
        (403, "your project has no access", Failure.FATAL),
        (404, "The model `gpt-9` does not exist", Failure.FATAL),
        (402, "payment required", Failure.FATAL),
        (400, "model 'nope' not found", Failure.FATAL),
        (400, "nope is not a valid model ID", Failure.FATAL),
        (400, "LLM Provider NOT provided. Pass in the LLM provider", Failure.FATAL),
        (500, "Missing credentials. Please pass an `api_key`", Failure.FATAL),
        (429, '{"error": {"code": "insufficient_quota"}}', Failure.FATAL),
        (429, "You exceeded your current quota: requests per minute", Failure.BUSY),
        (429, "Rate limit reached, limit 30000 tokens required 40000", Failure.BUSY),
        (503, "overloaded", Failure.BUSY),
        (529, "overloaded", Failure.BUSY),
        (400, "This model's maximum context length is 8192 tokens", Failure.TOO_LONG),
        (500, "the request exceeds the available context size", Failure.TOO_LONG),
        (400, "the prompt was flagged by the content filter", Failure.REFUSED),
        (403, "your input was flagged by moderation", Failure.REFUSED),
        (400, "messages must alternate", Failure.REFUSED),
        (422, "unprocessable", Failure.REFUSED),
        (408, "timeout", Failure.BROKEN),
        (500, "oops", Failure.BROKEN),
        (502, "bad gateway", Failure.BROKEN),
        (None, "connection reset", Failure.BROKEN),
        (None, "Cannot connect to host localhost:1", Failure.UNREACHABLE),
        (500, "Cannot connect to host 127.0.0.1:1", Failure.UNREACHABLE),
    ],
)
def test_each_failure_means_what_the_next_call_should_do(
    status: int | None, message: str, meaning: Failure
) -> None:
    """Status and message decide between stopping, dropping the document, waiting and repeating."""
    assert meaning_of(status, message) is meaning


def test_the_delay_a_server_asks_for_is_read_in_all_its_forms() -> None:
    """Seconds, milliseconds and a date are understood, anything else is no delay."""
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after": "0.5"}) == 0.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    later = retry_after({"retry-after": formatdate(time.time() + 30)})
    assert later is not None
    assert 28 <= later <= 31
    assert retry_after({"retry-after": formatdate(0)}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_no_key_survives_in_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's keys, what looks like a key, and passwords in addresses are hidden."""
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", "plain-looking-word")
    message = str(
        CallFailed(
            Failure.FATAL,
            "key plain-looking-word or sk-abcdefghijklmnop1234, header 'Bearer abc.def' at http://me:secret@host/v1",
        )
    )
    for secret in ("plain-looking-word", "sk-abcdefghijklmnop1234", "abc.def", "secret"):
        assert secret not in message
    assert "http://[hidden]@host/v1" in message


def test_a_message_without_secrets_stays_as_it_is() -> None:
    """Scrubbing changes nothing else."""
    assert scrubbed("HTTP 500: the model is loading") == "HTTP 500: the model is loading"
