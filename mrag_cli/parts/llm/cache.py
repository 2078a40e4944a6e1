"""The cache of replies: one SQLite file that several processes may use at once.

A reply is committed before it is used, so that a process killed at any moment has lost no reply that had
arrived. The file holds replies and what they cost, never a request, a key of a provider, or an address.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrag_cli.ground.errors import MragError
from mrag_cli.parts.llm.request import Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    written REAL NOT NULL,
    used REAL NOT NULL,
    text BLOB NOT NULL,
    finish TEXT NOT NULL,
    prompt INTEGER NOT NULL,
    completion INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    cost REAL
) WITHOUT ROWID
"""
_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class CacheSize:
    """What the cache holds.

    Attributes:
        replies: number of replies.
        bytes: size of the file and its log on disk.
        models: number of replies by model, most first.
        cost: US dollars that the replies with a known price were paid with.
        oldest_use: Unix time at which the least recently used reply was used, or None when it is empty.
    """

    replies: int
    bytes: int
    models: tuple[tuple[str, int], ...]
    cost: float
    oldest_use: float | None


class ReplyCache:
    """Replies by the digest of their request.

    Args:
        path: the file; it and its folder are made when they are missing.

    Raises:
        MragError: the file is no cache, has a newer format, or cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._used: set[bytes] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise MragError(
                f"the cache {path} cannot be opened ({error}); name another with --cache"
            ) from None
        with self._explained():
            self._base.execute("PRAGMA journal_mode = WAL")
            # In WAL mode a killed process loses nothing; a power cut may lose the last replies.
            self._base.execute("PRAGMA synchronous = NORMAL")
            found = self._base.execute("PRAGMA user_version").fetchone()[0]
            if found > _FORMAT:
                raise MragError(
                    f"the cache {path} has format {found}, newer than {_FORMAT}, the newest readable; "
                    "update mrag, or name another with --cache"
                )
            self._base.execute(_SCHEMA)
            self._base.execute(f"PRAGMA user_version = {_FORMAT}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise MragError(
                f"the cache {self.path} cannot be used ({error}); name another with --cache, or delete it"
            ) from None

    def get(self, key: bytes) -> Reply | None:
        """Return the reply to a request, or None."""
        with self._explained():
            row = self._base.execute(
                "SELECT text, finish, prompt, completion, cached, cost FROM replies WHERE key = ?", (key,)
            ).fetchone()
        if row is None:
            return None
        self._used.add(key)
        text, finish, prompt, completion, cached, cost = row
        usage = Usage(prompt, completion, cached)
        return Reply(zlib.decompress(text).decode(), finish, usage, cost, from_cache=True, key=key)

    def holds(self, key: bytes) -> bool:
        """Tell whether there is a reply to a request."""
        with self._explained():
            return bool(self._base.execute("SELECT 1 FROM replies WHERE key = ?", (key,)).fetchone())

    def put(self, key: bytes, reply: Reply, model: str, purpose: str) -> None:
        """Keep a reply; it is on disk when this returns."""
        now = time.time()
        row = (
            key,
            model,
            purpose,
            now,
            now,
            zlib.compress(reply.text.encode("utf-8", "surrogatepass"), 6),
            reply.finish_reason,
            reply.usage.prompt,
            reply.usage.completion,
            reply.usage.cached,
            reply.cost,
        )
        with self._explained():
            self._base.execute("INSERT OR REPLACE INTO replies VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)

    def forget(self, keys: list[bytes]) -> None:
        """Drop the replies to these requests, so that they are asked again."""
        with self._explained():
            self._base.executemany("DELETE FROM replies WHERE key = ?", [(key,) for key in keys])

    def size(self) -> CacheSize:
        """Return what the cache holds."""
        with self._explained():
            replies, cost, oldest = self._base.execute(
                "SELECT count(*), total(cost), min(used) FROM replies"
            ).fetchone()
            models = self._base.execute(
                "SELECT model, count(*) FROM replies GROUP BY model ORDER BY count(*) DESC, model"
            ).fetchall()
        return CacheSize(replies, self._bytes(), tuple(models), cost, oldest)

    def _bytes(self) -> int:
        files = [self.path, self.path.with_name(self.path.name + "-wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    def prune(self, *, unused_since: float | None = None, keep_bytes: int | None = None) -> int:
        """Drop replies, least recently used first, and give their room back.

        Args:
            unused_since: drop the replies last used before this Unix time.
            keep_bytes: then drop more until the replies' texts take at most this many bytes.

        Returns:
            The number of replies dropped.
        """
        self.note_uses()
        with self._explained():
            before = self._base.total_changes
            if unused_since is not None:
                self._base.execute("DELETE FROM replies WHERE used < ?", (unused_since,))
            if keep_bytes is not None:
                self._base.execute(
                    "DELETE FROM replies WHERE key IN (SELECT key FROM (SELECT key, sum(length(text) + 200) "
                    "OVER (ORDER BY used DESC, key) AS kept FROM replies) WHERE kept > ?)",
                    (keep_bytes,),
                )
            dropped = self._base.total_changes - before
            self._base.execute("VACUUM")
            self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return dropped

    def note_uses(self) -> None:
        """Write down when replies were used, for `prune`; losing this loses no reply."""
        if not self._used:
            return
        now = time.time()
        with self._explained():
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany(
                "UPDATE replies SET used = ? WHERE key = ?", [(now, key) for key in self._used]
            )
            self._base.execute("COMMIT")
        self._used.clear()

    def close(self) -> None:
        """Close the file."""
        try:
            self.note_uses()
        finally:
            self._base.close()


def default_cache_path() -> Path:
    """Return the cache in the platform's folder for caches."""
    from platformdirs import user_cache_path

    return user_cache_path("mrag") / "replies.sqlite3"
