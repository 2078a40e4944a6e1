"""The CNM of a chunk: category, nouns, model (the paper's Eq. 1), and how it is written before the chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mrag_cli.parts.chop.product import id_term, product_names


@dataclass(frozen=True, slots=True)
class Cnm:
    """What a chunk is about.

    Attributes:
        category: the broad family ("coffee machine"; for a statute the body of law), or None.
        nouns: one or two key nouns, the first "<category> <specific noun>"; empty for none.
        model: the model or series (for a statute the article's number), or None.
        confidence: from 0 to 1.
        subject: what the ids are made from: the model, or where the domain says so the category.
    """

    category: str | None = None
    nouns: tuple[str, ...] = ()
    model: str | None = None
    confidence: float = 0.0
    subject: str | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the products (statutes, policies) it names, the main one first."""
        return tuple(id_term(name) for name in product_names(self.subject)) if self.subject else ()

    def record(self, *, segment: int, continued: bool) -> dict[str, Any]:
        """Return the ``cnm`` field of a marker; ``continued`` is the continuity decision (Eq. 2)."""
        return {
            "category": self.category,
            "nouns": list(self.nouns),
            "model": self.model,
            "confidence": self.confidence,
            "id": list(self.ids),
            "segment": segment,
            "continued": continued,
        }
