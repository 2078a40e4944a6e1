import ctypes
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import WAYS, FaultDisk, Killed
from kb import Entry, asking, build, files_of, group, mrag, named_files, stream_file, update

from mrag_cli.ground.errors import IndexMissing
from mrag_cli.parts.store import graph
from mrag_cli.parts.store.disk import Disk
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion, DocumentGroup
from mrag_cli.stages.verify import verify

LONG = os.environ.get("MRAG_TEST_LONG") == "1"
"""Set to 1 to run the loops of this file for minutes rather than seconds."""
WORDS = "harbour lamp kelp oven valve ferry pump quay tide winch anchor mast".split()


def documents(seed: int, count: int, text: str = "") -> list[DocumentGroup]:
    """Return documents that a seed determines."""
    choose = random.Random(seed)  # noqa: S311 - a test's choice
    made = []
    for number in range(count):
        words = [choose.choice(WORDS) for _ in range(6)]
        entries = [Entry(" ".join(words[:3]), f"{' '.join(words)} {text}", tuple(words[4:5]))] * 2
        made.append(group(f"{seed}/{number}", entries))
    return made


def state(directory: Path) -> Any:
    """Return everything an index says, or None where there is none."""
    try:
        snapshot = Snapshot.open(directory)
    except IndexMissing:
        return None
    known = sorted(snapshot.known_documents().items())
    answers = asking(snapshot, considered=50).answers(WORDS[::3])
    found = [[(hit.marker.value, hit.ranked.score) for hit in answer.hits] for answer in answers]
    return known, found


def _new(directory: Path, disk: Disk | None) -> None:
    build(directory, documents(1, 3), dense=True, disk=disk)


def _replaced(directory: Path, disk: Disk | None) -> None:
    changes = [*documents(1, 2, "changed"), *documents(9, 2), Deletion("2/0")]
    update(directory, changes, disk=disk)


def _compacted(directory: Path, disk: Disk | None) -> None:
    update(directory, [], compact=True, disk=disk)


def _old_index(directory: Path, segments: int) -> None:
    build(directory, documents(1, 3), dense=True, disk=FaultDisk())
    for seed in range(2, segments + 1):
        update(directory, documents(seed, 2), disk=FaultDisk())
    if segments > 1:
        update(directory, [Deletion("1/2")], disk=FaultDisk())


CHANGES: dict[str, tuple[int, Callable[[Path, Disk | None], None]]] = {
    "build": (0, _new),
    "update and merge": (3, _replaced),
    "compaction": (3, _compacted),
}


# To die after an operation is to die before the next, so "late" is left out here.
@pytest.mark.parametrize("way", [way for way in WAYS if way != "late"])
@pytest.mark.parametrize("change", CHANGES)
def test_any_operation_may_fail(tmp_path: Path, change: str, way: str) -> None:
    """Whatever operation fails or is the last, the index is the old or the new one, and the next works."""
    segments, make = CHANGES[change]
    before = tmp_path / "before"
    if segments:
        _old_index(before, segments)
    old = state(before)
    counting = FaultDisk()
    after = tmp_path / "after"
    if segments:
        shutil.copytree(before, after)
    make(after, counting)
    new = state(after)
    for number in counting.worth_trying(way):
        index = tmp_path / str(number)
        if segments:
            shutil.copytree(before, index)
        disk = FaultDisk(number, way)
        try:
            make(index, disk)
        except (Killed, OSError):
            pass
        else:
            assert way in ("fail", "full")
        found = state(index)
        assert found in (old, new), f"operation {number}"
        if found is None:
            make(index, FaultDisk())
            assert state(index) == new
        elif found == old:
            update(index, documents(77, 1), disk=FaultDisk())
            assert "77/0" in Snapshot.open(index).known_documents()
        else:
            update(index, [Deletion("1/1")], disk=FaultDisk())
            assert "1/1" not in Snapshot.open(index).known_documents()
        assert [name for name, wrong in verify(index) if wrong] == []
        assert files_of(index) == named_files(index)
        shutil.rmtree(index)


def test_a_graph_that_is_cut_short_is_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while hnswlib writes its own file leaves the old index."""
    monkeypatch.setattr(graph, "SMALLEST_GRAPH", 4)
    counting = FaultDisk()
    build(tmp_path / "whole", documents(1, 4), dense=True, disk=counting)
    assert "segments/1/graph" in named_files(tmp_path / "whole")
    left = set()
    for number in counting.worth_trying("late"):
        index = tmp_path / str(number)
        with pytest.raises(Killed):
            build(index, documents(1, 4), dense=True, disk=FaultDisk(number, "late"))
        left |= files_of(index)
        if state(index) is None:
            build(index, documents(1, 4), dense=True)
        assert state(index) == state(tmp_path / "whole")
        assert files_of(index) == named_files(index)
    assert "segments/1/graph" in left


def _child(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=Path(__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


DYING = """
import os, sys
from pathlib import Path
from faults import FaultDisk
from kb import update
from test_crash import documents
disk = FaultDisk(int(sys.argv[2]), sys.argv[3], lambda: os._exit(9))
update(Path(sys.argv[1]), documents(5, 3), compact=True, disk=disk)
"""


@pytest.mark.parametrize(("number", "way"), [(4, "kill"), (9, "tear"), (20, "late"), (30, "kill")])
def test_a_process_that_ends_at_once(tmp_path: Path, number: int, way: str) -> None:
    """A process that ends without a word in the middle of an update leaves a whole index and no lock."""
    index = tmp_path / "kb"
    _old_index(index, 2)
    child = _child(DYING, index, number, way)
    child.communicate(timeout=60)
    assert child.returncode == 9
    docs = len(Snapshot.open(index).known_documents())
    assert docs in (4, 7)
    update(index, documents(5, 3))
    assert len(Snapshot.open(index).known_documents()) == 7
    assert files_of(index) == named_files(index)


APPENDING = """
import os, sys
from pathlib import Path
from kb import build, update
from test_crash import documents
index, warm = map(Path, sys.argv[1:])
build(warm, documents(1, 3))
update(warm, documents(2, 3), compact=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        number = int(line)
        while True:
            number += 1
            update(index, documents(number, 3), compact=number % 3 == 0)
            print(number, flush=True)
    print("child", child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    """After a kill the index holds every update that was reported, whole, and perhaps one more."""
    index = tmp_path / "kb"
    build(index, documents(1, 3))
    choose = random.Random(7)  # noqa: S311 - a test's choice
    done = 1
    parent = _child(APPENDING, index, tmp_path / "warm")
    assert parent.stdin is not None
    assert parent.stdout is not None
    for _ in range(1000 if LONG else 30):
        parent.stdin.write(b"%d\n" % done)
        parent.stdin.flush()
        least = done
        while not (said := parent.stdout.readline()).startswith(b"child"):
            least = int(said)
        time.sleep(choose.uniform(0.0, 0.2))
        os.kill(int(said.split()[1]), signal.SIGKILL)
        while (said := parent.stdout.readline()) != b"dead\n":
            least = int(said)
        known = Snapshot.open(index).known_documents()
        done = max(int(doc.split("/")[0]) for doc in known)
        assert done in (least, least + 1)
        assert len(known) == 3 * done
        assert [name for name, wrong in verify(index) if wrong] == []
    parent.communicate(timeout=60)
    update(index, documents(done + 1, 3))
    assert files_of(index) == named_files(index)
    assert done > 10


def test_an_interrupt_during_a_build_leaves_no_index(tmp_path: Path) -> None:
    """Ctrl-C during the first build exits 130, leaves no index, and the next build works."""
    index = tmp_path / "kb"
    feeding = subprocess.Popen(
        [sys.executable, "-m", "mrag_cli", "index", "-o", str(index), "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert feeding.stdin is not None
    lines = stream_file(tmp_path / "stream", documents(1, 3)).read_bytes()
    feeding.stdin.write(lines)
    feeding.stdin.flush()
    while not list(index.glob("segments/*/markers.jsonl")):
        time.sleep(0.02)
    feeding.send_signal(signal.SIGINT)
    _, said = feeding.communicate(timeout=60)
    assert feeding.returncode == 130
    assert b"interrupted" in said
    assert mrag("query", index, "harbour").returncode == 10
    assert files_of(index) == set()
    assert mrag("index", "-o", index, tmp_path / "stream").returncode == 0
    assert mrag("query", index, "harbour").returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system of 256 KiB, or None where none can be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    made = os.geteuid() == 0 and mount is not None
    made = (
        made
        and not subprocess.run(
            [str(mount), "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)],
            check=False,
            capture_output=True,
        ).returncode
    )
    yield place if made else None
    if made:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_full_disk(tmp_path: Path, small_disk: Path | None) -> None:
    """An update that finds no more space exits 1 and says so; the index stays, and the space comes back."""
    index = (small_disk or tmp_path) / "kb"
    limit = None if small_disk else _limited
    few = stream_file(tmp_path / "few", documents(1, 20))
    many = stream_file(tmp_path / "many", documents(2, 1500))
    assert mrag("index", "-o", index, few, preexec_fn=limit).returncode == 0
    old = state(index)
    done = mrag("update", index, many, preexec_fn=limit)
    assert done.returncode == 1
    assert "No space left" in done.stderr or "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert state(index) == old
    assert files_of(index) == named_files(index)
    one = stream_file(tmp_path / "one", documents(3, 2))
    assert mrag("update", index, one, preexec_fn=limit).returncode == 0
    other = (small_disk or tmp_path) / "other"
    assert mrag("index", "-o", other, many, preexec_fn=limit).returncode == 1
    assert files_of(other) == set()


_LIBC = ctypes.CDLL(None)
_DROP_FROM_BOUNDING_SET = 24
_MAY_WRITE_ANYTHING = 1


def _without_privileges() -> None:
    """Take from root, in a child, the right to write what its mode forbids."""
    if os.geteuid() == 0 and _LIBC.prctl(_DROP_FROM_BOUNDING_SET, _MAY_WRITE_ANYTHING, 0, 0, 0):
        raise PermissionError("root's rights cannot be dropped here: run the tests as another user")


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """Without permission to write, queries work as ever; an update exits 1 and names the file."""
    index = tmp_path / "kb"
    build(index, documents(1, 3))
    old = state(index)
    more = stream_file(tmp_path / "more", documents(2, 2))
    for path in [index, *index.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    found = mrag("query", index, "harbour", preexec_fn=_without_privileges)
    assert found.returncode == 0, found.stderr
    assert found.stdout
    done = mrag("update", index, more, preexec_fn=_without_privileges)
    assert done.returncode == 1
    assert str(index / "lock") in done.stderr
    assert "ermission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert state(index) == old
    made = mrag("index", "-o", index / "new", more, preexec_fn=_without_privileges)
    assert made.returncode == 1
    assert read_manifest(index).generation == 1
    for path in [index, *index.rglob("*")]:
        path.chmod(0o755)
