"""Experiments: what computes a table, figure or claim of a paper again, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from reproduction.check import Finding
from reproduction.papers import PAPERS
from tallyveil.notebook import Curve, Panel, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["matches", "differs", "open", "not judged", "unexplained"]
"""Matches; differs for established reasons, or for reasons we only guess; holds nothing that can
be judged; or differs for reasons unknown."""


@dataclass(frozen=True)
class Table:
    """Rows under named columns; written as one CSV file."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Result:
    """The tables, the picture and the findings of an experiment.

    Each table becomes a CSV file. `data` says which data were used, where the paper used data:
    real or a generated stand-in.
    """

    tables: dict[str, Table]
    draw: Callable[[], Figure]
    findings: tuple[Finding, ...]
    data: str = ""

    @property
    def verdict(self) -> Verdict:
        """Matches, or differs for reasons established, guessed or unknown."""
        failed = [finding for finding in self.findings if finding.agrees is False]
        if any(not f.why for f in failed) or any(f.stale for f in self.findings):
            return "unexplained"
        if any(not finding.reason for finding in failed):
            return "open"
        if all(finding.agrees is None for finding in self.findings):
            return "not judged"
        return "differs" if failed else "matches"

    @property
    def verdict_line(self) -> str:
        """The verdict in one sentence, with the reasons where it differs."""
        failed = [finding for finding in self.findings if finding.agrees is False]
        data = f" ({self.data})" if self.data else ""
        if self.verdict == "matches":
            partly = any(finding.agrees is None for finding in self.findings)
            return "matches the paper" + (" where it can be judged" if partly else "") + data
        if self.verdict == "not judged":
            return f"not judged{data}: " + self.findings[-1].reason
        if self.verdict != "unexplained":
            reasons = list(dict.fromkeys(finding.why for finding in failed))
            return f"differs from the print{data}: " + " ".join(reasons)
        open_ones = [finding.claim for finding in failed if not finding.why]
        stale = [f"{f.claim} (agrees, against its stated reason)" for f in self.findings if f.stale]
        return f"DIFFERS, NOT EXPLAINED{data}: " + "; ".join(open_ones + stale)


def plot(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    parts: Sequence[Panel],
    findings: Iterable[Finding],
    data: str = "",
    *,
    across: int = 3,
) -> Result:
    """Build a result from one table and a picture of panels, `across` of them in a row."""
    draw = partial(panels, parts, columns=across)
    return Result({"data": Table(columns, rows)}, draw, tuple(findings), data)


Values = Mapping[tuple[Any, ...], float | Sequence[float]]
"""Numbers by (*setting, name of a curve, x)."""


def draw_values(
    values: Values,
    title: str,
    x_label: str,
    y_label: str,
    *,
    which: int = 0,
    error: bool = False,
    strong: str = "",
    **options: Any,
) -> list[Panel]:
    """Draw a panel for every setting: a curve for every name, over x.

    `title` is formatted with the setting. Of several numbers for one key, the one at `which` is
    drawn; with `error` the next one is its standard error. `options` are those of `Panel`.
    """
    settings: dict[tuple[Any, ...], dict[str, list[tuple[Any, ...]]]] = {}
    for key, value in values.items():
        points = settings.setdefault(key[:-2], {}).setdefault(key[-2], [])
        points.append((key[-1], *np.atleast_1d(value)[which:]))
    parts = []
    for setting, by_name in settings.items():
        curves = []
        for name, points in by_name.items():
            x, y, *rest = (list(part) for part in zip(*sorted(points), strict=True))
            curves.append(Curve(name, x, y, rest[0] if error else None, name == strong))
        parts.append(Panel(title.format(*setting), curves, x_label, y_label, **options))
    return parts


def plot_values(
    columns: Sequence[str],
    values: Values,
    title: str,
    findings: Iterable[Finding],
    data: str = "",
    *,
    across: int = 3,
    **options: Any,
) -> Result:
    """Build a result whose rows and curves are the same numbers; see `draw_values`.

    `columns` name the parts of a key and then the numbers.
    """
    x = len(next(iter(values))) - 1
    rows = [(*key, *np.atleast_1d(value).tolist()) for key, value in values.items()]
    parts = draw_values(values, title, columns[x], columns[x + 1], **options)
    return plot(columns, rows, parts, findings, data, across=across)


@dataclass(frozen=True)
class Context:
    """The settings of a run.

    `quick` asks for fewer repetitions and smaller grids. `data` is the folder of the real data;
    without it stand-ins are generated. `seed` is that of every simulated release.
    """

    quick: bool = False
    data: Path | None = None
    seed: int = 1


Function = TypeVar("Function", bound=Callable[..., Result])


@dataclass(frozen=True)
class Experiment:
    """One table, figure or claim of a paper, and the function that computes it again.

    `paper` is a key of `papers.PAPERS`, `item` the paper's name for it: "Figure 9", "Section 8".
    """

    paper: str
    item: str
    title: str
    section: str
    run: Callable[[Context], Result]

    @property
    def stem(self) -> str:
        """The name of its files: "figure-9"."""
        return self.item.lower().replace(" ", "-").replace(".", "-")

    @property
    def id(self) -> str:
        """A name that no other experiment has: "cormode-figure-9"."""
        return f"{self.paper}-{self.stem}"

    @property
    def name(self) -> str:
        """Author, year and item, for people: "Cormode 2018 Figure 9"."""
        return f"{PAPERS[self.paper].label} {self.item}"


EXPERIMENTS: list[Experiment] = []
"""Every experiment of the modules that were imported."""


def experiment(
    paper: str, item: str, section: str, title: str = "", **settings: Any
) -> Callable[[Function], Function]:
    """Register the decorated function as an experiment, with further arguments for it.

    Its docstring is the title unless there is another.
    """

    def register(run: Function) -> Function:
        shown = title or (run.__doc__ or "").split("\n")[0].rstrip(".")
        EXPERIMENTS.append(Experiment(paper, item, shown, section, partial(run, **settings)))
        return run

    return register
