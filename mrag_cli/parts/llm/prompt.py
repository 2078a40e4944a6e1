"""Prompts: text files with placeholders, and the extraction requests made from them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts import tokens
from mrag_cli.parts.llm.request import Message, Request
from mrag_cli.parts.llm.windows import Limits, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mrag_cli.parts.llm.replies import Record
    from mrag_cli.parts.llm.windows import Piece, Plan

VARIANTS = {"a": "extract_a.v1", "b": "extract_b.v1", "c": "extract_c.v1"}
"""The shipped extraction prompts: the same sections in three orders, as the paper compares them (Table V)."""

PLACEHOLDERS = {
    "keys": "the wish for further keys, empty when one is enough",
    "language": "a sentence that names the language to write in",
    "examples": "the few-shot examples, empty without --examples",
    "document": "the document, or its title and outline when it is long; required",
    "window": "units that the document part does not show; required",
    "units": "the numbers of the units to write markers for; required",
    "count": "how many markers to expect",
}
_REQUIRED = ("document", "window", "units")
_CONSTANT = ("keys", "language", "examples")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_TOKENS_A_MARKER = 128


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt's text and the name its version goes by in the cache."""

    text: str
    version: str

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the text with its placeholders replaced; what they bring in is not looked at again."""
        return fill(self.text, values)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace each ``{{name}}`` that ``values`` has."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def shipped(name: str) -> PromptFile:
    """Return a prompt that comes with the package, such as ``extract_a.v1``."""
    return PromptFile(files(__package__).joinpath("prompts", f"{name}.txt").read_text("utf-8"), name)


def from_file(path: Path) -> PromptFile:
    """Return the user's own extraction prompt; the placeholders are those of `PLACEHOLDERS`.

    Raises:
        UsageError: it cannot be read, lacks a required placeholder, has an unknown one, or has one of the
            placeholders that change from call to call before ``{{document}}``.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompt {path} cannot be read: {error}") from None
    found = _PLACEHOLDER.findall(text)
    for name in found:
        if name not in PLACEHOLDERS:
            raise UsageError(
                f"--prompt {path}: there is no placeholder {{{{{name}}}}}; there are "
                + ", ".join(f"{{{{{known}}}}}" for known in PLACEHOLDERS)
            )
    for name in _REQUIRED:
        if found.count(name) != 1:
            raise UsageError(f"--prompt {path}: {{{{{name}}}}} must stand in it once")
    before = text[: text.index("{{document}}")]
    for name in PLACEHOLDERS.keys() - _CONSTANT - {"document"}:
        if f"{{{{{name}}}}}" in before:
            raise UsageError(
                f"--prompt {path}: {{{{{name}}}}} stands before {{{{document}}}}; what changes from call to "
                "call comes after it, so that providers can cache what does not"
            )
    return PromptFile(text, f"own-{hashlib.sha256(text.encode()).hexdigest()[:12]}")


class ExtractionPrompt:
    """Makes the requests for a document's windows from a prompt.

    What comes before ``{{document}}`` is the system message, the same for all documents.

    Args:
        prompt: the text.
        keys: keys wanted for each marker, at least 1.
        language: the language to write in, or None for the document's own.
        examples: few-shot examples.
    """

    def __init__(
        self,
        prompt: PromptFile,
        *,
        keys: int = 1,
        language: str | None = None,
        examples: Sequence[Record] = (),
    ) -> None:
        before, _, self._after = prompt.text.partition("{{document}}")
        constant = {
            "keys": _wish_for_keys(keys),
            "language": f"Write keys and values in {language}."
            if language
            else "Write keys and values in the language of the document itself.",
            "examples": _shown_examples(examples, keys),
        }
        self._system = fill(before, constant).strip()
        self._after = fill(self._after, constant)
        self._purpose = f"extract {prompt.version}"
        self.keys = keys
        self.instruction_tokens = tokens.count(self._system) + tokens.count(self._after) + 64

    def request(
        self, plan: Plan, window: Sequence[Piece], limits: Limits, *, attempt: int = 0, order: int = 0
    ) -> Request:
        """Return the request for markers of a window's units."""
        shown = sum(piece.tokens for piece in window)
        carried, carried_tokens = plan.carried(window)
        rest = fill(
            self._after,
            {
                "window": f"=== Units, some of them neighbours for context ===\n\n{carried}\n\n"
                if carried
                else "",
                "units": numbers({piece.unit for piece in window}),
                "count": str(max(1, round(shown / _TOKENS_A_MARKER))),
            },
        )
        prompt_tokens = self.instruction_tokens + plan.prefix_tokens + carried_tokens
        return Request(
            messages=(
                Message("system", self._system, len(self._system)),
                Message("user", plan.prefix + rest, len(plan.prefix)),
            ),
            max_tokens=limits.max_tokens(shown, prompt_tokens),
            purpose=self._purpose,
            schema=marker_schema(self.keys),
            prompt_tokens=prompt_tokens,
            attempt=attempt,
            order=order,
        )


def _wish_for_keys(keys: int) -> str:
    if keys == 1:
        return ""
    return (
        f'\nEach marker also has "aliases": a list of {keys - 1} further keys for the same value, each in '
        "other words or from another point of view than the key."
    )


def _shown_examples(examples: Sequence[Record], keys: int) -> str:
    if not examples:
        return ""
    import orjson

    shown = [
        {
            "key": example.key,
            **({"aliases": example.aliases[: keys - 1]} if keys > 1 else {}),
            "value": example.value,
            "pointers": example.pointers,
        }
        for example in examples
    ]
    text = orjson.dumps({"markers": shown}).decode()
    return (
        "## Example\n\nMarkers of another document, to show their form. Never repeat their content.\n"
        f"{text}\n\n"
    )


def marker_schema(keys: int) -> dict[str, Any]:
    """Return the JSON schema of a reply with ``keys`` keys a marker."""
    text = {"type": "string"}
    fields: dict[str, Any] = {"key": text}
    if keys > 1:
        fields["aliases"] = {"type": "array", "items": text}
    fields |= {"value": text, "pointers": {"type": "array", "items": {"type": "integer"}}}
    marker = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"markers": {"type": "array", "items": marker}},
        "required": ["markers"],
        "additionalProperties": False,
    }
