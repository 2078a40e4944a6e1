import io
import json
from pathlib import Path

import pytest
from heard import Heard

from mrag_cli.ground.errors import InputError
from mrag_cli.parts.sources import Source, Sources


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the test runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _read(
    *paths: str, heard: Heard | None = None, as_name: str | None = None, stdin: bytes = b""
) -> list[Source]:
    return list(Sources(paths, heard or Heard(), as_name=as_name, stdin=io.BytesIO(stdin)))


def _rows(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_kinds_of_files(here: Path) -> None:
    """Markdown, HTML and plain text are told apart by name; a page's text is turned into Markdown."""
    (here / "a.md").write_text("# A\n\ntext\r\nmore")
    (here / "b.HTM").write_text("<title>Page</title><h2>B</h2><p>text</p>")
    (here / "c.py").write_text("# no heading")
    (here / "d.htm").write_text("<p>text</p>")
    assert _read("a.md", "b.HTM", "c.py", "d.htm") == [
        Source("a.md", "# A\n\ntext\nmore", "markdown", fallback_title="a"),
        Source("b.HTM", "## B\n\ntext", "markdown", fallback_title="Page"),
        Source("c.py", "# no heading", "text", fallback_title="c"),
        Source("d.htm", "text", "markdown", fallback_title="d"),
    ]


def test_rows(here: Path) -> None:
    """A row is a document by its id, with title and meta; LongBench's names do as well, answers stay out."""
    (here / "rows.jsonl").write_text(
        "\ufeff"
        + _rows(
            {"id": "x", "text": "one\r\ntwo", "title": " X ", "meta": {"year": 3}},
            {"_id": "y", "context": "three", "input": "q", "answers": ["a"]},
            {"id": 7, "text": ""},
        )
    )
    assert _read("rows.jsonl") == [
        Source("x", "one\ntwo", "markdown", "X", "x", {"year": 3}),
        Source("y", "three", "markdown", "", "y"),
        Source("7", "", "markdown", "", "7"),
    ]
    assert [source.doc for source in _read("rows.jsonl", as_name="exam")] == ["exam/x", "exam/y", "exam/7"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "rows.jsonl:2: not JSON"),
        ("[]", "rows.jsonl:2: a list"),
        ('{"id":"z"}', 'rows.jsonl:2: no field "text"'),
        ('{"text":"z"}', 'rows.jsonl:2: no field "id"'),
        ('{"id":" ","text":"z"}', 'rows.jsonl:2: field "id" is blank'),
        ('{"id":"z","text":3}', 'rows.jsonl:2: field "text" is 3'),
        ('{"id":"z","text":"\\ud800"}', "rows.jsonl:2: not JSON .*unpaired surrogate"),
        ('{"type":"unit","doc":"a","unit":1,"text":"t"}', "rows.jsonl:2: a unit record.*mrag extract"),
        ('{"id":"x","text":"other"}', r"rows.jsonl:2: id 'x' comes twice.*rows.jsonl:1"),
    ],
)
def test_wrong_rows(here: Path, line: str, message: str) -> None:
    """A line that is no row is said with its file, its line and what is wrong."""
    (here / "rows.jsonl").write_text('{"id":"x","text":"t"}\n' + line + "\n")
    with pytest.raises(InputError, match=message):
        _read("rows.jsonl")


def test_a_row_that_comes_again(here: Path) -> None:
    """The same row twice is one document, with a notice, also from two files."""
    for name in ("a.jsonl", "b.ndjson"):
        (here / name).write_text(_rows({"id": "x", "text": "t"}))
    heard = Heard()
    assert [source.doc for source in _read("a.jsonl", "b.ndjson", heard=heard)] == ["x"]
    assert heard.notices == ["b.ndjson:1: 'x' again, as at a.jsonl:1; left out"]


def test_a_row_and_a_file_of_one_id(here: Path) -> None:
    """A row with the id of a file that was read is an error."""
    (here / "a.md").write_text("t")
    (here / "rows.jsonl").write_text(_rows({"id": "a.md", "text": "t"}))
    with pytest.raises(InputError, match=r"rows\.jsonl:1: id 'a\.md' is that of a file"):
        _read("a.md", "rows.jsonl")


def test_other_programs_jsonl_in_a_folder(here: Path) -> None:
    """A JSONL of something else below a folder fails alone."""
    (here / "docs").mkdir()
    (here / "docs" / "log.jsonl").write_text('{"level":"info"}\n')
    (here / "docs" / "z.md").write_text("t")
    heard = Heard()
    assert [source.doc for source in _read("docs", heard=heard)] == ["docs/z.md"]
    assert [name for name, _ in heard.failures] == ["docs/log.jsonl"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"# Title\ntext", [Source("stdin", "# Title\ntext", "markdown", fallback_title="stdin")]),
        (b"", [Source("stdin", "", "markdown", fallback_title="stdin")]),
        (b"\n<!doctype html><h1>T</h1>", [Source("stdin", "# T", "markdown", fallback_title="stdin")]),
        (b'\n{"id":"x","text":"t"}\n', [Source("x", "t", "markdown", fallback_title="x")]),
        (b"{braces}", [Source("stdin", "{braces}", "markdown", fallback_title="stdin")]),
    ],
)
def test_standard_input(data: bytes, expected: list[Source]) -> None:
    """Standard input is rows if its first line is one, a page if it begins as one, else Markdown."""
    assert _read("-", stdin=data) == expected


def test_a_marker_stream_on_standard_input() -> None:
    """A stream that was tagged already is refused with what to do."""
    with pytest.raises(InputError, match=r"<stdin>:1: a document record of a marker stream"):
        _read("-", stdin=b'{"type":"document","doc":"a","units":0}\n')


def test_binaries_and_old_encodings(here: Path) -> None:
    """Below a folder a binary file is skipped and a guessed encoding said, each once; named it fails."""
    docs = here / "docs"
    docs.mkdir()
    (docs / "a.pdf").write_bytes(b"%PDF-1.7")
    (docs / "b.bin").write_bytes(b"\0")
    (docs / "c.txt").write_bytes(
        "Die Pumpe fördert vierzig Liter. Schließen Sie das Ventil.".encode("cp1252")
    )
    (docs / "d.txt").write_bytes(b"\xff\xfe\x00\xd8")
    heard = Heard()
    sources = Sources(["docs"], heard)
    assert [source.doc for source in sources] == ["docs/c.txt"]
    assert heard.notices[0] == "skipped files that are not text: docs/a.pdf, docs/b.bin"
    assert "docs/c.txt" in heard.notices[1]
    assert [name for name, _ in heard.failures] == ["docs/d.txt"]
    assert [sources.vanished(f"docs/{name}") for name in ("a.pdf", "d.txt", "gone.txt")] == [
        False,
        False,
        True,
    ]
    assert _read("docs/a.pdf", heard=heard) == []
    assert heard.failures[-1][0] == "docs/a.pdf"


def test_a_file_that_goes_away(here: Path) -> None:
    """A file that can no longer be read when its turn comes fails, and is not taken for deleted."""
    docs = here / "docs"
    docs.mkdir()
    for name in ("a.txt", "b.txt"):
        (docs / name).write_text("t")
    heard = Heard()
    sources = Sources(["docs"], heard)
    (docs / "a.txt").unlink()
    assert [source.doc for source in sources] == ["docs/b.txt"]
    assert heard.failures == [("docs/a.txt", "No such file or directory")]
    assert not sources.vanished("docs/a.txt")


def test_progress_counts_files(here: Path) -> None:
    """Each file is counted once, rows or not."""
    (here / "rows.jsonl").write_text(_rows({"id": "x", "text": "t"}, {"id": "y", "text": "t"}))
    (here / "a.md").write_text("t")
    done: list[int] = []
    sources = Sources(["a.md", "rows.jsonl"], Heard(), advance=lambda: done.append(1))
    assert (len(list(sources)), sources.files, len(done)) == (3, 2, 2)


def test_failed_rows_delete_nothing(here: Path) -> None:
    """Where a JSONL below ``--as`` could not be read to its end, no id below it is taken for deleted."""
    (here / "docs").mkdir()
    (here / "docs" / "rows.jsonl").write_text("{\n")
    sources = Sources(["docs"], Heard(), as_name="kb")
    assert list(sources) == []
    assert not sources.vanished("kb/x")
