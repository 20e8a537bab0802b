"""Experiments and findings: results computed again and compared with what a paper printed.

A `Finding` is one claim of a paper and our result. A reason (or a guess at one) is given only
where a difference is expected. A difference without one makes the verdict "unexplained", and so
does a claim that agrees although a reason for a difference is on file; the command then exits
with code 1. No claim that agrees can therefore carry an excuse for the day it fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from reproduction.papers import PAPERS
from tallyveil.arrays import Floats
from tallyveil.notebook import Curve, Panel, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["matches", "differs", "open", "not judged", "unexplained"]
"""Matches; differs for established reasons, or for reasons we only guess; holds nothing that can
be judged; or differs for reasons unknown."""

ROUNDING = 1 + 1e-9
"""Tolerances are widened by this factor, so that a value on the border agrees."""

STANDARD_ERRORS = 4
"""A simulated value agrees with the print within this many of its standard errors."""


@dataclass(frozen=True)
class Table:
    """Rows under named columns; written as one CSV file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
        """Build a table from any rows."""
        return cls(tuple(columns), tuple(tuple(row) for row in rows))


@dataclass(frozen=True)
class Finding:
    """One claim: the paper's value, ours, and whether they agree.

    For a claim of `ours`, which goes beyond the paper, `paper` holds the value to improve on.
    `agrees` is None where nothing is judged: other data than the paper's, or words without a
    measure. `reason` says why the two differ, as established, `guess` gives a possible reason that
    is not; a finding with either must differ. `within` is the tolerance of a number.
    """

    claim: str
    paper: str
    got: str
    agrees: bool | None
    reason: str = ""
    ours: bool = False
    guess: str = ""
    within: float | None = None

    @property
    def word(self) -> str:
        """The finding's own verdict in a word or two."""
        if self.agrees is None:
            return "not judged"
        if self.ours:
            return "better" if self.agrees else "NOT better"
        return "agrees" if self.agrees else "differs"

    @property
    def why(self) -> str:
        """The reason, or the guess with a word that says it is one."""
        return self.reason or (f"Not established: {self.guess}" if self.guess else "")

    @property
    def stale(self) -> bool:
        """Whether it agrees although a reason for a difference is on file."""
        return self.agrees is True and bool(self.why)


def check_number(
    claim: str, paper: float, got: float, within: float, reason: str = "", *, guess: str = ""
) -> Finding:
    """Compare a printed number with ours; they agree if at most `within` apart.

    >>> check_number("pi", 3.14, 3.14159, within=0.005).agrees
    True
    """
    agrees = bool(math.isfinite(got) and abs(got - paper) <= within * ROUNDING)
    return Finding(claim, f"{paper:.6g}", f"{got:.6g}", agrees, reason, guess=guess, within=within)


def check_estimate(
    claim: str,
    paper: float,
    got: float,
    error: float,
    *,
    rounding: float = 0.0,
    reason: str = "",
    guess: str = "",
) -> Finding:
    """Compare a printed number with a simulated one whose standard error was measured.

    They agree within `STANDARD_ERRORS` of it, and the rounding of the print. A printed value that
    was itself simulated has an error, which the papers do not state: it is taken as 0.

    >>> check_estimate("a mean", 0.64, 0.66, error=0.004, rounding=0.005).within
    0.021
    """
    finding = check_number(claim, paper, got, STANDARD_ERRORS * error + rounding, reason)
    return replace(finding, got=f"{got:.4g}, standard error {error:.2g}", guess=guess)


def standard_error(runs: Floats) -> float:
    """Estimate the standard error of the mean of independent runs; 0 for runs that are equal.

    >>> standard_error(np.array([1.0, 2.0, 3.0, 2.0])) * 2 == np.sqrt(2 / 3)
    np.True_
    """
    return float(np.std(runs, ddof=1)) / math.sqrt(len(runs))


def check_numbers(
    claim: str, paper: ArrayLike, got: ArrayLike, within: float, reason: str = ""
) -> Finding:
    """Compare many printed numbers with ours; they agree if no pair is further than `within`.

    >>> check_numbers("first two", [1.0, 2.0], [1.0, 2.5], within=0.1).got
    'largest difference 0.5'
    """
    printed, ours = (np.ravel(np.asarray(side, dtype=float)) for side in (paper, got))
    if printed.shape != ours.shape:
        raise ValueError("as many numbers as printed are needed")
    worst = float(np.abs(printed - ours).max())
    text = f"largest difference {worst:.2g}"
    agrees = worst <= within * ROUNDING
    return Finding(claim, f"{printed.size} numbers", text, agrees, reason, within=within)


def check_claim(claim: str, got: str, true: Any, reason: str = "", guess: str = "") -> Finding:
    """Record a statement of the paper, and whether our results satisfy it."""
    return Finding(claim, "stated", got, bool(true), reason, guess=guess)


def check_cells(
    claim: str, cells: Iterable[Any], reason: str = "", *, most: bool = False, guess: str = ""
) -> Finding:
    """Record a statement about cells of a table: true in all of them, or in `most`.

    >>> check_cells("positive", [1 > 0, 2 > 0]).got
    'in 2 of 2 cells'
    """
    held = [bool(cell) for cell in cells]
    true = sum(held) > len(held) / 2 if most else all(held)
    return check_claim(claim, f"in {sum(held)} of {len(held)} cells", true, reason, guess)


def check_improvement(claim: str, paper: str, got: str, true: Any) -> Finding:
    """Record a claim of ours that goes beyond the paper, and whether this run supports it."""
    return Finding(claim, paper, got, bool(true), ours=True)


def skip_check(claim: str, paper: str, got: str, reason: str) -> Finding:
    """Record a statement that is not judged here, and why: other data, or words without measure."""
    return Finding(claim, paper, got, None, reason)


def judge_if(comparable: bool, finding: Finding, reason: str) -> Finding:
    """Return the finding if it can be judged, else the same not judged, for `reason`."""
    return finding if comparable else skip_check(finding.claim, finding.paper, finding.got, reason)


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
    rows: Iterable[Sequence[Any]],
    parts: Sequence[Panel],
    findings: Iterable[Finding],
    data: str = "",
    *,
    across: int = 3,
) -> Result:
    """Build a result from one table and a picture of panels, `across` of them in a row."""
    draw = partial(panels, parts, columns=across)
    return Result({"data": Table.of(columns, rows)}, draw, tuple(findings), data)


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


Run = Callable[[Context], Result]


@dataclass(frozen=True)
class Experiment:
    """One table, figure or claim of a paper, and the function that computes it again.

    `paper` is a key of `papers.PAPERS`, `item` the paper's name for it: "Figure 9", "Section 8".
    """

    paper: str
    item: str
    title: str
    section: str
    run: Run

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


def experiment(paper: str, item: str, section: str) -> Callable[[Run], Run]:
    """Register the decorated function as an experiment; its docstring is the title."""

    def register(run: Run) -> Run:
        title = (run.__doc__ or "").split("\n")[0].rstrip(".")
        EXPERIMENTS.append(Experiment(paper, item, title, section, run))
        return run

    return register
