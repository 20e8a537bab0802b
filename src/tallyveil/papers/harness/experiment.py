"""Experiments and findings: results computed again and compared with what a paper printed.

A `Finding` is one claim of a paper beside our result. A finding that does not agree and has no
known reason makes the experiment's verdict "unexplained", and the command exits with code 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.papers.harness.bibliography import PAPERS
from tallyveil.papers.harness.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Context",
    "Experiment",
    "Finding",
    "Result",
    "Table",
    "Verdict",
    "check_claim",
    "check_improvement",
    "check_number",
    "check_numbers",
    "skip_check",
]

Item = TypeVar("Item")
Verdict = Literal["matches", "differs", "unexplained"]


ROUNDING = 1 + 1e-9
"""Tolerances are widened by this factor, so that a value on the border agrees."""


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
    """One claim: what the paper says, what we get, whether they agree.

    Attributes
    ----------
    claim : str
        What is compared, in words.
    paper, got : str
        The paper's value and ours. For a claim of ours, `paper` holds the value to improve on.
    agrees : bool or None
        None where nothing can be compared, because the paper's data are not available.
    reason : str
        Why a difference is known, such as a misprint; empty if it is not.
    ours : bool
        Whether the claim goes beyond the paper.
    """

    claim: str
    paper: str
    got: str
    agrees: bool | None
    reason: str = ""
    ours: bool = False

    @property
    def word(self) -> str:
        """The finding's own verdict in a word or two."""
        if self.agrees is None:
            return "not comparable"
        if self.ours:
            return "better" if self.agrees else "NOT better"
        return "agrees" if self.agrees else "differs"


def check_number(claim: str, paper: float, got: float, within: float, reason: str = "") -> Finding:
    """Compare a printed number with ours; they agree if at most `within` apart.

    >>> check_number("pi", 3.14, 3.14159, within=0.005).agrees
    True
    """
    agrees = bool(math.isfinite(got) and abs(got - paper) <= within * ROUNDING)
    return Finding(claim, f"{paper:.6g}", f"{got:.6g}", agrees, reason)


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
    return Finding(claim, f"{printed.size} numbers", text, worst <= within * ROUNDING, reason)


def check_claim(claim: str, got: str, true: Any, reason: str = "") -> Finding:
    """Record a statement of the paper in words, and whether our results satisfy it."""
    return Finding(claim, "stated", got, bool(true), reason)


def check_improvement(claim: str, paper: str, got: str, true: Any, reason: str = "") -> Finding:
    """Record a claim of ours that goes beyond the paper, and whether this run supports it."""
    return Finding(claim, paper, got, bool(true), reason, ours=True)


def skip_check(claim: str, paper: str, got: str, reason: str) -> Finding:
    """Record a printed value that cannot be compared with ours here, and why."""
    return Finding(claim, paper, got, None, reason)


@dataclass(frozen=True)
class Result:
    """What an experiment found.

    Attributes
    ----------
    tables : dict of str to Table
        The numbers, one CSV file each.
    draw : callable
        Draws the picture.
    findings : tuple of Finding
        The claims that give the verdict.
    data : str
        Which data were used, where the paper used data: real or a generated stand-in.
    """

    tables: dict[str, Table]
    draw: Callable[[], Figure]
    findings: tuple[Finding, ...]
    data: str = ""

    @property
    def verdict(self) -> Verdict:
        """Matches, differs for known reasons, or differs for reasons unknown."""
        failed = [finding for finding in self.findings if finding.agrees is False]
        if any(not finding.reason for finding in failed):
            return "unexplained"
        return "differs" if failed else "matches"

    @property
    def verdict_line(self) -> str:
        """The verdict in one sentence, with the reasons where it differs."""
        failed = [finding for finding in self.findings if finding.agrees is False]
        beside = f" ({self.data})" if self.data else ""
        if not failed:
            partly = any(finding.agrees is None for finding in self.findings)
            return "matches the paper" + (" where it can be compared" if partly else "") + beside
        if self.verdict == "differs":
            reasons = list(dict.fromkeys(finding.reason for finding in failed))
            return f"differs from the print{beside}: " + " ".join(reasons)
        open_ones = "; ".join(finding.claim for finding in failed if not finding.reason)
        return f"DIFFERS, NOT EXPLAINED{beside}: {open_ones}"


@dataclass(frozen=True)
class Context:
    """The settings of a run.

    Attributes
    ----------
    quick : bool
        Whether to use fewer repetitions and smaller grids.
    data : Data
        Where the real data are.
    seed : int
        The seed of every simulated release.
    tell : callable
        Receives (steps done, steps in all) as an experiment goes on.
    """

    quick: bool = False
    data: Data = field(default_factory=Data)
    seed: int = 1
    tell: Callable[[int, int], None] = lambda done, total: None

    def track(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items one by one and report progress to `tell`."""
        every = list(items)
        self.tell(0, len(every))
        for done, item in enumerate(every, 1):
            yield item
            self.tell(done, len(every))


@dataclass(frozen=True)
class Experiment:
    """One table, figure or claim of a paper, and the function that computes it again.

    Attributes
    ----------
    paper : str
        The key of the paper in `bibliography.PAPERS`.
    item : str
        What the paper calls it: "Figure 9", "Table 3", "Section 8".
    title : str
        What it shows.
    section : str
        Where the paper describes it.
    run : callable
        Computes the result in a given context.
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
