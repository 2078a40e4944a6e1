"""The report's figures, as PNG and SVG: told apart by shape and lightness as well as by colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.evaluation.report import ALL, MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LABELS = {"answer_recall": "answer recall", "evidence_recall": "evidence recall", "f1": "F1"}
# Okabe and Ito's colours, which the colour-blind tell apart, in an order that alternates dark and light.
_COLOURS = ("#000000", "#E69F00", "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#8C8C8C")
_MARKS = "osD^vPX*"
_LINES = ("-", "--", "-.", ":")
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
_SETTINGS: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "mrag",
}


def draw(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw every figure that the report has numbers for.

    Args:
        report: as `mrag_cli.parts.evaluation.report.report` makes it.
        folder: made if it is not there.

    Returns:
        The files, in order.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise UsageError("matplotlib is not installed; `pip install 'mrag-cli[plots]'` brings it") from None
    mpl.use("Agg")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with rc_context(_SETTINGS):
        for name, figure in _figures(report, Figure):
            for ending, metadata in (("png", None), ("svg", {"Date": None})):
                path = folder / f"{name}.{ending}"
                figure.savefig(path, dpi=160, bbox_inches="tight", metadata=metadata)
                written.append(path)
    return written


def _figures(report: Mapping[str, Any], new: Any) -> Iterator[tuple[str, Any]]:
    for measure in MEASURES:
        if any(measure in row["measures"] for row in report["results"]):
            yield f"budget-{measure}", _by_budget(report, measure, new)
        if any(measure in row["measures"] for row in report["distractors"]):
            yield f"retention-{measure}", _by_documents(report, measure, new)
    if report["results"]:
        yield "latency", _latency(report, new)
    if report["indexing"]:
        yield "cost", _cost(report, new)
        yield "lengths", _lengths(report, new)
    if report.get("geometry", {}).get("systems"):
        yield "geometry", _geometry(report["geometry"], new)


def _scope(report: Mapping[str, Any]) -> str:
    names = [row["dataset"] for row in report["results"]]
    return ALL if ALL in names else names[0]


def _look(report: Mapping[str, Any], system: str) -> tuple[int, str, str]:
    """Return a system's number, colour and mark, the same in every figure."""
    place = list(report["systems"]).index(system)
    return place, _COLOURS[place % len(_COLOURS)], _MARKS[place % len(_MARKS)]


def _panels(new: Any, count: int, width: float = 3.4, height: float = 3.0) -> tuple[Any, list[Any]]:
    figure = new(figsize=(width * count + 1.4, height))
    axes = figure.subplots(1, count, squeeze=False, sharey=True)[0]
    return figure, list(axes)


def _by_budget(report: Mapping[str, Any], measure: str, new: Any) -> Any:
    scope = _scope(report)
    rows = [row for row in report["results"] if row["dataset"] == scope and measure in row["measures"]]
    retrievers = list(dict.fromkeys(row["retriever"] for row in rows))
    orders = list(dict.fromkeys(row["order"] for row in rows))
    figure, axes = _panels(new, len(retrievers))
    for panel, retriever in zip(axes, retrievers, strict=True):
        for system, order in dict.fromkeys((row["system"], row["order"]) for row in rows):
            own = [
                row
                for row in rows
                if (row["system"], row["order"], row["retriever"]) == (system, order, retriever)
            ]
            if not own:
                continue
            number, colour, mark = _look(report, system)
            # A little to the side of each other, so that equal points are seen.
            aside = 1 + 0.008 * (number - (len(report["systems"]) - 1) / 2)
            entries = [row["measures"][measure] for row in own]
            means = [entry["mean"] for entry in entries]
            panel.errorbar(
                [row["budget"] * aside for row in own],
                means,
                yerr=[
                    [entry["mean"] - entry["low"] for entry in entries],
                    [entry["high"] - entry["mean"] for entry in entries],
                ],
                color=colour,
                marker=mark,
                linestyle=_LINES[orders.index(order) % len(_LINES)],
                label=f"{system} ({order})" if len(orders) > 1 else system,
                markersize=5,
                linewidth=1.4,
                elinewidth=0.6,
                capsize=2,
            )
        panel.set_title(retriever)
        panel.set_xlabel("budget, tokens")
        panel.set_xticks(sorted({row["budget"] for row in rows}))
    axes[0].set_ylabel(f"{LABELS[measure]}, {_title(scope)}")
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _title(scope: str) -> str:
    return "mean of the data sets" if scope == ALL else scope


def _by_documents(report: Mapping[str, Any], measure: str, new: Any) -> Any:
    """Draw Fig. 7: the score and what is left of it, against the documents in the index."""
    rows = [row for row in report["distractors"] if measure in row["measures"]]
    # The plan with the largest budget stands for all: one line a system stays readable.
    budget = max(row["budget"] for row in rows)
    first = next(row for row in rows if row["budget"] == budget)
    orders = {row["system"]: row["order"] for row in reversed(rows)}
    rows = [
        row
        for row in rows
        if (row["budget"], row["retriever"]) == (budget, first["retriever"])
        and row["order"] == orders[row["system"]]
    ]
    scopes = list(dict.fromkeys(row["dataset"] for row in rows))
    sizes = list(dict.fromkeys(row["documents"] for row in rows))
    ticks = ["all" if size is None else str(size) for size in sizes]
    figure = new(figsize=(3.4 * len(scopes) + 1.4, 5.2))
    axes = figure.subplots(2, len(scopes), squeeze=False, sharey="row", sharex=True)
    for column, scope in enumerate(scopes):
        for system, order in dict.fromkeys(
            (row["system"], row["order"]) for row in rows if row["dataset"] == scope
        ):
            own = {
                row["documents"]: row["measures"][measure]
                for row in rows
                if (row["dataset"], row["system"], row["order"]) == (scope, system, order)
            }
            _, colour, mark = _look(report, system)
            places = [place for place, size in enumerate(sizes) if size in own]
            for line, name in ((0, "mean"), (1, "retention")):
                heights = [own[sizes[place]][name] for place in places]
                axes[line][column].plot(
                    places, heights, color=colour, marker=mark, label=system, markersize=5, linewidth=1.4
                )
        axes[0][column].set_title(scope)
        axes[1][column].set_xlabel("documents in the index")
        axes[1][column].set_xticks(range(len(ticks)), ticks)
    axes[0][0].set_ylabel(f"{LABELS[measure]} at {budget}")
    axes[1][0].set_ylabel("share of the first")
    axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _latency(report: Mapping[str, Any], new: Any) -> Any:
    """Draw Fig. 9: the median time of a query, by system and retriever."""
    scope = _scope(report)
    rows = [row for row in report["results"] if row["dataset"] == scope and "milliseconds" in row["measures"]]
    retrievers = list(dict.fromkeys(row["retriever"] for row in rows))
    figure, axes = _panels(new, len(retrievers))
    for panel, retriever in zip(axes, retrievers, strict=True):
        times: dict[str, float] = {}
        for row in rows:
            if row["retriever"] == retriever:
                times.setdefault(row["system"], row["measures"]["milliseconds"]["median"])
        _bars(panel, report, times)
        panel.set_title(retriever)
    axes[0].set_ylabel("median ms a query")
    return figure


def _bars(panel: Any, report: Mapping[str, Any], heights: Mapping[str, float]) -> None:
    for place, (system, height) in enumerate(heights.items()):
        number, colour, _ = _look(report, system)
        panel.bar(
            place,
            height,
            color="white",
            edgecolor=colour,
            hatch=_HATCHES[number % len(_HATCHES)],
            linewidth=1.4,
        )
    panel.set_xticks(range(len(heights)), list(heights), rotation=45, ha="right")
    panel.grid(visible=False, axis="x")


def _cost(report: Mapping[str, Any], new: Any) -> Any:
    """Draw Fig. 10: what making the indexes took, by system."""
    sums = {
        system: {
            name: sum(row[name] or 0 for row in report["indexing"] if row["system"] == system)
            for name in ("documents", "seconds", "calls", "prompt_tokens", "completion_tokens")
        }
        for system in report["systems"]
    }
    panels = [
        ("seconds a document", {s: own["seconds"] / max(1, own["documents"]) for s, own in sums.items()})
    ]
    if any(own["calls"] for own in sums.values()):
        panels.append(("model calls", {s: own["calls"] for s, own in sums.items()}))
        panels.append(
            (
                "model tokens, in and out",
                {s: own["prompt_tokens"] + own["completion_tokens"] for s, own in sums.items()},
            )
        )
    figure = new(figsize=(3.4 * len(panels), 3.0), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, (title, heights) in zip(axes, panels, strict=True):
        _bars(panel, report, heights)
        panel.set_title(title)
    return figure


def _lengths(report: Mapping[str, Any], new: Any) -> Any:
    """Draw Fig. 5: how many tokens keys and values have, by system."""
    figure, axes = _panels(new, 2)
    most = 1
    for panel, name in zip(axes, ("key_tokens", "value_tokens"), strict=True):
        for system in report["systems"]:
            counts: dict[int, int] = {}
            for row in report["indexing"]:
                if row["system"] == system:
                    for length, times in row[name]["counts"].items():
                        counts[int(length)] = counts.get(int(length), 0) + times
            if not counts:
                continue
            number, colour, mark = _look(report, system)
            edges, heights = _shares(counts)
            most = max(most, edges[-1])
            panel.plot(
                edges,
                heights,
                color=colour,
                marker=mark,
                markersize=3,
                linewidth=1.2,
                linestyle=_LINES[number % len(_LINES)],
                label=system,
            )
        panel.set_title(name.replace("_tokens", "s"))
        panel.set_xlabel("tokens")
    axes[0].set_ylabel("share of markers")
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _shares(counts: Mapping[int, int], step: int = 8) -> tuple[list[int], list[float]]:
    total = sum(counts.values())
    bins: dict[int, int] = {}
    for length, times in counts.items():
        bins[length // step] = bins.get(length // step, 0) + times
    places = range(max(bins) + 1)
    return [place * step + step // 2 for place in places], [bins.get(place, 0) / total for place in places]


def _geometry(geometry: Mapping[str, Any], new: Any) -> Any:
    """Draw Fig. 6(a): keys, values and questions of one document, projected onto two dimensions."""
    systems: Sequence[Mapping[str, Any]] = geometry["systems"]
    figure, axes = _panels(new, len(systems), 3.2, 3.2)
    kinds = (("value", "#999999", "s", 14), ("key", "#0072B2", "o", 14), ("question", "#D55E00", "*", 110))
    for panel, own in zip(axes, systems, strict=True):
        for kind, colour, mark, size in kinds:
            points = own["points"].get(kind, [])
            panel.scatter(
                [x for x, _ in points],
                [y for _, y in points],
                s=size,
                c=colour,
                marker=mark,
                label=kind,
                edgecolors="black" if kind == "question" else "none",
                linewidths=0.6,
                alpha=1.0 if kind == "question" else 0.75,
            )
        panel.set_title(own["system"])
        panel.set_xticks([])
        panel.set_yticks([])
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.suptitle(f"{geometry['dataset']}: {geometry['document']}", fontsize=9, y=1.06)
    return figure
