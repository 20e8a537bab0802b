"""How far a release is from the best there is: its expected errors beside what no release avoids.

The bounds hold for every private release with the same epsilon, whatever its method: the frontier
for rows drawn from the published distribution, the minimax bound for the worst table.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tallyveil._threads import one_blas_thread
from tallyveil.arrays import Floats
from tallyveil.certified.base import Certified
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedMechanism
from tallyveil.errors import ArgumentError
from tallyveil.mechanisms.frontier import Posterior, bound_distribution_error
from tallyveil.mechanisms.geometric import absolute_errors, canonical_cells, output_factors
from tallyveil.mechanisms.transport import monotone_remap
from tallyveil.plans.tallies import Matching
from tallyveil.request.budget_split import predict_distance, predict_error

__all__ = ["describe_optimality", "expect_drawn", "expect_matched", "predict_release"]


def describe_optimality(
    expected: float, shares: Floats, epsilon: Fraction, delta: Fraction = Fraction(0)
) -> dict[str, float] | None:
    """The expected error of a column and the least that any private release could have.

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
    dict of str to float, or None
        Rounded to six decimals: `expected_error`; `least_error`, that of the best private
        release; `least_error_same_distribution`, that of the best one which keeps the
        distribution. None where all published counts are 0, or delta is too small for the range.
    """
    if len(shares) < 2:
        return None
    try:
        found = expected, *_bound_errors(shares, epsilon, delta)
    except ArgumentError:  # cells of canonical noise that do not fit
        return None
    names = ("expected_error", "least_error", "least_error_same_distribution")
    return {name: round(value, 6) for name, value in zip(names, found, strict=True)}


def _bound_errors(shares: Floats, epsilon: Fraction, delta: Fraction) -> tuple[float, float]:
    """The ends of the frontier: the best guess for every draw, and counts handed out by rank."""
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
    """The mean absolute error of what is drawn, for every true count 0..upper."""
    every = np.arange(upper + 1)
    if signed:
        return np.full(len(every), 1 / math.sinh(float(certified.exact_epsilon)))
    if isinstance(certified, (CertifiedMechanism, Ladder)):
        away = np.abs(every[:, None] - every)
        errors: Floats = (certified.mechanism.matrix * away).sum(axis=1)
        return errors
    return absolute_errors(every, upper, float(certified.exact_epsilon))


def expect_matched(shares: Floats, epsilon: Fraction, matching: Matching) -> float:
    """The mean absolute error of counts that were drawn at `epsilon` and then matched.

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
    """What geometric draws say of true counts, and how likely each draw is."""
    posterior = Posterior(shares, float(epsilon))
    return posterior, posterior.total * output_factors(len(shares), float(epsilon))


def predict_release(
    epsilon: Fraction, epsilon2: Fraction, rows: int, cells: int
) -> dict[str, float]:
    """What can be predicted of the method preserve before anything is drawn, three digits each.

    `error` of single counts and `distance` of the distribution (Wasserstein-1), within a factor
    of two on most tables tried; and `bound_of_distance`, which no private release of a
    distribution over this many cells beats on every table. `epsilon2` is the part of epsilon
    that the counts get.
    """
    share = 1 - float(epsilon2 / epsilon)
    found = {
        "error": predict_error(float(epsilon2)),
        "distance": predict_distance(float(epsilon), share, rows, cells),
        "bound_of_distance": bound_distribution_error(rows, cells - 1, epsilon),
    }
    return {name: float(f"{value:.3g}") for name, value in found.items()}
