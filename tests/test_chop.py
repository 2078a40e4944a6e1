import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from heard import Heard
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Answer, Asked, Script, serving
from manuals import manual

from mrag_cli.ground.errors import ModelError
from mrag_cli.parts import tokens
from mrag_cli.parts.chop.asking import Questions, shipped
from mrag_cli.parts.chop.judge import Summary
from mrag_cli.parts.chop.product import id_term
from mrag_cli.parts.llm.client import Client, ClientSettings
from mrag_cli.parts.sources import Source
from mrag_cli.records.models import Deletion, DocumentGroup, StreamPart
from mrag_cli.records.stream import write_lines
from mrag_cli.stages.chop import (
    ChopSettings,
    asked_how,
    chop,
    chop_by_model,
    digest,
    estimate,
    only_changes,
)

TWO = manual("Orla Brew X10") + "\n" + manual("Orla Brew X20")


def chopped(text: str, **changes: Any) -> DocumentGroup:
    """Return a text chopped by rules."""
    (group,) = chop([Source("a.md", text, "markdown")], ChopSettings(**changes), Heard())
    assert isinstance(group, DocumentGroup)
    return group


@pytest.mark.parametrize("chunks", ["windows", "headings"])
def test_chunks_say_what_they_belong_to(chunks: str) -> None:
    """No chunk spans two manuals, each key holds its product's id, and decisions follow the segments."""
    group = chopped(TWO, chunks=chunks, chunk_tokens=200)
    place = TWO.index("# Orla Brew X20")
    for number, (unit, mark) in enumerate(zip(group.units, group.markers, strict=True), 1):
        product = "Orla Brew X10" if unit.span[0] < place else "Orla Brew X20"
        assert unit.span[1] <= place or unit.span[0] >= place
        assert unit.text == TWO[slice(*unit.span)]
        assert unit.tokens == tokens.count(unit.text) <= 200
        assert mark.pointers == (number,)
        assert mark.value == unit.text.strip()
        assert mark.tokens == tokens.count(mark.value)
        assert mark.value in mark.key
        assert mark.key.count(id_term(product)) == 3
        assert mark.header == f"[coffee machine: {product}]"
        assert mark.origin == "chop"
        assert mark.cnm is not None
        assert mark.cnm["model"] == product
        assert mark.cnm["segment"] == 1 + (unit.span[0] >= place)
        assert mark.cnm["continued"] == (unit.span[0] not in (0, place))
    assert group.document.units == len(group.units)


def test_the_prefix_may_stay_in_the_key() -> None:
    """With ``key`` nothing is shown above the values."""
    assert {mark.header for mark in chopped(TWO, prefix="key").markers} == {""}


def test_overlapping_windows_say_so_in_their_spans() -> None:
    """With an overlap a unit begins before the one before it ends, and never in another manual."""
    group = chopped(TWO, chunks="windows", chunk_tokens=100, overlap=20)
    spans = [unit.span for unit in group.units]
    assert any(two[0] < one[1] for one, two in pairwise(spans))


@given(st.text(alphabet="# Ab1é\n.", max_size=200), st.integers(5, 60))
@settings(max_examples=50)
def test_every_character_is_in_a_chunk(text: str, size: int) -> None:
    """Whatever the text, chunks ascend and together hold all but white space."""
    for chunks in ("windows", "headings"):
        end = 0
        for unit in chopped(text, chunks=chunks, chunk_tokens=size).units:
            assert not text[end : unit.span[0]].strip()
            end = unit.span[1]
        assert not text[end:].strip()


def test_an_empty_document_is_noticed() -> None:
    """A document without text has no chunks, and that is said."""
    heard = Heard()
    (group,) = chop([Source("a.md", " \n", "markdown")], ChopSettings(), heard)
    assert isinstance(group, DocumentGroup)
    assert group.units == group.markers == ()
    assert len(heard.notices) == 1


def test_only_what_changed_is_chopped() -> None:
    """A known document is left out unless text or settings changed; a vanished one becomes a deletion."""
    sources = [Source("a.md", TWO), Source("b.md", "Text.")]
    chosen = ChopSettings()
    known = {source.doc: digest(source, chosen) for source in sources} | {"old.md": "", "kept.md": ""}

    def changed(known: dict[str, str], chosen: ChopSettings) -> list[StreamPart]:
        return list(
            only_changes(
                sources,
                lambda given: chop(given, chosen, Heard()),
                lambda source: digest(source, chosen),
                known,
                lambda doc: doc == "old.md",
            )
        )

    assert changed(known, chosen) == [Deletion("old.md")]
    found = changed({**known, "b.md": "other"}, chosen)
    assert [part.document.doc for part in found if isinstance(part, DocumentGroup)] == ["b.md"]
    assert len(changed(known, ChopSettings(chunk_tokens=100))) == 3


def answered(asked: Asked) -> Answer:
    """Decide as the scripted model: another product's title breaks, and the title's name is the model."""
    shown = str(asked.body["messages"][1]["content"])
    later = shown.partition("## Later chunk")[2]
    if later:
        return Answer(json.dumps({"same": "user manual" not in later}))
    name = "X20" if "X20" in shown else "X10"
    return Answer(
        json.dumps(
            {"category": "kettle", "nouns": ["kettle lid"], "model": f"Orla {name}", "confidence": 0.8}
        )
    )


def by_model(
    script: Script, sources: Iterable[Source], heard: Heard, summary: Summary, **changes: Any
) -> Iterator[StreamPart]:
    """Chop by a scripted model."""
    with serving(script) as server:
        client = Client(ClientSettings("openai/loopback", server.url, backoff=0.01, max_attempts=1))
        questions = Questions(shipped("product"))
        chosen = ChopSettings(**changes)
        yield from chop_by_model(sources, chosen, client, questions, heard, summary)


def test_a_models_decisions_make_the_prefixes() -> None:
    """Chunks inherit the CNM of their segment's first, which stands in key, header and record."""
    summary = Summary()
    (group,) = by_model(answered, [Source("a.md", TWO, "markdown")], Heard(), summary)
    assert isinstance(group, DocumentGroup)
    place = TWO.index("# Orla Brew X20")
    for unit, mark in zip(group.units, group.markers, strict=True):
        name = "Orla X20" if unit.span[0] >= place else "Orla X10"
        assert mark.cnm is not None
        assert mark.cnm["model"] == name
        assert mark.cnm["nouns"] == ["kettle lid"]
        assert mark.header == f"[kettle: {name}]"
        assert id_term(name) in mark.key
        assert mark.model == "openai/loopback"
    assert summary.segments == 2


def test_a_document_of_which_a_call_fails_is_left_out() -> None:
    """The other documents are written, and the failed one is named."""

    def script(asked: Asked) -> Answer:
        return Answer("refused", status=400) if "Zebra" in asked.prompt else answered(asked)

    heard = Heard()
    sources = [Source("a.md", "Kettle."), Source("b.md", "Zebra."), Source("c.md", "Lamp.")]
    found = list(by_model(script, sources, heard, Summary()))
    assert [part.document.doc for part in found if isinstance(part, DocumentGroup)] == ["a.md", "c.md"]
    assert [name for name, _ in heard.failures] == ["b.md"]


def test_no_server_is_an_error() -> None:
    """When no call can succeed, the run ends."""
    with pytest.raises(ModelError):
        list(
            by_model(lambda _: Answer("no key", status=401), [Source("a.md", "Kettle.")], Heard(), Summary())
        )


def test_the_estimate_makes_no_call() -> None:
    """Decisions are counted exactly, CNMs at least."""
    client = Client(ClientSettings("openai/loopback", "http://127.0.0.1:9/v1"))
    summary = Summary()
    questions = Questions(shipped("product"))
    estimate([Source("a.md", TWO), Source("b.md", "")], ChopSettings(), client, questions, summary)
    assert (summary.documents, summary.segments) == (1, 1)
    assert summary.decisions == summary.chunks - 1 > 0
    assert summary.prompt_tokens > 0
    assert "openai/loopback" in asked_how(client, questions)


def test_the_stream_can_be_written(tmp_path: Path) -> None:
    """The records are JSON lines, the same ones each time."""
    lines = [b"".join(write_lines(chopped(TWO))) for _ in range(2)]
    assert lines[0] == lines[1]
    (tmp_path / "stream.jsonl").write_bytes(lines[0])
    assert all(json.loads(line) for line in lines[0].splitlines())
