"""Random losses, and equality of results."""

import dataclasses

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


def same(one, other):
    """Equal, field by field and array by array."""
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        fields = dataclasses.fields(one)
        assert type(one) is type(other)
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


@pytest.fixture(name="same", scope="session")
def same_fixture():
    return same
