"""The private upper bound."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError
from tallyveil.sampling.entropy import SeededNotPrivate


def test_private_upper_bound_is_near_the_quantile():
    counts = np.concatenate([np.arange(1000) % 50, np.full(5, 4000)])
    found = tv.private_upper(counts, "0.5", ceiling=5000, entropy=SeededNotPrivate(1))
    assert found.epsilon == Fraction(1, 2)
    assert 45 <= found.upper <= 60
    assert tv.private_upper(counts, 50, ceiling=5000, quantile=1.0).upper == 4000
    with pytest.raises(ArgumentError, match="'quantile' must lie in"):
        tv.private_upper(counts, 1, ceiling=10, quantile=0)
