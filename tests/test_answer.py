"""Answers from a packed context, with citations."""

import asyncio

import pytest

from mrag_cli.parts.llm.client import Client, ClientSettings
from mrag_cli.parts.llm.request import Reply, Request, Usage
from mrag_cli.parts.llm.transport import Arrived
from mrag_cli.parts.packing import Evidence, Packed, pack
from mrag_cli.stages.answer import UNKNOWN, Answer, answer, answer_json, request_for

MODEL = "openai/loopback"


def _packed(*texts: str, header: str = "") -> Packed:
    evidence = [
        Evidence(rank, f"doc{rank}", (1,), text, len(text), len(text) + 1, header, 3 if header else 0)
        for rank, text in enumerate(texts, 1)
    ]
    return pack(evidence, 10_000, strict_prefix=False, order="similarity")


class _Saying:
    """A transport that says one text, whatever it is asked."""

    def __init__(self, text: str, finish: str = "stop") -> None:
        self.text = text
        self.finish = finish
        self.asked: list[Request] = []

    async def send(self, request: Request, on_text: object) -> Arrived:
        self.asked.append(request)
        if callable(on_text):
            on_text(self.text)
        return Arrived(self.text, self.finish, Usage(10, 5, 2), None)

    async def close(self) -> None:
        pass


def _asked(text: str, packed: Packed, finish: str = "stop") -> tuple[Answer, _Saying]:
    transport = _Saying(text, finish)
    client = Client(ClientSettings(MODEL), transport=transport)
    return asyncio.run(answer(client, "When does it open?", packed)), transport


def test_passages_are_numbered_in_the_order_of_the_context() -> None:
    """The prompt holds the question and each packed value under its number, its header before it."""
    request = request_for(" When does it open? ", _packed("At nine.", "On Mondays.", header="Museum"))
    text = request.messages[0].text
    assert "[1] Museum: At nine.\n\n[2] Museum: On Mondays." in text
    assert text.rstrip().endswith("When does it open?")
    assert UNKNOWN in text
    assert request.prompt_tokens > 100


def test_a_question_cannot_fill_a_placeholder() -> None:
    """What documents and questions hold is never read as a placeholder of the prompt."""
    text = request_for("{{passages}}", _packed("{{question}} and {{unknown}}")).messages[0].text
    assert "[1] {{question}} and {{unknown}}" in text
    assert text.rstrip().endswith("{{passages}}")


@pytest.mark.parametrize(
    ("text", "citations", "wrong"),
    [
        ("At nine [2].", (2,), ()),
        ("At nine [2][1]. On Mondays [1].", (2, 1), ()),
        ("At nine [1, 2].", (1, 2), ()),
        ("九点开门【2】。", (2,), ()),
        ("At nine [7].", (), (7,)),
        ("At nine.", (), ()),
    ],
)
def test_citations_are_read(text: str, citations: tuple[int, ...], wrong: tuple[int, ...]) -> None:
    """Citations are the numbers in brackets, in order of mention; numbers of no passage are told apart."""
    found, _ = _asked(text, _packed("At nine.", "On Mondays."))
    assert found.citations == citations
    assert found.wrong_citations == wrong
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "uncited"),
    [
        ("It opens at nine [1]. It is free.", ("It is free.",)),
        ("It opens at nine. [1] It is free. [2]", ()),
        ("It opens at nine [1]. It is free [2].", ()),
        (UNKNOWN, ()),
    ],
)
def test_statements_without_a_citation_are_named(text: str, uncited: tuple[str, ...]) -> None:
    """Each sentence that cites nothing is listed; a citation after the full stop belongs to its sentence."""
    assert _asked(text, _packed("At nine.", "On Mondays."))[0].uncited == uncited


def test_an_empty_context_needs_no_call() -> None:
    """Without evidence the answer is that the evidence does not say, and nothing is paid for."""
    found, transport = _asked("never", _packed())
    assert found.text == UNKNOWN
    assert not found.known
    assert transport.asked == []


def test_an_empty_reply_is_no_answer() -> None:
    """A refusal without text counts as not known."""
    found, _ = _asked("  ", _packed("At nine."))
    assert (found.text, found.known) == (UNKNOWN, False)


def test_a_truncated_answer_is_said() -> None:
    """An answer that ran into its limit says so."""
    assert _asked("At ni", _packed("At nine."), "length")[0].truncated


def test_the_json_has_answer_citations_and_usage() -> None:
    """The JSON names the document of each cited passage and the tokens that were used."""
    packed = _packed("At nine.", "On Mondays.")
    found, _ = _asked("On Mondays [2].", packed)
    record = answer_json(found, packed)
    assert record["answer"] == "On Mondays [2]."
    assert record["citations"] == [{"number": 2, "doc": "doc2", "rank": 2}]
    assert record["usage"]["prompt_tokens"] == 10
    assert record["usage"]["completion_tokens"] == 5
    assert record["known"] is True


def test_pieces_arrive_while_the_model_speaks() -> None:
    """The caller is given the text as it arrives."""
    pieces: list[str] = []
    client = Client(ClientSettings(MODEL), transport=_Saying("At nine [1]."))
    asyncio.run(answer(client, "When?", _packed("At nine."), pieces.append))
    assert "".join(pieces) == "At nine [1]."
    assert Reply("", "stop", Usage()).text == ""
