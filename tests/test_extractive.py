"""The extractive extractor, on documents cut by the tagger."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_cli.parts import tokens
from mrag_cli.parts.extractive import LONG, WINDOW, markers
from mrag_cli.parts.sources import Source
from mrag_cli.records.models import Document, DocumentGroup, Marker, Unit
from mrag_cli.stages.tag import TagSettings, tag


class _Silent:
    def notice(self, message: str) -> None:
        pass

    def failed(self, name: str, reason: str) -> None:
        raise AssertionError(name, reason)


def tagged(text: str, *, markdown: bool = False, unit_tokens: int = 128) -> DocumentGroup:
    """Return a text as the tagger cuts it."""
    source = Source("doc", text, "markdown" if markdown else "text", fallback_title="doc")
    (group,) = tag([source], TagSettings(unit_tokens), _Silent())
    assert isinstance(group, DocumentGroup)
    return group


def extracted(text: str, *, markdown: bool = False) -> tuple[Marker, ...]:
    """Return the markers of a text."""
    return markers(tagged(text, markdown=markdown))


FERRY = (
    "The ferry across the Lenne was founded in 1871 by Anna Brack, who had inherited two barges. "
    "It carried cattle, timber and post until the bridge at Holm was opened. "
    "In 1932 her grandson sold the last boat to the museum, where it can be seen today. "
    "A model of it stands in the town hall."
)


def test_window_is_whole_sentences_of_one_paragraph() -> None:
    """Values are whole sentences packed up to the window's tokens, and together they are the paragraph."""
    found = extracted(FERRY)
    assert len(found) > 1
    assert " ".join(marker.value for marker in found) == FERRY
    assert all(marker.value.endswith(".") for marker in found)
    assert all(tokens.count(marker.value) == marker.tokens <= LONG for marker in found)


def test_windows_do_not_cross_paragraphs() -> None:
    """Two paragraphs too long to share a window have no sentence in one value together."""
    other = (
        "Wages at the mill were paid on Fridays, in coin and in flour, and the books that the miller kept "
        "show that a boy of twelve earned a third of what a grown man did for the same hours."
    )
    for marker in extracted(f"{FERRY}\n\n{other}"):
        assert not ("town hall" in marker.value and "Wages" in marker.value)


def test_pages_give_their_titles() -> None:
    """The title behind a page's announcement is header and first words of the key, and is no value."""
    found = extracted(
        f"Passage 1:\nLenne ferry\n{FERRY}\n\nPassage 2:\nHolm\nHolm is a town of 900 people.\n"
    )
    assert {marker.header for marker in found} == {"Lenne ferry", "Holm"}
    assert found[-1].key == "Holm: Holm is a town of 900 people."
    assert found[-1].value == "Holm is a town of 900 people."
    assert found[0].key.startswith("Lenne ferry: The ferry")
    assert not any("Passage" in marker.value for marker in found)


def test_long_titles_stay_out_of_the_context() -> None:
    """A title of a whole sentence's length is in the keys, but is no header."""
    title = (
        "On the Effects of Ferries, Barges and Other Craft on the Trade of Small Towns along the River Lenne"
    )
    for marker in extracted(f"Passage 1:\n{title}\n{FERRY}"):
        assert marker.key.startswith(title)
        assert marker.header == ""


def test_page_whose_first_line_is_cut_by_a_unit() -> None:
    """Where a unit ends within a page's first line, the line is text and none of it is lost."""
    found = markers(tagged(f"Before.\nPassage 3:\n{FERRY}", unit_tokens=16))
    assert "The ferry across the Lenne was founded in" in " ".join(marker.value for marker in found)


def test_page_without_text_is_still_found() -> None:
    """A title with nothing under it is a value itself."""
    found = extracted("Passage 1:\nEmpty page\n\nPassage 2:\nHolm\nHolm is a town of 900 people.")
    assert "Empty page" in found[0].value


def test_markdown_headings_lead_the_key() -> None:
    """The title is the header; the headings above a window stand in its key, not in its value."""
    text = f"# Crossings\n\n## Boats\n\n### Ferries\n\n{FERRY}\n\n## Bridges\n\nHolm has a long bridge.\n"
    found = extracted(text, markdown=True)
    assert found[0].key.startswith("Crossings: Boats: Ferries: The ferry")
    assert found[-1].key == "Crossings: Bridges: Holm has a long bridge."
    assert {marker.header for marker in found} == {"Crossings"}


def test_short_lines_above_longer_ones_are_headings_in_plain_text() -> None:
    """Without marks, a short capitalised line without closing punctuation heads what follows it."""
    found = extracted(
        f"Early years\n{FERRY}\n后来的历史\n这座桥在一九三二年开放，渡船随后被卖给了博物馆，至今仍在展出。"
    )
    assert found[0].key.startswith("Early years: The ferry")
    assert found[-1].key.startswith("后来的历史: ")
    assert "后来的历史" not in found[-1].value


def test_short_lines_that_are_no_headings() -> None:
    """A line with closing punctuation, a link, a field or a small first letter is text."""
    for line in ("It is so.", "see www.holm.example", "name:ferry", "ferries and boats", "Boats; barges"):
        assert any(line in marker.value for marker in extracted(f"{line}\n{FERRY}"))


def test_neighbouring_short_lines_share_a_window() -> None:
    """The entries of a list are one value up to the window's tokens, one a line."""
    (found,) = extracted("- boats: two\n- barges: four\n- oars: ten\n")
    assert found.value == "- boats: two\n- barges: four\n- oars: ten"


def test_hand_wrapped_lines_are_one_paragraph() -> None:
    """Lines that were wrapped at a column are read as one paragraph and its sentences stay whole."""
    wrapped = (
        "The ferry across the Lenne was founded in 1871 by Anna Brack, who had\n"
        "inherited two barges. It carried cattle, timber and post until the bridge\n"
        "at Holm was opened. In 1932 her grandson sold the last boat to the museum,\n"
        "where it can be seen today."
    )
    values = [marker.value for marker in extracted(wrapped)]
    assert any("post until the bridge at Holm was opened." in value for value in values)
    assert not any("\n" in value for value in values)


def test_long_sentences_are_cut_at_commas_then_words() -> None:
    """A sentence of many windows is cut, mostly behind commas, and none of its words is lost."""
    sentence = "The list named " + ", ".join(
        f"barge number {number} of the northern fleet" for number in range(60)
    )
    found = extracted(sentence + ".")
    assert all((marker.tokens or 0) <= LONG for marker in found)
    assert " ".join(marker.value for marker in found) == sentence + "."
    endless = extracted("word " * 500)
    assert max(marker.tokens or 0 for marker in endless) <= WINDOW + 1
    assert sum(marker.value.count("word") for marker in endless) == 500


def test_chinese_windows() -> None:
    """Chinese is cut at its own sentence ends, without spaces put in."""
    text = "渡船由安娜于一八七一年创办，她继承了两艘驳船。它运送牲畜、木材和邮件，直到霍尔姆的大桥开放。" * 3
    values = [marker.value for marker in extracted(text)]
    assert "".join(values) == text
    assert all(value.endswith("。") for value in values)


def test_units_without_spans_are_kept_apart() -> None:
    """Units whose spans are unknown are read as paragraphs of their own."""
    units = (
        Unit("doc", 1, "Holm has a bridge.", 5, ("Holm",)),
        Unit("doc", 2, "Lenne has none.", 4, ("Lenne",)),
    )
    found = markers(DocumentGroup(Document("doc", "", "doc", 2, 9), units))
    assert [(marker.header, marker.value, marker.pointers) for marker in found] == [
        ("Holm", "Holm has a bridge.", (1,)),
        ("Lenne", "Lenne has none.", (2,)),
    ]


def test_empty_document() -> None:
    """A document without units has no markers."""
    assert markers(DocumentGroup(Document("doc", "", "doc", 0, 0))) == ()


_LINES = st.lists(
    st.one_of(
        st.text(max_size=60).map(lambda text: text.replace("\n", " ").replace("\r", " ")),
        st.sampled_from(
            [
                "Passage 3:",
                "# Title",
                "## Part",
                "Early years",
                "- an entry",
                "| a | b |",
                "```",
                "",
                "后来的历史",
                "One sentence. Another one, with a comma! 又一句。",
                FERRY,
                "word " * 90,
                "字" * 200,
            ]
        ),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(_LINES, st.booleans(), st.sampled_from([16, 128]))
def test_every_unit_is_covered_and_no_word_is_lost(lines: list[str], markdown: bool, size: int) -> None:
    """Each unit is pointed to, and every word of a unit is said by a marker that points to it."""
    group = tagged("\n".join(lines), markdown=markdown, unit_tokens=size)
    found = markers(group)
    assert {pointer for marker in found for pointer in marker.pointers} == {unit.unit for unit in group.units}
    said: dict[int, str] = {}
    for marker in found:
        assert marker.value.strip() == marker.value != ""
        assert marker.pointers == tuple(sorted(set(marker.pointers)))
        for pointer in marker.pointers:
            said[pointer] = said.get(pointer, "") + f" {marker.header} {marker.key} {marker.value}"
    for unit in group.units:
        for line in unit.text.split("\n"):
            if not line.strip().startswith(("Passage", "#", "=", "-")):
                assert set("".join(line.split())) <= set(said[unit.unit])


@settings(max_examples=50, deadline=None)
@given(_LINES)
def test_same_document_same_markers(lines: list[str]) -> None:
    """Extraction is deterministic."""
    group = tagged("\n".join(lines))
    assert markers(group) == markers(group)


def test_an_over_long_sentence_is_not_cut_inside_a_number() -> None:
    """A sentence longer than a window is cut at commas between words, never at the comma of a number."""
    parts = [
        f"the mill at Ford {number} ground {number},448,000 sacks of barley meal" for number in range(1, 9)
    ]
    values = [marker.value for marker in extracted(", ".join(parts) + ".")]
    assert len(values) > 1
    for number in range(1, 9):
        assert any(f"{number},448,000 sacks" in value for value in values)
