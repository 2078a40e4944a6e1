"""What is asked of a model and what comes back."""

from dataclasses import FrozenInstanceError, replace

import pytest

from mrag_cli.parts.llm.request import Message, Reply, Request, Usage


@pytest.mark.parametrize(
    ("finish", "truncated"),
    [("stop", False), ("length", True), ("max_tokens", True), ("content_filter", False), ("", False)],
)
def test_a_reply_knows_whether_it_ran_into_its_limit(finish: str, truncated: bool) -> None:
    """OpenAI's and Anthropic's words for a truncated reply are both understood."""
    assert Reply("text", finish, Usage()).truncated is truncated


def test_a_request_is_a_first_asking_in_free_text_unless_it_says_otherwise() -> None:
    """What is left out of a request asks for nothing."""
    request = Request((Message("user", "hello"),), 50, "test")
    assert (request.schema, request.attempt, request.order, request.prompt_tokens) == (None, 0, 0, 0)
    assert request.messages[0].stable == 0


def test_a_request_that_is_asked_again_is_another_one() -> None:
    """A request does not change; a changed copy leaves it as it was."""
    request = Request((Message("user", "hello"),), 50, "test")
    again = replace(request, attempt=1)
    assert again != request
    assert request.attempt == 0
    with pytest.raises(FrozenInstanceError):
        request.attempt = 1  # type: ignore[misc]


def test_a_reply_is_paid_for_at_an_unknown_price_unless_it_says_otherwise() -> None:
    """A price that nobody named is unknown, not 0, and a reply comes from a call."""
    reply = Reply("text", "stop", Usage(10, 2))
    assert reply.cost is None
    assert not reply.from_cache
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.cached) == (10, 2, 0)
