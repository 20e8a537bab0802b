"""Priors and side information on true answers.

A prior is anything that becomes a distribution on the true answers; side information is a list
of the true answers that are possible at all. Both are resolved here, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.answers import read_floats
from tallyveil.arrays import Floats, Mask
from tallyveil.errors import ArgumentError, describe_kind
from tallyveil.query import GRID_TOLERANCE, Query, require_query

Prior: TypeAlias = str | tuple[str, float] | ArrayLike | None

KNOWN_PRIORS = 'Known priors: "uniform", ("binomial", p), or an array of weights or counts.'

SUM_TOLERANCE = 1e-9
"""How far the entries of a distribution may be from summing to one."""

SMALLEST_SUM = 1e-300
"""Weights with a smaller sum are scaled by their largest first, so that no digits are lost."""


def resolve_prior(prior: Prior, size: int) -> Floats:
    """Turn a belief about the true answer into a distribution, shape (size,).

    None or ``"uniform"`` is uniform; ``("binomial", p)`` is the number of successes in size - 1
    trials; an array of weights or counts is divided by its sum.

    >>> resolve_prior(("binomial", 0.5), 3).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    if prior is None or (isinstance(prior, str) and prior == "uniform"):
        return np.full(size, 1.0 / size)
    if isinstance(prior, str):
        raise ArgumentError("prior", "be a known prior", prior, KNOWN_PRIORS)
    if isinstance(prior, tuple) and len(prior) == 2 and prior[0] == "binomial":
        return _binomial(prior[1], size - 1)
    weights = _read_weights(prior, size, "prior", f"have {size} entries, one per true answer")
    if weights.sum() <= 0:
        raise ArgumentError("prior", "have at least one positive entry", got="all zeros")
    if not SMALLEST_SUM < weights.sum() < np.inf:
        weights = weights / weights.max()
    scaled: Floats = weights / weights.sum()
    return scaled


def require_distribution(values: ArrayLike, size: int, argument: str = "distribution") -> Floats:
    """Return `values` if they are non-negative, of shape (size,), and sum to one within 1e-9.

    Unlike a prior it is never rescaled from counts, because a mechanism must preserve exactly
    what was given; only the last rounding of the sum is divided out.
    """
    mass = _read_weights(values, size, argument, f"be a distribution with {size} entries")
    total = float(mass.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        hint = "Divide counts or weights by their sum first."
        raise ArgumentError(argument, "sum to one", hint=hint, got=f"a sum of {total:.9g}")
    return mass / total


def _read_weights(values: Any, size: int, argument: str, shape_rule: str) -> Floats:
    """Return `values` as finite, non-negative numbers, shape (size,)."""
    weights = read_floats(values, argument)
    if weights.shape != (size,):
        raise ArgumentError(argument, shape_rule, got=f"shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        got = "a negative or missing entry"
        raise ArgumentError(argument, "be finite and non-negative", got=got)
    return weights


def _binomial(p: Any, trials: int) -> Floats:
    if not isinstance(p, Real) or isinstance(p, bool) or not 0 <= float(p) <= 1:
        raise ArgumentError("prior", "give the binomial a probability in [0, 1]", p)
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    weights: Floats = np.exp(ways + xlogy(k, float(p)) + xlog1py(trials - k, -float(p)))
    scaled: Floats = weights / weights.sum()
    return scaled


def mark_possible_answers(query: Query, side_information: Iterable[float] | None) -> Mask:
    """Mark the possible true answers, shape (n,): the listed ones, all if None.

    >>> mark_possible_answers(Query.count(3), range(2, 4)).tolist()
    [False, False, True, True]
    """
    require_query(query)
    if side_information is None:
        return np.ones(len(query.inputs), dtype=bool)
    rule = f"list true answers of {query!r}"
    try:
        values = np.array(list(side_information), dtype=float)
    except (TypeError, ValueError):
        got = describe_kind(side_information)
        raise ArgumentError("side_information", rule, got=got) from None
    if values.ndim != 1 or len(values) == 0:
        raise ArgumentError("side_information", "hold at least one true answer", got="nothing")
    distance = np.abs(values[:, None] - query.inputs[None, :].astype(float))
    unknown = distance.min(axis=1) > GRID_TOLERANCE * float(np.diff(query.inputs).min())
    if unknown.any():
        raise ArgumentError("side_information", rule, float(values[unknown][0]))
    mask = np.zeros(len(query.inputs), dtype=bool)
    mask[distance.argmin(axis=1)] = True
    return mask
