"""The Markdown page that shows the papers and our results side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tallyveil.papers.harness.bibliography import PAPERS
from tallyveil.papers.harness.experiment import Experiment, Finding, Result

__all__ = ["render_page"]

Found: TypeAlias = Sequence[tuple[Experiment, Result]]

HEAD = """# Reproduction of the four papers

Written by `tallyveil reproduce{how}`; do not edit. The papers' tables, figures and tested claims
are computed again by this library and compared with the print; [features](features.md) lists what
is not. "agrees" and "differs" are computed in the run, not typed. A claim that differs must have a
reason on file, and a claim that agrees must have none; otherwise the command ends with exit code 1.
"Not established" marks a reason that is only our guess, "not judged" a statement without a measure
or about data that we do not have. "better" marks what goes beyond the papers, on the same axes as
the figure it improves. ± is the tolerance: half a unit of the last printed digit, the accuracy of
the solver, or, for simulated values, four measured standard errors and the rounding of the print.
Where a line says "corrected" or names an independent solver, the expected value is not printed in
the paper; `tallyveil/papers/ERRATA.md` lists the misprints. a stands for e^-epsilon.
"""
WORDS = {
    "matches": "matches",
    "differs": "differs, with a known reason",
    "open": "differs, reason not established",
    "not judged": "not judged",
    "unexplained": "DIFFERS, NOT EXPLAINED",
}


def render_page(found: Found, quick: bool, pictures: dict[str, str]) -> str:
    """Render the page; `pictures` maps the id of an experiment to the address of its picture."""
    parts = [HEAD.format(how=" --quick" if quick else "")]
    parts.append(_summarise(found))
    for paper in dict.fromkeys(experiment.paper for experiment, _ in found):
        parts.append(f"## {PAPERS[paper].label}\n\n{PAPERS[paper].citation}.\n")
        parts.extend(
            _render_section(experiment, result, pictures.get(experiment.id))
            for experiment, result in found
            if experiment.paper == paper
        )
    return "\n".join(parts).rstrip() + "\n"


def _summarise(found: Found) -> str:
    lines = ["| item | what | verdict |", "|---|---|---|"]
    for experiment, result in found:
        name = f"[{experiment.name}](#{_find_anchor(experiment)})"
        better = any(f.ours and f.agrees for f in result.findings)
        word = WORDS[result.verdict] + ("; we do better" if better else "")
        lines.append(f"| {name} | {_escape(experiment.title)} | {word} |")
    return "\n".join(lines) + "\n"


def _render_section(experiment: Experiment, result: Result, picture: str | None) -> str:
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


def _find_anchor(experiment: Experiment) -> str:
    kept = [symbol for symbol in experiment.name.lower() if symbol.isalnum() or symbol in " -"]
    return "".join(kept).replace(" ", "-")
