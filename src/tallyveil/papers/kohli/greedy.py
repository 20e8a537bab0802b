"""Algorithms 1 and 2 of Kohli and Laskowski (2026).

Algorithm 1 (`greedy_fixed_point`) builds a mechanism that keeps a distribution out of scales;
Algorithm 2 (`unfixed_optimum`) builds the one of least expected loss, no distribution kept.

In plain floats Algorithm 1 loses its precision in the residual, what each row still lacks: it
falls by factors of e^(epsilon n), subtraction leaves only rounding errors, and the test whether a
bound is tight is decided by them. `Residual` keeps logarithms. A bound that became tight is
remembered, because it stays tight (errata, Kohli 6). Rows joined by tight bounds form a block that
moves as one. A block that came down to a bound is placed by its neighbours, which are more precise,
and not by the result of the subtraction; that changes row sums by about 1e-13. The last
column is the residual itself, so that rows sum to one after any rounding; the matrix is
feasible to about 1e-12 for every distribution and epsilon tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.errors import ArgumentError, MechanismError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, is_monge, loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.prior import require_distribution
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy

Chooser: TypeAlias = Callable[[Floats, Floats, Floats, Floats], int]
Selector: TypeAlias = str | Chooser | Sequence[int]

SELECTORS = ("max", "min", "sandwich", "random")
FEASIBLE = 1e-9
"""Largest error of row sums and of the fixed point in a matrix that is returned."""


@dataclass(frozen=True, eq=False)
class GreedyRun:
    """The outcome of Algorithm 1.

    Attributes
    ----------
    mechanism : Mechanism
        The fixed-point mechanism.
    order : tuple of int
        The columns in the order of filling.
    scales : int
        How many scales were used.
    """

    mechanism: Mechanism
    order: tuple[int, ...]
    scales: int


def greedy_fixed_point(
    z: ArrayLike, epsilon: Epsilon, selector: Selector = "sandwich", entropy: Any = None
) -> Mechanism:
    """Build a mechanism that keeps the distribution `z`, by Algorithm 1.

    Fills one column after another with single-peaked scales, adapted where a privacy bound of
    the residual is already tight, so that z·T = z and T is epsilon-private. The result is a
    vertex of all such mechanisms (Theorem 6), though seldom the best: `tallyveil.transport`
    is, in closed form, for every convex loss.

    Rows sum to one and z·T is z within 1e-9 (in practice 1e-12), and ratios hold to 1e-12
    relative, for n up to some thousands and any distribution; a matrix that misses this is
    refused, never returned. At most 2n - 1 scales are used (Theorem 5): O(n^2).

    Parameters
    ----------
    z : array of float, shape (n,)
        The distribution to keep, summing to one; zeros are allowed.
    epsilon : number or str
        The privacy loss.
    selector : str, sequence of int or callable
        Which column comes next: that of ``"max"`` or ``"min"`` probability, ``"sandwich"``
        0, n-1, 1, n-2, ..., or ``"random"``; the columns in order as a list; or a function of
        (z, r, c, A) as in the paper, where r is what rows still lack, c what columns still
        lack, and A the matrix so far.
    entropy : Entropy, optional
        The source of the random order; the operating system's if not given.

    Returns
    -------
    Mechanism
        The fixed-point mechanism for a count from 0 to n - 1.

    References
    ----------
    Kohli and Laskowski (2026), Algorithm 1, Proposition 2, Theorems 5 and 6.

    Examples
    --------
    >>> third = [1 / 3, 1 / 3, 1 / 3]
    >>> m = greedy_fixed_point(third, "0.6931471805599453", selector="max")
    >>> (m.matrix * 49).round(9).tolist()
    [[28.0, 11.0, 10.0], [14.0, 22.0, 13.0], [7.0, 16.0, 26.0]]
    """
    return greedy_run(z, epsilon, selector, entropy).mechanism


def best_fixed_point(
    z: ArrayLike,
    epsilon: Epsilon,
    selectors: Sequence[Selector] = ("max", "min", "sandwich"),
    loss: Loss = "absolute",
) -> Mechanism:
    """Build a mechanism with each selector and return the one of least expected loss.

    The loss is computed from z and the matrices alone, so that when z is already private the
    choice costs no privacy.

    Parameters
    ----------
    z, epsilon
        As for `greedy_fixed_point`.
    selectors : sequence
        The selectors to try, at least one.
    loss : any loss of `tallyveil.loss`
        What an error costs.

    Returns
    -------
    Mechanism
        The cheapest of them, the first on ties.

    References
    ----------
    Kohli and Laskowski (2026), section 5.2.
    """
    if not selectors:
        raise ArgumentError("selectors", "hold at least one selector", got="none")
    built = [greedy_fixed_point(z, epsilon, selector) for selector in selectors]
    return min(built, key=lambda mechanism: mechanism.expected_loss(loss, z))


def greedy_run(
    z: ArrayLike, epsilon: Epsilon, selector: Selector = "sandwich", entropy: Any = None
) -> GreedyRun:
    """Run `greedy_fixed_point` and also return the order of the columns and the scales used."""
    n = _count_entries(z)
    shares, exact = require_distribution(z, n, "z"), exact_epsilon(epsilon)
    choose = _make_chooser(selector, shares, entropy)
    with np.errstate(divide="ignore"):
        weights = np.log(shares)
    rest = Residual.of(np.ones(n), float(exact))
    lacking, matrix = shares.copy(), np.zeros((n, n), order="F")
    order: list[int] = []
    scales = 0
    while np.count_nonzero(lacking) > 1 and rest.free.any():
        j = int(choose(shares, np.exp(rest.log), lacking.copy(), matrix))
        if not 0 <= j < n or not lacking[j] > 0:
            rule = "choose a column that still lacks probability (c[j] > 0)"
            raise ArgumentError("selector", rule, j)
        order.append(j)
        scales += _fill(j, rest, lacking, weights, matrix)
    # the last column takes the rest; if no bound is free, the rest is one scale and every open
    # column gets its share of it
    rows, portion = np.exp(rest.log), lacking / lacking.sum()
    open_columns = np.flatnonzero(lacking)
    matrix[:, open_columns] += rows[:, None] * portion[open_columns]
    order += [int(j) for j in open_columns if j not in order]
    scales += len(open_columns) + (int(rest.free.sum()) if len(open_columns) == 1 else 0)
    return GreedyRun(_require_feasible(matrix, shares, exact), tuple(order), scales)


def _fill(j: int, rest: Residual, lacking: Floats, weights: Floats, matrix: Floats) -> int:
    """Add scales to column j until it is full or every bound is tight; return how many."""
    steps = np.where(np.arange(len(weights) - 1) < j, 1, -1)
    count = 0
    while lacking[j] > 0 and rest.free.any():
        taken, full = rest.take(rest.match_pattern(steps), float(np.log(lacking[j])), weights)
        matrix[:, j] += taken
        count += 1
        lacking[j] = 0.0 if full else max(lacking[j] - float(np.exp(weights) @ taken), 0.0)
    return count


def _require_feasible(matrix: Floats, shares: Floats, exact: Any) -> Mechanism:
    """Return `matrix` as a mechanism, or raise an error that says how far off it is."""
    rows = float(np.abs(matrix.sum(axis=1) - 1).max())
    fixed = float(np.abs(shares @ matrix - shares).max())
    if not max(rows, fixed) <= FEASIBLE:
        raise MechanismError(
            "z",
            f"allow rows and fixed point to be met within {FEASIBLE:g} in floating point",
            hint="Use transport: it is exact for every distribution, and cheaper.",
            got=f"an error of {max(rows, fixed):.3g}",
        )
    query = Query.count(len(shares) - 1)
    return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), query, exact, name="greedy")


def _make_chooser(selector: Selector, z: Floats, entropy: Any) -> Chooser:
    if callable(selector):
        return selector
    n, rows = len(z), np.arange(len(z))
    if not isinstance(selector, str):
        columns: NDArray[Any] = np.asarray(selector)
        if columns.shape != (n,) or not np.array_equal(np.sort(columns), rows):
            raise ArgumentError("selector", f"list each of the columns 0..{n - 1} once")
        columns = columns.astype(np.int64)
    elif selector in ("max", "min"):
        columns = np.argsort(-z if selector == "max" else z, kind="stable")
    elif selector == "sandwich":
        columns = np.column_stack([rows, n - 1 - rows]).ravel()[:n]
    elif selector == "random":
        columns = np.asarray((Entropy() if entropy is None else entropy).permutation(n))
    else:
        rule = f"be one of {', '.join(SELECTORS)}, a list of columns, or a function of (z, r, c, A)"
        raise ArgumentError("selector", rule, selector)
    return lambda z, r, c, A: int(columns[np.flatnonzero(c[columns] > 0)[0]])


def _count_entries(z: ArrayLike) -> int:
    shape = np.shape(z)
    if len(shape) != 1 or shape[0] < 2:
        raise ArgumentError("z", "be a distribution with at least 2 entries", got=f"shape {shape}")
    return int(shape[0])


CANCELLED = 1e-13
"""A row that keeps less than this share has too few correct digits to be compared."""


@dataclass(eq=False)
class Residual:
    """A positive private vector r = exp(log), and which of its privacy bounds are tight.

    Attributes
    ----------
    log : array of float, shape (n,)
        The logarithms of r.
    tight : array of int, shape (n-1,)
        +1 where r[i+1] = e^epsilon r[i], -1 where r[i+1] = e^-epsilon r[i], else 0.
    epsilon : float
        The privacy loss.
    """

    log: Floats
    tight: Integers
    epsilon: float

    @classmethod
    def of(cls, values: ArrayLike, epsilon: float) -> Residual:
        """Build the residual that starts at `values`, all positive and private."""
        log = np.log(np.asarray(values, dtype=float))
        fresh = cls(log, np.zeros(len(log) - 1, dtype=np.int64), epsilon)
        fresh._repair_bounds()
        return fresh

    @property
    def free(self) -> Mask:
        """Which bounds are not tight, shape (n-1,)."""
        free: Mask = self.tight == 0
        return free

    def match_pattern(self, pattern: Integers) -> Integers:
        """Return `pattern` with tight steps set to this vector's own (line 7 of Algorithm 1)."""
        return np.where(self.free, pattern, self.tight)

    def take(
        self, pattern: Integers, cap: float = np.inf, weights: Floats | None = None
    ) -> tuple[Floats, bool]:
        """Subtract as much of the scale with `pattern` as the bounds and `cap` allow.

        Either one more bound becomes tight, or the cap is met (Proposition 2).

        Parameters
        ----------
        pattern : array of int, shape (n-1,)
            The scale's steps, +1 or -1, equal to `tight` where that is not 0.
        cap : float
            The logarithm of the largest value of ``sum(exp(weights) * taken)``.
        weights : array of float, shape (n,), optional
            Logarithms; without them there is no cap.

        Returns
        -------
        array of float, shape (n,)
            What was subtracted.
        bool
            Whether the cap was met.
        """
        height = np.concatenate([[0], np.cumsum(pattern)])
        scale = self.epsilon * (height - height.max())
        amounts, free = self._limit_amounts(pattern, scale), int(self.free.sum())
        bound = int(amounts.argmin())
        limit = np.inf if weights is None else cap - _log_sum(weights + scale)
        capped = limit <= amounts[bound]
        taken = (limit if capped else float(amounts[bound])) + scale
        leaders = self._find_leaders()
        share = np.exp(np.minimum(taken - self.log, 0.0))[leaders]
        with np.errstate(divide="ignore"):
            self.log += np.maximum(np.log1p(-share), -700.0)
        placed = share > 1 - CANCELLED
        if not capped:
            # the row on the low side of the tight bound is the one that came down to it
            placed |= leaders == leaders[bound + 1 if pattern[bound] > 0 else bound]
        if placed.any() and not placed.all():
            self._place(np.unique(leaders[placed]))
        self._repair_bounds()
        result: Floats = np.exp(taken)
        return result, capped or int(self.free.sum()) == free

    def _limit_amounts(self, pattern: Integers, scale: Floats) -> Floats:
        """Compute the log of how much of the scale each bound allows; inf at tight ones."""
        step, rate = np.diff(self.log), self.epsilon
        with np.errstate(divide="ignore", invalid="ignore"):
            # -expm1(-x) keeps the slack's digits for large and small epsilon alike
            slack = np.log(-np.expm1(-np.maximum(rate + pattern * step, 0.0)))
        ready = np.where(pattern > 0, self.log[1:] - scale[1:], self.log[:-1] - scale[:-1])
        allowed = ready + slack - np.log(-np.expm1(-2 * rate))
        return np.where(self.free, allowed, np.inf)

    def _find_leaders(self) -> Integers:
        """Find, for every row, the first row of its block."""
        first = np.concatenate([[0], np.where(self.free, np.arange(1, len(self.log)), 0)])
        return np.maximum.accumulate(first)

    def _place(self, starts: Integers) -> None:
        """Set these blocks to the lowest values allowed and mark the bounds they meet.

        Which of several bounds a block met first may differ by less than a rounding error, so
        all of them are compared: one pass up and one down reach every block.
        """
        ends = np.append(np.flatnonzero(self.free) + 1, len(self.log))
        highs = ends[np.searchsorted(ends, starts, side="right")]
        blocks = list(zip(starts.tolist(), highs.tolist(), strict=True))
        met: dict[int, int] = {}
        for low, high in blocks:
            self.log[low:high] = -np.inf
        for low, high in [*blocks, *reversed(blocks)]:
            shape = self.epsilon * np.cumsum(np.append(0, self.tight[low : high - 1]))
            below = self.log[low - 1] - self.epsilon - shape[0] if low > 0 else -np.inf
            above = self.log[high] - self.epsilon - shape[-1] if high < len(self.log) else -np.inf
            if max(below, above) > self.log[low]:
                self.log[low:high] = shape + max(below, above)
                met[low] = low - 1 if below >= above else high - 1
        for bound in met.values():
            self.tight[bound] = int(np.sign(self.log[bound + 1] - self.log[bound]))

    def _repair_bounds(self) -> None:
        """Make every bound tight that rounding errors exceeded."""
        while True:
            step = np.diff(self.log)
            beyond = np.flatnonzero(self.free & (np.abs(step) >= self.epsilon))
            if len(beyond) == 0:
                return
            bound = int(beyond[0])  # one at a time: each join may repair the next, or exceed it
            self.tight[bound] = int(np.sign(step[bound]))
            self._join(bound)

    def _join(self, bound: int) -> None:
        """Shift one of the two blocks next to `bound` so that it is exactly tight."""
        tight = self.tight
        free = np.flatnonzero(tight == 0)
        start = int(free[free < bound].max(initial=-1)) + 1
        end = int(free[free > bound].min(initial=len(tight))) + 1
        gap = self.log[bound + 1] - self.log[bound] - tight[bound] * self.epsilon
        if gap == 0.0:
            return
        # move the block whose rows change least: the other one is more precise
        low = self.log[start : bound + 1].max() + _log_change(gap)
        high = self.log[bound + 1 : end].max() + _log_change(-gap)
        if high <= low:
            self.log[bound + 1 : end] -= gap
        else:
            self.log[start : bound + 1] += gap


def _log_change(shift: float) -> float:
    """Compute log|e^shift - 1|, the relative change of a number whose log shifts."""
    return float(np.log(-np.expm1(-abs(shift)))) + max(shift, 0.0)


def _log_sum(terms: Floats) -> float:
    """Compute log(sum(exp(terms))) without overflow; terms of -inf add nothing."""
    top = float(terms.max())
    return top + float(np.log(np.exp(terms - top).sum()))


def unfixed_optimum(z: ArrayLike, epsilon: Epsilon, loss: Loss = "absolute") -> Mechanism:
    """Build the epsilon-private mechanism of least expected loss under `z`, by Algorithm 2.

    Each column of the geometric mechanism (omega_l times the single-peaked scale at l; see
    `peak_weights`) goes as a whole to the output at which it costs least::

        j(l) = argmin_j sum_i z_i loss(i, j) e^(-epsilon |i - l|)

    This is optimal among all private mechanisms for losses that do not fall with distance
    (Theorem 8) and for every Monge loss (docs/theory.md, the transport theorem). Ties
    go to the lowest output; the sums are scaled by their largest term, so that underflow
    causes no ties. For row-wise convex losses the cost is O(n^2), else O(n^3).

    Parameters
    ----------
    z : array of float, shape (n,)
        The distribution of the true count, summing to one.
    epsilon : number or str
        The privacy loss.
    loss : any loss of `tallyveil.loss`
        Row-wise concentrating, or Monge.

    Returns
    -------
    Mechanism
        The optimum for a count from 0 to n - 1.

    References
    ----------
    Kohli and Laskowski (2026), Algorithm 2, Observation 3 (errata, Kohli 1) and Theorem 8.
    Ghosh, Roughgarden and Sundararajan (2012).

    Examples
    --------
    >>> m = unfixed_optimum([1.0, 0.0, 0.0], 1.0)
    >>> m.matrix.round(9).tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    exact, n = exact_epsilon(epsilon), _count_entries(z)
    query = Query.count(n - 1)
    belief, table = require_distribution(z, n, "z"), loss_table(query, loss)
    if not (is_row_wise_concentrating(table) or is_monge(table)):
        raise ArgumentError(
            "loss",
            "grow with the distance from the truth, or be a convex function of the error",
            hint="Use design: it solves the program for any loss.",
        )
    posterior = _compute_posteriors(belief, float(exact))
    if is_row_wise_convex(table):
        column = _walk_outputs(posterior, table)
    else:
        column = (posterior @ table).argmin(axis=1)  # the lowest on ties
    matrix = np.zeros(query.shape)
    np.add.at(matrix.T, column, geometric(query, exact).matrix.T)
    return Mechanism(matrix, query, exact, name="unfixed optimum")


def _compute_posteriors(belief: Floats, rate: float) -> Floats:
    """Compute in row l the posterior of the count given geometric draw l, up to a factor."""
    counts = np.arange(len(belief))
    with np.errstate(divide="ignore"):
        log = np.log(belief)[None, :] - rate * np.abs(counts[:, None] - counts[None, :])
    scaled: Floats = np.exp(log - log.max(axis=1, keepdims=True))
    return scaled


def _walk_outputs(posterior: Floats, table: Floats) -> Integers:
    """Find the cheapest output of every draw by walking up, where costs are convex in it."""
    n = len(posterior)
    column, j = np.zeros(n, dtype=np.int64), 0
    for draw in range(n):
        here = float(posterior[draw] @ table[:, j])
        while j < n - 1:
            above = float(posterior[draw] @ table[:, j + 1])
            if above >= here:
                break
            here, j = above, j + 1
        column[draw] = j
    return column


def is_row_wise_concentrating(weights: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Decide whether every row is a non-decreasing function of |i - j|.

    Parameters
    ----------
    weights : array of float, shape (n, m)
        A table of losses.
    tolerance : float
        Relative to the largest entry.

    Returns
    -------
    bool
        True if it is.

    References
    ----------
    Kohli and Laskowski (2026), Definition 11.

    Examples
    --------
    >>> is_row_wise_concentrating([[0, 1], [1, 0]]), is_row_wise_concentrating([[1, 0], [1, 0]])
    (True, False)
    """
    table = np.asarray(weights, dtype=float)
    n, m = table.shape
    distance = np.abs(np.arange(n)[:, None] - np.arange(m)[None, :])
    order = np.argsort(distance, axis=1, kind="stable")
    ranked, far = np.take_along_axis(table, order, 1), np.take_along_axis(distance, order, 1)
    room = tolerance * max(float(np.abs(table).max()), 1e-300)
    step, same = np.diff(ranked, axis=1), np.diff(far, axis=1) == 0
    return bool((step >= -room).all() and (np.abs(step[same]) <= room).all())


def is_row_wise_convex(weights: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Decide whether w[i, j+1] - w[i, j] never falls along a row.

    Parameters
    ----------
    weights : array of float, shape (n, m)
        A table of losses.
    tolerance : float
        Relative to the largest entry.

    Returns
    -------
    bool
        True if it never falls.

    References
    ----------
    Kohli and Laskowski (2026), Definition 12.

    Examples
    --------
    >>> is_row_wise_convex([[0, 1, 4]]), is_row_wise_convex([[0, 1, 1]])
    (True, False)
    """
    table = np.asarray(weights, dtype=float)
    room = tolerance * max(float(np.abs(table).max()), 1e-300)
    return bool((np.diff(table, n=2, axis=1) >= -room).all())
