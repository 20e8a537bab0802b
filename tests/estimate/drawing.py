"""Draws of counts from seeded bits, which are not private."""

from fractions import Fraction

import numpy as np

from tallyveil.estimate.draws import PrivateDraws
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sampling.noise import geometric_noise


def draw(counts, size, epsilon1, epsilon2, seed):
    """Draw every row and, where `epsilon1` is not 0, the cumulative histogram."""
    source = SeededNotPrivate(seed)
    values = np.clip(counts + geometric_noise(len(counts), epsilon2, source), 0, size - 1)
    totals = None
    if epsilon1:
        exact = np.cumsum(np.bincount(counts, minlength=size))[:-1]
        totals = exact + geometric_noise(size - 1, epsilon1, source)
    return PrivateDraws(values, Fraction(epsilon2), totals, Fraction(epsilon1), size)
