"""How accurate a released column is, computed from public and released things only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.base import Certified
from tallyveil.certified.certify import certify_geometric
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedGeometric, CertifiedNoise
from tallyveil.errors import ArgumentError, PackageError
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import (
    geometric,
    geometric_output_distribution,
    inverse_diagonals,
    measure_errors,
    output_factors,
    sum_both_sides,
)
from tallyveil.plans.adding import Adder, make_adder
from tallyveil.plans.optimality import describe_optimality, expect_drawn, expect_matched
from tallyveil.plans.tallies import Histogram, Matching, round_counts
from tallyveil.query import Query
from tallyveil.reading.posterior import ConfidenceSets, confidence_sets
from tallyveil.reading.unbiased import Estimate
from tallyveil.request.kinds import MethodKind
from tallyveil.request.ranges import NO_UPPER, WIDE

__all__ = [
    "CONFIDENCE",
    "FAR",
    "WIDEST_PICTURE",
    "Accuracy",
    "Figures",
    "choose_stated",
    "describe_published",
    "estimate_spread",
    "expected_accuracy",
    "geometric_accuracy",
    "make_open_adder",
    "matched_accuracy",
    "matched_mechanism",
    "matched_sets",
    "matrix_of",
    "measure_spread",
    "signed_accuracy",
]

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
    """How far released counts lie from true ones, for every true count 0..upper.

    `interval` has shape (upper + 1, 2): at least 95 % of the rows with a true count are published
    inside it. `stated` are the true counts that documents speak of. `exact` says whether bias
    and error are those of the certified mechanism itself, or of the draw followed by the
    matching as it came out.
    """

    bias: Floats
    rmse: Floats
    interval: Floats
    stated: Integers
    exact: bool = True

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, rounded to six decimals, for the stated counts."""
        at = self.stated
        return {
            "confidence": CONFIDENCE,
            "exact": self.exact,
            "true_count": at.tolist(),
            "bias": (np.round(self.bias[at], 6) + 0.0).tolist(),
            "rmse": np.round(self.rmse[at], 6).tolist(),
            "interval_low": self.interval[at, 0].astype(int).tolist(),
            "interval_high": self.interval[at, 1].astype(int).tolist(),
        }


@dataclass(frozen=True, eq=False)
class Figures:
    """What can be said of a published column from its certificates and its own histogram.

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
        How published counts are added.
    total : Estimate or None
        The sum of all true counts, where it can be estimated and no file of sums tells it better.
    optimality : dict or None
        Expected errors beside the least there are; see `tallyveil.plans.optimality`.
    """

    accuracy: Accuracy
    spread: Floats | None
    mechanism: Mechanism | None
    properties: tuple[str, ...]
    adder: Adder
    total: Estimate | None
    optimality: Mapping[str, float] | None = None

    def state_total(self) -> dict[str, float] | None:
        """The total, JSON-ready and rounded, or None."""
        if self.total is None:
            return None
        names = ("value", "standard_error", "low", "high")
        return {"confidence": CONFIDENCE} | {n: round(getattr(self.total, n), 6) for n in names}


def choose_stated(last: int, *others: int) -> Integers:
    """The true counts up to `last` that figures are stated for, and `others`; at most some 200.

    >>> choose_stated(3).tolist(), choose_stated(150)[-4:].tolist(), len(choose_stated(10**6)) < 200
    ([0, 1, 2, 3], [100, 120, 140, 150], True)
    """
    return np.array(sorted({*round_counts(last, ALL_STATED), *others}), dtype=np.int64)


def expected_accuracy(certified: Certified, upper: int, last: int | None = None) -> Accuracy:
    """What can be said before anything is drawn: the accuracy of the certified draw.

    `last` is the largest count of interest, `upper` if none is known.
    """
    if isinstance(certified, CertifiedNoise):
        whole = last is None and upper <= WIDE  # rows of sums, which are clamped after the draw
        far = upper if whole else min(FAR if last is None else last, FARTHEST)
        top = min(upper, _reach_beyond(far, certified))
        return geometric_accuracy(top, certified.exact_epsilon, choose_stated(far))
    stated = choose_stated(upper if last is None else last, upper)
    if isinstance(certified, CertifiedGeometric):
        return geometric_accuracy(upper, certified.exact_epsilon, stated)
    made = matrix_of(certified)
    return Accuracy(made.bias(), made.rmse(), made.interval(CONFIDENCE), stated)


def matrix_of(certified: Certified) -> Mechanism:
    """The probabilities that a certified count is drawn with."""
    if isinstance(certified, (CertifiedAnswers, Ladder)):
        return certified.mechanism
    raise ArgumentError("certified", "answer a count", got=repr(certified))


def describe_published(
    kind: MethodKind,
    certified: Certified,
    distribution: Certified | None,
    histogram: Histogram,
    matching: Matching | None = None,
    *,
    upper: int,
    epsilon: Fraction,
    moved: bool = False,
    signed: bool = False,
) -> Figures:
    """The figures of a column; the same for who publishes it and for who checks it.

    Parameters
    ----------
    kind : MethodKind
        The method: some match ranks after drawing.
    certified : Certified
        What the counts were drawn from.
    distribution : Certified or None
        What the cumulative histogram's noise was drawn from, if there was any.
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
    far = histogram.largest
    if upper > WIDE:  # as if the range ended far above all counts
        far, ceiling = min(far, FARTHEST), upper
        upper, drawn = _reach_beyond(far, certified), None
        adder = make_open_adder(certified, histogram, matching, ceiling)
        matching = None if matching is None else matching.up_to(upper)
    else:
        if isinstance(certified, CertifiedNoise):  # rows of a hierarchy, clamped after the draw
            certified = certify_geometric(Query.count(upper), certified.exact_epsilon)
        drawn = matrix_of(certified) if upper < WIDEST_PICTURE else None
        adder = make_adder(certified, upper, matching)
    held = () if drawn is None else tuple(sorted(n for n, has in drawn.properties().items() if has))
    at = np.minimum(histogram.counts, upper)
    rows = np.bincount(at, histogram.rows, minlength=upper + 1).astype(np.int64)
    total = adder.add(np.array(histogram.counts), CONFIDENCE, np.array(histogram.rows))
    sums = adder, None if kind.adds_up or not math.isfinite(total.standard_error) else total
    is_known = far == histogram.largest and not (kind.adds_up or kind.together)
    known, shares = None, rows / rows.sum()
    if not (kind.matches or moved):
        spread = measure_spread(certified, rows)
        expected = expected_accuracy(certified, upper, far)
        expected = signed_accuracy(certified.exact_epsilon, far) if signed else expected
        if is_known:
            error = float(shares @ expect_drawn(certified, upper, signed))
            bounds = epsilon, certified.exact_delta
            known = describe_optimality(error, shares[: far + 1], *bounds)
        return Figures(expected, None if spread is None else spread[at], drawn, held, *sums, known)
    if matching is None:
        raise PackageError("The receipt does not say which draws became which counts.")
    stated = choose_stated(far)
    accuracy = matched_accuracy(upper, certified.exact_epsilon, matching, stated)
    if is_known:
        error = expect_matched(shares, certified.exact_epsilon, matching)
        known = describe_optimality(error, shares[: far + 1], epsilon)
    if moved:
        return Figures(accuracy, None, None, held, *sums, known)
    epsilon1 = Fraction(0) if distribution is None else distribution.exact_epsilon
    spread = estimate_spread(rows, epsilon1, certified.exact_epsilon)
    return Figures(accuracy, spread[at], None, held, *sums, known)


def make_open_adder(
    certified: Certified, histogram: Histogram, matching: Matching | None, ceiling: int = NO_UPPER
) -> Adder:
    """The adder of a column with a wide range or none, as if it ended far above all counts."""
    upper = _reach_beyond(min(histogram.largest, FARTHEST_ADDED), certified)
    beyond = matching is None or int(matching.draws[-1]) > upper
    return make_adder(certified, ceiling if beyond else min(upper, ceiling), matching)


def _reach_beyond(count: int, certified: Certified) -> int:
    """A count that noise on `count` does not pass, for any epsilon of practical use."""
    return count + min(math.ceil(REACH / float(certified.exact_epsilon)), FARTHEST_NOISE)


def geometric_accuracy(upper: int, epsilon: Fraction, stated: Integers | None = None) -> Accuracy:
    """The figures of clamped geometric noise, in O(upper) and without a matrix.

    >>> geometric_accuracy(5, Fraction(1)).interval[2].tolist()
    [0.0, 5.0]
    """
    stated = choose_stated(upper) if stated is None else stated
    return Accuracy(*measure_errors(upper, float(epsilon), CONFIDENCE), stated)


def signed_accuracy(epsilon: Fraction, far: int) -> Accuracy:
    """The figures of geometric noise that is not cut: the same for every true count, bias 0.

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
    """The figures of a geometric draw that was then given the count of `matching`, in O(upper).

    A row with true count d draws k with probability G[d, k]; what draw k was given is known. So
    the interval holds by itself: with a chance of at least 95 % the draw lies in its own interval,
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
    """Probabilities of published counts given true ones, for a draw and then `matching`.

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
    """The true counts that each published count of a matched column does not contradict.

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
    """Standard error of each released bin when every row is drawn by itself, shape (m,).

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
    """Standard error of each bin of a histogram estimated from both private draws, shape (n,).

    Stage one gives every bin the variance 2 s^2, s^2 = 2a/(1-a)^2 (its two cumulative sums);
    undoing the noise of stage two gives sum_k Ginv[k, j]^2 E[K_k] - h_j, with Ginv the
    tridiagonal inverse of the geometric matrix. The two are independent and are weighted by
    their precisions. Shape constraints only make the estimate better.
    """
    records = float(rows.sum())
    drawn = geometric_output_distribution(rows / records, float(epsilon2)) * records
    own, beside = inverse_diagonals(len(rows), float(epsilon2))
    around = beside**2 * drawn
    variance = own**2 * drawn + np.append(around[1:], 0.0) + np.append(0.0, around[:-1]) - rows
    variance = np.maximum(variance, 1e-12)
    if epsilon1 > 0:
        b = math.exp(-float(epsilon1))
        variance = 1 / (1 / variance + 1 / (4 * b / math.expm1(-float(epsilon1)) ** 2))
    spread: Floats = np.sqrt(variance)
    return spread
