"""What ``mrag validate`` shows on stderr: tables on a terminal, one line elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mrag_cli.ground.report import visible
from mrag_cli.parts.coverage import SHAPES

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.table import Table

    from mrag_cli.cli.console import Console
    from mrag_cli.parts.marker_statistics import MarkerTally
    from mrag_cli.parts.validation_report import Summary

_BAR = 24
_WORST_SHOWN = 10


def show(summary: Summary, console: Console) -> None:
    """Show the summary: a notice of one line, and where stderr is a terminal the tables before it."""
    if sys.stderr.isatty() and summary.documents:
        from rich.console import Console as RichConsole

        render(summary, RichConsole(stderr=True, markup=False, highlight=False, emoji=False))
    console.notice(one_line(summary))


def one_line(summary: Summary) -> str:
    """Return the summary in one line."""
    together = summary.all_markers
    said = [f"{_many(summary.documents, 'document')}, {_many(together.markers, 'marker')}"]
    if summary.coverage.documents:
        fallbacks = f"{_many(summary.coverage.fallbacks, 'fallback marker')}"
        share = 100 * summary.coverage.fallback_share
        said.append(
            f"coverage {100 * summary.coverage.mean:.2f} % before fallback, {fallbacks} ({share:.2f} %)"
        )
    if repairs := _listed(summary.repairs, leave_out="fallback_added"):
        said.append(f"repaired: {repairs}")
    if flags := _listed(summary.flags):
        said.append(f"found: {flags}")
    return "; ".join(said)


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _listed(counts: dict[str, int], leave_out: str = "") -> str:
    return ", ".join(
        f"{kind} {times:,}" for kind, times in sorted(counts.items()) if kind != leave_out and times
    )


def render(summary: Summary, screen: RichConsole) -> None:
    """Draw the tables: coverage, pointers by origin, token lengths by origin, the worst markers."""
    from rich.text import Text

    screen.print(_coverage_table(summary))
    rows = {**dict(sorted(summary.origins.items())), "all": summary.all_markers}
    if len(summary.origins) == 1:
        del rows["all"]
    screen.print(_pointer_table(rows))
    screen.print(_length_table(rows))
    if summary.worst_markers:
        table = _table("Worst markers", "where", "flags", "key")
        for place, finding in summary.worst_markers[:_WORST_SHOWN]:
            extra = f" (rank {finding.rank})" if finding.rank > 1 else ""
            lacking = f" not found: {', '.join(finding.not_found)}" if finding.not_found else ""
            flags = ", ".join(finding.flags) + extra + lacking
            # Texts of documents go in as plain text, never as markup.
            table.add_row(*(Text(visible(cell)) for cell in (place, flags, finding.key[:80])))
        screen.print(table)


def _table(title: str, *columns: str, numbers_from: int | None = None) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        right = numbers_from is not None and place >= numbers_from and column != "distribution"
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    return table


def _coverage_table(summary: Summary) -> Table:
    found = summary.coverage
    table = _table(
        "Coverage before fallback",
        "documents",
        "units",
        "mean %",
        "variance",
        "fallback %",
        "below threshold",
        numbers_from=0,
    )
    table.add_row(
        f"{found.documents:,}",
        f"{found.units:,}",
        f"{100 * found.mean:.2f}" if found.documents else "-",
        f"{found.variance:.4f}",
        f"{100 * found.fallback_share:.2f}",
        f"{found.below:,}",
    )
    return table


def _pointer_table(rows: dict[str, MarkerTally]) -> Table:
    table = _table("Pointers", "origin", "markers", *SHAPES, "gaps over 10", "widest gap", numbers_from=1)
    for origin, tally in rows.items():
        shapes = [
            f"{tally.shapes[shape]:,} ({100 * tally.shapes[shape] / max(1, tally.markers):.1f} %)"
            for shape in SHAPES
        ]
        far = sum(times for gap, times in tally.gaps.counts.items() if gap > 10)
        widest = str(max(tally.gaps.counts, default="-"))
        table.add_row(visible(origin), f"{tally.markers:,}", *shapes, f"{far:,}", widest)
    return table


def _length_table(rows: dict[str, MarkerTally]) -> Table:
    table = _table("Tokens", "origin", "of", "mean", "sd", "median", "p90", "distribution", numbers_from=2)
    for origin, tally in rows.items():
        for name, lengths in (("keys", tally.keys), ("values", tally.values)):
            table.add_row(
                visible(origin),
                name,
                f"{lengths.mean:.1f}",
                f"{lengths.deviation:.1f}",
                str(lengths.quantile(0.5)),
                str(lengths.quantile(0.9)),
                _bars([times for _, _, times in lengths.histogram()]),
            )
    return table


def _bars(counts: list[int]) -> str:
    """Return one block character a range, as tall as its share of the fullest."""
    most = max(counts, default=0)
    return "".join("▁▂▃▄▅▆▇█"[min(7, 8 * times // most)] if times else " " for times in counts[:_BAR])
