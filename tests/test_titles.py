"""Page titles: which title a marker stands under, and which titles a text names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.titles import LONGEST, mentions, page_titles, title_hash, title_terms
from mrag_cli.records.models import Document, DocumentGroup, Marker, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _named(text: str, *titles: str) -> list[tuple[str, ...]]:
    """Return the terms of those of ``titles`` that ``text`` names."""
    table = np.array([title_hash(title_terms(title)) for title in titles], np.uint64)

    def known(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return np.isin(hashes, table)

    return list(mentions([text], known)[0].values())


def test_a_named_title_is_found_whatever_its_note() -> None:
    """A note in brackets at a title's end need not be said."""
    assert _named("She directed Dark River in Wales.", "Dark River (2017 film)") == [("dark", "river")]
    assert _named("She saw a river.", "Dark River (2017 film)") == []


def test_the_longest_title_wins() -> None:
    """A title inside a longer one that is named there is not named by itself."""
    assert _named("He moved to New York City.", "New York", "New York City") == [("new", "york", "citi")]


def test_no_title_reaches_from_one_text_into_the_next() -> None:
    """Texts that are looked at together name what each of them names alone."""
    table = np.array([title_hash(title_terms(title)) for title in ("New York", "York", "Holm")], np.uint64)

    def known(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return np.isin(hashes, table)

    texts = ["It was New", "York, then.", "", "Holm and New York", "holm"]
    assert [list(named.values()) for named in mentions(texts, known)] == [
        [],
        [("york",)],
        [],
        [("holm",), ("new", "york")],
        [],
    ]
    assert mentions([], known) == []


def test_one_word_needs_a_capital() -> None:
    """A title of one word is not named by the same word in small letters."""
    assert _named("Alû is related to Lilu, a spirit.", "Lilu") == [("lilu",)]
    assert _named("It was a spirit, and lilu was not.", "Lilu") == []


def test_chinese_titles() -> None:
    """Chinese titles are found inside a run of characters."""
    assert len(_named("他毕业于厦门大学中文系。", "厦门大学", "北京大学")) == 1


@pytest.mark.parametrize("title", ["", "...", "word " * (LONGEST + 1), "I"])
def test_titles_that_nobody_names(title: str) -> None:
    """An empty, a very long and a one-letter title are no link targets."""
    assert title_terms(title) == ()
    assert title_hash(()) == 0


def test_order_of_terms_matters() -> None:
    """Two titles of the same words in another order are two titles."""
    assert title_hash(("holm", "bridg")) != title_hash(("bridg", "holm"))


@given(st.text(), st.lists(st.text(min_size=1), max_size=4))
def test_any_text_can_be_searched(text: str, titles: list[str]) -> None:
    """Whatever the text and the titles are, only known titles are found, none of them twice."""
    found = _named(text, *titles)
    assert set(found) <= {title_terms(title) for title in titles}
    assert len(found) == len(set(found))


def _titles(title: str, headings: list[tuple[str, ...]], header: str = "") -> list[str]:
    units = tuple(Unit("d.md", number, "x", 1, path) for number, path in enumerate(headings, 1))
    markers = tuple(Marker("d.md", "k", "v", (unit.unit,), "llm", header=header) for unit in units)
    return page_titles(DocumentGroup(Document("d.md", "", title, len(units), 1), units, markers))


def test_a_header_is_the_page_title() -> None:
    """A marker's own header comes first."""
    assert _titles("Crossings", [("A",), ("B",)], header="Lenne") == ["Lenne", "Lenne"]


def test_a_document_has_one_title() -> None:
    """Without headers, a document's title is that of all its markers, not its sections' headings."""
    assert _titles("Crossings", [("Boats",), ("Bridges",)]) == ["Crossings", "Crossings"]


def test_pages_of_an_untitled_document_have_their_own() -> None:
    """Several outermost headings in a document without a title are the titles of its pages."""
    assert _titles("d.md", [("Holm", "History"), ("Lenne",)]) == ["Holm", "Lenne"]
    assert _titles("d.md", [("Introduction",), ("Introduction",)]) == ["", ""]
    assert _titles("plan.txt", [(), ()]) == ["", ""]
