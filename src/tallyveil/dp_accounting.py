"""Certified mechanisms for Google's dp-accounting: their privacy loss distribution.

Needs the extra ``tallyveil[accounting]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.base import Certified
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedMechanism, CertifiedNoise
from tallyveil.errors import ArgumentError, MissingExtraError, describe_kind
from tallyveil.proof.rounding import TOTAL

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["as_privacy_loss_distribution"]

ROUNDING = 2.0**-50
"""Above any error of the doubles that a delta is computed with."""


def as_privacy_loss_distribution(
    certified: Certified, *, interval: float = 1e-4
) -> PrivacyLossDistribution:
    """Build dp-accounting's privacy loss distribution of a certified mechanism.

    A certified matrix has the curve delta(epsilon) = max over neighbours i, k of
    sum_j max(0, W[i,j] - e^epsilon W[k,j]) / 2^62, taken from its integer weights. Certified noise
    has that of randomized response with the same epsilon, which geometric noise attains. The
    distribution joins the dots of that curve on a grid: it is exact where the losses lie on the
    grid and never too small (Doroshenko et al. 2022).

    Parameters
    ----------
    certified : CertifiedMechanism, CertifiedGeometric or CertifiedNoise
        What was proved.
    interval : float
        The step of the grid of losses. Distributions compose only if they share it.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Composes with others of dp-accounting; adding and removing a person are treated alike.

    References
    ----------
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Algorithm 1; Kairouz, Oh and
    Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> import tallyveil as tv
    >>> pld = as_privacy_loss_distribution(tv.certify_noise(epsilon="0.1"))
    >>> round(pld.self_compose(100).get_epsilon_for_delta(1e-6), 6)
    4.774568
    """
    if not isinstance(certified, (CertifiedAnswers, CertifiedNoise)):
        rule = "be a certified mechanism or certified noise"
        hint = "Make one with tv.certify(mechanism)."
        raise ArgumentError("certified", rule, hint=hint, got=describe_kind(certified))
    if not isinstance(interval, (int, float)) or not 1e-9 <= interval <= 1:
        raise ArgumentError("interval", "lie between 1e-9 and 1", interval)
    try:
        from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    except ImportError as missing:
        raise MissingExtraError("dp-accounting", "accounting") from missing
    if isinstance(certified, CertifiedMechanism):
        dots, deltas = _measure_weights(certified, interval)
    else:
        dots, deltas = _respond_randomly(certified.epsilon, interval)
    masses = create_pmf_pessimistic_connect_dots(interval, dots, deltas)
    return PrivacyLossDistribution(masses)


def _respond_randomly(epsilon: float, interval: float) -> tuple[Integers, Floats]:
    """Return the curve of randomized response at its two losses and their grid neighbours."""
    top = _ceil(np.array([epsilon / interval]))[0]
    dots = np.unique([-top, 1 - top, top - 1, top])
    between = (1.0 - np.exp(dots * interval - epsilon)) / (1.0 + math.exp(-epsilon))
    deltas = np.maximum(between, 1.0 - np.exp(dots * interval))
    deltas[-1] = 0.0
    return dots, deltas


def _measure_weights(certified: CertifiedMechanism, interval: float) -> tuple[Integers, Floats]:
    """Return the curve of a matrix of weights at the grid neighbours of its losses."""
    steps = (losses / interval for losses, _, _ in _each_pair(certified))
    near = [np.unique([np.floor(step), _ceil(step)]) for step in steps]
    dots = np.unique(np.concatenate(near)).astype(np.int64)
    grown = np.exp(dots * interval)
    deltas = np.zeros(len(dots))
    for losses, above, below in _each_pair(certified):
        first = np.searchsorted(losses, dots * interval, side="right")
        excess = above[first].astype(float) - grown * below[first].astype(float)
        np.maximum(deltas, excess / TOTAL, out=deltas)
    raised = np.minimum(1.0, deltas + ROUNDING)
    if certified.exact_delta == 0:
        raised[-1] = 0.0  # proved: no loss exceeds epsilon
    return dots, np.minimum.accumulate(raised)


def _each_pair(certified: CertifiedMechanism) -> Iterator[tuple[Floats, Integers, Integers]]:
    """Yield `_sort_losses` of every ordered pair of neighbouring rows."""
    for low, high in certified.query.neighbours.ordered_blocks():
        yield from map(_sort_losses, certified.weights[low], certified.weights[high])


def _sort_losses(first: Integers, second: Integers) -> tuple[Floats, Integers, Integers]:
    """Return the finite losses in order, and both rows' weights from each loss on."""
    with np.errstate(divide="ignore"):
        loss = np.log(first.astype(float)) - np.log(second.astype(float))
    possible = first > 0
    order = np.argsort(loss[possible], kind="stable")
    above, below = (
        np.append(np.cumsum(row[possible][order][::-1])[::-1], 0) for row in (first, second)
    )
    finite = loss[possible][order]
    return finite[np.isfinite(finite)], above, below


def _ceil(steps: Floats) -> Integers:
    """Round steps up to the grid, except what rounding put just above a step."""
    nearest = np.rint(steps)
    on_grid = np.abs(steps - nearest) <= 1e-9 * np.maximum(1.0, np.abs(steps))
    return np.where(on_grid, nearest, np.ceil(steps)).astype(np.int64)
