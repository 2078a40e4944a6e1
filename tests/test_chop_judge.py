import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Answer, Asked, Server, serving

from mrag_cli.parts.chop.asking import Questions, shipped
from mrag_cli.parts.chop.judge import Decision, Judge, Summary
from mrag_cli.parts.llm.client import Client, ClientSettings

Script = Callable[[Asked], Answer]


def parts(asked: Asked) -> list[str]:
    """Return the texts that a request shows: one for a CNM, anchor and chunk for a decision."""
    shown = str(asked.body["messages"][1]["content"])
    if "## Later chunk" not in shown:
        return [shown.strip()]
    anchor, _, later = shown.partition("## Later chunk")
    return [anchor.replace("## Anchor", "").strip(), later.strip()]


def cnm(text: str) -> str:
    """Return the CNM that the scripted model gives a text: its own words as the model."""
    return json.dumps(
        {"category": "kettle", "nouns": [f"kettle {text}"], "model": f"M {text}", "confidence": 1}
    )


def judged(
    texts: Sequence[str], script: Script, anchor: Literal["previous", "first"] = "previous"
) -> tuple[list[Decision], Summary, Server]:
    """Return the decisions on some chunks by a scripted model."""
    summary = Summary()
    with serving(script) as server:

        async def run() -> list[Decision]:
            client = Client(ClientSettings("openai/loopback", server.url, backoff=0.01, concurrency=16))
            try:
                return await Judge(client, Questions(shipped("product")), summary, anchor=anchor).decided(
                    texts, 0
                )
            finally:
                await client.close()

        return asyncio.run(run()), summary, server


@given(st.lists(st.booleans(), max_size=7))
@settings(max_examples=25)
def test_every_pattern_of_decisions_is_inherited_as_eq_3_says(continued: list[bool]) -> None:
    """A chunk has the CNM of the chunk before where the decision is true, and its own where it is false."""
    texts = [f"chunk-{number}" for number in range(len(continued) + 1)]

    def script(asked: Asked) -> Answer:
        shown = parts(asked)
        if len(shown) == 1:
            return Answer(cnm(shown[0]))
        at = texts.index(shown[1])
        assert shown[0] == texts[at - 1]
        return Answer(json.dumps({"same": continued[at - 1]}))

    found, summary, _ = judged(texts, script)
    assert found[0].cnm.model == "M chunk-0"
    for at, same in enumerate(continued, 1):
        assert found[at].continued == same
        assert found[at].cnm == (found[at - 1].cnm if same else found[at].cnm)
        assert found[at].segment == found[at - 1].segment + (not same)
        if not same:
            assert found[at].cnm.model == f"M {texts[at]}"
    assert summary.decisions == len(continued)
    assert summary.segments == 1 + continued.count(False)


def test_the_first_chunk_as_anchor_catches_a_slow_drift() -> None:
    """Each chunk is judged by its segment's first, one after the other."""
    texts = [str(number) for number in range(8)]

    def script(asked: Asked) -> Answer:
        shown = parts(asked)
        if len(shown) == 1:
            return Answer(cnm(shown[0]))
        return Answer(json.dumps({"same": int(shown[1]) - int(shown[0]) < 3}))

    drifting, _, _ = judged(texts, script)
    assert {decision.segment for decision in drifting} == {1}
    caught, _, server = judged(texts, script, "first")
    assert [decision.segment for decision in caught] == [1, 1, 1, 2, 2, 2, 3, 3]
    assert server.most <= 3


def test_decisions_are_asked_for_at_once() -> None:
    """All neighbours of a document are under way together."""

    def script(asked: Asked) -> Answer:
        shown = parts(asked)
        return Answer(cnm(shown[0]) if len(shown) == 1 else '{"same": true}', delay=0.1)

    _, _, server = judged([str(number) for number in range(12)], script)
    assert server.most >= 8


def test_a_reply_out_of_schema_is_asked_again_then_taken_as_nothing() -> None:
    """Twice no decision keeps the chunk in its segment; twice no CNM leaves its fields null."""
    found, summary, server = judged(["one", "two"], lambda _: Answer("I cannot say."))
    assert [decision.continued for decision in found] == [False, True]
    assert found[0].cnm.model is None
    assert len(server.asked) == 4
    assert (summary.asked_again, summary.unread) == (2, 2)


def test_a_second_asking_may_succeed() -> None:
    """A reply in schema at the second time counts."""
    seen: list[str] = []

    def script(asked: Asked) -> Answer:
        shown = parts(asked)
        again = str(shown) in seen
        seen.append(str(shown))
        if not again:
            return Answer("no")
        return Answer(cnm(shown[0]) if len(shown) == 1 else '{"same": false}')

    found, summary, _ = judged(["one", "two"], script)
    assert [decision.cnm.model for decision in found] == ["M one", "M two"]
    assert summary.unread == 0
    assert summary.asked_again == 3


@pytest.mark.parametrize("anchor", ["previous", "first"])
def test_no_chunk_needs_no_call(anchor: Literal["previous", "first"]) -> None:
    """A document without text is decided without asking."""
    found, _, server = judged([], lambda _: Answer("unused"), anchor)
    assert found == []
    assert server.asked == []
