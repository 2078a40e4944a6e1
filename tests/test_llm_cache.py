import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mrag_cli.ground.errors import MragError
from mrag_cli.parts.llm.cache import ReplyCache, default_cache_path
from mrag_cli.parts.llm.request import Reply, Usage


def reply(text: str = "ja", cost: float | None = 0.5) -> Reply:
    """Return a reply."""
    return Reply(text, "stop", Usage(10, 2, 4), cost)


def test_a_reply_comes_back_as_it_was_put(tmp_path: Path) -> None:
    """Text, finish reason, tokens and cost survive; the reply says that it comes from the cache."""
    cache = ReplyCache(tmp_path / "folder" / "replies.sqlite3")
    cache.put(b"k", reply("héllo 世界", None), "m", "extract")
    cache.close()
    again = ReplyCache(tmp_path / "folder" / "replies.sqlite3")
    found = again.get(b"k")
    assert found == Reply("héllo 世界", "stop", Usage(10, 2, 4), None, from_cache=True, key=b"k")
    assert again.holds(b"k")
    assert again.get(b"other") is None
    assert not again.holds(b"other")
    again.close()


@settings(max_examples=50, deadline=None)
@example(text="\ud800 half a character")
@given(text=st.text(alphabet=st.characters()))
def test_any_text_survives(text: str) -> None:
    """No character a model can send is lost, lone surrogates included."""
    cache = ReplyCache(Path(":memory:"))
    cache.put(b"k", reply(text), "m", "p")
    found = cache.get(b"k")
    cache.close()
    assert found is not None
    assert found.text == text


def test_a_forgotten_reply_is_gone(tmp_path: Path) -> None:
    """Forgetting drops the named replies alone."""
    cache = ReplyCache(tmp_path / "c")
    for key in (b"a", b"b"):
        cache.put(key, reply(), "m", "p")
    cache.forget([b"a"])
    assert not cache.holds(b"a")
    assert cache.holds(b"b")
    cache.close()


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    """Four processes that write and read the same file lose nothing and never fail."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom mrag_cli.parts.llm.cache import ReplyCache\n"
        "from mrag_cli.parts.llm.request import Reply, Usage\n"
        "c = ReplyCache(Path(sys.argv[1]))\n"
        "for n in range(100):\n"
        "    c.put(f'{sys.argv[2]}-{n}'.encode(), Reply('x' * 100, 'stop', Usage(1, 1)), 'm', 'p')\n"
        "    assert c.get(f'{sys.argv[2]}-{n}'.encode())\n"
        "c.close()\n"
    )
    path = str(tmp_path / "c")
    started = [subprocess.Popen([sys.executable, "-c", program, path, str(n)]) for n in range(4)]
    assert [process.wait(60) for process in started] == [0, 0, 0, 0]
    cache = ReplyCache(tmp_path / "c")
    assert cache.size().replies == 400
    cache.close()


def test_a_killed_process_has_lost_no_reply_that_was_put(tmp_path: Path) -> None:
    """Every put that returned before kill -9 is there afterwards."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom mrag_cli.parts.llm.cache import ReplyCache\n"
        "from mrag_cli.parts.llm.request import Reply, Usage\n"
        "c = ReplyCache(Path(sys.argv[1]))\n"
        "n = 0\n"
        "while True:\n"
        "    c.put(str(n).encode(), Reply('x' * 1000, 'stop', Usage(1, 1)), 'm', 'p')\n"
        "    print(n, flush=True)\n"
        "    n += 1\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "c")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(50):
            last = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        for line in process.stdout:
            last = int(line) if line.endswith("\n") else last
    cache = ReplyCache(tmp_path / "c")
    assert all(cache.holds(str(number).encode()) for number in range(last + 1))
    cache.close()


def test_size_tells_replies_by_model_bytes_and_cost(tmp_path: Path) -> None:
    """What the cache holds is counted; the file's log is part of its size."""
    cache = ReplyCache(tmp_path / "c")
    assert cache.size().oldest_use is None
    for number in range(3):
        cache.put(str(number).encode(), reply(cost=0.25), "big", "p")
    cache.put(b"other", reply(cost=None), "small", "p")
    size = cache.size()
    assert size.replies == 4
    assert size.models == (("big", 3), ("small", 1))
    assert size.cost == 0.75
    assert size.bytes > 0
    cache.close()


def test_pruning_drops_the_replies_longest_unused(tmp_path: Path) -> None:
    """A use counts as much as a write; what was just used stays."""
    cache = ReplyCache(tmp_path / "c")
    for key in (b"old", b"used"):
        cache.put(key, reply(), "m", "p")
    cache.close()
    base = sqlite3.connect(tmp_path / "c")
    base.execute("UPDATE replies SET used = used - 1000000")
    base.commit()
    base.close()
    cache = ReplyCache(tmp_path / "c")
    cache.get(b"used")
    cache.put(b"new", reply(), "m", "p")
    assert cache.prune(unused_since=time.time() - 1000) == 1
    assert [cache.holds(key) for key in (b"old", b"used", b"new")] == [False, True, True]
    cache.close()


def test_pruning_to_a_size_keeps_the_newest_and_gives_room_back(tmp_path: Path) -> None:
    """The file shrinks to about the size asked for; 0 empties it."""
    cache = ReplyCache(tmp_path / "c")
    for number in range(200):
        cache.put(str(number).encode(), reply(os.urandom(2000).hex()), "m", "p")
    before = cache.size().bytes
    dropped = cache.prune(keep_bytes=100_000)
    after = cache.size()
    assert 0 < dropped < 200
    assert after.replies == 200 - dropped
    assert after.bytes < before / 2
    assert cache.prune(keep_bytes=0) == after.replies
    assert cache.size().replies == 0
    cache.close()


def test_what_is_no_cache_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """A file of something else, a folder, and a newer format say what to do."""
    (tmp_path / "text").write_text("not a database, but long enough to be read as one" * 10)
    with pytest.raises(MragError, match="--cache"):
        ReplyCache(tmp_path / "text")
    with pytest.raises(MragError, match="--cache"):
        ReplyCache(tmp_path)
    base = sqlite3.connect(tmp_path / "newer")
    base.execute("PRAGMA user_version = 99")
    base.commit()
    base.close()
    with pytest.raises(MragError, match="update mrag"):
        ReplyCache(tmp_path / "newer")


def test_the_default_is_in_the_platforms_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own cache folder is respected."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_path().name == "replies.sqlite3"
    assert "mrag" in default_cache_path().parts
