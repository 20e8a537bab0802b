"""Accuracy of a released column, computed from public and released facts only.

Its expected errors are compared with bounds that hold for every private release with the same
epsilon, by any method. They are the frontier for rows drawn from the published
distribution, and the minimax bound for the worst table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from tallyveil._threads import one_blas_thread
from tallyveil.arrays import Floats, Integers
from tallyveil.certified.base import Certified
from tallyveil.certified.certify import certify_geometric
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import (
    CertifiedAnswers,
    CertifiedGeometric,
    CertifiedMechanism,
    CertifiedNoise,
)
from tallyveil.errors import ArgumentError, PackageError
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.frontier import Posterior, bound_distribution_error
from tallyveil.mechanisms.geometric import (
    absolute_errors,
    canonical_cells,
    geometric,
    geometric_output_distribution,
    inverse_diagonals,
    measure_errors,
    output_factors,
    sum_both_sides,
)
from tallyveil.mechanisms.transport import monotone_remap
from tallyveil.query import Query
from tallyveil.reading.posterior import ConfidenceSets, confidence_sets
from tallyveil.reading.unbiased import Estimate
from tallyveil.release.column import WIDE, Histogram, Matching, round_counts
from tallyveil.release.records import AccuracyRecord, OptimalityRecord, TotalRecord
from tallyveil.release.split import predict_distance, predict_error
from tallyveil.release.totals import Adder, make_adder

CONFIDENCE = 0.95
WIDEST_PICTURE = 1001
"""Up to this many possible counts the whole matrix is built, for properties and reading."""

FARTHEST = 2 * 10**5
"""In a wide range, figures are stated for true counts up to this."""

FAR = 1000
"""Before anything is drawn, figures of a wide range are stated for true counts up to this."""

FARTHEST_ADDED = 10**6
"""Without an upper bound, parts of a matched table are added up to this count."""

REACH, FARTHEST_NOISE = 40, 2 * 10**6
"""Noise farther than this many times 1/epsilon, or than this, is left out of figures."""

ALL_STATED = 100
"""Up to this count figures are stated for every true count, and beyond it for round ones."""


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Errors of released counts, for every true count 0..upper.

    `interval` has shape (upper + 1, 2): at least 95% of the rows with a true count are published
    inside it. `stated` are the true counts that documents speak of. `exact` says whether bias
    and error are those of the certified mechanism itself, or of the draw followed by the
    matching as it came out.
    """

    bias: Floats
    rmse: Floats
    interval: Floats
    stated: Integers
    exact: bool = True

    def record(self) -> AccuracyRecord:
        """Return what receipts state: the stated counts, rounded to six decimals."""
        stated = self.stated
        return AccuracyRecord(
            confidence=CONFIDENCE,
            exact=self.exact,
            true_count=tuple(stated.tolist()),
            bias=tuple((np.round(self.bias[stated], 6) + 0.0).tolist()),
            rmse=tuple(np.round(self.rmse[stated], 6).tolist()),
            interval_low=tuple(self.interval[stated, 0].astype(int).tolist()),
            interval_high=tuple(self.interval[stated, 1].astype(int).tolist()),
        )


@dataclass(frozen=True, eq=False)
class Figures:
    """Figures of a published column, from its certificates and its own histogram.

    Attributes
    ----------
    accuracy : Accuracy
        Errors by true count.
    spread : array of float or None
        Standard error of the rows of each published count that occurs.
    mechanism : Mechanism or None
        Probabilities of published counts given true ones, where each row was published as drawn
        and the range is not too wide.
    properties : tuple of str
        The named properties that the certified mechanism has.
    adder : Adder
        The adder of published counts.
    total : Estimate or None
        The sum of all true counts, where it can be estimated and no file of sums tells it better.
    optimality : OptimalityRecord or None
        Expected errors and the least possible ones.
    """

    accuracy: Accuracy
    spread: Floats | None
    mechanism: Mechanism | None
    properties: tuple[str, ...]
    adder: Adder
    total: Estimate | None
    optimality: OptimalityRecord | None = None

    def state(self) -> dict[str, Any]:
        """Return what a receipt states of these figures, rounded, by field."""
        total = None
        if self.total is not None:
            names = ("value", "standard_error", "low", "high")
            rounded = {name: round(float(getattr(self.total, name)), 6) for name in names}
            total = TotalRecord(confidence=CONFIDENCE, **rounded)
        spread = None if self.spread is None else tuple(np.round(2 * self.spread, 3).tolist())
        return {
            "properties": self.properties,
            "accuracy": self.accuracy.record(),
            "spread": spread,
            "total": total,
            "optimality": self.optimality,
        }


def choose_stated(last: int, *others: int) -> Integers:
    """List the true counts up to `last` that figures are stated for, and `others`; some 200.

    >>> choose_stated(3).tolist(), choose_stated(150)[-4:].tolist(), len(choose_stated(10**6)) < 200
    ([0, 1, 2, 3], [100, 120, 140, 150], True)
    """
    return np.array(sorted({*round_counts(last, ALL_STATED), *others}), dtype=np.int64)


def expected_accuracy(certified: Certified, upper: int, last: int | None = None) -> Accuracy:
    """Return the accuracy of a certified draw, before anything is drawn.

    `last` is the largest count of interest, `upper` if none is known.
    """
    if isinstance(certified, CertifiedNoise):
        # rows of sums are clamped after the draw
        is_clamped = last is None and upper <= WIDE
        far = upper if is_clamped else min(FAR if last is None else last, FARTHEST)
        top = min(upper, _reach_beyond(far, certified))
        return geometric_accuracy(top, certified.exact_epsilon, choose_stated(far))
    stated = choose_stated(upper if last is None else last, upper)
    if isinstance(certified, CertifiedGeometric):
        return geometric_accuracy(upper, certified.exact_epsilon, stated)
    mechanism = matrix_of(certified)
    return Accuracy(mechanism.bias(), mechanism.rmse(), mechanism.interval(CONFIDENCE), stated)


def matrix_of(certified: Certified) -> Mechanism:
    """Return the probabilities that a certified count is drawn with."""
    if isinstance(certified, (CertifiedAnswers, Ladder)):
        return certified.mechanism
    raise ArgumentError("certified", "answer a count", got=repr(certified))


@dataclass(frozen=True, eq=False)
class Outcome:
    """A column's certified draw and its published outcome; a receipt has all of it.

    Attributes
    ----------
    certified, distribution : Certified and Certified or None
        What the counts, and the cumulative histogram's noise, were drawn from.
    histogram : Histogram
        How many rows have each published count.
    matching : Matching or None
        Which draws became which counts, where they were not published as drawn.
    upper : int
        The largest count that can be published.
    epsilon : Fraction
        What the whole column costs, for one move of one count by one.
    moved : bool
        Whether counts were changed after they were drawn, or after ranks were matched.
    signed : bool
        Whether counts are published as drawn, negative ones too.
    """

    certified: Certified
    distribution: Certified | None
    histogram: Histogram
    matching: Matching | None
    upper: int
    epsilon: Fraction
    moved: bool = False
    signed: bool = False

    @cached_property
    def far(self) -> int:
        """Figures are stated for true counts up to this."""
        largest = self.histogram.largest
        return min(largest, FARTHEST) if self.upper > WIDE else largest

    @cached_property
    def top(self) -> int:
        """The end of the range: of a wide one, as if it ended far above all counts."""
        return _reach_beyond(self.far, self.certified) if self.upper > WIDE else self.upper

    @cached_property
    def drawn_from(self) -> Certified:
        """The certified draw of the counts, noise of a narrow range clamped."""
        if self.upper <= WIDE and isinstance(self.certified, CertifiedNoise):
            return certify_geometric(Query.count(self.upper), self.certified.exact_epsilon)
        return self.certified

    @cached_property
    def mechanism(self) -> Mechanism | None:
        """The probabilities of every draw, unless the range is too wide."""
        is_narrow = self.upper <= WIDE and self.upper < WIDEST_PICTURE
        return matrix_of(self.drawn_from) if is_narrow else None

    @cached_property
    def rows(self) -> Integers:
        """Rows with each count up to `top`, larger ones counted there."""
        counts = np.minimum(self.histogram.counts, self.top)
        return np.bincount(counts, self.histogram.rows, minlength=self.top + 1).astype(np.int64)

    @property
    def adder(self) -> Adder:
        """The adder of published counts."""
        return make_own_adder(self.drawn_from, self.upper, self.histogram, self.matching)

    def measure(
        self,
        accuracy: Accuracy,
        spread: Floats | None,
        mechanism: Mechanism | None,
        error: Callable[[Floats], float] | None,
    ) -> Figures:
        """Build the figures; `error` gives the expected error for the shares of rows by count."""
        properties = {} if self.mechanism is None else self.mechanism.properties()
        adder, histogram = self.adder, self.histogram
        total = adder.add(np.array(histogram.counts), CONFIDENCE, np.array(histogram.rows))
        optimality, shares = None, self.rows / self.rows.sum()
        if error is not None and self.far == histogram.largest:
            bounds = self.epsilon, self.certified.exact_delta
            optimality = describe_optimality(error(shares), shares[: self.far + 1], *bounds)
        return Figures(
            accuracy,
            None if spread is None else spread[np.minimum(histogram.counts, self.top)],
            mechanism,
            tuple(sorted(name for name in properties if properties[name])),
            adder,
            total if math.isfinite(total.standard_error) else None,
            optimality,
        )


def describe_drawn(outcome: Outcome, bounded: bool = True) -> Figures:
    """Describe a column whose rows are published as drawn, or lowered afterwards.

    `bounded` says whether they are compared with the best there is.
    """
    if outcome.moved:
        return describe_matched(outcome, bounded)
    certified, upper = outcome.drawn_from, outcome.top
    accuracy = expected_accuracy(certified, upper, outcome.far)
    if outcome.signed:
        accuracy = signed_accuracy(certified.exact_epsilon, outcome.far)
    spread = measure_spread(certified, outcome.rows)

    def expect(shares: Floats) -> float:
        return float(shares @ expect_drawn(certified, upper, outcome.signed))

    return outcome.measure(accuracy, spread, outcome.mechanism, expect if bounded else None)


def describe_matched(outcome: Outcome, bounded: bool = True) -> Figures:
    """Describe a column whose rows were given other counts than they drew."""
    matching, epsilon = outcome.matching, outcome.certified.exact_epsilon
    if matching is None:
        raise PackageError("The receipt does not say which draws became which counts.")
    if outcome.upper > WIDE:
        matching = matching.up_to(outcome.top)
    accuracy = matched_accuracy(outcome.top, epsilon, matching, choose_stated(outcome.far))
    spread = None
    if not outcome.moved:
        first = outcome.distribution
        epsilon1 = Fraction(0) if first is None else first.exact_epsilon
        spread = estimate_spread(outcome.rows, epsilon1, epsilon)
    expect = partial(expect_matched, epsilon=epsilon, matching=matching)
    return outcome.measure(accuracy, spread, None, expect if bounded else None)


def make_own_adder(
    certified: Certified, upper: int, histogram: Histogram, matching: Matching | None
) -> Adder:
    """Make the adder of a column from its certified draw and its published counts.

    That of a wide range, or of none, is made as if the range ended far above all counts.
    """
    if upper <= WIDE:
        return make_adder(certified, upper, matching)
    top = _reach_beyond(min(histogram.largest, FARTHEST_ADDED), certified)
    beyond = matching is None or int(matching.draws[-1]) > top
    return make_adder(certified, upper if beyond else min(top, upper), matching)


def _reach_beyond(count: int, certified: Certified) -> int:
    """Return a count that noise on `count` does not pass, for any epsilon of practical use."""
    return count + min(math.ceil(REACH / float(certified.exact_epsilon)), FARTHEST_NOISE)


def geometric_accuracy(upper: int, epsilon: Fraction, stated: Integers | None = None) -> Accuracy:
    """Return the accuracy of clamped geometric noise, in O(upper) and without a matrix.

    >>> geometric_accuracy(5, Fraction(1)).interval[2].tolist()
    [0.0, 5.0]
    """
    stated = choose_stated(upper) if stated is None else stated
    return Accuracy(*measure_errors(upper, float(epsilon), CONFIDENCE), stated)


def signed_accuracy(epsilon: Fraction, far: int) -> Accuracy:
    """Return the accuracy of unclamped geometric noise: bias 0, alike for every true count.

    >>> signed_accuracy(Fraction(1), 5).interval[0].tolist()
    [-3.0, 3.0]
    """
    a, size = math.exp(-float(epsilon)), far + 1
    reach = max(0, math.ceil(math.log((1 - CONFIDENCE) * (1 + a) / 2) / -float(epsilon) - 1))
    every = np.arange(float(size))
    deviation = math.sqrt(2 * a) / -math.expm1(-float(epsilon))
    interval = np.column_stack([every - reach, every + reach])
    return Accuracy(np.zeros(size), np.full(size, deviation), interval, choose_stated(far))


def matched_accuracy(
    upper: int, epsilon: Fraction, matching: Matching, stated: Integers
) -> Accuracy:
    """Return the accuracy of a geometric draw that got the count of `matching`, in O(upper).

    A row with true count d draws k with probability G[d, k]; what draw k was given is known. So
    the interval holds by itself: with a chance of at least 95% the draw lies in its own interval,
    and then the published count lies between the counts that such draws were given (or were
    moved to, where few or none occur: wider is no less true). Bias and error are expectations
    over the draw, with count minus draw = move(k)::

        bias(d) = sum_k G[d, k] (k - d + mean of move(k)),       and so for the squared error
    """
    if not len(matching.draws):  # every row drew more than `upper`: nothing but the draw is known
        return replace(geometric_accuracy(upper, epsilon, stated), exact=False)
    rate = float(epsilon)
    bias, rmse, draws = measure_errors(upper, rate, CONFIDENCE)
    move, variance = matching.describe_moves(upper + 1)
    factors, every = output_factors(upper + 1, rate), np.arange(upper + 1.0)

    def expect(values: Floats) -> Floats:
        return sum_both_sides(factors * values, rate)

    moved = expect(move)
    shared = expect(every * move) - every * moved  # of draw - d and move
    squared = rmse**2 + 2 * shared + expect(move**2 + variance)
    ends = draws.astype(np.int64).T
    low, high = matching.find_range(*ends)
    moved_low, moved_high = (end + move[end] for end in ends)
    interval = np.column_stack(
        [np.minimum(low, np.floor(moved_low)), np.maximum(high, np.ceil(moved_high))]
    ).clip(0, upper)
    return Accuracy(bias + moved, np.sqrt(np.maximum(squared, 0.0)), interval, stated, exact=False)


def matched_mechanism(upper: int, epsilon: Fraction, matching: Matching) -> Mechanism:
    """Build the probabilities of published counts given true ones: a draw, then `matching`.

    A draw that did not occur goes where those around it went, moved as far.
    """
    query = Query.count(upper)
    remap = np.zeros(query.shape)
    remap[matching.draws, matching.counts] = matching.rows
    absent = np.flatnonzero(remap.sum(axis=1) == 0)
    move, _ = matching.describe_moves(upper + 1)
    remap[absent, np.rint(absent + move[absent]).astype(int)] = 1
    remap /= remap.sum(axis=1, keepdims=True)
    return Mechanism(geometric(query, epsilon).matrix @ remap, query, epsilon, name="matched")


def matched_sets(
    mechanism: Mechanism, drawn: Mechanism, matching: Matching, confidence: float
) -> ConfidenceSets:
    """Find the true counts that each published count of a matched column does not contradict.

    A true count fits a published one if it fits any draw that was given it. The draw's own set
    contains the truth at least `confidence` of the time, and this one contains that set.
    """
    sets = confidence_sets(drawn, confidence)
    plain = confidence_sets(mechanism, confidence)
    low, high = plain.low.copy(), plain.high.copy()
    present = np.unique(matching.counts)
    first, last = matching.draws_of(present)
    low[present], high[present] = sets.low[first], sets.high[last]
    true = np.arange(len(mechanism.matrix))[:, None]
    members = (true >= low) & (true <= high)
    coverage = sets.coverage, sets.interval_coverage
    return ConfidenceSets(mechanism, confidence, plain.released, members, low, high, *coverage)


def measure_spread(certified: Certified, rows: Integers) -> Floats | None:
    """Return the standard error of each released bin, rows drawn one by one, shape (m,).

    sqrt(sum_d h_d M[d, j] (1 - M[d, j])), the released histogram h standing in for the true.
    """
    if not isinstance(certified, (CertifiedGeometric, CertifiedNoise)):
        chance = matrix_of(certified).matrix
        spread: Floats = np.sqrt(rows @ (chance * (1 - chance)))
        return spread
    rate = float(certified.exact_epsilon)
    factors = output_factors(len(rows), rate)
    once = sum_both_sides(rows, rate) * factors
    twice = sum_both_sides(rows, 2 * rate) * factors**2
    return np.sqrt(np.maximum(once - twice, 0.0))


def estimate_spread(rows: Integers, epsilon1: Fraction, epsilon2: Fraction) -> Floats:
    """Return the standard error of each bin estimated from both private draws, shape (n,).

    Stage one gives every bin the variance 2 s^2, s^2 = 2a/(1-a)^2 (its two cumulative sums);
    undoing the noise of stage two gives sum_k Ginv[k, j]^2 E[K_k] - h_j, with Ginv the
    tridiagonal inverse of the geometric matrix. The two are independent and are weighted by
    their precisions. Shape constraints only make the estimate better.
    """
    records = float(rows.sum())
    drawn = geometric_output_distribution(rows / records, float(epsilon2)) * records
    diagonal, beside = inverse_diagonals(len(rows), float(epsilon2))
    around = beside**2 * drawn
    variance = diagonal**2 * drawn + np.append(around[1:], 0.0) + np.append(0.0, around[:-1]) - rows
    variance = np.maximum(variance, 1e-12)
    if epsilon1 > 0:
        b = math.exp(-float(epsilon1))
        variance = 1 / (1 / variance + 1 / (4 * b / math.expm1(-float(epsilon1)) ** 2))
    spread: Floats = np.sqrt(variance)
    return spread


def describe_optimality(
    expected: float, shares: Floats, epsilon: Fraction, delta: Fraction = Fraction(0)
) -> OptimalityRecord | None:
    """Compare the expected error of a column with the least of any private release.

    Parameters
    ----------
    expected : float
        The mean absolute error to be expected of the column, for rows whose true counts have the
        distribution `shares`.
    shares : array of float, shape (n,)
        The published distribution, up to the largest published count.
    epsilon, delta : Fraction
        What the whole column costs, for one move of one count by one.

    Returns
    -------
    OptimalityRecord or None
        Rounded to six decimals. None where all published counts are 0, or delta is too small for
        the range.
    """
    if len(shares) < 2:
        return None
    try:
        errors = expected, *_bound_errors(shares, epsilon, delta)
    except ArgumentError:  # cells of canonical noise that do not fit
        return None
    mean, least, same = (round(value, 6) for value in errors)
    return OptimalityRecord(
        expected_error=mean, least_error=least, least_error_same_distribution=same
    )


def _bound_errors(shares: Floats, epsilon: Fraction, delta: Fraction) -> tuple[float, float]:
    """Bound the errors of the best guess for every draw, and of counts matched to ranks."""
    every = np.arange(len(shares))
    if delta:
        with one_blas_thread():
            drawn = canonical_cells(len(shares), float(epsilon), float(delta))
            costs = drawn.T @ (shares[:, None] * np.abs(every[:, None] - every))
        matched = monotone_remap(shares @ drawn, shares)
        same = float(matched.share @ costs[matched.row, matched.column])
        return float(costs.min(axis=1).sum()), same
    posterior, mass = _observe(shares, epsilon)
    best, _ = posterior.find_limits(0.0, every)
    matched = monotone_remap(mass, shares)
    errors = posterior.expect_errors(matched.row, matched.column)
    same = float((mass[matched.row] * matched.share) @ errors)
    return float(mass @ posterior.expect_errors(every, best)), same


def expect_drawn(certified: Certified, upper: int, signed: bool) -> Floats:
    """Return the mean absolute error of the draws, for every true count 0..upper."""
    every = np.arange(upper + 1)
    if signed:
        return np.full(len(every), 1 / math.sinh(float(certified.exact_epsilon)))
    if isinstance(certified, (CertifiedMechanism, Ladder)):
        away = np.abs(every[:, None] - every)
        errors: Floats = (certified.mechanism.matrix * away).sum(axis=1)
        return errors
    return absolute_errors(every, upper, float(certified.exact_epsilon))


def expect_matched(shares: Floats, epsilon: Fraction, matching: Matching) -> float:
    """Return the mean absolute error of counts that were drawn at `epsilon` and then matched.

    `shares` are those of true counts, up to the largest draw there can be. A draw that did not
    occur goes where those around it went, moved as far.
    """
    posterior, mass = _observe(shares, epsilon)
    move, _ = matching.describe_moves(len(shares))
    rows = np.bincount(matching.draws, matching.rows, minlength=len(shares))
    absent = np.flatnonzero(rows == 0)
    draws = np.concatenate([matching.draws, absent])
    counts = np.concatenate([matching.counts, np.rint(absent + move[absent]).astype(np.int64)])
    part = np.concatenate([matching.rows / rows[matching.draws], np.ones(len(absent))])
    return float((mass[draws] * part) @ posterior.expect_errors(draws, counts))


def _observe(shares: Floats, epsilon: Fraction) -> tuple[Posterior, Floats]:
    """Return the posterior of true counts given geometric draws, and each draw's probability."""
    posterior = Posterior(shares, float(epsilon))
    return posterior, posterior.total * output_factors(len(shares), float(epsilon))


def predict_release(
    epsilon: Fraction, epsilon2: Fraction, rows: int, cells: int
) -> dict[str, float]:
    """Predict the errors of the method preserve before anything is drawn, to three digits.

    `error` of single counts and `distance` of the distribution (Wasserstein-1), within a factor
    of two on most tables tried; and `bound_of_distance`, which no private release of a
    distribution over this many cells beats on every table. `epsilon2` is the part of epsilon
    that the counts get.
    """
    share = 1 - float(epsilon2 / epsilon)
    figures = {
        "error": predict_error(float(epsilon2)),
        "distance": predict_distance(float(epsilon), share, rows, cells),
        "bound_of_distance": bound_distribution_error(rows, cells - 1, epsilon),
    }
    return {name: float(f"{value:.3g}") for name, value in figures.items()}
