"""Turning a noisy histogram into a law. Post-processing: it sees private numbers only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.publish.isotonic import monotone

__all__ = ["POSTPROCESSING", "clip", "isotonic", "project", "to_law"]


def to_law(histogram: ArrayLike, method: str = "isotonic") -> Floats:
    """A law near a noisy histogram, shape (n,): ``"isotonic"``, ``"clip"`` or ``"simplex"``.

    The histogram's sum is taken as the public number of rows, or as 1 for shares.

    >>> to_law([3.0, -1.0, 2.0], "clip").tolist()
    [0.6, 0.0, 0.4]
    """
    if method not in POSTPROCESSING:
        raise ArgumentError("method", f"be one of {', '.join(POSTPROCESSING)}", method)
    noisy = np.asarray(histogram, dtype=float)
    if noisy.ndim != 1 or not np.isfinite(noisy).all() or not noisy.sum() > 0:
        raise ArgumentError("histogram", "be finite numbers with a positive sum")
    return POSTPROCESSING[method](noisy / noisy.sum())


def clip(shares: Floats) -> Floats:
    """Set negative shares to 0 and rescale: what paper 002's experiments do."""
    kept = np.maximum(shares, 0.0)
    law: Floats = kept / kept.sum()
    return law


def project(shares: Floats) -> Floats:
    """The nearest law in squared distance: one number is taken off every share, then clipped.

    >>> project(np.array([0.9, 0.3, -0.2])).round(9).tolist()
    [0.8, 0.2, 0.0]
    """
    ranked = np.sort(shares)[::-1]
    excess = (np.cumsum(ranked) - 1) / np.arange(1, len(shares) + 1)
    level = excess[np.flatnonzero(ranked > excess)[-1]]
    kept = np.maximum(shares - level, 0.0)
    law: Floats = kept / kept.sum()
    return law


def isotonic(shares: Floats) -> Floats:
    """The law whose cumulative sums are nearest to the noisy ones in squared distance."""
    total = monotone(np.cumsum(shares)[:-1], 1.0)
    return np.diff(total, prepend=0.0, append=1.0)


POSTPROCESSING: dict[str, Callable[[Floats], Floats]] = {
    "isotonic": isotonic,
    "clip": clip,
    "simplex": project,
}
