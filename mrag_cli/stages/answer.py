"""A packed context -> an answer with citations (the paper's Eq. 7)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrag_cli.parts.llm.prompt import fill, shipped
from mrag_cli.parts.llm.request import Message, Request, Usage
from mrag_cli.parts.sentences import sentences
from mrag_cli.parts.tokens import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrag_cli.parts.llm.client import Client
    from mrag_cli.parts.packing import Evidence, Packed

UNKNOWN = "The evidence does not say."
"""What an answer is when the context does not hold it."""
PROMPT = "answer.v1"
LONGEST_ANSWER = 1024

_CITATION = re.compile(r"[\[【]\s*(\d+(?:\s*[,;，、]\s*\d+)*)\s*[\]】]")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        text: what the model said, or `UNKNOWN`.
        citations: numbers of the passages it cites, in order of first mention; each is in the context.
        uncited: its sentences that cite nothing.
        wrong_citations: numbers it cites that no passage has.
        usage: tokens of the call, nothing where none was made.
        cost: US dollars, or None when the price is unknown.
        from_cache: no call was made for it.
        truncated: it ran into its token limit.
    """

    text: str
    citations: tuple[int, ...] = ()
    uncited: tuple[str, ...] = ()
    wrong_citations: tuple[int, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    from_cache: bool = False
    truncated: bool = False

    @property
    def known(self) -> bool:
        """Whether the evidence holds an answer, as far as the model can tell."""
        return self.text.strip().strip("\"'*") != UNKNOWN


def request_for(question: str, packed: Packed, longest: int = LONGEST_ANSWER) -> Request:
    """Return the call that answers a question from a context.

    Passages are numbered from 1 in the order of the context; each begins with its header, if it has one.
    """
    passages = "\n\n".join(
        f"[{number}] {_passage(evidence)}" for number, evidence in enumerate(packed.evidence, 1)
    )
    text = fill(
        shipped(PROMPT).text, {"unknown": UNKNOWN, "passages": passages, "question": question.strip()}
    )
    return Request((Message("user", text),), longest, PROMPT, prompt_tokens=count(text))


def _passage(evidence: Evidence) -> str:
    return f"{evidence.header}: {evidence.text}" if evidence.header else evidence.text


async def answer(
    client: Client,
    question: str,
    packed: Packed,
    on_text: Callable[[str], None] | None = None,
    longest: int = LONGEST_ANSWER,
) -> Answer:
    """Return the model's answer to a question from a packed context; an empty one needs no call.

    Args:
        client: asks the model, through cache and limits.
        question: the question.
        packed: the context.
        on_text: given each piece of the answer as it arrives.
        longest: most tokens of the answer.

    Raises:
        CallFailed, ModelError, LimitReached: as `Client.ask`.
    """
    if not packed.evidence:
        if on_text is not None:
            on_text(UNKNOWN)
        return Answer(UNKNOWN)
    reply = await client.stream(request_for(question, packed, longest), on_text)
    text = reply.text.strip() or UNKNOWN
    found = list(dict.fromkeys(number for cited in _CITATION.findall(text) for number in _numbers(cited)))
    passages = range(1, len(packed.evidence) + 1)
    return Answer(
        text=text,
        citations=tuple(number for number in found if number in passages),
        uncited=_uncited(text) if text != UNKNOWN else (),
        wrong_citations=tuple(number for number in found if number not in passages),
        usage=reply.usage,
        cost=reply.cost,
        from_cache=reply.from_cache,
        truncated=reply.truncated,
    )


def _numbers(cited: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(cited)]


def _uncited(text: str) -> tuple[str, ...]:
    """Return the sentences without a citation; one that stands after the full stop belongs before it."""
    moved = re.sub(r"([.!?。！？])(\s*(?:[\[【][\d,;，、\s]+[\]】]\s*)+)", r"\2\1 ", text)
    found = (moved[start:end].strip() for start, end in sentences(moved))
    return tuple(sentence for sentence in found if sentence and not _CITATION.search(sentence))


def answer_json(given: Answer, packed: Packed) -> dict[str, Any]:
    """Return an answer, its citations with where they come from, and its usage as JSON fields."""
    return {
        "answer": given.text,
        "known": given.known,
        "citations": [
            {
                "number": number,
                "doc": packed.evidence[number - 1].doc,
                "rank": packed.evidence[number - 1].rank,
            }
            for number in given.citations
        ],
        "uncited": given.uncited,
        "wrong_citations": given.wrong_citations,
        "usage": {
            "prompt_tokens": given.usage.prompt,
            "completion_tokens": given.usage.completion,
            "cached_tokens": given.usage.cached,
            "cost": given.cost,
            "from_cache": given.from_cache,
        },
    }
