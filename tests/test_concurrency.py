import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kb import asking, build, files_of, group, mrag, named_files, update

from mrag_cli.ground.errors import IndexLocked
from mrag_cli.parts.store.commit import transaction
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import DocumentGroup

LONG = os.environ.get("MRAG_TEST_LONG") == "1"
"""Set to 1 to query for minutes rather than seconds."""
HERE = Path(__file__).parent

HOLDING = """
import sys
from pathlib import Path
from mrag_cli.parts.store.commit import transaction
with transaction(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
WRITING = """
import sys, time
from pathlib import Path
from kb import update
from test_concurrency import all_say
index, seconds = Path(sys.argv[1]), float(sys.argv[2])
end, number = time.monotonic() + seconds, 1
while time.monotonic() < end:
    number += 1
    update(index, all_say(number), compact=number % 5 == 0)
print(number)
"""
READING = """
import sys, time
from pathlib import Path
from kb import asking
from mrag_cli.parts.store.snapshot import Snapshot
index, seconds = Path(sys.argv[1]), float(sys.argv[2])
end, asked, seen = time.monotonic() + seconds, 0, set()
while time.monotonic() < end or asked < 50:
    query = asking(Snapshot.open(index), retriever=("bm25", "hybrid")[asked % 2], considered=50, budget=2000)
    result = query.answer("lamp number")
    said = {value.split()[1] for value in result.packed.context.split("\\n\\n")}
    assert len(said) == 1, said
    assert len(result.packed.evidence) == 10, result.packed.context
    seen |= said
    asked += 1
print(asked, len(seen))
"""


def all_say(number: int) -> list[DocumentGroup]:
    """Return ten documents whose every value holds a number."""
    return [group(f"d{which}", [(f"lamp {which}", f"number {number} of {which}")]) for which in range(10)]


def _child(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_second_writer_is_turned_away(tmp_path: Path) -> None:
    """While one process writes, another exits 11 at once, or waits as it was told to; readers do not."""
    index = tmp_path / "kb"
    build(index, all_say(1))
    holder = _child(HOLDING, index)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    done = mrag("update", index, os.devnull)
    assert done.returncode == 11
    assert "another process is writing" in done.stderr
    assert "--wait" in done.stderr
    assert mrag("index", "-o", index, os.devnull, "--overwrite").returncode == 11
    assert mrag("query", index, "lamp").stdout
    assert mrag("verify", index).returncode == 0
    started = time.monotonic()
    with pytest.raises(IndexLocked), transaction(index, wait=0.3):
        pass
    assert time.monotonic() - started >= 0.3
    waiting = subprocess.Popen(
        [sys.executable, "-m", "mrag_cli", "update", index, os.devnull, "--wait", "60"]
    )
    time.sleep(0.5)
    assert waiting.poll() is None
    holder.communicate("\n", timeout=60)
    assert waiting.wait(timeout=60) == 0


def test_readers_see_one_whole_generation(tmp_path: Path) -> None:
    """Queries during updates and compactions never fail and never mix two generations."""
    index = tmp_path / "kb"
    build(index, all_say(1), dense=True)
    seconds = 120 if LONG else 5
    writer = _child(WRITING, index, seconds)
    readers = [_child(READING, index, seconds) for _ in range(2)]
    seen = 0
    for reader in readers:
        said, wrong = reader.communicate(timeout=seconds + 120)
        assert not reader.returncode, wrong
        asked, generations = map(int, said.split())
        assert asked >= 50
        seen += generations
    said, wrong = writer.communicate(timeout=seconds + 120)
    assert not writer.returncode, wrong
    assert int(said) > 5
    assert seen > 2
    assert files_of(index) == named_files(index)


def test_an_open_snapshot_stays(tmp_path: Path) -> None:
    """What was opened before a compaction answers as before, though its files are gone."""
    index = tmp_path / "kb"
    build(index, all_say(1), dense=True)
    before = Snapshot.open(index)
    update(index, all_say(2), compact=True)
    assert not (index / "segments/1").exists()
    for retriever in ("bm25", "dense", "hybrid"):
        found = asking(before, retriever=retriever, ef=10).answer("lamp 3").hits
        assert len(found) == 10
        assert all(hit.marker.value.startswith("number 1 ") for hit in found)


def test_a_snapshot_holds_few_descriptors(tmp_path: Path) -> None:
    """An open segment costs a handful of descriptors, so that many segments fit under a limit of 256."""
    index = tmp_path / "kb"
    build(index, all_say(1), dense=True)
    descriptors = Path("/dev/fd")
    before = sum(1 for _ in descriptors.iterdir())
    snapshot = Snapshot.open(index)
    assert sum(1 for _ in descriptors.iterdir()) - before <= 5
    assert snapshot.live_markers == 10
