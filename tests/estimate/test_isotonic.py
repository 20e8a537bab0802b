"""Isotonic regression against SciPy's."""

import numpy as np

from tallyveil.estimate.direct import monotone


def test_monotone_is_isotonic_regression():
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(5)
    for size in (1, 2, 7, 300):
        for scale in (0.0, 0.3, 4.0):
            noisy = rng.normal(size=size).cumsum() + scale * rng.normal(size=size)
            weights = rng.uniform(0.1, 3, size)
            for chosen in (None, weights):
                wanted = np.clip(isotonic_regression(noisy, weights=chosen).x, 0.0, 2.5)
                np.testing.assert_allclose(monotone(noisy, 2.5, chosen), wanted, atol=1e-12)


def test_nothing_gives_nothing():
    assert monotone([], 1.0).tolist() == []
