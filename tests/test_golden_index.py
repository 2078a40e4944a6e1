"""An index of format 1 that every later version must read.

``python tests/test_golden_index.py`` writes it anew, which is right only before the format is published.
"""

import json
import shutil
from pathlib import Path

from kb import Entry, asking, build, files_of, group, named_files, update

from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion
from mrag_cli.stages.info import describe
from mrag_cli.stages.query import result_json
from mrag_cli.stages.verify import verify

GOLDEN = Path(__file__).parent / "golden" / "index-1"
ANSWERS = GOLDEN.with_suffix(".json")
QUESTIONS = ["Which lamp is green?", "kelp drying", "灯塔 在哪里", "valve X-7", "the of"]
WAYS = ["bm25", "dense", "hybrid"]

FIRST = [
    group(
        "harbour/lamps.md",
        [
            Entry(
                "Vell lamp colour", "The lamp at Vell is green.", ("Which light is green?",), "Lamps of Vell"
            ),
            Entry("Vell lamp oil", "It burns rape oil since 1931.", (), "Lamps of Vell"),
        ],
        {"year": 2031, "tags": ["harbour", "lamp"]},
    ),
    group("zh/灯塔.txt", [("灯塔 位置", "灯塔在港口的北面，高十二米。"), ("灯塔 颜色", "灯是绿色的。")]),
    group("growers/kelp.md", [("kelp drying", "Kelp dries for two days.")], {"year": 2030}),
    group("old.txt", [("the of", "Gone with the second generation.")]),
]
SECOND = [
    group(
        "growers/kelp.md",
        [("kelp drying time", "Kelp dries for three days."), ("kelp yield", "Forty tonnes.")],
    ),
    group("plant/é.txt", [("valve X-7", "Valve X-7 closes at 4 bar.")]),
    group("bare.txt"),
    Deletion("old.txt"),
]


def make(directory: Path) -> None:
    """Build the index in two generations."""
    build(directory, FIRST, dense=True)
    update(directory, SECOND)
    (directory / "lock").unlink()


def answers(directory: Path) -> dict[str, object]:
    """Return what the index says, as JSON has it."""
    snapshot = Snapshot.open(directory)
    found = {
        way: [result_json(one) for one in asking(snapshot, retriever=way, steps=None).answers(QUESTIONS)]
        for way in WAYS
    }
    for hit in (hit for results in found.values() for one in results for hit in one["hits"]):
        hit["score"] = round(hit["score"], 6)
    described = {name: value for name, value in describe(snapshot).items() if name != "directory"}
    return json.loads(json.dumps({"described": described, "answers": found}))  # type: ignore[no-any-return]


def test_the_golden_index_says_what_it_always_said() -> None:
    """Format 1 is read: the same facts, hits, contexts and scores as when it was written."""
    wanted = json.loads(ANSWERS.read_text("utf-8"))
    assert answers(GOLDEN) == wanted
    assert [what for _, what in verify(GOLDEN) if what] == []


def test_the_golden_index_has_everything() -> None:
    """It has two segments, dead rows, vectors, aliases and headers."""
    manifest = read_manifest(GOLDEN)
    assert manifest.format == 1
    assert [bool(entry.dead) for entry in manifest.segments] == [True, False]
    assert manifest.embedder is not None
    assert files_of(GOLDEN) == named_files(GOLDEN)


def test_the_golden_index_can_be_updated(tmp_path: Path) -> None:
    """A copy takes an update and a compaction, and says the same of what did not change."""
    index = tmp_path / "kb"
    shutil.copytree(GOLDEN, index)
    before = answers(index)["answers"]
    update(index, [group("new.txt", [("unrelated", "unrelated")])])
    update(index, [Deletion("new.txt")], compact=True)
    assert len(read_manifest(index).segments) == 1
    found = json.dumps(answers(index)["answers"]).replace('"generation": 5', '"generation": 2')
    assert json.loads(found) == before


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    make(GOLDEN)
    ANSWERS.write_text(json.dumps(answers(GOLDEN), ensure_ascii=False, indent=1) + "\n", "utf-8")
