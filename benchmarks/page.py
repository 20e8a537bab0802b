"""Make benchmarks/results.md and docs/benchmarks.md from the numbers in benchmarks/numbers.

A benchmark that was not run again keeps its numbers, and so its section.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import SUITE

ROOT = Path(__file__).parents[1]
NUMBERS = ROOT / "benchmarks" / "numbers"
LONG = 24
"""Tables with more rows than this are folded away."""

HEADLINES = 4
"""The page of the documentation shows this many targets of each benchmark, and those missed."""

INTRODUCTION = """# Results of all benchmarks

Written by `make bench` (`python -m benchmarks --pages`) from `benchmarks/numbers`. Everything in
one table was measured in one run, so read the ratios rather than the seconds. Each section says
when and on what it was measured; a benchmark that was not run again keeps its numbers.
"""
SHORT_INTRODUCTION = """# Benchmarks

Written by `make bench` from single runs on two shared cores: read the ratios rather than the
seconds. Each table has the first targets and all that were missed; `benchmarks/results.md` has all
others, with tables, machines and peers.
"""

VERDICTS = {True: "met", False: "**missed**"}
Document = dict[str, Any]


def write_pages(root: Path = ROOT) -> None:
    """Write both pages."""
    documents = read_numbers(root / "benchmarks" / "numbers")
    results, headlines = root / "benchmarks" / "results.md", root / "docs" / "benchmarks.md"
    results.write_text(render_results(documents), encoding="utf-8")
    headlines.write_text(render_headlines(documents), encoding="utf-8")


def read_numbers(folder: Path) -> list[Document]:
    """Read the numbers of every benchmark, in the order of the suite."""
    files = [folder / f"{name}.json" for name in SUITE]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def render_results(documents: Sequence[Document]) -> str:
    """Render all targets on top, then a section for each benchmark."""
    lines = [INTRODUCTION, "| Benchmark | Promise | Measured | |", "|---|---|---|---|"]
    for document in documents:
        lines += [f"| {document['benchmark']} {row}" for row in _format_targets(document)]
    for document in documents:
        lines += _render_section(document)
    return "\n".join(lines) + "\n"


def render_headlines(documents: Sequence[Document]) -> str:
    """Render the page of the documentation: what was promised and measured for each question."""
    lines = [SHORT_INTRODUCTION.rstrip("\n")]
    for document in documents:
        lines += ["", f"## {document['question']}", ""]
        lines += [f"`python -m benchmarks {document['benchmark']}`", ""]
        lines += ["| Target | Measured | |", "|---|---|---|"]
        lines += [
            row
            for number, row in enumerate(_format_targets(document))
            if number < HEADLINES or row.endswith("| **missed** |")
        ]
    return "\n".join(lines) + "\n"


def _format_targets(document: Document) -> list[str]:
    return [
        f"| {target['promise']} | {target['measured']} | {VERDICTS[target['met']]} |"
        for target in document["targets"]
    ]


def _render_section(document: Document) -> list[str]:
    size = "quick run" if document["quick"] else "full run"
    command = f"`python -m benchmarks {document['benchmark']}`, {size}."
    lines = ["", f"## {document['question']}", "", document["method"], ""]
    lines.append(f"{command} {_describe_run(document)}")
    for table in document["tables"]:
        rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
        body = ["| " + " | ".join(row) + " |" for row in rows]
        if len(table["rows"]) > LONG:
            summary = f"<summary>{table['title']} ({len(table['rows'])} rows)</summary>"
            lines += ["", '<details markdown="1">', summary, "", *body, "", "</details>"]
        else:
            lines += ["", f"**{table['title']}**", "", *body]
    if document["peers"]:
        states = ", ".join(f"{name} {state}" for name, state in document["peers"].items())
        lines += ["", f"Peers: {states}."]
    return lines


def _describe_run(document: Document) -> str:
    machine = document["machine"]
    libraries = ", ".join(f"{name} {number}" for name, number in machine["libraries"].items())
    return (
        f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gib']:g} GiB, load {machine['load']:g} when it began, "
        f"{document['seconds']:,.0f} s; {machine['system']}, Python {machine['python']}, "
        f"{libraries}."
    )
