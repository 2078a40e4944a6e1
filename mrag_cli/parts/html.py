"""HTML pages into Markdown, without navigation."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions

_TITLE = re.compile(r"<title[^>]*>(.*?)</title\s*>", re.IGNORECASE | re.DOTALL)
# What surrounds a page's text, by the names and roles that sites give it.
_AROUND = (
    "footer",
    "[role=navigation]",
    "[role=banner]",
    "[role=contentinfo]",
    "[role=search]",
    "#nav",
    "#navbar",
    "#navigation",
    "#menu",
    "#sidebar",
    "#footer",
    ".nav",
    ".navbar",
    ".navigation",
    ".menu",
    ".sidebar",
    ".footer",
    ".breadcrumb",
    ".breadcrumbs",
    ".skip-link",
    ".headerlink",
)
_INLINE_ALONE = ("a", "b", "strong", "i", "em", "u", "small", "mark")


def markdown_of(html: str) -> str:
    """Return a page's text as Markdown: headings, lists, tables and code; links and emphasis as bare words.

    Scripts, styles, forms, images, hidden parts, and what stands around the text (navigation, header, footer,
    sidebars) are left out.
    """
    from html_to_markdown import convert

    content: str = convert(html, _options()).content or ""
    return content.replace("\r\n", "\n").replace("\r", "\n").strip()


def page_title(html: str) -> str:
    """Return what the page's ``title`` element says; empty where there is none."""
    found = _TITLE.search(html)
    return " ".join(unescape(found.group(1)).split()) if found else ""


def looks_like_html(start: str) -> bool:
    """Tell whether a text that begins with ``start`` is a whole HTML page."""
    return (
        re.match(
            r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html)\b",
            start,
            re.IGNORECASE | re.DOTALL,
        )
        is not None
    )


@lru_cache(maxsize=1)
def _options() -> ConversionOptions:
    from html_to_markdown import ConversionOptions, PreprocessingOptions

    return ConversionOptions(
        preprocessing=PreprocessingOptions(preset="aggressive", remove_navigation=True, remove_forms=True),
        exclude_selectors=list(_AROUND),
        strip_tags=list(_INLINE_ALONE),
        skip_images=True,
        autolinks=False,
        compact_tables=True,
        extract_metadata=False,
    )
