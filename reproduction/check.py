"""Findings: a claim of a paper, our result, and whether they agree.

A reason (or a guess at one) is given only where a difference is expected. A difference without
one makes the verdict "unexplained", and so does a claim that agrees although a reason for a
difference is on file; the command then exits with code 1. No claim that agrees can therefore
carry an excuse for the day it fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats

ROUNDING = 1 + 1e-9
"""Tolerances are widened by this factor, so that a value on the border agrees."""

STANDARD_ERRORS = 4
"""A simulated value agrees with the print within this many of its standard errors."""


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


def number(
    claim: str, paper: float, got: float, within: float, reason: str = "", *, guess: str = ""
) -> Finding:
    """Compare a printed number with ours; they agree if at most `within` apart.

    >>> number("pi", 3.14, 3.14159, within=0.005).agrees
    True
    """
    agrees = bool(math.isfinite(got) and abs(got - paper) <= within * ROUNDING)
    return Finding(claim, f"{paper:.6g}", f"{got:.6g}", agrees, reason, guess=guess, within=within)


def zero(claim: str, values: ArrayLike, within: float, reason: str = "") -> Finding:
    """Record that numbers should be 0; the furthest is shown.

    >>> zero("largest difference", [0.0, -0.5], within=0.1).got
    '0.5'
    """
    return number(claim, 0.0, float(np.abs(np.asarray(values, dtype=float)).max()), within, reason)


def equal(claim: str, ours: Any, printed: Any) -> Finding:
    """Record that fractions, one or an array of them, are those printed.

    >>> equal("two", 2, 4).agrees
    False
    """
    return Finding(claim, "stated", "equal as fractions", np.array_equal(ours, printed))


def estimate(
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

    >>> estimate("a mean", 0.64, 0.66, error=0.004, rounding=0.005).within
    0.021
    """
    finding = number(claim, paper, got, STANDARD_ERRORS * error + rounding, reason)
    return replace(finding, got=f"{got:.4g}, standard error {error:.2g}", guess=guess)


def standard_error(runs: Floats) -> float:
    """Estimate the standard error of the mean of independent runs; 0 for runs that are equal.

    >>> standard_error(np.array([1.0, 2.0, 3.0, 2.0])) * 2 == np.sqrt(2 / 3)
    np.True_
    """
    return float(np.std(runs, ddof=1)) / math.sqrt(len(runs))


def numbers(
    claim: str, paper: ArrayLike, got: ArrayLike, within: float, reason: str = ""
) -> Finding:
    """Compare many printed numbers with ours; they agree if no pair is further than `within`.

    >>> numbers("first two", [1.0, 2.0], [1.0, 2.5], within=0.1).got
    'largest difference 0.5'
    """
    printed, ours = (np.ravel(np.asarray(side, dtype=float)) for side in (paper, got))
    if printed.shape != ours.shape:
        raise ValueError("as many numbers as printed are needed")
    worst = float(np.abs(printed - ours).max())
    text = f"largest difference {worst:.2g}"
    agrees = worst <= within * ROUNDING
    return Finding(claim, f"{printed.size} numbers", text, agrees, reason, within=within)


def claim(claim: str, got: str, true: Any, reason: str = "", guess: str = "") -> Finding:
    """Record a statement of the paper, and whether our results satisfy it."""
    return Finding(claim, "stated", got, bool(true), reason, guess=guess)


def cells(
    claim: str, cells: Iterable[Any], reason: str = "", *, most: bool = False, guess: str = ""
) -> Finding:
    """Record a statement about cells of a table: true in all of them, or in `most`.

    >>> cells("positive", [1 > 0, 2 > 0]).got
    'in 2 of 2 cells'
    """
    held = [bool(cell) for cell in cells]
    true = sum(held) > len(held) / 2 if most else all(held)
    got = f"in {sum(held)} of {len(held)} cells"
    return Finding(claim, "stated", got, true, reason, guess=guess)


def rises(claim: str, values: Mapping[str, float] | Iterable[float], slack: float = 0.0) -> Finding:
    """Record that numbers rise from one to the next, or fall by less than `slack`.

    >>> rises("larger groups err more", {"n = 4": 0.5, "n = 8": 0.75}).got
    'n = 4: 0.5, n = 8: 0.75'
    """
    return _compare(claim, values, lambda first, second: first < second + slack)


def falls(claim: str, values: Mapping[str, float] | Iterable[float]) -> Finding:
    """Record that numbers fall from one to the next.

    >>> falls("the error falls", [3.0, 1.0, 2.0]).agrees
    False
    """
    return _compare(claim, values, lambda first, second: first > second)


def _compare(
    claim: str,
    values: Mapping[str, float] | Iterable[float],
    holds: Callable[[float, float], bool],
) -> Finding:
    named = values.items() if isinstance(values, Mapping) else [("", x) for x in values]
    got = ", ".join(f"{name}: {x:.4g}" if name else f"{x:.4g}" for name, x in named)
    steps = pairwise(float(x) for _, x in named)
    return Finding(claim, "stated", got, all(holds(*step) for step in steps))


def span(
    claim: str,
    values: float | Iterable[float],
    unit: str = "",
    *,
    above: float = -math.inf,
    below: float = math.inf,
    beats: str = "",
) -> Finding:
    """Record that a number, or all of several, lie strictly above and below a limit.

    For a claim of ours, which goes beyond the paper, `beats` is the value to improve on.

    >>> span("closed form against the program", [12.0, 50.0], "times faster", above=1).got
    '12 to 50 times faster'
    """
    numbers = sorted(np.atleast_1d(np.asarray(values, dtype=float)).tolist())
    got = " to ".join(f"{x:.4g}" for x in dict.fromkeys((numbers[0], numbers[-1])))
    true = above < numbers[0] <= numbers[-1] < below
    return Finding(claim, beats or "stated", f"{got} {unit}".strip(), true, ours=bool(beats))


def better(claim: str, paper: str, got: str, true: Any) -> Finding:
    """Record a claim of ours that goes beyond the paper, and whether this run supports it."""
    return Finding(claim, paper, got, bool(true), ours=True)


def skip(claim: str, paper: str, got: str, reason: str) -> Finding:
    """Record a statement that is not judged here, and why: other data, or words without measure."""
    return Finding(claim, paper, got, None, reason)


def judge_if(comparable: bool, finding: Finding, reason: str) -> Finding:
    """Return the finding if it can be judged, else the same not judged, for `reason`."""
    return finding if comparable else skip(finding.claim, finding.paper, finding.got, reason)
