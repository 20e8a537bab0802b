"""Random losses."""

import numpy as np
import pytest


def random_unimodal(rng, n):
    """A loss that grows away from the truth, differently on either side, with flat parts."""
    table = np.zeros((n, n))
    for i in range(n):
        right = rng.exponential(size=n - 1 - i) * (rng.random(n - 1 - i) < 0.7)
        left = rng.exponential(size=i) * (rng.random(i) < 0.7)
        table[i, i + 1 :] = np.cumsum(right)
        table[i, :i] = np.cumsum(left)[::-1]
    return table


def random_monotone(rng, n):
    """A loss non-decreasing in the distance, row by row (Gupte 2010, section 2.3)."""
    distance = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    steps = np.cumsum(rng.exponential(size=(n, n)), axis=1)
    return np.take_along_axis(np.hstack([np.zeros((n, 1)), steps]), distance, axis=1)


@pytest.fixture(name="random_unimodal", scope="session")
def random_unimodal_fixture():
    return random_unimodal


@pytest.fixture(name="random_monotone", scope="session")
def random_monotone_fixture():
    return random_monotone
