"""Manuals for the tests: near-identical siblings of an invented maker, long enough to be told apart."""

_PARTS = (
    "Tank Filter Burner Spout Gauge Grinder Drawer Lid Hose Valve Lamp Tray Pump Sieve Plug Handle".split()
)
_TASKS = ("clean", "remove", "replace", "descale", "tighten")


def manual(
    product: str, *, title: str = "user manual", noun: str = "coffee machine", marks: bool = True
) -> str:
    """Return a manual of some 9,000 code points; with an empty ``title`` it has no title line."""
    hashes = "## " if marks else ""
    lines = [f"{'# ' if marks else ''}{product} {title}", ""] if title else []
    lines += [f"{hashes}Contents", "What the chapters are about, in the order in which they come.", ""]
    lines += [f"{hashes}Getting started", f"Put your {noun} on a level table, away from the edge.", ""]
    for part in _PARTS:
        lines.append(f"{hashes}{part}")
        for task in _TASKS:
            lines.append(
                f"To {task} the {part.lower()} of your {noun}, switch it off first and "
                "let it cool for ten minutes."
            )
        lines.append("")
    lines += [f"{hashes}Warranty", f"This {noun} is guaranteed for two years from the day of purchase.", ""]
    return "\n".join(lines)
