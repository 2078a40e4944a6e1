"""What ``mrag eval`` shows: tables on a terminal, Markdown in a pipe, both of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mrag_cli.ground.report import visible
from mrag_cli.parts.evaluation.report import ALL, MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console as RichConsole

TITLES = {
    "answer_recall": "Answer recall",
    "evidence_recall": "Evidence recall",
    "f1": "F1",
}
_BAR = 12
_SHOWN_QUERIES = (1, 100, 10_000)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report.

    Attributes:
        title: what it shows.
        columns: their headings.
        text_columns: how many of them, from the left, are words.
        rows: the cells' texts; ``**best**``, ``_second_`` and the marks of noise are part of them.
        note: what the marks mean, below it; or empty.
    """

    title: str
    columns: tuple[str, ...]
    text_columns: int
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(report: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a report: quality, rankings, what queries and indexes take, and its studies."""
    results = report["results"]
    found = [_quality(results, measure, report["systems"][0]) for measure in MEASURES]
    found += [_ranking(results), _queries(results), _indexing(report), _amortised(report)]
    found += [_retention(report, measure) for measure in MEASURES]
    return [table for table in found if table is not None]


def markdown(report: Mapping[str, Any]) -> str:
    """Return all tables as Markdown."""
    return "\n".join(_as_markdown(table) for table in tables(report))


def _as_markdown(table: Table) -> str:
    lines = [f"### {table.title}", ""]
    lines.append("| " + " | ".join(table.columns) + " |")
    rules = ["---" if place < table.text_columns else "---:" for place in range(len(table.columns))]
    lines.append("| " + " | ".join(rules) + " |")
    for row in table.rows:
        cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    if table.note:
        lines += ["", table.note]
    return "\n".join([*lines, ""])


def render(report: Mapping[str, Any], screen: RichConsole) -> None:
    """Draw all tables on a terminal: the best bold, the second underlined, with a bar for the last column."""
    from rich.table import Table as RichTable
    from rich.text import Text

    for table in tables(report):
        drawn = RichTable(title=table.title, title_justify="left")
        barred = table.title in TITLES.values()
        for place, column in enumerate(table.columns):
            drawn.add_column(column, justify="left" if place < table.text_columns else "right")
        if barred:
            drawn.add_column("", justify="left", no_wrap=True)
        for row in table.rows:
            cells = [_styled(cell, Text) for cell in row]
            if barred:
                cells.append(Text(_bar(row[-1])))
            drawn.add_row(*cells)
        screen.print(drawn)
        if table.note:
            screen.print(Text(table.note, "dim"))
        screen.print()


def _styled(cell: str, text: Callable[..., Any]) -> Any:
    mark = cell[-1:] if cell[-1:] in "▲▼" else ""
    plain = cell.removesuffix(mark).rstrip() if mark else cell
    style = ""
    if plain.startswith("**") and plain.endswith("**"):
        plain, style = plain[2:-2], "bold"
    elif plain.startswith("_") and plain.endswith("_") and len(plain) > 2:
        plain, style = plain[1:-1], "underline"
    return text(visible(f"{plain} {mark}".rstrip()), style)


def _bar(cell: str) -> str:
    number = cell.strip("*_▲▼ ").split(" ")[0]
    try:
        filled = round(8 * _BAR * min(1.0, float(number)))
    except ValueError:
        return ""
    return "█" * (filled // 8) + (" ▏▎▍▌▋▊▉"[filled % 8] if filled % 8 else "")


def _number(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if 0 <= value < 1 else f"{value:.3f}"


def _quality(results: Sequence[Mapping[str, Any]], measure: str, first: str) -> Table | None:
    rows = [row for row in results if row["measures"].get(measure)]
    if not rows:
        return None
    places = list(dict.fromkeys((row["retriever"], row["budget"]) for row in rows))
    retrievers = {retriever for retriever, _ in places}
    columns = tuple(
        f"{retriever} {budget}" if len(retrievers) > 1 else str(budget) for retriever, budget in places
    )
    body: list[tuple[str, ...]] = []
    for scope in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == scope]
        ranks = {place: _podium(own, place, measure) for place in places}
        several = len({(row["system"], row["order"]) for row in own}) > len({row["system"] for row in own})
        for system, order in dict.fromkeys((row["system"], row["order"]) for row in own):
            line = {
                (row["retriever"], row["budget"]): row["measures"][measure]
                for row in own
                if (row["system"], row["order"]) == (system, order)
            }
            name = f"{system} ({order})" if several else system
            cells = [_cell(line.get(place), ranks[place]) for place in places]
            counts = {entry["questions"] for entry in line.values()}
            body.append((scope, name, str(max(counts)), *cells))
    note = (
        f"Best bold, second underlined or in italics; ▲ better, ▼ worse than {first} beyond noise "
        "(paired bootstrap over questions, 95 %)."
    )
    return Table(TITLES[measure], ("data set", "system", "questions", *columns), 2, tuple(body), note)


def _podium(rows: Sequence[Mapping[str, Any]], place: tuple[str, int], measure: str) -> list[float]:
    """Return the two highest scores of a column, as they are shown."""
    values = {
        round(row["measures"][measure]["mean"], 3)
        for row in rows
        if (row["retriever"], row["budget"]) == place
    }
    return sorted(values, reverse=True)[:2]


def _cell(entry: Mapping[str, Any] | None, podium: Sequence[float]) -> str:
    if entry is None:
        return ""
    shown = _number(entry["mean"])
    if "deviation" in entry:
        shown += f" ± {_number(entry['deviation'])}"
    value = round(entry["mean"], 3)
    if value == podium[0]:
        shown = f"**{shown}**"
    elif value == podium[-1]:
        shown = f"_{shown}_"
    versus = entry.get("versus_first")
    if versus and versus["beyond_noise"]:
        shown += " ▲" if versus["mean"] > 0 else " ▼"
    return shown


def _first_plans(results: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield one row for each data set, system and retriever: rankings do not depend on budget and order."""
    seen = set()
    for row in results:
        key = (row["dataset"], row["system"], row["retriever"])
        if key not in seen:
            seen.add(key)
            yield row


def _ranking(results: Sequence[Mapping[str, Any]]) -> Table | None:
    found = [row for row in _first_plans(results) if any("@" in name for name in row["measures"])]
    if not found:
        return None
    # At 1 the three are the same.
    names = list(
        dict.fromkeys(
            name
            for row in found
            for name in row["measures"]
            if "@" in name and name not in ("mrr@1", "ndcg@1")
        )
    )
    names.sort(key=lambda name: (("hit", "mrr", "ndcg").index(name.split("@")[0]), int(name.split("@")[1])))
    rows = []
    for row in found:
        scores = [row["measures"].get(name) for name in names]
        count = str(next(entry["questions"] for entry in scores if entry))
        shown = [
            _cell(entry, _column_podium(found, row, name)) for entry, name in zip(scores, names, strict=True)
        ]
        rows.append((row["dataset"], row["system"], row["retriever"], count, *shown))
    titles = [name.replace("hit", "Hit").replace("mrr", "MRR").replace("ndcg", "NDCG") for name in names]
    columns = ("data set", "system", "retriever", "questions", *titles)
    note = "Relevant is what holds at least half of a gold passage's distinct content words."
    return Table("Ranking", columns, 3, tuple(rows), note)


def _column_podium(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any], name: str) -> list[float]:
    values = {
        round(other["measures"][name]["mean"], 3)
        for other in rows
        if (other["dataset"], other["retriever"]) == (row["dataset"], row["retriever"])
        and name in other["measures"]
    }
    return sorted(values, reverse=True)[:2]


def _queries(results: Sequence[Mapping[str, Any]]) -> Table | None:
    scopes = [row["dataset"] for row in results]
    scope = ALL if ALL in scopes else scopes[0] if scopes else ""
    own = [row for row in results if row["dataset"] == scope and "tokens" in row["measures"]]
    if not own:
        return None
    rows = []
    for row in own:
        measures = row["measures"]
        rows.append(
            (
                row["system"],
                row["retriever"],
                str(row["budget"]),
                row["order"],
                f"{measures['tokens']['mean']:.1f}",
                f"{measures['milliseconds']['median']:.2f}",
            )
        )
    columns = ("system", "retriever", "budget", "order", "tokens used", "median ms a query")
    note = "In process, on an open index; the question's vector is made beforehand."
    return Table("Queries", columns, 2, tuple(rows), note)


def _indexing(report: Mapping[str, Any]) -> Table | None:
    rows = []
    for system in report["systems"]:
        own = [entry for entry in report["indexing"] if entry["system"] == system]
        if not own:
            continue
        documents = sum(entry["documents"] for entry in own)
        costs = [entry["cost"] for entry in own]
        known = all(cost is not None for cost in costs)
        rows.append(
            (
                system,
                f"{documents:,}",
                f"{sum(entry['markers'] for entry in own):,}",
                _mean_length(own, "key_tokens"),
                _mean_length(own, "value_tokens"),
                f"{1000 * sum(entry['seconds'] for entry in own) / max(1, documents):.1f}",
                f"{sum(entry['calls'] for entry in own):,}",
                f"{sum(entry['prompt_tokens'] for entry in own):,}",
                f"{sum(entry['completion_tokens'] for entry in own):,}",
                f"{sum(costs):.4f}" if known else "unknown",
            )
        )
    columns = (
        "system",
        "documents",
        "markers",
        "key tokens",
        "value tokens",
        "ms a document",
        "calls",
        "prompt tokens",
        "reply tokens",
        "US dollars",
    )
    return Table("Indexing", columns, 1, tuple(rows)) if rows else None


def _mean_length(entries: Sequence[Mapping[str, Any]], name: str) -> str:
    counts = [(int(length), times) for entry in entries for length, times in entry[name]["counts"].items()]
    total = sum(times for _, times in counts)
    return f"{sum(length * times for length, times in counts) / total:.1f}" if total else "-"


def _amortised(report: Mapping[str, Any]) -> Table | None:
    if not any(row["indexing_cost"] is None or row["indexing_cost"] > 0 for row in report["amortised"]):
        return None
    rows = []
    for row in report["amortised"]:
        shown = {entry["queries"]: entry for entry in row["by_queries"]}
        cells = []
        for queries in _SHOWN_QUERIES:
            entry = shown[queries]
            cost = "unknown" if entry["cost"] is None else f"{entry['cost']:.6f}"
            cells += [f"{entry['seconds']:.4f}", cost]
        rows.append((row["system"], *cells))
    columns = [f"{what}, {queries:,} queries" for queries in _SHOWN_QUERIES for what in ("s", "US dollars")]
    return Table("Cost a query with its share of the index (Eq. 14)", ("system", *columns), 1, tuple(rows))


def _retention(report: Mapping[str, Any], measure: str) -> Table | None:
    entries = [row for row in report["distractors"] if row["measures"].get(measure)]
    if not entries:
        return None
    sizes = list(dict.fromkeys(row["documents"] for row in entries))
    rows = []
    keys = ("dataset", "system", "retriever", "budget", "order")
    for key in dict.fromkeys(tuple(row[name] for name in keys) for row in entries):
        own = {
            row["documents"]: row["measures"][measure]
            for row in entries
            if tuple(row[name] for name in keys) == key
        }
        cells = []
        for size in sizes:
            entry = own.get(size)
            if entry is None:
                cells.append("")
            elif entry["retention"] is None:
                cells.append(_number(entry["mean"]))
            else:
                cells.append(f"{_number(entry['mean'])} ({100 * entry['retention']:.0f} %)")
        rows.append((*(str(part) for part in key), *cells))
    columns = ("data set", "system", "retriever", "budget", "order")
    named = tuple("all" if size is None else str(size) for size in sizes)
    title = f"{TITLES[measure]} by documents in the index, and what is left of the first column"
    return Table(title, (*columns, *named), 5, tuple(rows))
