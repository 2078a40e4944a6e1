"""Systems made of stages: their indexes, what they find, what they took."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from evaluations import HARBOUR, MUSEUM
from heard import Heard

from mrag_cli.cli.eval_makers import checked, maker
from mrag_cli.cli.eval_systems import made, of_stream, query_settings, ready
from mrag_cli.parts.evaluation.systems import Collection, Context, Plan, System
from mrag_cli.parts.sources import Source
from mrag_cli.parts.store.manifest import LexicalSettings
from mrag_cli.parts.store.segment_writer import SegmentSettings
from mrag_cli.records.models import DocumentGroup
from mrag_cli.records.stream import write_lines
from mrag_cli.stages.index import IndexSettings, build_index

CONTEXTS = tuple(
    Context(Source(doc, text, "markdown"), (doc, f"{doc}-2")) for doc, text in (("a", HARBOUR), ("b", MUSEUM))
)
PLAN = Plan("bm25", 128, "similarity")


def _made(base: str) -> System:
    system = made(base, maker(base, "", None, None, Heard()), None, Heard())
    system.prepare(CONTEXTS)
    return system


def _groups() -> list[DocumentGroup]:
    sources = [context.source for context in CONTEXTS if context.source]
    return list(maker("mrag", "", None, None, Heard()).groups(sources))


def _checked(groups: Iterable[DocumentGroup]) -> Iterator[DocumentGroup]:
    return checked(groups, Heard())


def test_an_index_is_there_while_it_is_asked() -> None:
    """Markers are indexed for the documents of the collection alone, and found by the question."""
    system = _made("mrag")
    with system.open(Collection(CONTEXTS[:1])) as index:
        found = index.ask("Who rebuilt the north quay?", PLAN)
        assert "Ida Marsh" in found.packed.context
        assert found.ranked
        assert index.words is not None
        relevant = index.words.relevant(["The north quay was rebuilt in 1931 by Ida Marsh."])
        assert index.words.row(found.ranked[0]) in relevant
        assert found.seconds > 0
        assert (index.spent.documents, index.spent.markers) == (1, len(index.markers))
        assert sum(index.spent.keys.values()) == len(index.markers)
        assert "whale oil" not in index.ask("What did the lamp burn?", PLAN).packed.context
    with system.open(Collection(CONTEXTS)) as index:
        assert "whale oil" in index.ask("What did the lamp burn?", PLAN).packed.context


def test_the_layout_follows_the_plan() -> None:
    """The budget holds, and the order of the context is the plan's."""
    with _made("mrag").open(Collection(CONTEXTS, shared=True)) as index:
        question = "When does the ferry to Ostrey leave, and who rebuilt the quay?"
        context = index.ask(question, Plan("bm25", 200, "position")).packed.context
        assert context.index("Ida Marsh") < context.index("Ostrey")
        assert index.ask(question, Plan("bm25", 20, "position")).packed.tokens <= 20


def test_windows_fill_the_budget() -> None:
    """Three windows of 128 tokens fill 384: the paper's plan does not charge the separators."""
    assert query_settings(Plan("bm25", 384, "similarity"), refined=False).budget == 390
    assert query_settings(Plan("bm25", 384, "similarity"), refined=True).budget == 384
    assert query_settings(PLAN, refined=False).strict_prefix
    assert not query_settings(PLAN, refined=True).strict_prefix


def test_a_stream_holds_documents_under_any_of_their_names(tmp_path: Path) -> None:
    """A stream's documents are found by the ids of the questions about them; others are not held."""
    path = tmp_path / "markers.jsonl"
    groups = _groups()
    path.write_bytes(b"".join(line for group in groups[:1] for line in write_lines(group)))
    system = of_stream("llm", path, _checked, None, Heard(), refined=True)
    renamed = Context(None, ("elsewhere", "a"))
    with system.open(Collection((renamed, CONTEXTS[1]))) as index:
        assert index.docs == {"a"}
        assert "Ida Marsh" in index.ask("Who rebuilt the north quay?", PLAN).packed.context
    with system.open(Collection((CONTEXTS[1],))) as index:
        assert index.docs == frozenset()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a ready index of both documents."""
    folder = tmp_path_factory.mktemp("ready") / "kb"
    segment = SegmentSettings(LexicalSettings(), derive_pivot=True)
    build_index(_groups(), folder, IndexSettings(segment), Heard())
    return folder


def test_a_ready_index_is_asked_about_one_document_or_all(directory: Path) -> None:
    """Document by document only the question's own is let through; as a corpus all of them are."""
    system = ready("kb", directory, None, refined=True)
    assert system.retrievers == ("bm25",)
    question = "What did the oldest lamp of the museum burn?"
    with system.open(Collection(CONTEXTS[:1])) as index:
        assert index.docs == {"a"}
        assert "whale oil" not in index.ask(question, PLAN).packed.context
    with system.open(Collection(CONTEXTS, shared=True)) as index:
        found = index.ask(question, PLAN)
        assert "whale oil" in found.packed.context
        assert found.ranked
        assert index.words is not None
        assert index.words.row(found.ranked[0]) in index.words.relevant(["burned whale oil until 1884"])


def test_the_settings_follow_the_index_and_the_plan(directory: Path) -> None:
    """A kept cell is void once the index changed or it is asked in another way."""
    one = ready("kb", directory, None, refined=True).settings
    assert one == ready("kb", directory, None, refined=True).settings
    assert one != ready("kb", directory, None, refined=False).settings
