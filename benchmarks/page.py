"""Make benchmarks/results.md, its pictures, and the headlines in docs/benchmarks.md.

    python -m benchmarks.page results/benchmarks . [--note "The machine was shared."]

Benchmarks that are not in the folder of numbers keep their sections.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import SUITE
from tallyveil.notebook import Curve, Panel, panels, save

LONG = 24
"""Tables and lists of exponents longer than this are folded away."""

HEADLINES = 4
"""Of more targets than these, the page of the documentation shows the first, and those missed."""

OURS = ("tallyveil", "transport")
"""How the labels of what the pictures are about begin."""

Document = dict[str, Any]


def kept(folder: Path) -> list[Document]:
    """What is in the folder, in the order of the suite."""
    files = [folder / f"{name}.json" for name in SUITE]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def draw(document: Document, folder: Path) -> Path | None:
    """The plots of one benchmark as one PNG, or None if it has none."""
    if not document["plots"]:
        return None
    parts = [
        Panel(
            plot["title"],
            [
                Curve(label, x, y, strong=label.startswith(OURS))
                for label, (x, y) in plot["curves"].items()
            ],
            plot["x_label"],
            plot["y_label"],
            log=plot["log"],
        )
        for plot in document["plots"]
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['benchmark']}.png"
    figure = panels(parts, columns=2)
    for axes, plot in zip(figure.axes, document["plots"], strict=False):
        _label_sizes(axes, sorted({value for x, _ in plot["curves"].values() for value in x}))
    save(figure, path)
    return path


def _label_sizes(axes: Any, sizes: list[float]) -> None:
    """Mark what was measured where powers of ten would be too few or in each other's way."""
    if len(sizes) <= 8 and sizes[-1] / sizes[0] < 300:
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.xaxis.set_minor_formatter("")


class Part(NamedTuple):
    """What the page says of one benchmark: its lines of the table on top, and its section."""

    promises: list[str]
    section: str


def make_parts(documents: Sequence[Document], pictures: Mapping[str, str]) -> dict[str, Part]:
    """What was measured, by benchmark; `pictures` holds the path of each one's picture."""
    return {
        document["benchmark"]: Part(
            _promises(document),
            "\n".join(_section(document, pictures.get(document["benchmark"]))),
        )
        for document in documents
    }


def read_parts(text: str) -> dict[str, Part]:
    """What a page says, by benchmark."""
    head, *sections = re.split(r"\n(?=## )", text)
    found = {}
    for section in sections:
        named = re.search(r"^`python -m benchmarks (\w+)`", section, re.MULTILINE)
        if named:
            name = named.group(1)
            lines = [line for line in head.splitlines() if line.startswith(f"| {name} |")]
            found[name] = Part(lines, section.strip("\n"))
    return found


def page(parts: Mapping[str, Part], note: str = "") -> str:
    """The whole page in Markdown: every promise on top, kept or not."""
    ordered = [parts[name] for name in SUITE if name in parts]
    lines = [
        "# Results of all benchmarks",
        "",
        "Written by `python -m benchmarks.page results/benchmarks .` from the numbers that "
        "`make bench` keeps in `results/benchmarks` (`make bench-quick`: minutes, small sizes). "
        "Everything in one table was measured in one run, so read the ratios rather than the "
        "seconds. Each section says when and on what it was measured, and a benchmark that was "
        f"not run again keeps its own. {note}".rstrip(),
        "",
        "| Benchmark | Promise | Measured | |",
        "|---|---|---|---|",
        *(line for part in ordered for line in part.promises),
    ]
    for part in ordered:
        lines += ["", part.section]
    return "\n".join(lines) + "\n"


def headlines(parts: Mapping[str, Part]) -> str:
    """Build the page of the documentation: for each question what was promised and measured."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` from single runs on two shared cores: read the ratios rather than "
        "the seconds. Each table has the first targets and all that were missed; "
        "`benchmarks/results.md` has all others, with tables, pictures, machines and peers.",
    ]
    for name in SUITE:
        if name in parts:
            question = parts[name].section.splitlines()[0]
            lines += ["", question, "", f"`python -m benchmarks {name}`", ""]
            lines += ["| Target | Measured | |", "|---|---|---|"]
            for number, line in enumerate(parts[name].promises):
                if number < HEADLINES or line.endswith("| **missed** |"):
                    lines.append(line.replace(f"| {name} |", "|", 1))
    return "\n".join(lines) + "\n"


def _promises(document: Document) -> list[str]:
    lines = []
    for bar in document["bars"]:
        kept_or_not = "met" if bar["met"] else "**missed**"
        cells = (document["benchmark"], bar["promise"], bar["measured"], kept_or_not)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _section(document: Document, picture: str | None) -> list[str]:
    size = "quick run" if document["quick"] else "full run"
    lines = [f"## {document['question']}", "", document["method"], ""]
    lines += [f"`python -m benchmarks {document['benchmark']}`, {size}. {_machine(document)}"]
    if picture:
        lines += ["", f"![{document['question']}]({picture})"]
    for table in document["tables"]:
        rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
        body = ["| " + " | ".join(row) + " |" for row in rows]
        lines += ["", *_folded(table["title"], body, len(table["rows"]))]
    if document["exponents"]:
        body = ["| Cost grows like size^k, over the three largest sizes | k |", "|---|---|"]
        body += [f"| {label} | {k:.2f} |" for label, k in document["exponents"].items()]
        lines += ["", *_folded("Growth", body, len(document["exponents"]))]
    if document["peers"]:
        states = ", ".join(f"{name} {state}" for name, state in document["peers"].items())
        lines += ["", f"Peers: {states}."]
    return lines


def _folded(title: str, body: list[str], rows: int) -> list[str]:
    if rows <= LONG:
        return [f"**{title}**", "", *body]
    summary = f"<summary>{title} ({rows} rows)</summary>"
    return ['<details markdown="1">', summary, "", *body, "", "</details>"]


def _machine(document: Document) -> str:
    m = document["machine"]
    libraries = ", ".join(f"{name} {number}" for name, number in m["libraries"].items())
    return (
        f"{m['date']}, {m['processor']}, {m['cores']} cores, {m['memory_gib']:g} GiB, "
        f"load {m['load']:g} when it began, {document['seconds']:,.0f} s; "
        f"{m['system']}, Python {m['python']}, {libraries}."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of NAME.json files")
    parser.add_argument("project", type=Path, help="the folder that has benchmarks/ and docs/")
    parser.add_argument("--note", default="", help="a sentence about how it was run")
    given = parser.parse_args(arguments)
    documents = kept(given.results)
    if not documents:
        parser.error(f"{given.results} holds no numbers; run `python -m benchmarks` first")
    file = given.project / "benchmarks" / "results.md"
    drawn = {d["benchmark"]: draw(d, file.parent / "images") for d in documents}
    pictures = {name: f"images/{path.name}" for name, path in drawn.items() if path}
    before = read_parts(file.read_text(encoding="utf-8")) if file.exists() else {}
    parts = before | make_parts(documents, pictures)
    file.write_text(page(parts, given.note), encoding="utf-8")
    (given.project / "docs" / "benchmarks.md").write_text(headlines(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
