import os
import shutil
import tempfile
from itertools import product
from pathlib import Path

from faults import FaultDisk, Killed
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kb import Entry, asking, build, files_of, group, named_files, plain_bm25, ranking, update

from mrag_cli.parts.refine import Steps
from mrag_cli.parts.store.manifest import Manifest, read_manifest
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion, DocumentGroup
from mrag_cli.stages.query import QueryResult

LONG = os.environ.get("MRAG_TEST_LONG") == "1"
WORDS = ["harbour", "lamp", "kelp", "the", "海港", "灯塔", "Å", "x"]
DOCS = st.sampled_from(["a", "b/1", "b/10", "b/2", "é", "z", "海", "\U0001f6a2", "\uffff"])
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
ENTRIES = st.builds(
    Entry, TEXTS, TEXTS.map(lambda text: f"{text}."), st.lists(TEXTS, max_size=2).map(tuple), TEXTS
)
GROUPS = st.builds(group, DOCS, st.lists(ENTRIES, max_size=4))
QUESTIONS = ["harbour lamp", "the", "kelp kelp 海港灯塔", "å x harbour the lamp"]


class Index(RuleBasedStateMachine):
    """An index that is changed, interrupted and reopened, against a dict and a fresh build."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="mrag-"))
        self.index = self.root / "kb"
        self.model: dict[str, DocumentGroup] = {}
        self.fresh = 0

    @initialize(groups=st.lists(GROUPS, max_size=4, unique_by=lambda found: found.document.doc))
    def start(self, groups: list[DocumentGroup]) -> None:
        """Build an index, perhaps an empty one."""
        build(self.index, groups, dense=True, disk=FaultDisk())
        self.model = {found.document.doc: found for found in groups}

    @rule(
        groups=st.lists(GROUPS, max_size=4, unique_by=lambda found: found.document.doc),
        gone=st.lists(DOCS, max_size=3, unique=True),
        compact=st.booleans(),
    )
    def change(self, groups: list[DocumentGroup], gone: list[str], compact: bool) -> None:
        """Add, replace and delete documents."""
        before = read_manifest(self.index).generation
        after = {doc: found for doc, found in self.model.items() if doc not in gone}
        after |= {found.document.doc: found for found in groups}
        result = update(self.index, [*map(Deletion, gone), *groups], compact=compact, disk=FaultDisk())
        assert result.changed == (after != self.model)
        assert result.added == len(after.keys() - self.model.keys())
        assert result.deleted == len(self.model.keys() - after.keys())
        if not result.changed and not compact:
            assert result.generation == before
        self.model = after

    @precondition(lambda self: self.model)
    @rule(found=GROUPS, gone=DOCS, at=st.integers(0, 40), way=st.sampled_from(["tear", "late", "power"]))
    def crash(self, found: DocumentGroup, gone: str, at: int, way: str) -> None:
        """Die in the middle of an update."""
        after = {doc: kept for doc, kept in self.model.items() if doc != gone}
        after[found.document.doc] = found
        try:
            update(self.index, [Deletion(gone), found], disk=FaultDisk(at, way))
        except Killed:
            known = Snapshot.open(self.index).known_documents()
            model = {doc: kept.document.sha256 for doc, kept in self.model.items()}
            assert known in (model, {doc: kept.document.sha256 for doc, kept in after.items()})
            if known == model:
                return
        self.model = after

    @rule()
    def same_again(self) -> None:
        """An update with what is there writes nothing."""
        update(self.index, [])  # clears what a crash left
        stamps = {path: path.stat().st_mtime_ns for path in self.index.rglob("*")}
        result = update(self.index, self.model.values())
        assert result.unchanged == len(self.model)
        assert {path: path.stat().st_mtime_ns for path in self.index.rglob("*")} == stamps
        assert files_of(self.index) == named_files(self.index)

    @invariant()
    def equals_a_fresh_build(self) -> None:
        """Scores, rankings and provenance are those of an index built afresh, and of the plain formula."""
        if not self.index.exists():
            return
        manifest = read_manifest(self.index)
        snapshot = Snapshot.open(self.index)
        assert snapshot.known_documents() == {doc: found.document.sha256 for doc, found in self.model.items()}
        assert snapshot.live_markers == sum(len(found.markers) for found in self.model.values())
        self.fresh += 1
        fresh = self.root / f"fresh-{self.fresh}"
        build(fresh, self.model.values(), like=manifest, dense=True, disk=FaultDisk())
        self._compare(snapshot, Snapshot.open(fresh), manifest)
        shutil.rmtree(fresh)

    def _compare(self, snapshot: Snapshot, fresh: Snapshot, manifest: Manifest) -> None:
        ways = product(
            (("bm25", "sum"), ("dense", "sum"), ("hybrid", "sum"), ("hybrid", "rrf")), (None, Steps())
        )
        for (retriever, fusion), steps in ways:
            changed = {"retriever": retriever, "fusion": fusion, "considered": 50, "steps": steps}
            found = asking(snapshot, **changed).answers(QUESTIONS)
            wanted = asking(fresh, **changed).answers(QUESTIONS)
            for mine, other in zip(found, wanted, strict=True):
                assert [hit.marker for hit in mine.hits] == [hit.marker for hit in other.hits]
                assert [hit.ranked.score for hit in mine.hits] == [hit.ranked.score for hit in other.hits]
                assert mine.packed.context == other.packed.context
                if retriever == "bm25" and steps is None:
                    self._compare_with_the_formula(mine, manifest)

    def _compare_with_the_formula(self, found: QueryResult, manifest: Manifest) -> None:
        plain = plain_bm25(self.model.values(), found.question, manifest.lexical)
        scores = {(hit.marker.doc, hit.marker.pointers[0] - 1): hit.ranked.score for hit in found.hits}
        assert scores.keys() == plain.keys()
        assert all(abs(scores[place] - plain[place]) < 1e-6 for place in plain)
        order = [(-hit.ranked.score, hit.marker.doc, hit.marker.pointers) for hit in found.hits]
        assert order == sorted(order)

    def teardown(self) -> None:
        """Remove the index."""
        shutil.rmtree(self.root)


TestIndex = Index.TestCase
TestIndex.settings = settings(
    max_examples=200 if LONG else 10,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_a_rebuild_with_the_same_settings_ranks_the_same(tmp_path: Path) -> None:
    """An index that grew over many nights ranks as one built at once, to the last bit."""
    nights = [
        [
            group(f"{night}/{number}", [(f"lamp {night % 7} kelp {number}", f"value {night} {number}")])
            for number in range(3)
        ]
        for night in range(40)
    ]
    build(tmp_path / "grown", nights[0], disk=FaultDisk())
    for night in nights[1:]:
        update(tmp_path / "grown", night, disk=FaultDisk())
    manifest = read_manifest(tmp_path / "grown")
    assert len(manifest.segments) < 4
    build(tmp_path / "fresh", [found for night in nights for found in night], like=manifest)
    for question in ("lamp 3", "kelp 1 lamp", "2"):
        assert ranking(tmp_path / "grown", question) == ranking(tmp_path / "fresh", question)
