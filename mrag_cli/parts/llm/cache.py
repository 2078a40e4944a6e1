"""The cache of replies and embeddings: one SQLite file that several processes may use at once.

A reply is committed before it is used, so that a process killed at any moment has lost no reply that had
arrived. The file holds replies and what they cost, and vectors, never a request, a key of a provider, or an
address.
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
    from collections.abc import Iterator, Mapping, Sequence
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
_VECTORS_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    key BLOB PRIMARY KEY,
    model TEXT NOT NULL,
    used REAL NOT NULL,
    vector BLOB NOT NULL
) WITHOUT ROWID
"""
_WAIT_SECONDS = 60.0
_KEYS_AT_ONCE = 500
# 200 bytes are what a row takes, at most, besides its text or its numbers.
_KEPT = """
CREATE TEMP TABLE kept AS
SELECT kind, key, sum(size + 200) OVER (ORDER BY used DESC, key) AS total FROM (
    SELECT 'replies' AS kind, key, used, length(text) AS size FROM replies
    UNION ALL SELECT 'vectors', key, used, length(vector) FROM vectors
)
"""


@dataclass(frozen=True, slots=True)
class CacheSize:
    """What the cache holds.

    Attributes:
        replies: number of replies.
        bytes: size of the file and its log on disk.
        models: number of replies by model, most first.
        cost: US dollars that the replies with a known price were paid with.
        oldest_use: Unix time at which the least recently used reply was used, or None when it is empty.
        vectors: number of embeddings.
    """

    replies: int
    bytes: int
    models: tuple[tuple[str, int], ...]
    cost: float
    oldest_use: float | None
    vectors: int = 0


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
        self._used_vectors: set[bytes] = set()
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
            self._base.execute(_VECTORS_SCHEMA)
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
        said = zlib.decompress(text).decode("utf-8", "surrogatepass")
        return Reply(said, finish, usage, cost, from_cache=True, key=key)

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

    def vectors(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return those embeddings that are there, by key: the bytes of a vector, as they were put."""
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._explained():
                rows = self._base.execute(
                    f"SELECT key, vector FROM vectors WHERE key IN ({marks})",  # noqa: S608 - marks alone
                    some,
                )
                found.update(rows)
        self._used_vectors.update(found)
        return found

    def put_vectors(self, vectors: Mapping[bytes, bytes], model: str) -> None:
        """Keep embeddings of a model; they are on disk when this returns."""
        now = time.time()
        with self._explained():
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?,?,?,?)",
                [(key, model, now, vector) for key, vector in vectors.items()],
            )
            self._base.execute("COMMIT")

    def size(self) -> CacheSize:
        """Return what the cache holds."""
        with self._explained():
            replies, cost, oldest = self._base.execute(
                "SELECT count(*), total(cost), min(used) FROM replies"
            ).fetchone()
            models = self._base.execute(
                "SELECT model, count(*) FROM replies GROUP BY model ORDER BY count(*) DESC, model"
            ).fetchall()
            (vectors,) = self._base.execute("SELECT count(*) FROM vectors").fetchone()
        return CacheSize(replies, self._bytes(), tuple(models), cost, oldest, vectors)

    def _bytes(self) -> int:
        files = [self.path, self.path.with_name(self.path.name + "-wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    def prune(self, *, unused_since: float | None = None, keep_bytes: int | None = None) -> int:
        """Drop replies and embeddings, least recently used first, and give their room back.

        Args:
            unused_since: drop what was last used before this Unix time.
            keep_bytes: then drop more until texts and vectors take at most this many bytes together.

        Returns:
            The number of replies and embeddings dropped.
        """
        self.note_uses()
        with self._explained():
            before = self._count()
            if unused_since is not None:
                self._base.execute("DELETE FROM replies WHERE used < ?", (unused_since,))
                self._base.execute("DELETE FROM vectors WHERE used < ?", (unused_since,))
            if keep_bytes is not None:
                self._drop_beyond(keep_bytes)
            dropped = before - self._count()
            self._base.execute("VACUUM")
            self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return dropped

    def _count(self) -> int:
        rows = self._base.execute("SELECT (SELECT count(*) FROM replies) + (SELECT count(*) FROM vectors)")
        return int(rows.fetchone()[0])

    def _drop_beyond(self, keep_bytes: int) -> None:
        self._base.execute(_KEPT)
        for table in ("replies", "vectors"):
            self._base.execute(
                f"DELETE FROM {table} WHERE key IN (SELECT key FROM kept WHERE kind = ? AND total > ?)",  # noqa: S608 - one of two names
                (table, keep_bytes),
            )
        self._base.execute("DROP TABLE kept")

    def note_uses(self) -> None:
        """Write down when replies and vectors were used, for `prune`; losing this loses none of them."""
        if not self._used and not self._used_vectors:
            return
        now = time.time()
        with self._explained():
            self._base.execute("BEGIN IMMEDIATE")
            for table, used in (("replies", self._used), ("vectors", self._used_vectors)):
                self._base.executemany(
                    f"UPDATE {table} SET used = ? WHERE key = ?",  # noqa: S608 - one of two names
                    [(now, key) for key in used],
                )
            self._base.execute("COMMIT")
        self._used.clear()
        self._used_vectors.clear()

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
