"""Inverses of Cholesky factors."""

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular

from tallyveil.estimate.draws import SMALL, invert_root


@pytest.mark.parametrize("size", [1, 2, SMALL, SMALL + 1, 2 * SMALL + 1, 301])
def test_as_scipy_solves(size):
    square = np.random.default_rng(size).random((size, size))
    matrix = square @ square.T + np.eye(size)
    root = cholesky(matrix, lower=True)
    wanted = solve_triangular(root, np.eye(size), lower=True)
    found = invert_root(matrix)
    # two backward stable ways differ by at most about size * 2^-53 * condition
    bound = size * np.finfo(float).eps * np.linalg.cond(matrix) * np.abs(wanted).max()
    assert np.abs(found - wanted).max() <= bound
    assert not np.triu(found, 1).any()


def test_what_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        invert_root(np.array([[1.0, 2.0], [2.0, 1.0]]))
