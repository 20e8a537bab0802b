"""Epsilon-scales, and vertices in exact fractions: Theorems 2, 4, 9, 11, and Corollary 2."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError
from tallyveil.papers.kohli import polytope


def test_there_are_two_to_the_n_minus_one_and_all_are_scales():
    matrix = polytope.scale_matrix(6, 0.4)
    assert matrix.shape == (6, 32)
    assert len({tuple(np.round(column, 12)) for column in matrix.T}) == 32
    np.testing.assert_allclose(np.diff(np.log(matrix), axis=0), 0.4 * polytope.patterns(6).T)
    np.testing.assert_allclose(matrix.sum(axis=0), 1)


@pytest.mark.parametrize("n", [2, 3, 9, 40])
def test_weighted_single_peaked_scales_are_the_geometric_mechanism(n):
    product = polytope.single_peaked_scales(n, 0.7) * polytope.peak_weights(n, 0.7)
    np.testing.assert_allclose(product, tv.geometric(tv.Query.count(n - 1), 0.7).matrix, rtol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_any_private_column_is_a_sum_of_at_most_n_scales(seed):
    rng = np.random.default_rng(seed)
    n, epsilon = int(rng.integers(2, 60)), float(np.round(rng.uniform(0.05, 2), 3))
    column = np.exp(np.cumsum(rng.uniform(-epsilon, epsilon, size=n)))
    found = polytope.decompose(column, epsilon)
    assert len(found.coefficients) <= n
    assert (found.coefficients > 0).all()
    np.testing.assert_allclose(found.column(), column, rtol=1e-9)


THIRD = [Fraction(1, 3)] * 3


@pytest.fixture(scope="module")
def psi():
    return polytope.exact_scales(3, 2)


@pytest.fixture(scope="module")
def fixed():
    return polytope.extreme_representations(3, 2, THIRD)


@pytest.fixture(scope="module")
def unfixed():
    return polytope.extreme_representations(3, 2)


def test_theorems_4_and_11_tell_vertices_from_midpoints(psi, fixed, unfixed):
    assert all(polytope.is_affinely_simplified(B, psi, THIRD) for B in fixed)
    assert all(polytope.is_linearly_simplified(B, psi) for B in unfixed)
    rng = np.random.default_rng(0)
    for points, simplified in (
        (fixed, lambda B: polytope.is_affinely_simplified(B, psi, THIRD)),
        (unfixed, lambda B: polytope.is_linearly_simplified(B, psi)),
    ):
        for _ in range(20):
            i, k = rng.choice(len(points), size=2, replace=False)
            assert not simplified((points[i] + points[k]) / 2)


def test_corollary_2_on_positive_entries(fixed):
    for B in fixed:
        assert 3 <= np.count_nonzero(B) <= 5  # |P| and |P| + n - 1


def test_theorem_2_positive_vertices_are_independent_multiples_of_scales():
    for T in polytope.extreme_mechanisms(3, 2):
        if not (T > 0).all():
            continue
        for column in T.T:
            for i in range(2):
                assert column[i + 1] in (2 * column[i], column[i] / 2)
        assert polytope.rank(T) == 3


def test_theorem_9_an_image_is_a_vertex_exactly_when_a_weight_exposes_it(psi, fixed):
    # Corollary 3, with D = Psi' W and W the sum of the bounds that Psi B uses up
    for B in fixed:
        T, W = psi @ B, np.zeros((3, 3), dtype=int)
        rises, falls = (T[1:] == 2 * T[:-1]).astype(int), (T[:-1] == 2 * T[1:]).astype(int)
        W[1:] += rises - 2 * falls
        W[:-1] += falls - 2 * rises
        D = psi.T @ W
        values = [(D * other).sum() for other in fixed]
        assert (D * B).sum() == max(values)
        images = {
            tuple((psi @ other).ravel())
            for other, value in zip(fixed, values, strict=True)
            if value == max(values)
        }
        assert (len(images) == 1) == polytope.is_extreme(T, 2, THIRD)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: polytope.decompose([1.0, 5.0], 1.0), "be private"),
        (lambda: polytope.decompose([0.0, 0.0], 1.0), "not all zero"),
        (lambda: polytope.patterns(21), "between 2 and 20"),
        (lambda: polytope.scale([0, 1], 1.0), "list of -1 and"),
        (lambda: polytope.peak_weights(1, 1.0), "at least 2"),
        (lambda: polytope.extreme_representations(5, 2), "between 2 and 4"),
        (lambda: polytope.exact_scales(3, 1), "greater than 1"),
        (lambda: polytope.extreme_representations(2, 2, [THIRD[0]] * 2), "sum to exactly one"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_uneven_distribution_and_larger_growth():
    z = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    for T in polytope.extreme_mechanisms(3, 3, z):
        assert (np.array(z, dtype=object) @ T == z).all()
        assert (T[:-1] <= 3 * T[1:]).all()
        assert (T[1:] <= 3 * T[:-1]).all()
