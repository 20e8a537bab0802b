"""Scales: the definitions of section 4.2, and the decomposition of columns."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError
from tallyveil.papers.kohli import polytope

LN2 = "0.693147180559945309417232121458"


def test_scale_matrix_of_the_paper():
    # Example 1: epsilon = ln 2, n = 3 (columns in the paper's order: down-down first)
    expected = np.array(
        [[4 / 7, 2 / 5, 1 / 4, 1 / 7], [2 / 7, 1 / 5, 1 / 2, 2 / 7], [1 / 7, 2 / 5, 1 / 4, 4 / 7]]
    )
    np.testing.assert_allclose(polytope.scale_matrix(3, LN2), expected, atol=1e-15)


def test_there_are_two_to_the_n_minus_one_and_all_are_scales():
    matrix = polytope.scale_matrix(6, 0.4)
    assert matrix.shape == (6, 32)
    assert len({tuple(np.round(column, 12)) for column in matrix.T}) == 32
    for pattern, column in zip(polytope.patterns(6), matrix.T, strict=True):
        assert polytope.is_scale(column, 0.4)
        assert (polytope.pattern_of(column, 0.4) == pattern).all()


def test_not_a_scale():
    assert not polytope.is_scale([0.5, 0.5], 1.0)
    assert not polytope.is_scale([2.0, 4.0], LN2)
    assert polytope.pattern_of([0.0, 1.0], 1.0) is None


@pytest.mark.parametrize(
    ("n", "epsilon", "omega"),
    [  # errata, Kohli 1, by linear solve
        (3, LN2, [1.1666666666666665, 0.6666666666666666, 1.1666666666666665]),
        (
            5,
            0.3,
            [
                1.7218303972339761,
                0.5117205013666737,
                0.5328982027987008,
                0.5117205013666737,
                1.7218303972339761,
            ],
        ),
    ],
)
def test_peak_weights(n, epsilon, omega):
    np.testing.assert_allclose(polytope.peak_weights(n, epsilon), omega, rtol=1e-13)


@pytest.mark.parametrize("n", [2, 3, 9, 40])
def test_weighted_single_peaked_scales_are_the_geometric_mechanism(n):
    product = polytope.single_peaked_scales(n, 0.7) * polytope.peak_weights(n, 0.7)
    np.testing.assert_allclose(product, tv.geometric(tv.Query.count(n - 1), 0.7).matrix, rtol=1e-12)


def test_privacy_rows_hold_exactly_for_private_columns():
    rows = polytope.privacy_rows(5, 0.4)
    assert rows.shape == (8, 5)
    private = tv.geometric(tv.Query.count(4), 0.4).matrix
    assert (rows @ private <= 1e-15).all()
    assert (rows @ np.array([1.0, 2, 1, 1, 1])).max() > 0


@pytest.mark.parametrize("seed", range(12))
def test_any_private_column_is_a_sum_of_at_most_n_scales(seed):
    rng = np.random.default_rng(seed)
    n, epsilon = int(rng.integers(2, 60)), float(np.round(rng.uniform(0.05, 2), 3))
    column = np.exp(np.cumsum(rng.uniform(-epsilon, epsilon, size=n)))
    found = polytope.decompose(column, epsilon)
    assert len(found.coefficients) <= n
    assert (found.coefficients > 0).all()
    np.testing.assert_allclose(found.column(), column, rtol=1e-9)


def test_decomposing_a_scale_gives_that_scale():
    found = polytope.decompose(3 * polytope.scale([1, -1, -1], 0.5), 0.5)
    np.testing.assert_allclose(found.coefficients.sum(), 3, rtol=1e-12)
    assert (found.patterns[found.coefficients.argmax()] == [1, -1, -1]).all()
    assert found.coefficients.max() > 3 - 1e-9


def test_refusals():
    with pytest.raises(ArgumentError, match="be private"):
        polytope.decompose([1.0, 5.0], 1.0)
    with pytest.raises(ArgumentError, match="not all zero"):
        polytope.decompose([0.0, 0.0], 1.0)
    with pytest.raises(ArgumentError, match="between 2 and 20"):
        polytope.patterns(21)
    with pytest.raises(ArgumentError, match="list of -1 and"):
        polytope.scale([0, 1], 1.0)
    with pytest.raises(ArgumentError, match="at least 2"):
        polytope.peak_weights(1, 1.0)
