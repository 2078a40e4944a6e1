import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.decoding import Undecodable, decode, is_binary

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=40)


@given(_TEXT)
def test_utf8_needs_no_guess(text: str) -> None:
    """UTF-8 comes back as it was, with a byte order mark or without."""
    assert decode(text.removeprefix("\ufeff").encode("utf-8-sig")) == (text.removeprefix("\ufeff"), None)
    if not text.startswith("\ufeff"):
        assert decode(text.encode()) == (text, None)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_byte_order_marks(mark: bytes, encoding: str) -> None:
    """A byte order mark decides, and such text is not binary."""
    data = mark + "Pumpe 水泵\r\n".encode(encoding)
    assert not is_binary(data)
    assert decode(data) == ("Pumpe 水泵\n", None)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Die Pumpe fördert vierzig Liter. Schließen Sie erst das Ventil, öffnen Sie die Klappe.", "cp1252"),
        ("La pompe débite quarante litres à la minute. Fermez d’abord la vanne.", "cp1252"),
        ("café", "cp1252"),
        ("水泵的流量为每分钟四十升。请先关闭阀门，然后打开盖子。", "gb18030"),
        ("水泵的流量為每分鐘四十升。請先關閉閥門，然後打開蓋子。", "big5"),
        ("今日は天気がいいです。散歩に行きましょう。", "cp932"),
        ("Насос перекачивает сорок литров в минуту. Сначала закройте вентиль.", "cp1251"),
        ("Насос перекачивает сорок литров в минуту. Сначала закройте вентиль.", "koi8-r"),
    ],
)  # fmt: skip
def test_legacy_encodings_are_detected(text: str, encoding: str) -> None:
    """Text in an old encoding is read, and the encoding that was guessed is named."""
    found, guessed = decode(text.encode(encoding))
    assert found == text
    assert guessed


def test_html_says_its_own_encoding() -> None:
    """What a page declares is believed, unless it is UTF-8 after all."""
    page = '<html><head><meta charset="{}"></head><body>Zamknij zawór, żeby otworzyć.</body></html>'
    assert decode(page.format("iso-8859-2").encode("iso-8859-2"), html=True) == (
        page.format("iso-8859-2"),
        None,
    )
    assert decode(page.format("iso-8859-2").encode(), html=True) == (page.format("iso-8859-2"), None)
    assert decode(b'<meta charset="nonsense">caf\xe9', html=True) == (
        '<meta charset="nonsense">café',
        "cp1252",
    )


def test_line_ends_become_newlines() -> None:
    """Lines ended by CR LF or CR end in a newline."""
    assert decode(b"a\r\nb\rc\n") == ("a\nb\nc\n", None)


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00\xd8", bytes(range(255, 0, -1)) + bytes(range(1, 9)) * 9, b"\xef\xbb\xbf\xff"]
)
def test_what_no_encoding_reads(data: bytes) -> None:
    """Bytes that are no text are refused with a reason."""
    with pytest.raises(Undecodable, match="UTF"):
        decode(data)


@given(st.binary(max_size=60))
def test_decoded_text_can_be_written(data: bytes) -> None:
    """Whatever is read can be written as UTF-8, and has no carriage return."""
    try:
        text, _ = decode(data)
    except Undecodable:
        return
    text.encode()
    assert "\r" not in text


@pytest.mark.parametrize(
    ("data", "binary"),
    [(b"%PDF-1.7 x", True), (b"PK\x03\x04", True), (b"a\0b", True), (b"text", False), (b"", False)],
)
def test_binaries(data: bytes, binary: bool) -> None:
    """A known beginning or a NUL byte makes a binary file."""
    assert is_binary(data) is binary
