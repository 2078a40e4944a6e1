import pytest

from mrag_cli.parts.html import looks_like_html, markdown_of, page_title

_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title> Pump X200 &amp; more
</title><style>p{color:red}</style><script>var x = "SCRIPT";</script></head><body>
<header><a href="/">HOME</a><nav><ul><li><a href="/a">NAVIGATION</a></li></ul></nav></header>
<aside><h3>SIDEBAR</h3></aside><div class="breadcrumbs">CRUMBS</div>
<main><article><h1>Pump X200<a class="headerlink" href="#p">#</a></h1>
<p>It moves <b>40 litres</b> a minute &amp; needs 230&nbsp;V. See <a href="/x">the data sheet</a>.</p>
<h2>Steps</h2><ol><li>Remove the cover.</li><li>Insert:<ul><li>one filter</li></ul></li></ol>
<h3>Limits</h3><table><tr><th>Model</th><th>bar</th></tr><tr><td>X200 | S</td><td>8</td></tr></table>
<pre><code>pump start
# no heading
    pump stop</code></pre><p># neither this</p><p hidden>HIDDEN</p><form>FORM <input></form>
</article></main><footer>FOOTER</footer></body></html>"""


def test_a_page_becomes_markdown() -> None:
    """Headings, lists, tables and code keep their structure; links and emphasis become bare words."""
    text = markdown_of(_PAGE)
    lines = text.split("\n")
    assert {"# Pump X200", "## Steps", "### Limits", "| X200 \\| S | 8 |", "1. Remove the cover."} <= set(
        lines
    )
    assert "It moves 40 litres a minute & needs 230" in text
    assert "See the data sheet." in text
    assert "- one filter" in text
    assert "```\npump start\n# no heading\n    pump stop\n```" in text
    assert "\\# neither this" in lines


@pytest.mark.parametrize(
    "word", ["HOME", "NAVIGATION", "SIDEBAR", "CRUMBS", "SCRIPT", "color", "HIDDEN", "FORM", "FOOTER"]
)
def test_what_surrounds_the_text_is_left_out(word: str) -> None:
    """Navigation, headers, footers, sidebars, scripts, styles, forms and hidden parts are dropped."""
    assert word not in markdown_of(_PAGE)


def test_short_and_broken_pages() -> None:
    """A fragment, an unclosed page and a page of many open elements are read as far as they go."""
    assert markdown_of("<p>Only a <em>fragment</em>, 2 &lt; 3") == "Only a fragment, 2 < 3"
    assert markdown_of("") == ""
    markdown_of("<div>" * 5_000 + "deep")
    markdown_of("a&#xD800;b").encode()


def test_page_titles() -> None:
    """The title element's words are the page's title."""
    assert page_title(_PAGE) == "Pump X200 & more"
    assert page_title("<p>none</p>") == ""


def test_pages_are_told_from_text() -> None:
    """A text that begins as a page does is one; a text that mentions HTML is not."""
    assert looks_like_html("\n<!-- made by hand -->\n<!doctype HTML>")
    assert looks_like_html('<?xml version="1.0"?><html lang="en">')
    assert not looks_like_html("Write <html> first.")
    assert not looks_like_html("<p>fragment</p>")
