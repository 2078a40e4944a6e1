import os
from pathlib import Path

import pytest
from heard import Heard
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.found_files import Found, find, listed, matches, pattern_of


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder ``docs`` of some files, in the folder that the test runs in."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "b.md",
        "a.txt",
        "sub/c.md",
        "sub/deep/d.md",
        ".hidden/e.md",
        "sub/.f.md",
        "kb/manifest.json",
    ):
        file = tmp_path / "docs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text")
    (tmp_path / "docs" / "kb" / "segments").mkdir()
    return tmp_path / "docs"


def _ids(*paths: str, as_name: str | None = None, heard: Heard | None = None) -> list[str]:
    return [file.doc for file in find(paths, as_name, heard or Heard()).files]


@pytest.mark.usefixtures("docs")
def test_a_folder_is_read_whole_and_in_order() -> None:
    """Ids are the folder's own name and the path below, sorted; hidden files and indexes are skipped."""
    heard = Heard()
    assert _ids("docs", heard=heard) == ["docs/a.txt", "docs/b.md", "docs/sub/c.md", "docs/sub/deep/d.md"]
    assert heard.notices == [
        "skipped hidden files and folders: docs/.hidden, docs/sub/.f.md",
        "skipped index directories: docs/kb",
    ]


@pytest.mark.usefixtures("docs")
@pytest.mark.parametrize("path", ["docs", "docs/", "./docs", "docs/../docs", "docs/sub/.."])
def test_ids_do_not_depend_on_how_the_folder_is_written(path: str) -> None:
    """The root's name is its own, however the path to it is written."""
    assert _ids(path)[0] == "docs/a.txt"


def test_the_folder_above_and_the_one_we_are_in(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``.`` and ``..`` have names too."""
    monkeypatch.chdir(docs / "sub")
    assert _ids(".") == ["sub/c.md", "sub/deep/d.md"]
    assert _ids("..")[0] == "docs/a.txt"


@pytest.mark.usefixtures("docs")
def test_a_file_is_named_by_its_own_name() -> None:
    """A single file's id is its name, or what ``--as`` says; a hidden one that is named is read."""
    assert _ids("docs/sub/c.md", "docs/sub/.f.md", "-") == ["c.md", ".f.md", "stdin"]
    assert _ids("docs/sub/c.md", as_name="notes") == ["notes"]
    assert _ids("docs/sub", as_name="notes") == ["notes/c.md", "notes/deep/d.md"]


def test_patterns(docs: Path) -> None:
    """A pattern's ids are those of the folder it begins with, and a folder that it matches is read whole."""
    assert _ids("docs/**/*.md") == ["docs/b.md", "docs/sub/c.md", "docs/sub/deep/d.md"]
    assert _ids("docs/*.md") == ["docs/b.md"]
    assert _ids("docs/s*") == ["docs/sub/c.md", "docs/sub/deep/d.md"]
    assert _ids("*/[ab].*") == ["docs/a.txt", "docs/b.md"]
    assert _ids(f"{docs}/?.md", as_name="x") == ["x/b.md"]


def test_a_file_whose_name_looks_like_a_pattern(docs: Path) -> None:
    """What exists under exactly that name is meant."""
    (docs / "a[1].md").write_text("x")
    assert _ids("docs/a[1].md") == ["a[1].md"]


@pytest.mark.parametrize("path", ["nowhere", "docs/*.pdf", "nowhere/*.md", "docs/link"])
def test_what_does_not_exist(docs: Path, path: str) -> None:
    """A path or a link's target that does not exist and a pattern without a match are usage errors."""
    (docs / "link").symlink_to("nothing")
    with pytest.raises(UsageError, match=r"exist|matches no|link to nothing"):
        find([path], None, Heard())


def test_two_files_with_one_id(docs: Path) -> None:
    """Two files that would be the same document are an error that names both."""
    (docs / "c.md").write_text("other")
    with pytest.raises(UsageError, match=r"docs/c\.md and docs/sub/c\.md would both be document 'c\.md'"):
        find(["docs/c.md", "docs/sub/c.md"], None, Heard())
    with pytest.raises(UsageError, match="would both be"):
        find(["-", "-"], None, Heard())


@pytest.mark.usefixtures("docs")
def test_a_file_that_is_named_twice() -> None:
    """The same file under one id is read once."""
    assert _ids("docs/b.md", "docs/../docs/b.md") == ["b.md"]
    assert len(_ids("docs", "docs")) == 4


def test_links(docs: Path) -> None:
    """Links are followed; one that leads back to a folder above is skipped, a broken one fails."""
    (docs / "sub" / "loop").symlink_to(docs)
    (docs / "sub" / "lost").symlink_to("nothing")
    (docs / "again.md").symlink_to(docs / "b.md")
    heard = Heard()
    assert _ids("docs", heard=heard) == [
        "docs/a.txt",
        "docs/again.md",
        "docs/b.md",
        "docs/sub/c.md",
        "docs/sub/deep/d.md",
    ]
    assert "skipped folders that link back to one above them: docs/sub/loop" in heard.notices
    assert heard.failures == [("docs/sub/lost", "a link to nothing")]


def test_names_that_are_no_text(docs: Path) -> None:
    """A file whose name is not UTF-8 fails, its name spelled out."""
    Path(os.fsdecode(os.fsencode(docs) + b"/\xff.md")).write_text("x")
    heard = Heard()
    assert len(_ids("docs", heard=heard)) == 4
    assert heard.failures == [("docs/\\udcff.md", "its name is not UTF-8; rename it")]
    path = os.fsdecode(b"docs/\xff.md")
    assert _ids(path, as_name="named") == ["named"]
    with pytest.raises(UsageError, match="not UTF-8; give it another with --as"):
        find([path], None, heard)


def test_pipes_in_a_folder_are_skipped(docs: Path) -> None:
    """A named pipe in a folder is not opened."""
    os.mkfifo(docs / "pipe.md")
    heard = Heard()
    assert "docs/pipe.md" not in _ids("docs", heard=heard)
    assert "skipped devices, sockets and pipes: docs/pipe.md" in heard.notices


def _found(*paths: str, as_name: str | None = None) -> Found:
    return find(paths, as_name, Heard())


def test_which_ids_an_argument_covers(docs: Path) -> None:
    """A folder covers all ids below its name, a pattern those that it matches, a file and rows none."""
    (docs / "rows.jsonl").write_text("")
    assert _found("docs").covers("docs/gone.md")
    assert not _found("docs").covers("docs2/gone.md")
    assert not _found("docs").covers("gone.md")
    assert _found("docs/**/*.md").covers("docs/x/gone.md")
    assert not _found("docs/**/*.md").covers("docs/x/gone.txt")
    assert not _found("docs/b.md").covers("b.md")
    assert not _found("docs/rows.jsonl").covers("17")
    assert _found("docs/rows.jsonl", as_name="exam").covers("exam/17")
    assert _found("docs/sub", as_name="exam").covers("exam/gone.md")


@given(st.lists(st.sampled_from(["a", "b.md", "c.txt", "[x]", "ü"]), min_size=1, max_size=4))
def test_patterns_match_themselves(parts: list[str]) -> None:
    """A path matches the pattern of any folders and any name, and itself where it has no wildcard."""
    path = "/".join(parts)
    assert matches(pattern_of("**/*"), path)
    assert matches(pattern_of("**"), path)
    if "[" not in path:
        assert matches(pattern_of(path), path)
        assert matches(pattern_of(path), f"{path}/below")
        assert not matches(pattern_of(path), f"{path}x")


def test_bracket_patterns() -> None:
    """Brackets hold the characters that may stand there, or with ``!`` those that may not."""
    assert matches(pattern_of("[a-c].md"), "b.md")
    assert not matches(pattern_of("[!a-c].md"), "b.md")
    assert matches(pattern_of("[!a-c].md"), "d.md")
    assert matches(pattern_of("a[.md"), "a[.md")


def test_long_lists_of_names_are_cut() -> None:
    """Five names are said and the others counted."""
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
