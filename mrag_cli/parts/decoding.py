"""Bytes of unknown origin into text, or the reason why they are none."""

from __future__ import annotations

import codecs
import re

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY_STARTS = (
    b"%PDF-",
    b"%!PS",
    b"{\\rtf",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"RIFF",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"7z\xbc\xaf",
    b"(\xb5/\xfd",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x7fELF",
    b"MZ\x90",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xd0\xcf\x11\xe0",
    b"OggS",
    b"ID3",
    b"SQLite format 3",
    b"wOFF",
)
_DECLARED = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([-\w.:]+)", re.IGNORECASE)
# What browsers take these names for: the larger encoding that agrees with the one named.
_SUPERSETS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "shift_jis": "cp932",
}
# Below this the detector is guessing, and the commonest encoding is the better guess.
_GUESS = 0.1
_SAMPLE = 1 << 16


class Undecodable(Exception):
    """The bytes are no text in any encoding that can be told; the message says why."""


def is_binary(data: bytes) -> bool:
    """Tell whether ``data`` is no text: it begins as a known binary format does, or holds a NUL byte.

    Text with a byte order mark is text, whatever it holds.
    """
    if data.startswith(tuple(mark for mark, _ in _BYTE_ORDER_MARKS)):
        return False
    return data.startswith(_BINARY_STARTS) or b"\0" in data


def decode(data: bytes, *, html: bool = False) -> tuple[str, str | None]:
    r"""Return the text of ``data``, its lines ended by ``\n``, and its encoding if that had to be guessed.

    A byte order mark decides; else UTF-8 if it is that; else, in HTML, what the page declares; else what the
    bytes look like. The text holds no lone surrogate.

    Raises:
        Undecodable: none of these reads it.
    """
    text, guessed = _decoded(data, html=html)
    return text.replace("\r\n", "\n").replace("\r", "\n"), guessed


def _decoded(data: bytes, *, html: bool) -> tuple[str, str | None]:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding), None
            except UnicodeDecodeError as error:
                place = error.start + len(mark)
                raise Undecodable(
                    f"its byte order mark says {encoding.upper()}, but byte {place} is not; convert to UTF-8"
                ) from None
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        wrong = error.start
    if html and (declared := _DECLARED.search(data, 0, 4096)):
        text = _text_as(data, declared.group(1).decode("ascii", "replace"))
        if text is not None:
            return text, None
    guessed = _detected(data, wrong)
    text = _text_as(data, guessed) if guessed else None
    if text is None:
        raise Undecodable(f"not UTF-8 (byte {wrong}), and no other encoding fits; convert it to UTF-8")
    return text, guessed


def _detected(data: bytes, wrong: int) -> str | None:
    import chardet

    # The bytes outside ASCII are what tells encodings apart.
    start = max(0, wrong - 1024)
    found = chardet.detect(
        data[start : start + _SAMPLE],
        encoding_era=chardet.EncodingEra.MODERN_WEB | chardet.EncodingEra.LEGACY_ISO,
    )
    encoding = found["encoding"]
    if encoding and found["confidence"] < _GUESS and _text_as(data, "cp1252") is not None:
        return "cp1252"
    return encoding


def _text_as(data: bytes, encoding: str) -> str | None:
    try:
        name = codecs.lookup(encoding).name
        text = data.decode(_SUPERSETS.get(name, name))
        text.encode()
    except (LookupError, UnicodeError):
        return None
    return text
