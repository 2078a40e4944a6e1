"""Measure everything that the README's section on evaluation reports, and print it as Markdown.

::

    python tests/benchmarks/evaluate.py DATA -o FOLDER [--embedder SPEC] [--only NAME…]

``DATA`` is a folder with

- ``qa/*.jsonl``: data sets in LongBench's shape,
- ``llm_markers/markers.jsonl`` and ``questions.jsonl``: markers that a model wrote, with questions,
- ``manuals/*.md`` and ``manuals_qa*.jsonl``: manuals whose first line is a ``# … manual`` title, with
  questions that have ``manual`` (the file) and ``evidence``; each is asked with the manual's product named.

What is not there is left out. Each table is what a ``mrag eval`` command prints; the command stands above it.
Reports, figures and finished parts are kept in ``FOLDER``; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_TITLE = re.compile(r"#\s*(?:Samsung\s+)?(.+?)(?:\s*\(.*\))?(?:\s+(?:user|e-)?\s*manual)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Run:
    """One ``mrag eval`` command.

    Attributes:
        name: of its report, and what ``--only`` takes.
        title: of its tables.
        arguments: of the command.
        tables: titles of those of its tables that are printed; one that ends with ``by`` is a beginning.
    """

    name: str
    title: str
    arguments: tuple[str | Path, ...]
    tables: tuple[str, ...]


def main() -> None:
    """Run every measurement that the data allow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--only", nargs="*", default=None)
    chosen = parser.parse_args()
    data, output = chosen.data.resolve(), chosen.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    failed = False
    for run in runs(data, output, chosen.embedder):
        if chosen.only is None or run.name in chosen.only:
            failed |= not measured(run, data, output)
    sys.exit(failed)


def runs(data: Path, output: Path, embedder: str | None) -> list[Run]:
    """Return the commands that the data allow, in the README's order."""
    found = []
    sets = sorted((data / "qa").glob("*.jsonl"))
    quality = ("Answer recall", "Evidence recall")
    if sets:
        compared = ("--systems", "mrag,fixed,overlap,semantic")
        found += [
            Run(
                "qa",
                "One document a question, BM25",
                (*sets, *compared, "--plots", output / "plots"),
                (*quality, "Queries", "Indexing"),
            ),
            Run(
                "plans",
                "Every baseline, and the paper's plan beside the refinements",
                (*sets, "--systems", "mrag,mrag+paper,fixed,fixed+refined,overlap,semantic,pic,dos"),
                quality,
            ),
            Run("corpus", "One index a data set", (*sets, *compared, "--corpus"), (*quality, "Ranking")),
        ]
        if embedder:
            dense = (*compared, "--embedder", embedder)
            found.append(Run("vectors", "BM25, vectors and both", (*sets, *dense), quality))
    studied = [path for path in sets if path.stem in ("hotpotqa", "musique")]
    if studied:
        sizes = ("--distractors", "1,5,10,25,50,100,all", "--budgets", "384")
        found.append(
            Run(
                "distractors",
                "Retention among distractors",
                (*studied, "--systems", "mrag,mrag+paper,fixed,overlap", *sizes),
                ("Answer recall by", "Evidence recall by"),
            )
        )
        budgets = ("--budgets", "128,256,384,512,640", "--orders", "similarity,position")
        found.append(
            Run(
                "budgets",
                "Budgets from 1 to 5 times 128",
                (*studied, "--systems", "mrag,fixed,dos", *budgets),
                quality,
            )
        )
    found += _of_markers(data, quality)
    found += _of_manuals(data, output, embedder)
    return found


def _of_markers(data: Path, quality: tuple[str, ...]) -> list[Run]:
    folder = data / "llm_markers"
    if not (folder / "markers.jsonl").is_file():
        return []
    markers = folder / "markers.jsonl"
    compared = (
        *("--systems", "mrag,fixed,overlap"),
        *("--system", f"llm={markers}", "--system", f"llm+paper={markers}"),
    )
    questions = folder / "questions.jsonl"
    return [
        Run("llm", "Markers that a model wrote, one document a question", (questions, *compared), quality),
        Run("llm-corpus", "The same in one index", (questions, *compared, "--corpus"), quality),
    ]


def _of_manuals(data: Path, output: Path, embedder: str | None) -> list[Run]:
    manuals = data / "manuals"
    paths = sorted(data.glob("manuals_qa*.jsonl"))
    if not manuals.is_dir() or not paths:
        return []
    named = [_with_products(path, manuals, output / path.name.replace("_qa", "_named")) for path in paths]
    retrievers = ("--retrievers", "bm25,hybrid", "--embedder", embedder) if embedder else ()
    arguments = (
        *(*named, "--contexts", manuals, "--joined", "--systems", "chop,naive,cosine,fixed"),
        *("--budgets", "640", *retrievers),
    )
    return [
        Run("chop", "CHOP on manuals joined into one document", arguments, ("Ranking", "Evidence recall"))
    ]


def _with_products(path: Path, manuals: Path, target: Path) -> Path:
    """Write the questions with their manual's product named before them, and return the file."""
    rows = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        first = (manuals / row["manual"]).read_text("utf-8").split("\n", 1)[0]
        title = _TITLE.fullmatch(first)
        product = title[1] if title else Path(row["manual"]).stem
        rows.append({**row, "input": f"{product}: {row['input']}"})
    target.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return target


def measured(run: Run, data: Path, output: Path) -> bool:
    """Run a command and print its tables; return whether it ended well."""
    report = output / f"{run.name}.json"
    command = ["mrag", "eval", *map(str, run.arguments), "-o", str(report)]
    done = subprocess.run(
        [sys.executable, "-m", "mrag_cli", *command[1:]], stdout=subprocess.PIPE, check=False
    )
    sections = re.split(r"(?m)^(?=### )", done.stdout.decode())
    wanted = [section for section in sections if _is_wanted(section, run.tables)]
    shown = shlex.join(command).replace(f"{data}/", "DATA/").replace(f"{output}/", "FOLDER/")
    sys.stdout.write(f"## {run.title}\n\n    {shown}\n\n{''.join(wanted).strip()}\n\n")
    sys.stdout.flush()
    return done.returncode == 0


def _is_wanted(section: str, titles: tuple[str, ...]) -> bool:
    heading = section.split("\n", 1)[0].removeprefix("### ")
    return any(heading == title or (title.endswith(" by") and heading.startswith(title)) for title in titles)


if __name__ == "__main__":
    main()
