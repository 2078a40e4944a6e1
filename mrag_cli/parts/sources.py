"""Documents as texts: from files, folders, patterns, standard input and JSONL rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import orjson

from mrag_cli.ground.errors import InputError, MragError
from mrag_cli.parts.decoding import Undecodable, decode, is_binary
from mrag_cli.parts.found_files import ROWS, STDIN, find, listed
from mrag_cli.records.lines import Fields, read_json_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import IO

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.blocks import Markup
    from mrag_cli.parts.found_files import Found, FoundFile

_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd")
_HTML = (".html", ".htm", ".xhtml")
_STREAM_TYPES = frozenset({"document", "unit", "marker", "deletion"})
_ROW_FIELDS = frozenset({"id", "_id", "text", "context", "type"})


@dataclass(frozen=True, slots=True)
class Source:
    """A document's text, before it is cut.

    Attributes:
        doc: its id.
        text: its text, lines ended by a newline; of HTML, the Markdown that it was turned into.
        markup: how the text marks its structure.
        title: the title it was given; empty where its text or ``fallback_title`` is to give one.
        fallback_title: its title when neither it nor its text says one.
        meta: the user's own fields.
    """

    doc: str
    text: str
    markup: Markup = "text"
    title: str = ""
    fallback_title: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)


class Sources:
    """The documents that a command line names, read one at a time.

    Finding happens at once, so that a wrong path is said before anything is written; reading happens while
    iterating, once.

    Args:
        paths: files, folders, patterns, or ``-`` for standard input.
        as_name: replaces the root's own name in the ids, and prefixes those of JSONL rows.
        reporter: told of what is skipped or fails.
        stdin: read for ``-``.
        advance: called after each file.

    Raises:
        UsageError: a path does not exist, a pattern matches nothing, or two files would have the same id.
    """

    def __init__(
        self,
        paths: Sequence[str],
        reporter: Reporter,
        *,
        as_name: str | None = None,
        stdin: IO[bytes] | None = None,
        advance: Callable[[], object] = lambda: None,
    ) -> None:
        self._found: Found = find(paths, as_name, reporter)
        self._as_name = as_name
        self._reporter = reporter
        self._stdin = stdin
        self._advance = advance
        self._notes: dict[str, list[str]] = {}
        self._rows: dict[str, tuple[str, bytes]] = {}
        self._kept: set[str] = set()
        self._rows_failed = False

    @cached_property
    def _named_files(self) -> frozenset[str]:
        return frozenset(file.doc for file in self._found.files if not file.path.lower().endswith(ROWS))

    @property
    def files(self) -> int:
        """The number of files to read."""
        return len(self._found.files)

    def __iter__(self) -> Iterator[Source]:
        for file in self._found.files:
            yield from self._read(file)
            self._advance()
        for what, names in self._notes.items():
            self._reporter.notice(f"{what}: {listed(names)}")

    def vanished(self, doc: str) -> bool:
        """Tell whether a known document that was not among the sources is gone.

        It is when its id lies below one of the roots, and no file or folder that could not be read, or was
        skipped, may hold it. Ask only after all sources were read.
        """
        if doc in self._kept or (self._rows_failed and self._as_name is not None):
            return False
        return self._found.covers(doc)

    def _read(self, file: FoundFile) -> Iterator[Source]:
        try:
            if file.path == STDIN:
                yield from self._from_stdin(file)
            elif file.path.lower().endswith(ROWS):
                yield from self._from_rows(file)
            else:
                with open(file.path, "rb") as opened:  # noqa: PTH123 - millions of files, each path a plain string
                    data = opened.read()
                yield from self._from_bytes(file, data)
        except OSError as error:
            self._failed(file, error.strerror or str(error))

    def _from_rows(self, file: FoundFile) -> Iterator[Source]:
        with open(file.path, "rb") as lines:  # noqa: PTH123 - as above
            try:
                yield from self._documents(lines, file.path)
            except InputError as error:
                if file.named:
                    raise
                # Some other program's JSONL in a folder is no reason to stop.
                self._rows_failed = True
                self._reporter.failed(file.path, str(error).removeprefix(f"{file.path}:"))

    def _documents(self, lines: Iterable[bytes], path: str) -> Iterator[Source]:
        """Yield the documents of a JSONL's rows; one that comes again with the same content is left out.

        Raises:
            InputError: a line is not a row, or its id came before with other content.
        """
        for number, _, value in read_json_lines(lines, path):
            fields = Fields(path, number, value)
            source = _row(fields, self._as_name)
            frame = orjson.dumps([source.text, source.title, source.meta], option=orjson.OPT_SORT_KEYS)
            content = hashlib.blake2b(frame, digest_size=16).digest()
            place = f"{path}:{number}"
            if source.doc in self._named_files:
                raise fields.error(f"id {source.doc!r} is that of a file among the documents; use --as")
            first, earlier = self._rows.setdefault(source.doc, (place, content))
            if first == place:
                yield source
            elif earlier == content:
                self._reporter.notice(f"{place}: {source.doc!r} again, as at {first}; left out")
            else:
                raise fields.error(
                    f"id {source.doc!r} comes twice with different content, first at {first}; "
                    "give each document its own id"
                )

    def _from_stdin(self, file: FoundFile) -> Iterator[Source]:
        if self._stdin is None:
            raise MragError("standard input is closed")
        lines = iter(self._stdin)
        seen: list[bytes] = []
        for line in lines:
            seen.append(line)
            if line.strip():
                break
        if seen and _opens_rows(seen[-1]):
            yield from self._documents(chain(seen, lines), "<stdin>")
        else:
            yield from self._from_bytes(file, b"".join(chain(seen, lines)))

    def _from_bytes(self, file: FoundFile, data: bytes) -> Iterator[Source]:
        if is_binary(data):
            if file.named:
                self._failed(file, "not text; convert it to text, Markdown or HTML first")
            else:
                self._kept.add(file.doc)
                self._note("skipped files that are not text", file.path)
            return
        name = file.path.lower()
        from_stdin = file.path == STDIN
        try:
            text, guessed = decode(data, html=from_stdin or name.endswith(_HTML))
        except Undecodable as error:
            self._failed(file, str(error))
            return
        if guessed:
            self._note(f"read as {guessed}, not UTF-8; convert to UTF-8 where words look wrong", file.path)
        own_name = PurePosixPath(file.doc).stem or file.doc
        if name.endswith(_HTML) or (from_stdin and _is_page(text)):
            yield self._from_page(file, text, own_name)
        else:
            markdown = name.endswith(_MARKDOWN) or from_stdin
            yield Source(file.doc, text, "markdown" if markdown else "text", fallback_title=own_name)

    def _from_page(self, file: FoundFile, text: str, own_name: str) -> Source:
        from mrag_cli.parts.html import markdown_of, page_title

        return Source(file.doc, markdown_of(text), "markdown", fallback_title=page_title(text) or own_name)

    def _failed(self, file: FoundFile, reason: str) -> None:
        self._kept.add(file.doc)
        self._reporter.failed("<stdin>" if file.path == STDIN else file.path, reason)

    def _note(self, what: str, name: str) -> None:
        self._notes.setdefault(what, []).append(name)


def _is_page(text: str) -> bool:
    from mrag_cli.parts.html import looks_like_html

    return looks_like_html(text[:4096])


def _opens_rows(line: bytes) -> bool:
    """Tell whether ``line``, the first of a text, is a JSON object as a row or a stream's record is."""
    try:
        value = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and not _ROW_FIELDS.isdisjoint(value)


def _row(fields: Fields, as_name: str | None) -> Source:
    """Return the document of one row.

    Raises:
        InputError: it is none.
    """
    value = fields.value
    if value.get("type") in _STREAM_TYPES and "doc" in value:
        raise fields.error(
            f"a {value['type']} record of a marker stream, which is tagged already; "
            "pass the stream to `mrag extract` or a later command"
        )
    for names in (("id", "_id"), ("text", "context")):
        if value.keys().isdisjoint(names):
            raise fields.error(f'no field "{names[0]}" (or "{names[1]}"); a row is {{"id": …, "text": …}}')
    name = "id" if "id" in value else "_id"
    identifier = str(value[name]) if type(value[name]) is int else fields.identifier(name)
    doc = f"{as_name}/{identifier}" if as_name else identifier
    text = fields.text("text" if "text" in value else "context")
    return Source(
        doc,
        text.replace("\r\n", "\n").replace("\r", "\n"),
        "markdown",
        title=fields.text("title", "").strip(),
        fallback_title=doc,
        meta=fields.mapping("meta"),
    )
