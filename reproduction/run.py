"""The list of experiments, and a run of them: CSV, SVG, PNG and the page of verdicts."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from reproduction.check import Finding
from reproduction.experiment import EXPERIMENTS, Context, Experiment, Result
from reproduction.papers import PAPERS
from tallyveil import notebook
from tallyveil.errors import UsageError

MODULES = (
    *("cormode_optima", "cormode_groups", "cormode_learning", "croft", "gupte"),
    *("kohli_theory", "kohli_distributions", "kohli_releases", "kohli_split", "kohli_runtime"),
)
"""The modules of this folder that hold experiments."""

HEAD = """# Verdicts

Written by `python -m reproduction{how}`; do not edit. The papers' tables, figures and tested claims
are computed again and compared with the print; [README.md](README.md) lists what is not. "agrees"
and "differs" are computed in the run, not typed. A claim that differs must have a reason on file,
and a claim that agrees must have none; otherwise the command ends with exit code 1.
"Not established" means that the reason is only our guess, "not judged" that the statement has no
measure or is about data that we do not have. "better" means that our own method improves on the
paper, on the same axes as the figure. ± is the tolerance: half a unit of the last printed digit,
the accuracy of the solver, or, for simulated values, four standard errors and the rounding of
the print. Where a line says "corrected" or names an independent solver, the expected value is not
printed in the paper; [ERRATA.md](ERRATA.md) lists the misprints. a is e^-epsilon.
"""
WORDS = {
    "matches": "matches",
    "differs": "differs, with a known reason",
    "open": "differs, reason not established",
    "not judged": "not judged",
    "unexplained": "DIFFERS, NOT EXPLAINED",
}


@dataclass(frozen=True)
class Outcome:
    """An experiment and its result."""

    experiment: Experiment
    result: Result

    @property
    def line(self) -> str:
        """The item, its paper and the verdict, in one line."""
        return f"{self.experiment.name}: {self.result.verdict_line}"


def list_experiments() -> tuple[Experiment, ...]:
    """List all experiments: paper by paper, tables before figures before the rest."""
    for name in MODULES:
        import_module(f"reproduction.{name}")
    return tuple(sorted(EXPERIMENTS, key=_order))


def _order(experiment: Experiment) -> tuple[int, int, int, str]:
    """Return the sort key: paper, kind of item, its number."""
    kind, _, which = experiment.item.partition(" ")
    kinds = ("Table", "Figure")
    rank = kinds.index(kind) if kind in kinds else len(kinds)
    digits = "".join(symbol for symbol in which if symbol.isdigit())
    return list(PAPERS).index(experiment.paper), rank, int(digits or 0), experiment.id


def select_experiments(paper: str | None = None, item: str | None = None) -> tuple[Experiment, ...]:
    """Select at least one experiment: of one paper, of one item such as "Figure 7", or all.

    Without `paper` an item is selected in every paper that has it.
    """
    if paper is not None and paper.lower() not in PAPERS:
        raise UsageError(f"There is no paper {paper}. Choose one of {', '.join(PAPERS)}.")
    chosen = tuple(
        experiment
        for experiment in list_experiments()
        if paper is None or experiment.paper == paper.lower()
        if item is None or experiment.item.lower() == item.strip().lower()
    )
    if not chosen:
        raise UsageError(f"There is no {item}. `python -m reproduction --list` shows all items.")
    return chosen


def run_experiments(chosen: Sequence[Experiment], context: Context, out: Path) -> Iterator[Outcome]:
    """Run experiments one after another; write and yield the outcome of each when it is done.

    The folder `out` receives, per paper, one picture as SVG and PNG and the data as CSV; after
    the last experiment also ``README.md``, the page.
    """
    outcomes = []
    out.mkdir(parents=True, exist_ok=True)
    for experiment in chosen:
        outcome = Outcome(experiment, experiment.run(context))
        _write_outcome(outcome, out / experiment.paper)
        outcomes.append(outcome)
        yield outcome
    pictures = {o.experiment.id: f"{o.experiment.paper}/{o.experiment.stem}.png" for o in outcomes}
    page = render_page(outcomes, context.quick, pictures)
    (out / "README.md").write_text(page, encoding="utf-8")


def write_page(outcomes: Sequence[Outcome], quick: bool, out: Path, path: Path) -> None:
    """Write the page of verdicts with the pictures of what goes beyond the papers.

    `out` is the folder of `run_experiments`; pictures go next to the page, to a folder with its
    name without the suffix.
    """
    folder = path.with_suffix("")
    pictures = {}
    for experiment, result in ((o.experiment, o.result) for o in outcomes):
        if any(finding.ours for finding in result.findings):
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{experiment.id}.png"
            shutil.copyfile(out / experiment.paper / f"{experiment.stem}.png", folder / name)
            pictures[experiment.id] = f"{folder.name}/{name}"
    path.write_text(render_page(outcomes, quick, pictures), encoding="utf-8")


def _write_outcome(outcome: Outcome, folder: Path) -> None:
    """Write the tables and the picture of one experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = outcome.experiment.stem
    for name, table in outcome.result.tables.items():
        path = folder / (f"{stem}.csv" if name == "data" else f"{stem}-{name}.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table.columns)
            for row in table.rows:
                writer.writerow(f"{x:.10g}" if isinstance(x, float) else x for x in row)
    figure = outcome.result.draw()
    for ending in (".svg", ".png"):
        notebook.save(figure, folder / f"{stem}{ending}")


def render_page(outcomes: Sequence[Outcome], quick: bool, pictures: dict[str, str]) -> str:
    """Render the page; `pictures` maps the id of an experiment to the path of its picture."""
    parts = [HEAD.format(how=" --quick" if quick else "")]
    lines = ["| item | what | verdict |", "|---|---|---|"]
    for outcome in outcomes:
        experiment, result = outcome.experiment, outcome.result
        better = any(f.ours and f.agrees for f in result.findings)
        word = WORDS[result.verdict] + ("; we do better" if better else "")
        anchor = re.sub(r"[^a-z0-9 -]", "", experiment.name.lower()).replace(" ", "-")
        name = f"[{experiment.name}](#{anchor})"
        lines.append(f"| {name} | {_escape(experiment.title)} | {word} |")
    parts.append("\n".join(lines) + "\n")
    for paper in dict.fromkeys(outcome.experiment.paper for outcome in outcomes):
        parts.append(f"## {PAPERS[paper].label}\n\n{PAPERS[paper].citation}.\n")
        parts.extend(
            _render_section(outcome, pictures.get(outcome.experiment.id))
            for outcome in outcomes
            if outcome.experiment.paper == paper
        )
    return "\n".join(parts).rstrip() + "\n"


def _render_section(outcome: Outcome, picture: str | None) -> str:
    experiment, result = outcome.experiment, outcome.result
    lines = [f"### {experiment.name}", ""]
    lines.append(f"{experiment.title} (section {experiment.section}).")
    if result.data:
        lines.append(f"Data: {result.data}.")
    lines += ["", f"**Verdict: {result.verdict_line}.**".replace("..**", ".**"), ""]
    lines += ["| claim | paper (or expected) | ours | verdict |", "|---|---|---|---|"]
    lines += [_render_row(finding) for finding in result.findings]
    if picture is not None:
        lines += ["", f"![{experiment.title}]({picture})"]
    return "\n".join(lines) + "\n"


def _render_row(finding: Finding) -> str:
    reason = f": {finding.why}" if finding.why else ""
    within = "" if finding.within is None else f" ± {finding.within:.2g}"
    cells = (finding.claim, finding.paper + within, finding.got, finding.word + reason)
    return "| " + " | ".join(_escape(cell) for cell in cells) + " |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
