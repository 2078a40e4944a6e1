from manuals import manual

from mrag_cli.parts.chop.boundaries import segments
from mrag_cli.parts.chop.cnm import Cnm
from mrag_cli.parts.chop.domains import DOMAINS
from mrag_cli.parts.chop.families import mentions
from mrag_cli.parts.chop.outline import headings
from mrag_cli.parts.chop.rules import describe, with_section


def described(text: str, domain: str = "product", title: str = "") -> list[Cnm]:
    """Return the CNM of each of a text's segments."""
    outline, found = headings(text), mentions(text)
    trade = DOMAINS[domain]
    return describe(text, segments(text, outline, trade, found), outline, found, trade, title)


def test_a_title_names_the_model_and_the_text_the_category() -> None:
    """The model is what the title says, the category what the reader is told to own."""
    found = described(manual("Orla Brew X10") + "\n" + manual("Orla Brew X20"))
    assert [(cnm.model, cnm.category) for cnm in found] == [
        ("Orla Brew X10", "coffee machine"),
        ("Orla Brew X20", "coffee machine"),
    ]
    assert all(cnm.confidence > 0.9 for cnm in found)


def test_the_kind_of_product_in_a_title_is_the_category() -> None:
    """Words behind the model number that the text uses as common ones are no part of the model."""
    (cnm,) = described(manual("Orla X10 dishwasher", noun="dishwasher"))
    assert (cnm.model, cnm.category) == ("Orla X10", "dishwasher")


def test_a_variant_in_a_title_stays_in_the_model() -> None:
    """A word behind the model number that the text never uses as a common one is a variant's name."""
    (cnm,) = described(manual("Orla X10 Active"))
    assert cnm.model == "Orla X10 Active"


def test_a_model_line_or_the_documents_title_names_where_no_title_line_does() -> None:
    """A line that states the model counts, else the title the document was given."""
    bare = manual("", title="")
    assert described("Model: KX-100\n\n" + bare)[0].model == "KX-100"
    assert described(bare, title="Orla X10 user manual")[0].model == "Orla X10"


def test_null_beats_a_guess() -> None:
    """Without a name in title, headings or frequent mentions there is no model."""
    (cnm,) = described(manual("", title="") + "\nThe Orla S8, the Orla S9 and the Orla S10 are sold apart.\n")
    assert cnm.model is None
    assert cnm.category == "coffee machine"
    assert described("Only this.")[0] == Cnm()


def test_front_headings_name_the_models_of_a_family() -> None:
    """Where a heading near the beginning is a model's name and nothing else, the segment is about it."""
    text = "## Contents\n\n## Orla S8\n\n## Orla S8+\n\n" + manual("", title="")
    text += "\nUnlike others, the Orla S7 has no lamp.\nNor has the Orla S6.\nThe Orla S5 has one.\n"
    (cnm,) = described(text)
    assert cnm.model == "Orla S8 / Orla S8+"
    assert len(cnm.ids) == 2


def test_nouns_are_renewed_from_each_chunks_headings() -> None:
    """The first noun is the category with the heading, the second the heading above."""
    cnm = with_section(Cnm("kettle", (), "Orla X10", 0.9, "Orla X10"), ("Care", "Filter"), DOMAINS["product"])
    assert cnm.nouns == ("kettle Filter", "Care")
    assert cnm.model == "Orla X10"


def test_statutes_have_the_article_as_model() -> None:
    """In the legal domain the category is the body of law, the model the article above the chunk."""
    text = "# Harbour Act 2031\n\n## Article 1 Purpose\n\nThis act keeps the harbour open.\n"
    (cnm,) = described(text, "legal")
    assert cnm.category == "Harbour Act 2031"
    below = with_section(cnm, ("Harbour Act 2031", "Article 1 Purpose"), DOMAINS["legal"])
    assert below.model == "Article 1"
    assert below.nouns == ("Article 1 Purpose",)
    assert below.ids == cnm.ids
