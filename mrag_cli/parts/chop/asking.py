"""What a model is asked about chunks, and how its replies are read (the paper's Eq. 1 and 2)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from json import JSONDecoder
from typing import TYPE_CHECKING, Any

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts import tokens
from mrag_cli.parts.chop.cnm import Cnm
from mrag_cli.parts.llm.prompt import fill
from mrag_cli.parts.llm.request import Message, Request

if TYPE_CHECKING:
    from pathlib import Path

OPENING = 1_000
"""Code points of a chunk that the model is shown."""

_NEEDED = ("documents", "fields", "same", "new")
_CNM_TOKENS = 200
_CONTINUITY_TOKENS = 30
# A model that reasons spends tokens before it answers.
_REASONING_TOKENS = 2_000
_LONGEST_FIELD = 200
_SECTION = re.compile(r"^#[ \t]*(\w+)[ \t]*\n", re.MULTILINE)
_VERSION = "v1"

CNM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "category": {"type": ["string", "null"]},
        "nouns": {"type": ["array", "null"], "items": {"type": "string"}},
        "model": {"type": ["string", "null"]},
        "confidence": {"type": "number"},
    },
    "required": ["category", "nouns", "model", "confidence"],
    "additionalProperties": False,
}
CONTINUITY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"same": {"type": "boolean"}},
    "required": ["same"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Wording:
    """What category, nouns and model mean, and when a new document begins.

    Attributes:
        texts: by name: ``documents`` (the kind, in the plural), ``fields``, ``same``, ``new``.
        version: the name it goes by in the cache.
        named_by_category: a document's name is its category, not its model.
    """

    texts: dict[str, str]
    version: str
    named_by_category: bool = False


def shipped(domain: str) -> Wording:
    """Return the wording of ``product``, ``legal`` or ``policy``."""
    text = _shipped_text(domain)
    return Wording(_sections(text, domain), f"{domain}.{_VERSION}", domain != "product")


def from_file(path: Path) -> Wording:
    """Return the user's own wording: a text file with the sections of the shipped ones.

    Raises:
        UsageError: it cannot be read or lacks a section.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--domain {path} cannot be read: {error}") from None
    return Wording(_sections(text, str(path)), f"own-{hashlib.sha256(text.encode()).hexdigest()[:12]}")


def _sections(text: str, name: str) -> dict[str, str]:
    pieces = _SECTION.split(text)
    found = {title: body.strip() for title, body in zip(pieces[1::2], pieces[2::2], strict=True)}
    for needed in _NEEDED:
        if not found.get(needed):
            sections = ", ".join(f"# {section}" for section in _NEEDED)
            raise UsageError(f"--domain {name}: the section {needed!r} is missing; it needs {sections}")
    return found


def _shipped_text(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.{_VERSION}.txt").read_text("utf-8")


class Questions:
    """Makes the requests.

    Args:
        wording: of the domain.
        reasons: the model spends reply tokens on reasoning.
    """

    def __init__(self, wording: Wording, *, reasons: bool = False) -> None:
        self.wording = wording
        self._cnm = fill(_shipped_text("cnm"), wording.texts).strip()
        self._continuity = fill(_shipped_text("continuity"), wording.texts).strip()
        self._more = _REASONING_TOKENS if reasons else 0

    @property
    def version(self) -> str:
        """What the replies depend on, for digests."""
        return f"{_VERSION} {self.wording.version}"

    def cnm(self, chunk: str, *, attempt: int = 0, order: int = 0) -> Request:
        """Ask for the CNM of a chunk; its first 1,000 code points are shown."""
        return self._request(
            "cnm", self._cnm, chunk[:OPENING], CNM_SCHEMA, _CNM_TOKENS + self._more, attempt, order
        )

    def continuity(self, anchor: str, chunk: str, *, attempt: int = 0, order: int = 0) -> Request:
        """Ask whether ``chunk`` belongs to the same document as ``anchor``; both are shown as in `cnm`."""
        shown = f"## Anchor\n\n{anchor[:OPENING]}\n\n## Later chunk\n\n{chunk[:OPENING]}"
        return self._request(
            "continuity",
            self._continuity,
            shown,
            CONTINUITY_SCHEMA,
            _CONTINUITY_TOKENS + self._more,
            attempt,
            order,
        )

    def _request(
        self,
        purpose: str,
        system: str,
        shown: str,
        schema: dict[str, Any],
        limit: int,
        attempt: int,
        order: int,
    ) -> Request:
        return Request(
            messages=(Message("system", system, len(system)), Message("user", shown)),
            max_tokens=limit,
            purpose=f"chop {purpose} {self.version}",
            schema=schema,
            prompt_tokens=tokens.count(system) + tokens.count(shown) + 16,
            attempt=attempt,
            order=order,
        )

    def read_cnm(self, text: str) -> tuple[Cnm, bool]:
        """Return the CNM that a reply holds and whether it fits the schema; a field that does not is null."""
        found = _object(text)
        if found is None:
            return Cnm(), False
        category, right_category = _name(found.get("category"))
        model, right_model = _name(found.get("model"))
        nouns, right_nouns = _nouns(found.get("nouns"))
        confidence, right_confidence = _confidence(found.get("confidence"))
        subject = category if self.wording.named_by_category else model
        right = right_category and right_model and right_nouns and right_confidence
        return Cnm(category, nouns, model, confidence, subject), right


def read_continuity(text: str) -> bool | None:
    """Return the decision that a reply holds, None when it holds none."""
    found = _object(text)
    same = found.get("same") if found is not None else None
    return same if isinstance(same, bool) else None


def _object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a reply, whatever stands around it."""
    decoder = JSONDecoder(strict=False)
    place = text.find("{")
    while place >= 0:
        try:
            found, _ = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        return found if isinstance(found, dict) else None
    return None


def _name(value: object) -> tuple[str | None, bool]:
    if value is None:
        return None, True
    if not isinstance(value, str):
        return None, False
    cleaned = " ".join(value.encode("utf-8", "ignore").decode().replace("\x00", "").split())
    if cleaned.casefold() in ("", "null", "none", "n/a", "unknown"):
        return None, True
    return (cleaned, True) if len(cleaned) <= _LONGEST_FIELD else (None, False)


def _nouns(value: object) -> tuple[tuple[str, ...], bool]:
    if value is None:
        return (), True
    if not isinstance(value, list) or len(value) > 2:
        return (), False
    named = [_name(entry) for entry in value]
    if not all(right for _, right in named):
        return (), False
    return tuple(name for name, _ in named if name), True


def _confidence(value: object) -> tuple[float, bool]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return 0.0, value is None
    return float(value), True
