"""JSON lines, and typed access to their fields with errors that say where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from mrag_cli.ground.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_BOM = b"\xef\xbb\xbf"
_REQUIRED: Any = object()


def read_json_lines(lines: Iterable[bytes], path: str) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    r"""Yield ``(line number from 1, line without newline, object)`` for each line that is not blank.

    A byte order mark before the first line is accepted; only ``\n`` ends a line.

    Raises:
        InputError: a line is not one JSON object in UTF-8.
    """
    for number, raw in enumerate(lines, 1):
        line = raw.removeprefix(_BOM) if number == 1 else raw
        line = line.rstrip(b"\r\n")
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(path, number, f"not JSON ({error}); {_json_hint(line)}") from None
        if not isinstance(value, dict):
            raise InputError(
                path, number, f"a {type(value).__name__}, not a JSON object; one object a line is expected"
            )
        yield number, line, value


def _json_hint(line: bytes) -> str:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in line:
        return "the file looks like UTF-16: convert it to UTF-8"
    if b"\\ud" in line.lower():
        return "an unpaired surrogate escape cannot be read: fix or remove that line"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "the line is not UTF-8: convert the file to UTF-8"
    return "fix or remove that line"


class Fields:
    """Typed access to one JSON object's fields, with errors that say where and which.

    Args:
        path: the file as the user named it.
        line: line number from 1.
        value: the object.
    """

    __slots__ = ("line", "path", "value")

    def __init__(self, path: str, line: int, value: Mapping[str, Any]) -> None:
        self.path = path
        self.line = line
        self.value = value

    def error(self, message: str) -> InputError:
        """Return an error about this object."""
        return InputError(self.path, self.line, message)

    def _get(self, name: str, kinds: type | tuple[type, ...], expected: str, default: Any) -> Any:
        found = self.value.get(name)
        if found is None:
            if default is not _REQUIRED:
                return default
            raise self.error(f'field "{name}" is missing; {expected} is expected')
        if not isinstance(found, kinds) or isinstance(found, bool):
            raise self.error(f'field "{name}" is {shown(found)}; {expected} is expected')
        return found

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string field; without a ``default`` it must be there."""
        found: str = self._get(name, str, "a string", _REQUIRED if default is None else default)
        return found

    def identifier(self, name: str) -> str:
        """Return a string field that must be there and not be blank."""
        found = self.text(name)
        if not found.strip():
            raise self.error(f'field "{name}" is blank; a document needs an id')
        return found

    def count(self, name: str, default: int | None = None, least: int = 0) -> int:
        """Return an integer field of at least ``least``."""
        found: int = self._get(name, int, "a whole number", _REQUIRED if default is None else default)
        if found < least:
            raise self.error(f'field "{name}" is {found}; at least {least} is expected')
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of strings, empty when it is not there."""
        found = self._get(name, list, "a list of strings", [])
        if not all(isinstance(entry, str) for entry in found):
            raise self.error(f'field "{name}" is {shown(found)}; a list of strings is expected')
        return tuple(found)

    def numbers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return a field that is a list of whole numbers."""
        found = self._get(
            name, list, "a list of whole numbers", _REQUIRED if default is None else list(default)
        )
        if not all(type(entry) is int for entry in found):
            raise self.error(f'field "{name}" is {shown(found)}; a list of whole numbers is expected')
        return tuple(found)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a field that is a JSON object, empty when it is not there."""
        found: dict[str, Any] = self._get(name, dict, "an object", {})
        return found

    def rest(self, known: frozenset[str]) -> dict[str, Any]:
        """Return the fields whose names are not in ``known``."""
        return {name: value for name, value in self.value.items() if name not in known}


def shown(value: Any) -> str:
    """Return a value as JSON of at most 60 characters, for messages."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else text[:57] + "…"
