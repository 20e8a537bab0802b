import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.mechanisms.geometric import (
    geometric_output_distribution,
    geometric_rate,
    geometric_step,
    inverse_diagonals,
    measure_errors,
    output_factors,
    remove_geometric,
    remove_geometric_transposed,
    sum_both_sides,
)


def test_geometric_rate_judges_the_matrix():
    q = tv.Query.count(6)
    assert geometric_rate(tv.geometric(q, 0.3)) == pytest.approx(0.3, abs=1e-12)
    assert geometric_rate(tv.fair(q, 0.3)) is None
    bent = tv.geometric(q, 0.3).matrix.copy()
    bent[3, 2] += 1e-6
    bent[3, 3] -= 1e-6
    assert geometric_rate(tv.Mechanism(bent, q, 0.3)) is None
    assert geometric_rate(tv.geometric(tv.Query.count(6, extend=3), 0.3)) is None


SIZES = st.integers(2, 30)
EPSILONS = st.sampled_from([1e-3, 0.05, 0.3, 1.0, 2.5, 8.0])


def dense(size, epsilon):
    """The matrix from its definition, entry by entry."""
    a = math.exp(-epsilon)
    inside = -math.expm1(-epsilon) / (1 + a)
    return np.array(
        [
            [
                math.exp(-epsilon * abs(i - r)) * (1 / (1 + a) if r in (0, size - 1) else inside)
                for r in range(size)
            ]
            for i in range(size)
        ]
    )


def close(found, expected, rtol=1e-13, scale=0.0):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * scale)


@given(SIZES, EPSILONS, st.integers(0, 2**32), st.floats(0.01, 1))
def test_every_fact_is_that_of_dense_linear_algebra(size, epsilon, seed, part):
    matrix, draw = dense(size, epsilon), np.random.default_rng(seed)
    fall = np.exp(-epsilon * np.abs(np.subtract.outer(np.arange(size), np.arange(size))))
    close(tv.geometric(tv.Query.count(size - 1), epsilon).matrix, matrix)
    close(fall * output_factors(size, epsilon), matrix)
    weights = draw.exponential(size=size)
    close(sum_both_sides(weights, epsilon), weights @ fall)
    source = weights / weights.sum()
    close(geometric_output_distribution(source, epsilon), source @ matrix)
    step = geometric_step(size, epsilon, epsilon * part)
    close(step.sum(axis=1), 1.0)
    close(matrix @ step, dense(size, epsilon * part))
    # exp(-epsilon) as a double is off by 1e-16, and 1 - exp(-epsilon) by that over epsilon
    slack, ratio = max(1e-13, 1e-15 / epsilon), Fraction(math.exp(-epsilon))
    exact = remove_geometric(np.array(np.eye(size, dtype=int).tolist(), dtype=object), ratio)
    own, beside = inverse_diagonals(size, epsilon)
    inverse = np.diag(own) - np.diag(beside[:-1], 1) - np.diag(beside[1:], -1)
    close(inverse, exact.astype(float), slack)
    # relative to the largest terms: neighbouring entries nearly cancel at a small epsilon
    values = draw.normal(size=(size, 3))
    scale = np.abs(inverse).max() * np.abs(values).max()
    close(remove_geometric(values, math.exp(-epsilon)), inverse @ values, slack, scale)
    transposed = remove_geometric_transposed(values[:, 0], epsilon)
    close(transposed, inverse.T @ values[:, 0], 1e-13, scale)
    assert np.abs(inverse @ matrix - np.eye(size)).max() < 1e-15 * scale + 1e-12


@given(st.integers(1, 60), EPSILONS, st.sampled_from([0.5, 0.8, 0.95, 0.999]))
def test_errors_without_a_matrix_are_those_of_the_matrix(upper, epsilon, confidence):
    mechanism = tv.geometric(tv.Query.count(upper), epsilon)
    bias, rmse, interval = measure_errors(upper, epsilon, confidence)
    close(bias, mechanism.bias(), 1e-13, scale=upper)
    close(rmse, mechanism.rmse(), 1e-12, scale=1.0)
    np.testing.assert_array_equal(interval, mechanism.interval(confidence))
