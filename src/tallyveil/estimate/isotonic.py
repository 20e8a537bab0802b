"""Isotonic regression: the non-decreasing sequence nearest to a noisy one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats

__all__ = ["monotone"]


def monotone(cumulative: ArrayLike, top: float, weights: ArrayLike | None = None) -> Floats:
    """The non-decreasing sequence nearest to `cumulative`, clipped to [0, top].

    Weighted isotonic regression by pooling adjacent violators, O(n); clipping its result is
    the projection on both constraints. Written out here because importing SciPy's costs more
    than a whole release.

    >>> monotone([2.0, 1.0, 7.0], 5.0).tolist()
    [1.5, 1.5, 5.0]
    """
    values = np.asarray(cumulative, dtype=float)
    weight = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    pools: list[tuple[float, float, int]] = []  # mean, weight and length of each level stretch
    for mean, mass in zip(values.tolist(), weight.tolist(), strict=True):
        length = 1
        while pools and pools[-1][0] >= mean:
            before, heavy, count = pools.pop()
            mean = (before * heavy + mean * mass) / (heavy + mass)  # noqa: PLW2901
            mass, length = mass + heavy, length + count  # noqa: PLW2901
        pools.append((mean, mass, length))
    means, lengths = [pool[0] for pool in pools], [pool[2] for pool in pools]
    fitted: Floats = np.clip(np.repeat(np.array(means, dtype=float), lengths), 0.0, top)
    return fitted
