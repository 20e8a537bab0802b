"""The distribution within each stratum, drawn towards that of the whole table: empirical Bayes.

The histogram of stratum g over cells, with N_g rows, is modelled as::

    h_g ~ Normal(N_g z_g, N_g z_g (1 + phi N_g z_g)),   log z_g = log z + splines of log(1 + count)

with z the distribution of the whole table. The splines' coefficients are ~ Normal(0, tau^2) in
size and in second differences: tau near 0 means that strata are alike. The tau that explains the
draws of all strata best serves every one. At last the strata are reconciled with the whole, by
moving their rows no farther than it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.estimate.cells import Cells
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.fit import Fit, fit_shape, spread_around
from tallyveil.estimate.histogram import count_near, estimate_histogram, observe
from tallyveil.estimate.information import Information, Observed, noise_variance
from tallyveil.estimate.least_squares import least_squares_at_total
from tallyveil.estimate.shape import Shape, splines

__all__ = ["estimate_strata", "pool_strata"]

TAUS = (0.03, 0.1, 0.3, 1.0, 3.0)
PHI = 0.003
SPLINES = 8
LEVEL = 0.05
"""How strongly coefficients themselves are held, beside their second differences."""

REFITS = 1


def pool_strata(strata: Sequence[PrivateDraws]) -> PrivateDraws:
    """All strata as one table: their noisy totals add up, and so do the variances of the noise.

    The whole then has the epsilon at which geometric noise has that variance.
    """
    first = strata[0]
    values = np.concatenate([stratum.values for stratum in strata])
    if first.totals is None:
        return PrivateDraws(values, first.epsilon2, None, first.epsilon1, *_ends(first))
    totals = np.sum([one.totals for one in strata if one.totals is not None], axis=0)
    variance = len(strata) * noise_variance(float(first.epsilon1))
    epsilon = type(first.epsilon1)(2 * float(np.arcsinh(np.sqrt(0.5 / variance))))
    return PrivateDraws(values, first.epsilon2, totals, epsilon, *_ends(first))


def _ends(draws: PrivateDraws) -> tuple[int, Integers | None]:
    return draws.size, draws.thresholds


def estimate_strata(strata: Sequence[PrivateDraws]) -> tuple[Cells, tuple[Floats, ...]]:
    """Every stratum's histogram over common cells; not whole numbers.

    A few rows far above all others stay where they were drawn; so do all, where noise is so small
    that none could be told better. Floating point; no privacy depends on it.
    """
    whole = pool_strata(strata)
    observed = observe(whole)
    cells, number = observed.cells, count_near(observed)
    each = [observe(stratum, cells) for stratum in strata]
    near = [one.take_first(number) for one in each]
    rows = np.array([one.records for one in near])
    if not rows.any():
        return cells, tuple(one.drawn for one in each)
    found = estimate_histogram(whole)
    placed = np.bincount(cells.locate(found.cells.low), found.histogram, len(cells))
    national: Floats = placed[:number].astype(float)
    if not national.any():  # rows were drawn here, though the totals say that there are none
        national = observed.drawn[:number]
    shares = national / national.sum()
    reconciled = _reconcile(_fit_near(near, shares), rows.sum() * shares)
    return cells, tuple(
        np.append(own, one.drawn[number:]) for own, one in zip(reconciled, each, strict=True)
    )


def _fit_near(near: Sequence[Observed], shares: Floats) -> Floats:
    """Every stratum's histogram, shape (G, n); as drawn where a double runs out of digits."""
    try:
        fitted = np.array(_fit_all(near, shares))
    except (np.linalg.LinAlgError, ArithmeticError, ValueError):
        fitted = np.full((1, 1), np.nan)
    return fitted if np.isfinite(fitted).all() else np.array([one.drawn for one in near])


def _fit_all(near: Sequence[Observed], distribution: Floats) -> list[Floats]:
    """Every stratum's likeliest histogram at the tau that explains all of them best."""
    shape = _make_shape(near[0].cells, distribution)
    start = np.zeros(shape.basis.shape[1])
    told = [_inform(one, distribution) for one in near]
    tried = [_fit_each(near, told, shape, [start] * len(near), tau) for tau in TAUS]
    best = min(tried, key=lambda fits: sum(fit.surprise for fit in fits))
    for _ in range(REFITS):
        told = [_inform(one, fit.distribution) for one, fit in zip(near, best, strict=True)]
        best = _fit_each(near, told, shape, [fit.coefficients for fit in best], best[0].tau)
    return [_settle(*three) for three in zip(near, told, best, strict=True)]


def _fit_each(
    near: Sequence[Observed],
    told: Sequence[Information],
    shape: Shape,
    starts: Sequence[Floats],
    tau: float,
) -> list[Fit]:
    return [
        fit_shape(known, max(one.records, 1.0), shape, start, tau=tau, phi=PHI)
        for one, known, start in zip(near, told, starts, strict=True)
    ]


def _settle(one: Observed, known: Information, fit: Fit) -> Floats:
    """The likeliest histogram, given the smooth one that is expected."""
    if not one.records:
        return np.zeros(len(one.cells))
    expected = one.records * fit.distribution
    spread = spread_around(expected, PHI)
    gram, right = known.gram + np.diag(1 / spread), known.right + expected / spread
    return least_squares_at_total(gram, right, one.records)


def _inform(one: Observed, distribution: Floats) -> Information:
    known = one.of_draws(max(one.records, 1.0) * distribution + 1e-3)
    if not len(one.totals):
        return known
    return known + one.of_totals(np.full(len(one.totals), 1 / noise_variance(one.epsilon1)))


def _make_shape(cells: Cells, distribution: Floats) -> Shape:
    """Splines around the whole table's distribution, which all coefficients of 0 give."""
    at = np.log1p((cells.low + cells.high) / 2)
    number = min(SPLINES, max(4, len(cells)))
    smooth = splines((at - at[0]) / max(at[-1] - at[0], 1e-9), number)
    zero = np.zeros((len(cells), 1))
    zero[0] = 1.0
    second = np.diff(np.eye(number), 2, axis=0)
    rough = LEVEL * np.eye(number + 1)
    rough[:number, :number] += second.T @ second
    floor = np.maximum(distribution, 1e-9)
    ridge = np.full(number + 1, 1e-4)
    return Shape("log", np.log(floor), np.hstack([smooth, zero]), rough, ridge, number + 1)


def _reconcile(fitted: Floats, whole: Floats) -> Floats:
    """Histograms that add up to the whole and keep their numbers of rows: optimal transport.

    What the strata add up to is moved to the whole in the order of ranks, the shortest way: cell
    i gives cell j as many rows as both have ranks in common, the same part from every stratum.
    """
    added = fitted.sum(axis=0)
    start, end = np.cumsum(added), np.cumsum(whole)
    end = np.minimum(end * (start[-1] / end[-1]), start[-1])
    upper = np.minimum.outer(start, end)
    lower = np.maximum.outer(np.append(0.0, start[:-1]), np.append(0.0, end[:-1]))
    moved = np.maximum(upper - lower, 0.0)
    given = moved.sum(axis=1, keepdims=True)
    reconciled: Floats = fitted @ np.divide(moved, given, out=np.eye(len(added)), where=given > 0)
    return reconciled
