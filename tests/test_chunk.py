import pytest
from heard import Heard

from mrag_cli.parts import tokens
from mrag_cli.parts.sources import Source
from mrag_cli.records.models import DocumentGroup
from mrag_cli.stages.chunk import SIZES, ChunkSettings, Method, chunk, digest

TEXT = "# Pump\n\n" + "The pump moves water to the upper basin. Bread is baked in the morning. " * 60


def chunked(settings: ChunkSettings, text: str = TEXT) -> DocumentGroup:
    """Return a text in chunks."""
    (group,) = chunk([Source("a.md", text, "markdown")], settings, Heard())
    assert isinstance(group, DocumentGroup)
    return group


@pytest.mark.parametrize("method", ["naive", "fixed", "overlap"])
def test_windows_have_the_methods_size(method: Method) -> None:
    """Each method's windows have its tokens and its overlap; key and value are the chunk."""
    size, overlap = SIZES[method]
    group = chunked(ChunkSettings(method, size, overlap))
    assert all(unit.tokens <= size for unit in group.units)
    assert group.units[0].tokens == size
    assert (group.units[1].span[0] < group.units[0].span[1]) == (overlap > 0)
    for mark in group.markers:
        assert mark.key == mark.value
        assert mark.origin == method
        assert mark.tokens == tokens.count(mark.value)
        assert mark.header == ""
    assert group.units[-1].heading == ("Pump",)


def test_cosine_chunks_are_sentences() -> None:
    """Unlike sentences part; with other similarities they stay together."""
    parted = chunked(ChunkSettings("cosine"))
    assert len(parted.units) > 100
    (group,) = chunk(
        [Source("a.md", TEXT)], ChunkSettings("cosine"), Heard(), lambda texts: [1.0] * (len(texts) - 1)
    )
    assert isinstance(group, DocumentGroup)
    assert len(group.units) == 1


def test_an_empty_document_is_noticed() -> None:
    """A document without text has no chunks, and that is said."""
    heard = Heard()
    assert list(chunk([Source("a.md", "")], ChunkSettings(), heard))
    assert len(heard.notices) == 1


def test_the_digest_follows_the_settings() -> None:
    """Other text or settings give another digest."""
    source = Source("a.md", TEXT)
    assert digest(source, ChunkSettings()) == digest(source, ChunkSettings())
    assert digest(source, ChunkSettings()) != digest(source, ChunkSettings("fixed"))
    assert digest(source, ChunkSettings()) != digest(Source("a.md", "x"), ChunkSettings())
