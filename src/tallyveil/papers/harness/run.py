"""Run experiments and write what they found: CSV, SVG, PNG, verdict lines and a page."""

from __future__ import annotations

import csv
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallyveil import figures
from tallyveil.papers.harness.experiment import Context, Experiment, Result, Table
from tallyveil.papers.harness.page import render_page

__all__ = ["Outcome", "run_experiments", "write_outcome", "write_page"]


@dataclass(frozen=True)
class Outcome:
    """An experiment, what it found, and how long it took."""

    experiment: Experiment
    result: Result
    seconds: float

    @property
    def line(self) -> str:
        """One line for people: which item of which paper, and the verdict."""
        return f"{self.experiment.name}: {self.result.verdict_line}"


def run_experiments(
    chosen: Sequence[Experiment],
    context: Context,
    out: Path,
    *,
    starting: Callable[[Experiment], None] = lambda experiment: None,
    finished: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run the chosen experiments one after another and write each as soon as it is done.

    Parameters
    ----------
    chosen : sequence of Experiment
        What to run.
    context : Context
        The settings of the run.
    out : Path
        The folder that receives, per paper, one picture as SVG and PNG and the data as CSV;
        beside them ``verdicts.txt``, ``results.json`` and ``README.md`` (the page).
    starting, finished : callable
        Called before and after every experiment.

    Returns
    -------
    list of Outcome
        One for every experiment, in the same order.
    """
    outcomes = []
    out.mkdir(parents=True, exist_ok=True)
    for experiment in chosen:
        starting(experiment)
        begun = time.perf_counter()
        result = experiment.run(context)
        outcome = Outcome(experiment, result, time.perf_counter() - begun)
        write_outcome(outcome, out)
        outcomes.append(outcome)
        finished(outcome)
    lines = [outcome.line for outcome in outcomes]
    (out / "verdicts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    summary = {"quick": context.quick, "experiments": [_summarise(o) for o in outcomes]}
    (out / "results.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    pictures = {o.experiment.id: f"{o.experiment.paper}/{o.experiment.stem}.png" for o in outcomes}
    _write_markdown(outcomes, context.quick, pictures, out / "README.md")
    return outcomes


def write_page(outcomes: Sequence[Outcome], quick: bool, out: Path, path: Path) -> None:
    """Write the page for the documentation, with the pictures of what goes beyond the papers.

    Parameters
    ----------
    outcomes : sequence of Outcome
        What `run_experiments` returned.
    quick : bool
        Whether it was a quick run; the page says so.
    out : Path
        The folder that `run_experiments` wrote to.
    path : Path
        The page to write. Pictures go to a folder of the same name without the suffix.
    """
    folder = path.with_suffix("")
    pictures = {}
    for outcome in outcomes:
        if any(finding.ours for finding in outcome.result.findings):
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{outcome.experiment.id}.png"
            shutil.copyfile(
                out / outcome.experiment.paper / f"{outcome.experiment.stem}.png", folder / name
            )
            pictures[outcome.experiment.id] = f"{folder.name}/{name}"
    _write_markdown(outcomes, quick, pictures, path)


def _write_markdown(
    outcomes: Sequence[Outcome], quick: bool, pictures: dict[str, str], path: Path
) -> None:
    found = [(outcome.experiment, outcome.result) for outcome in outcomes]
    path.write_text(render_page(found, quick, pictures), encoding="utf-8")


def write_outcome(outcome: Outcome, out: Path) -> None:
    """Write the tables and the picture of one experiment below `out`."""
    experiment, result = outcome.experiment, outcome.result
    folder = out / experiment.paper
    folder.mkdir(parents=True, exist_ok=True)
    stem = outcome.experiment.stem
    for name, table in result.tables.items():
        _write_csv(table, folder / (f"{stem}.csv" if name == "data" else f"{stem}-{name}.csv"))
    findings = Table.of(
        ("claim", "paper", "tolerance", "ours", "verdict", "reason"),
        [(f.claim, f.paper, f.within, f.got, f.word, f.why) for f in result.findings],
    )
    _write_csv(findings, folder / f"{stem}-verdict.csv")
    drawn = result.draw()
    for ending in (".svg", ".png"):
        figures.save(drawn, folder / f"{stem}{ending}")


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        for row in table.rows:
            writer.writerow([_format_cell(value) for value in row])


def _format_cell(value: Any) -> Any:
    return f"{float(value):.10g}" if isinstance(value, float) else value


def _summarise(outcome: Outcome) -> dict[str, Any]:
    experiment, result = outcome.experiment, outcome.result
    return {
        "id": experiment.id,
        "paper": experiment.paper,
        "item": experiment.item,
        "title": experiment.title,
        "section": experiment.section,
        "data": result.data,
        "verdict": result.verdict,
        "line": result.verdict_line,
        "seconds": round(outcome.seconds, 2),
        "findings": [
            {
                "claim": f.claim,
                "paper": f.paper,
                "tolerance": f.within,
                "ours": f.got,
                "verdict": f.word,
                "reason": f.why,
            }
            for f in result.findings
        ],
    }
