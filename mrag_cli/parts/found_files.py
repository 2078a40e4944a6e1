"""Which files a command line means, and the document id of each."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_cli.ground.errors import UsageError
from mrag_cli.ground.report import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrag_cli.ground.report import Reporter

STDIN = "-"
ROWS = (".jsonl", ".ndjson")
"""How the names of files end whose rows are documents."""

_MAGIC = re.compile(r"[*?\[]")
_NAMES_SAID = 5


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read.

    Attributes:
        path: as the user can open it, or ``-``.
        doc: its document id.
        named: the user named the file itself, not a folder or pattern it was found under.
    """

    path: str
    doc: str
    named: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The ids that one argument of the command line is in charge of.

    Attributes:
        prefix: what they begin with: the root's name and a slash, or nothing.
        pattern: what the rest matches.
    """

    prefix: str
    pattern: re.Pattern[str]

    def covers(self, doc: str) -> bool:
        """Tell whether ``doc`` lies under the root and is what the argument asks for."""
        return doc.startswith(self.prefix) and matches(self.pattern, doc[len(self.prefix) :])


@dataclass(frozen=True, slots=True)
class Found:
    """What the command line means.

    Attributes:
        files: the files to read, in order of the arguments and of their ids below each.
        scopes: the ids whose documents are gone if they are not among the files.
        unread: prefixes of ids below folders that could not be read.
    """

    files: tuple[FoundFile, ...]
    scopes: tuple[Scope, ...]
    unread: tuple[str, ...]

    def covers(self, doc: str) -> bool:
        """Tell whether a document ``doc`` would have been found, if it existed."""
        return any(scope.covers(doc) for scope in self.scopes) and not doc.startswith(self.unread)


_EVERYTHING = re.compile(".+", re.DOTALL)


def find(paths: Sequence[str], as_name: str | None, reporter: Reporter) -> Found:
    """Find the files that ``paths`` mean.

    Args:
        paths: files, folders (with all below them), patterns (``*``, ``?``, ``[…]``, ``**``), or ``-``.
        as_name: takes the place of the root's own name in the ids.
        reporter: told of hidden files that are skipped, and of folders and names that cannot be read.

    Raises:
        UsageError: a path does not exist, a pattern matches nothing, or two files would have the same id.
    """
    finder = _Finder(as_name, reporter)
    for path in paths:
        finder.add(path)
    finder.say_skipped()
    return Found(tuple(finder.files), tuple(finder.scopes), tuple(finder.unread))


class _Finder:
    """Collects files from one argument after the other."""

    def __init__(self, as_name: str | None, reporter: Reporter) -> None:
        self.files: list[FoundFile] = []
        self.scopes: list[Scope] = []
        self.unread: list[str] = []
        self._as_name = as_name
        self._reporter = reporter
        self._paths: dict[str, str] = {}
        self._skipped: dict[str, list[str]] = {}

    def add(self, path: str) -> None:
        """Add what one argument means."""
        if path == STDIN:
            self._file(path, self._as_name or "stdin", named=True)
        elif Path(path).is_dir():
            prefix = self._prefix(path)
            self.scopes.append(Scope(prefix, _EVERYTHING))
            self._walk(path, prefix, _EVERYTHING, "", ())
        elif Path(path).exists():
            self._named_file(path)
        elif _MAGIC.search(path):
            self._pattern(path)
        else:
            reason = "is a link to nothing" if Path(path).is_symlink() else "does not exist"
            raise UsageError(f"{path} {reason}; name files, folders or patterns that do")

    def say_skipped(self) -> None:
        """Tell what was skipped, each kind once."""
        for what, names in self._skipped.items():
            self._reporter.notice(f"skipped {what}: {listed(names)}")

    def _named_file(self, path: str) -> None:
        if path.lower().endswith(ROWS) and self._as_name:
            self.scopes.append(Scope(f"{self._as_name}/", _EVERYTHING))
        self._file(path, self._as_name or _own_name(path), named=True)

    def _pattern(self, path: str) -> None:
        folder, pattern = _fixed_part(path)
        before = len(self.files) + len(self.unread)
        if Path(folder).is_dir():
            prefix = self._prefix(folder) if folder or self._as_name else ""
            compiled = pattern_of(pattern)
            self.scopes.append(Scope(prefix, compiled))
            self._walk(folder, prefix, compiled, "", ())
        if len(self.files) + len(self.unread) == before:
            raise UsageError(f"{path} matches no file; quote patterns, and name files that exist")

    def _prefix(self, folder: str) -> str:
        name = self._as_name or _own_name(folder)
        return f"{name}/" if name else ""

    def _walk(
        self,
        folder: str,
        prefix: str,
        pattern: re.Pattern[str],
        below: str,
        above: tuple[tuple[int, int], ...],
    ) -> None:
        try:
            status = Path(folder).stat()
            entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
        except OSError as error:
            self.unread.append(prefix + below)
            self._reporter.failed(folder, f"the folder cannot be read: {error.strerror}")
            return
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            self._skip("folders that link back to one above them", folder)
            return
        names = {entry.name for entry in entries}
        if "manifest.json" in names and "segments" in names:
            self._skip("index directories", folder)
            return
        for entry in entries:
            self._entry(entry, prefix, pattern, below, (*above, identity))

    def _entry(
        self,
        entry: os.DirEntry[str],
        prefix: str,
        pattern: re.Pattern[str],
        below: str,
        above: tuple[tuple[int, int], ...],
    ) -> None:
        name = entry.name
        if name.startswith("."):
            self._skip("hidden files and folders", entry.path)
            return
        try:
            name.encode()
        except UnicodeEncodeError:
            self._reporter.failed(visible(entry.path), "its name is not UTF-8; rename it")
            return
        wanted = matches(pattern, below + name)
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            if not wanted:
                return
            self.unread.append(prefix + below + name)
            reason = "a link to nothing" if entry.is_symlink() else error.strerror or str(error)
            self._reporter.failed(entry.path, reason)
            return
        if stat.S_ISDIR(mode):
            self._walk(entry.path, prefix, pattern, f"{below}{name}/", above)
        elif wanted and stat.S_ISREG(mode):
            self._file(entry.path, prefix + below + name)
        elif wanted:
            self._skip("devices, sockets and pipes", entry.path)

    def _file(self, path: str, doc: str, *, named: bool = False) -> None:
        if not path.lower().endswith(ROWS):
            other = self._paths.get(doc)
            if other is not None:
                if STDIN not in (path, other) and Path(path).samefile(other):
                    return
                raise UsageError(
                    f"{other} and {path} would both be document {doc!r}; "
                    "tag them separately with different --as names, or name their common folder"
                )
            self._paths[doc] = path
        self.files.append(FoundFile(path, doc, named))

    def _skip(self, what: str, path: str) -> None:
        self._skipped.setdefault(what, []).append(path)


def listed(names: Sequence[str]) -> str:
    """Return the first few of ``names`` and how many more there are."""
    more = len(names) - _NAMES_SAID
    return ", ".join(names[:_NAMES_SAID]) + (f" and {more} more" if more > 0 else "")


def _own_name(path: str) -> str:
    """Return the name of a file or folder, a link's own one, also of ``.`` and ``..``; empty for ``/``.

    Raises:
        UsageError: the name is not UTF-8, so that no id can be made of it.
    """
    name = os.path.basename(os.path.abspath(path))  # noqa: PTH100, PTH119 - Path.resolve would follow links
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{visible(path)}: its name is not UTF-8; give it another with --as") from None
    return name


def _fixed_part(path: str) -> tuple[str, str]:
    """Split a pattern into the folder before its first part with a wildcard, and the rest."""
    parts = path.split("/")
    first = next(number for number, part in enumerate(parts) if _MAGIC.search(part))
    folder = "/".join(parts[:first])
    return (folder or "/") if path.startswith("/") else folder, "/".join(parts[first:])


def pattern_of(glob: str) -> re.Pattern[str]:
    """Return a pattern's expression: ``*`` and ``?`` stay within a name, ``**`` spans folders."""
    return re.compile("".join(_translated(glob)), re.DOTALL)


def _translated(glob: str) -> Iterator[str]:
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at):
            yield "(?:[^/]+/)*"
            at += 3
        elif glob.startswith("**", at):
            yield ".*"
            at += 2
        elif glob[at] == "*":
            yield "[^/]*"
            at += 1
        elif glob[at] == "?":
            yield "[^/]"
            at += 1
        elif glob[at] == "[" and (closing := glob.find("]", at + 2)) > 0:
            inside = glob[at + 1 : closing].replace("\\", r"\\")
            yield f"[^/{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
            at = closing + 1
        else:
            yield re.escape(glob[at])
            at += 1


def matches(pattern: re.Pattern[str], below: str) -> bool:
    """Tell whether a pattern matches a path, or a folder that the path lies in."""
    if pattern.fullmatch(below):
        return True
    return any(pattern.fullmatch(below, 0, slash.start()) for slash in re.finditer("/", below))
