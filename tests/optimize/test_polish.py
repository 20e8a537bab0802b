"""Polishing makes a solver's matrix stochastic and private and keeps its properties."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize.polish import find_broken_rows, lift_underflow, meets_marginals, polish
from tallyveil.optimize.problem import DesignOptions, pose

QUERY = tv.Query.count(6)
FIXED = [0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05]


def disturbed(matrix, size, seed=0):
    """A matrix with the errors that a solver leaves."""
    return matrix + size * np.random.default_rng(seed).uniform(-1, 1, matrix.shape)


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-9])
@pytest.mark.parametrize(
    ("build", "options"),
    [
        (tv.geometric, {}),
        (tv.fair, {"properties": ["column_monotone", "row_monotone"]}),
        (tv.geometric, {"delta": 0.01}),
        (tv.uniform, {"zero_outputs": 0.1}),
    ],
)
def test_polished_matrices_keep_their_promises(build, options, size):
    problem = pose(QUERY, 0.5, DesignOptions(**options))
    given = build(QUERY, 0.5).matrix
    found = polish(problem, disturbed(given, size))
    mechanism = tv.Mechanism(found, QUERY, 0.5)
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-14
    assert mechanism.realised_epsilon() <= 0.5 + 1e-12 or options.get("delta")
    assert mechanism.privacy_profile([0.5])[0] <= options.get("delta", 0) + 1e-14
    assert np.abs(found - given).max() <= 100 * size + 1e-14
    if size < 1e-9:
        assert not find_broken_rows(problem, found)


def test_broken_rows_are_named():
    problem = pose(QUERY, 0.5, DesignOptions(properties=["fair", "weakly_honest"]))
    broken = find_broken_rows(problem, tv.geometric(QUERY, 0.5).matrix)
    assert [block.name for block in broken] == ["fair"]
    assert len(broken[0].rows) == 2  # the two ends differ from the middle


def test_outputs_that_are_never_released_are_dropped():
    problem = pose(QUERY, 0.5)
    rows = np.array([0.25, 0.25, 0.25, 0.25 - 2e-9, 1e-9, 1e-9, 0.0])
    found = polish(problem, np.tile(rows, (7, 1)))
    assert np.array_equal(found.max(axis=0) > 0, [1, 1, 1, 1, 0, 0, 0])


def test_demanded_distributions_are_met_or_not():
    problem = pose(QUERY, 0.5, DesignOptions(fixed_point=FIXED))
    assert meets_marginals(problem, tv.transport(QUERY, 0.5, FIXED).matrix)
    assert not meets_marginals(problem, tv.geometric(QUERY, 0.5).matrix)


def test_underflow_is_lifted_in_used_outputs_alone():
    matrix = np.array([[1.0, 0.0, 0.0], [1.0, 1e-320, 0.0]])
    lifted = lift_underflow(matrix)
    assert (lifted[:, 1] > 1e-291).all()
    assert (lifted[:, 2] == 0).all()
    ordinary = np.full((2, 2), 0.5)
    assert lift_underflow(ordinary) is ordinary
