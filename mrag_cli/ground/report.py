"""What a stage may say to the user, without knowing whether that is a terminal, a log or a test."""

from __future__ import annotations

import unicodedata
from typing import Protocol


class Reporter(Protocol):
    """Receives a stage's notices and its failed documents."""

    def notice(self, message: str) -> None:
        """Say something worth knowing that changes nothing about the result's validity."""

    def failed(self, name: str, reason: str) -> None:
        """Record that the document or file ``name`` failed; the command ends with exit code 3."""


def visible(text: str) -> str:
    r"""Spell out control, format and surrogate characters, so that ``text`` cannot drive a terminal.

    Newline and tab stay. Every other character of the Unicode categories Cc, Cf (but the joiners
    that scripts and emoji need), Cs, Co, Zl and Zp becomes ``\xNN``, ``\uNNNN`` or ``\UNNNNNNNN``.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _harmless(character) else _spelled(character) for character in text)


def _harmless(character: str) -> bool:
    if character in "\n\t\u200c\u200d":
        return True
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
