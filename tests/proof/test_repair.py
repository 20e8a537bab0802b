"""Repair on every kind of neighbour graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallyveil as tv

QUERIES = {
    "path": tv.Query.count(12),
    "band": tv.Query.mean(records=5, lower=0, upper=3),
    "complete": tv.Query.maximum(0, 9),
    "explicit": tv.Query.custom(range(6), range(6), [(0, 1), (1, 2), (2, 5), (5, 4), (4, 3)]),
    "two parts": tv.Query.custom(range(5), range(5), [(0, 1), (1, 2), (3, 4)]),
}


@pytest.mark.parametrize("kind", QUERIES)
def test_random_matrices_become_private(kind):
    query = QUERIES[kind]
    matrix = np.random.default_rng(4).dirichlet(np.ones(query.shape[1]), size=query.shape[0])
    mended = tv.repair(tv.Mechanism(matrix, query), epsilon=0.7)
    assert mended.mechanism.realised_epsilon() <= 0.7 + 1e-12
    assert mended.mass_moved > 0.01
    assert mended.loss_change == mended.loss_after - mended.loss_before


@pytest.mark.parametrize("kind", QUERIES)
def test_a_private_matrix_is_left_alone(kind):
    query = QUERIES[kind]
    before = tv.exponential(query, 1.0)
    mended = tv.repair(before)
    assert mended.mass_moved < 1e-15
    assert mended.mechanism.isclose(before, 1e-15)


def test_outputs_never_reported_stay_never_reported():
    query = tv.Query.count(3)
    matrix = np.zeros((4, 4))
    matrix[:, 1] = [0.6, 0.5, 0.5, 0.4]
    matrix[:, 2] = 1 - matrix[:, 1]
    noisy = np.maximum(matrix + 1e-9 * np.random.default_rng(5).standard_normal((4, 4)), 0)
    mended = tv.repair(tv.Mechanism(noisy, query), epsilon=1.0).mechanism.matrix
    assert (mended[:, [0, 3]] == 0).all()
    assert (mended[:, [1, 2]] > 0).all()


def test_moved_mass_goes_to_the_target():
    query = tv.Query.count(30)
    law = np.arange(31, 0, -1) / (31 * 32 / 2)
    wanted = tv.transport(query, 1.0, source=law, target=law)
    noisy = np.maximum(wanted.matrix + 1e-8 * np.random.default_rng(6).standard_normal((31, 31)), 0)
    mended = tv.repair(tv.Mechanism(noisy, query, 1.0), target=law)
    assert np.abs(law @ mended.mechanism.matrix - law).sum() < 1e-6
    assert mended.mechanism.realised_epsilon() <= 1 + 1e-12


def test_symmetry_is_kept_and_epsilon_is_needed():
    mended = tv.repair(tv.geometric(tv.Query.count(25), 0.3)).mechanism.matrix
    assert np.array_equal(mended, mended[::-1, ::-1])
    with pytest.raises(tv.ArgumentError, match="epsilon"):
        tv.repair(tv.Mechanism(np.eye(2), tv.Query.count(1)))


@given(st.integers(1, 25), st.sampled_from([0.01, 0.3, 1.0, 4.0]), st.integers(0, 2**32))
def test_solver_noise_costs_next_to_nothing(upper, epsilon, seed):
    """Relative loss change below 1e-5 at noise 1e-9, in every neighbourhood of a design."""
    query = tv.Query.count(upper)
    clean = tv.geometric(query, epsilon)
    noise = 1e-9 * np.random.default_rng(seed).standard_normal(query.shape)
    mended = tv.repair(tv.Mechanism(np.maximum(clean.matrix + noise, 0), query, epsilon))
    assert abs(mended.loss_after / clean.expected_loss() - 1) < 1e-5
    assert mended.mechanism.realised_epsilon() <= epsilon + 1e-12
