"""Trade-off between cell error and distribution error, and the least error of any distribution.

A release of counts can be right row by row, or have the right distribution, and seldom both. For
every exchange rate between the two there is a best private mechanism, and it is a geometric draw
followed by a map. The proof is in docs/theory.md, the frontier theorem.

`bound_distribution_error` bounds what any release of a distribution can do. Let C_j be the number
of rows with a count of at most j. Tables are as good as the vectors C, one person moves one entry
of C by one, and N W1 is the sum of |error of C_j|. So a release of the distribution answers as many
counting queries as there are thresholds, on the same epsilon, and each has an error that no
mechanism of a single count avoids (docs/theory.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.answers import read_floats
from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon, require_positive
from tallyveil.loss import Loss, is_monge, loss_name, loss_table
from tallyveil.matrix import FrozenArrays, check_number
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import decaying_sums, geometric, output_factors
from tallyveil.mechanisms.transport import Remap, monotone_remap
from tallyveil.prior import require_distribution
from tallyveil.query import Query, require_query

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

CURVE_POINTS = 51
"""Exchange rates at which a frontier is worked out unless others are given."""

SMALLEST_TOTAL = 1e-290
"""A posterior is not worked out from a total probability below this, which has lost digits."""

LEAST_TOTAL = 1e-300
"""Smaller total probabilities are replaced by this, so that nothing is divided by 0."""

TIE = 1e-12
"""Costs that differ by less than this, relatively, are equal; then the distribution decides."""


def frontier(
    query: Query,
    epsilon: Epsilon,
    distribution: ArrayLike,
    loss: Loss = "absolute",
    *,
    tradeoffs: ArrayLike | None = None,
) -> Frontier:
    """Find the least error that private counts can have for every distribution error.

    With D the true count, which has the given distribution, and R the released one, it minimises
    over ALL epsilon-private mechanisms::

        E loss(D, R)  +  tradeoff * W1(distribution of R, distribution of D)

    for each tradeoff >= 0 and every Monge loss (any convex function of the error). Let k be a
    geometric draw and q the count that rank matching gives it (the quantile remap of
    `transport`). The optimum releases::

        argmin_j  E[loss(D, j) | k]  +  tradeoff * |j - q|

    a compromise between the best guess for the row and the count that keeps the distribution; for
    the absolute loss it is q clipped to a central interval of the posterior
    (`Posterior.find_limits`). At tradeoff 0 it is the best guess (the posterior median for the
    absolute loss). From the largest slope of the loss on (1 for the absolute loss) it is rank
    matching, `transport`. Also a bound for whole tables whose rows are drawn from `distribution`:
    docs/theory.md. Costs O(n^2).

    Parameters
    ----------
    query : Query
        A count, or another query with equal inputs and outputs and adjacent neighbours.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.
    distribution : array of float, shape (n,)
        The distribution of the true answers, summing to one.
    loss : str, tuple, callable or array of float, shape (n, n)
        A Monge loss; see `loss_table`.
    tradeoffs : array of float, shape (t,), or None
        The exchange rates of the curve, increasing; None takes 51 from 0 to rank matching.

    Returns
    -------
    Frontier
        The curve, the mechanism of any point on it, and the bound it gives.

    References
    ----------
    Kohli and Laskowski (2026), section 5, has its two ends: Algorithm 2 and the fixed points.

    Examples
    --------
    >>> curve = frontier(Query.count(1), "0.6931471805599453", [0.75, 0.25], tradeoffs=[0, 0.3])
    >>> curve.error.round(9).tolist(), curve.distance.round(9).tolist()
    ([0.25, 0.3], [0.25, 0.0])
    >>> curve.mechanism(0.3).matrix.round(9).tolist()
    [[0.8, 0.2], [0.6, 0.4]]
    """
    exact = exact_epsilon(epsilon)
    require_query(query)
    query.require_square("a frontier between error and distribution")
    query.require_path(hint="The frontier is proved for counts.")
    prior = require_distribution(distribution, len(query.inputs))
    table = loss_table(query, loss)
    if not is_monge(table):
        hint = "Every convex function of the error is; zero_one and beyond are not."
        raise ArgumentError("loss", "be Monge", hint=hint, got=loss_name(loss))
    answers = query.inputs.astype(float)
    if tradeoffs is None:
        steepest = float(np.abs(np.diff(table, axis=1) / np.diff(answers)).max())
        rates = steepest * np.linspace(0.0, 1.0, CURVE_POINTS) ** 2
    else:
        rates = read_floats(tradeoffs, "tradeoffs")
        ordered = rates.ndim == 1 and len(rates) > 0 and (np.diff(rates, prepend=-1.0) > 0).all()
        if not ordered or not np.isfinite(rates).all() or rates[0] < 0:
            raise ArgumentError("tradeoffs", "be finite, at least 0, and increase")
    drawn = geometric(Query.count(len(answers) - 1), exact).matrix
    parts = _Parts(query, drawn, prior, table, monotone_remap(prior @ drawn, prior))
    points = np.array([parts.measure(parts.choose(rate)) for rate in rates])
    return Frontier(rates, points[:, 0], points[:, 1], loss_name(loss), str(exact), parts)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Draws, losses and rank matching of all points of a frontier."""

    query: Query
    drawn: Floats  # geometric, shape (n, n)
    distribution: Floats
    table: Floats
    matched: Remap  # rank matching of the draws

    @cached_property
    def costs(self) -> Floats:
        """Pr(draw = k) E[loss(D, j) | draw = k], shape (n, n)."""
        costs: Floats = self.drawn.T @ (self.distribution[:, None] * self.table)
        return costs

    @cached_property
    def mass(self) -> Floats:
        """Pr(draw = k), shape (n,)."""
        mass: Floats = self.distribution @ self.drawn
        return mass

    def choose(self, rate: float) -> Integers:
        """Choose the answer to release for each entry (draw k, count q) of the rank matching.

        Ties go to q, and so do draws without probability.
        """
        draw, matched = self.matched.row, self.matched.column
        answers = self.query.inputs.astype(float)
        moved = np.abs(answers[None, :] - answers[matched, None])
        total = self.costs[draw] + rate * self.mass[draw, None] * moved
        place, best = np.arange(len(draw)), total.argmin(axis=1)
        stays = total[place, matched] <= total[place, best] * (1 + TIE)
        return np.where(stays, matched, best)

    def measure(self, chosen: Integers) -> tuple[float, float]:
        """Return the expected loss and the distance, if each entry releases its choice."""
        row, share = self.matched.row, self.matched.share
        released = np.bincount(chosen, self.mass[row] * share, len(self.mass)).astype(float)
        return float(share @ self.costs[row, chosen]), self.measure_distance(released)

    def measure_distance(self, released: Floats) -> float:
        """Return the Wasserstein-1 distance of a distribution from the true one."""
        apart = np.abs(np.cumsum(released - self.distribution))[:-1]
        return float(apart @ np.diff(self.query.inputs.astype(float)))


class Posterior:
    """The distribution of the true count given a geometric draw: Pr(true <= j | draw k).

    Worked out from running sums, without a matrix.

    Parameters
    ----------
    distribution : array of float, shape (n + 1,)
        The distribution of the true counts 0..n.
    epsilon : float
        The privacy loss of the draws.
    """

    def __init__(self, distribution: Floats, epsilon: float) -> None:
        self.below, self.above = decaying_sums(distribution, math.exp(-epsilon))
        self.total = self.below + self.above - distribution
        self.epsilon, self.size = epsilon, len(distribution)

    def expect_errors(self, draws: Integers, counts: Integers) -> Floats:
        """Return E[|true - count| | draw], pair by pair.

        With m the count and k the draw it is |m - k| + s (E[true | k] - k) + 2 E(beyond), s = 1 and
        the part below m for m < k, s = -1 and the part above m for m >= k.
        """
        lower, upper = self._reach
        drift, down = (upper - lower)[draws], counts < draws
        gap = np.abs(counts - draws).astype(float)
        beyond = np.exp(-self.epsilon * gap) * np.where(down, lower[counts], upper[counts])
        total = np.maximum(self.total, LEAST_TOTAL)[draws]
        errors: Floats = gap + (np.where(down, drift, -drift) + 2 * beyond) / total
        return errors

    @cached_property
    def _reach(self) -> tuple[Floats, Floats]:
        """The sums z_i a^|j-i| |j-i| over i < j and over i > j, for every j."""
        a = math.exp(-self.epsilon)
        lower = decaying_sums(np.append(0.0, a * self.below[:-1]), a)[0]
        return lower, decaying_sums(np.append(a * self.above[1:], 0.0), a)[1]

    def find_limits(self, tradeoff: float, draws: Integers) -> tuple[Integers, Integers]:
        """Find the ends of the central part with probability `tradeoff`, for each of the draws.

        For the absolute loss ``argmin_j E[|D - j| | k] + tradeoff |j - q|`` is q clipped between
        them. With b_j = sum_{i<=j} z_i a^(j-i), and likewise from above, Pr(D <= j | k) is
        a^(k-j) b_j over its total for j < k, so that quantiles are found by bisection.
        """
        if tradeoff >= 1:
            return np.zeros_like(draws), np.full_like(draws, self.size - 1)
        k, place = np.arange(self.size), draws
        if len(draws) < self.size:  # else most of them occur
            k, place = np.unique(draws, return_inverse=True)
        low = self._find_quantiles((1 - tradeoff) / 2, k)
        high = self._find_quantiles((1 + tradeoff) / 2, k)
        return low[place], high[place]

    def _find_quantiles(self, share: float, draws: Integers) -> Integers:
        """Find the lowest j with Pr(true <= j | draw k) >= share, for every draw k.

        A draw whose probability underflows has the quantiles of the nearest that has not: beyond
        the end of a distribution all draws have the same posterior.
        """
        seen = np.flatnonzero(self.total > SMALLEST_TOTAL)
        k = seen[np.searchsorted((seen[1:] + seen[:-1]) // 2, draws)]
        low, high = np.zeros(len(k), np.int64), np.full(len(k), self.size - 1, np.int64)
        while (low < high).any():
            middle = (low + high) // 2
            reached = self._exceeds(k, middle, share)
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        return low

    def _exceeds(self, k: Integers, j: Integers, share: float) -> Mask:
        """Test Pr(true <= j | draw k) >= share, pair by pair."""
        decay, total = np.exp(-self.epsilon * np.abs(k - j)), self.total[k]
        above = np.append(self.above[1:], 0.0)[j] * math.exp(-self.epsilon)
        low = decay * self.below[j] >= share * (1 - TIE) * total
        high = decay * above <= (1 - share) * (1 + TIE) * total
        reached: Mask = np.where(j < k, low, high)
        return reached


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(FrozenArrays):
    """The least error for every distribution error, and the mechanisms that attain it.

    Attributes
    ----------
    tradeoffs : array of float, shape (t,)
        How much error one unit of distance is worth, increasing.
    error : array of float, shape (t,)
        Expected loss of the optimum at each tradeoff.
    distance : array of float, shape (t,)
        Wasserstein-1 distance between its output distribution and the true one.
    loss : str
        Name of the loss.
    epsilon : str
        The exact privacy loss.
    """

    tradeoffs: Floats
    error: Floats
    distance: Floats
    loss: str
    epsilon: str
    parts: _Parts

    def mechanism(self, tradeoff: float) -> Mechanism:
        """Return the optimal mechanism at one exchange rate, on the curve's grid or not."""
        rate = check_number(tradeoff, "tradeoff")
        if not 0 <= rate < math.inf:
            raise ArgumentError("tradeoff", "be finite and at least 0", tradeoff)
        parts, matched = self.parts, self.parts.matched
        chosen = parts.choose(rate)
        remap = np.zeros(matched.size)
        np.add.at(remap, (matched.row, chosen), matched.share)
        name = f"frontier at {tradeoff:g}"
        return Mechanism(parts.drawn @ remap, parts.query, self.epsilon, name=name)

    def bound_distance(self, error: float) -> float:
        """Return a distance that no private mechanism with at most this error can go below.

        Every point of the curve is a tangent: error + tradeoff * distance is at least what the
        optimum at that tradeoff has.
        """
        largest_error = check_number(error, "error")
        positive = self.tradeoffs > 0
        if largest_error < self.error.min() * (1 - TIE):
            raise ArgumentError("error", f"be at least {self.error.min():g}, the least there is")
        values = self.error[positive] + self.tradeoffs[positive] * self.distance[positive]
        return float(((values - largest_error) / self.tradeoffs[positive]).max(initial=0.0))

    def plot(
        self,
        path: str | Path | None = None,
        releases: Mapping[str, tuple[float, float]] | None = None,
    ) -> Figure:
        """Draw error against distribution error, with familiar mechanisms; saved if asked.

        `releases` are further points by name: error and distance of releases that were made.
        """
        from tallyveil.notebook import Curve, Panel, panels

        parts = self.parts
        plain = float((parts.distribution[:, None] * parts.drawn * parts.table).sum())
        points = {
            "plain geometric": (plain, parts.measure_distance(parts.mass)),
            "best guess": parts.measure(parts.choose(0.0)),
            "rank matching": parts.measure(parts.matched.column),
            **(releases or {}),
        }
        curves = [Curve("the least there is", self.distance, self.error)]
        curves += [Curve(name, [far], [error]) for name, (error, far) in points.items()]
        title, x_label = "No private release lies below the curve", "distance of the distributions"
        panel = Panel(title, curves, x_label, f"{self.loss} error")
        return panels([panel], path)

    def __repr__(self) -> str:
        return (
            f"<Frontier: {len(self.tradeoffs)} points, {self.loss} error {self.error[0]:.6g} to "
            f"{self.error[-1]:.6g}, distance {self.distance[0]:.6g} to {self.distance[-1]:.6g}>"
        )


LARGEST_RANGE = 10**6
"""Ranges of a threshold's count are cut here; that can only lower the bound."""

ENOUGH_STEPS = 2000.0
"""Ranges beyond this many 1/epsilon raise the bound by less than 0.1 per cent."""

SMALLEST_REACH = 1e-3
"""Below this epsilon times range the best guess is constant, up to that share."""


def bound_distribution_error(rows: int, upper: int, epsilon: Epsilon) -> float:
    """Bound the worst-case expected Wasserstein-1 error of every private release of a distribution.

    For every epsilon-private algorithm that sees a table of `rows` counts between 0 and `upper`
    and releases any estimate of their distribution, there is a table on which the expected
    distance is at least this. One person changes one count by one. With r(e, g) the least
    expected error of a count that is uniform on 0..g (`least_uniform_error`) and thresholds in
    blocks of b::

        max_b  floor(n/b) b r(b epsilon, floor(N / floor(n/b))) / N,     n = upper, N = rows

    Geometric noise on the cumulative histogram has n/N * 2a/(1 - a^2) on every table,
    a = e^-epsilon: the bound up to a factor 1 + O(n/(N epsilon)). So no method is much better on
    all tables; on smooth distributions some are.

    Parameters
    ----------
    rows : int
        The number of rows, public.
    upper : int
        The largest count.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss of the release.

    Returns
    -------
    float
        A distance in counts.

    References
    ----------
    Suresh (2019, arXiv 1910.03553) and Manurangsi (2021, arXiv 2111.03257) bound other
    parametrisations of the same problem.

    Examples
    --------
    >>> round(bound_distribution_error(10_000, 50, 0.5), 6)
    0.009457
    """
    people, top = require_positive(rows, "rows"), require_positive(upper, "upper")
    loss = float(exact_epsilon(epsilon))
    widths = {min(top, max(1, round(1.25**power))) for power in range(64)}
    return max(_bound_in_blocks(people, top, loss, width) for width in widths)


def _bound_in_blocks(rows: int, upper: int, epsilon: float, width: int) -> float:
    """Bound the error with thresholds in blocks of `width`, which move together."""
    blocks = upper // width
    return blocks * width * least_uniform_error(rows // blocks, width * epsilon) / rows


def least_uniform_error(upper: int, epsilon: float) -> float:
    """Bound the mean error of a private count that is uniform on 0..upper from below.

    It is that of a geometric draw followed by the posterior median, which is optimal; the range is
    cut where more of it changes nothing, and at a tiny epsilon the error is that of the best
    constant times e^(-epsilon upper/2). Costs O(upper).

    >>> round(least_uniform_error(1, math.log(2)), 9), round(least_uniform_error(100, 1.0), 6)
    (0.333333333, 0.83759)
    """
    top = int(min(upper, LARGEST_RANGE, math.ceil(ENOUGH_STEPS / epsilon)))
    if top * epsilon < SMALLEST_REACH:
        half = (top + 1) // 2
        return math.exp(-epsilon * half) * half * (top + 1 - half) / (top + 1)
    draw = np.arange(top + 1)
    draw = np.minimum(draw, top - draw)  # mirrored, so that the median is never below the draw
    sums = _Powers(epsilon)
    median = sums.find_medians(draw, top)
    nearby = (np.clip(median + step, draw, top) for step in (-1, 0, 1))
    least = np.min([sums.measure_errors(draw, guess, top) for guess in nearby], axis=0)
    return float(np.mean(least * output_factors(top + 1, epsilon)))


class _Powers:
    """Sums of powers of a = e^-epsilon, with expm1 so that little cancels at a small epsilon."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon, self.gap = epsilon, -math.expm1(-epsilon)

    def sum(self, first: Floats | int, count: Floats | Integers) -> Floats:
        """Return a^first + ... + a^(first + count - 1)."""
        result: Floats = np.exp(-self.epsilon * first) * -np.expm1(-self.epsilon * count) / self.gap
        return result

    def sum_weighted(self, count: Floats | Integers) -> Floats:
        """Return 1 a + 2 a^2 + ... + count a^count."""
        last = count * np.exp(-self.epsilon * (count + 1))
        result: Floats = (self.sum(1, count) - last) / self.gap
        return result

    def find_medians(self, k: Integers, top: int) -> Floats:
        """Find the median m >= k of the weights a^|i-k| on 0..top, for k <= top/2.

        It is the lowest m with a^(m+1-k) + ... + a^(top-k) at most half of all.
        """
        total = 1 + self.sum(1, k) + self.sum(1, top - k)
        least = self.gap * total / 2 + np.exp(-self.epsilon * (top + 1 - k))
        medians: Floats = k + np.ceil(-np.log(least) / self.epsilon - 1)
        return medians

    def measure_errors(self, k: Integers, guess: Floats, top: int) -> Floats:
        """Return sum_i a^|i-k| |i - guess| over i in 0..top, for guesses of at least k."""
        ahead = guess - k
        beyond = np.exp(-self.epsilon * ahead) * self.sum_weighted(top - guess)
        before = self.sum_weighted(k) + ahead * self.sum(1, k)
        between = ahead * self.sum(0, ahead + 1) - self.sum_weighted(ahead)
        result: Floats = beyond + before + between
        return result
