"""Packing evidence into a context under a token budget (the paper's Eq. 6 and 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mrag_cli.parts.tokens import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Evidence(NamedTuple):
    """A text that may go into the context.

    Attributes:
        rank: of its marker, from 1.
        doc: id of its document.
        position: where it stands in the document, comparable within it.
        text: the text, without white space at its ends.
        tokens: tokens of ``text``.
        cost: tokens of ``text`` with the separator after it.
        header: a title that stands once above all evidence of this document with the same header; or empty.
        header_cost: tokens of the header's line.
    """

    rank: int
    doc: str
    position: tuple[int, ...]
    text: str
    tokens: int
    cost: int
    header: str = ""
    header_cost: int = 0


class Sealed(NamedTuple):
    """Evidence that is read only if it may fit.

    Attributes:
        rank, tokens, cost: as the evidence has them.
        opened: reads it.
    """

    rank: int
    tokens: int
    cost: int
    opened: Callable[[], Evidence]


class Packed(NamedTuple):
    """A packed context.

    Attributes:
        evidence: what is in it, in the order of the context.
        tokens: tokens of ``context``, never more than the budget.
        reasons: for each rank that was considered, ``packed`` if any of its evidence is in the context, or
            why none is.
        context: the text.
    """

    evidence: tuple[Evidence, ...]
    tokens: int
    reasons: dict[int, str]
    context: str


def pack(candidates: Iterable[Evidence | Sealed], budget: int, *, strict_prefix: bool, order: str) -> Packed:
    """Take candidates in rank order while they fit into the budget.

    A token count is additive here because a separator always ends a token: the context's count is the sum
    of its parts' stored counts, without a tokenizer at hand.

    Args:
        candidates: in rank order; several may share a rank.
        budget: in tokens.
        strict_prefix: stop at the first that does not fit (Eq. 13), rather than skip it and go on.
        order: ``similarity``: by rank, evidence under one header together in document order, where the
            first of it ranks; ``position``: documents by their best rank, each in document order.
    """
    taken: list[Evidence] = []
    texts: set[str] = set()
    headers: set[tuple[str, str]] = set()
    reasons: dict[int, str] = {}
    used = 0
    saved: int | None = None
    for found in candidates:
        last = found.cost - found.tokens
        saving = last if saved is None else min(saved, last)
        if isinstance(found, Sealed):
            if used + found.cost - saving > budget and not strict_prefix:
                reasons.setdefault(found.rank, _too_many(found.tokens, budget - used))
                continue
            candidate = found.opened()
        else:
            candidate = found
        under = (candidate.doc, candidate.header)
        if not candidate.text or candidate.text in texts:
            same = "the same text is in the context already" if candidate.text else "it is empty"
            reasons.setdefault(candidate.rank, same)
            continue
        header_cost = candidate.header_cost if under not in headers else 0
        total = used + candidate.cost + header_cost
        if total - saving > budget:
            reasons.setdefault(candidate.rank, _too_many(candidate.tokens + header_cost, budget - used))
            if strict_prefix:
                break
            continue
        taken.append(candidate)
        texts.add(candidate.text)
        if candidate.header:
            headers.add(under)
        used, saved = total, saving
        reasons[candidate.rank] = "packed"
    return _laid_out(taken, reasons, order)


def _too_many(tokens: int, left: int) -> str:
    return f"{tokens} tokens do not fit into the {max(left, 0)} left"


def _laid_out(taken: Sequence[Evidence], reasons: dict[int, str], order: str) -> Packed:
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for number, evidence in enumerate(taken):
        key = (evidence.doc, evidence.header) if evidence.header else (evidence.doc, "", str(number))
        groups.setdefault(key, []).append(evidence)
    for group in groups.values():
        group.sort(key=lambda evidence: evidence.position)
    blocks = list(groups.values())
    if order == "position":
        documents = {evidence.doc: number for number, evidence in reversed(list(enumerate(taken)))}
        blocks.sort(key=lambda group: (documents[group[0].doc], group[0].position))
    laid_out = [evidence for group in blocks for evidence in group]
    tokens = sum(evidence.cost for evidence in laid_out) + sum(group[0].header_cost for group in blocks)
    if laid_out:
        tokens += laid_out[-1].tokens - laid_out[-1].cost
    context = SEPARATOR.join(
        (f"{group[0].header}\n" if group[0].header else "")
        + SEPARATOR.join(evidence.text for evidence in group)
        for group in blocks
    )
    return Packed(tuple(laid_out), tokens, reasons, context)
