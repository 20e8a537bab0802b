"""The transport optimum against generic programs, and its pieces."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.errors import ArgumentError, QueryError
from tallyveil.loss import loss_table
from tallyveil.mechanisms.transport import monotone_remap, transport

LN2 = "0.693147180559945309417232121458"
BIT = tv.Query.count(1)


def random_distribution(rng, size, zeros):
    distribution = rng.dirichlet(np.full(size, 0.5))
    distribution[rng.random(size) < zeros] = 0.0
    return distribution / distribution.sum() if distribution.sum() > 0 else np.eye(size)[0]


LOSSES = {
    "absolute": np.abs,
    "squared": lambda error: error**2,
    "asymmetric": lambda error: np.where(error > 0, 3 * error, -error),
    "steep": lambda error: np.abs(error) ** 1.5 + np.maximum(error, 0) ** 2,
}


@pytest.mark.parametrize("case", range(24))
def test_no_private_mechanism_is_cheaper_for_any_convex_loss(case, solve_private):
    rng = np.random.default_rng(case)
    n, m = int(rng.integers(2, 9)), int(rng.integers(2, 9))
    epsilon = float(np.round(rng.choice([0.05, 0.3, 1.0, 2.5]), 3))
    source, target = random_distribution(rng, n, 0.2), random_distribution(rng, m, 0.2)
    query = tv.Query.custom(np.arange(n), np.arange(m), "path")
    found = transport(query, epsilon, source, target)
    np.testing.assert_allclose(source @ found.matrix, target, atol=1e-14)
    for loss in LOSSES.values():
        cost = loss(np.arange(m)[None, :] - np.arange(n)[:, None].astype(float))
        ours = source @ (found.matrix * cost).sum(axis=1)
        best, _ = solve_private(source[:, None] * cost, epsilon, marginal=(source, target))
        assert ours <= best * (1 + 1e-7) + 1e-9
        assert ours >= best * (1 - 1e-7) - 1e-9


def test_one_seventh_matrix_of_three_equal_counts():
    # Kohli and Laskowski (2026), section 4, n = 3, epsilon = ln 2: the optimum over F is 4/7
    third = np.full(3, 1 / 3)
    found = tv.transport(tv.Query.count(2), LN2, source=third, target=third)
    np.testing.assert_allclose(found.matrix * 7, [[4, 2, 1], [2, 3, 2], [1, 2, 4]], atol=1e-12)
    assert found.expected_loss("absolute", third) == pytest.approx(4 / 7, abs=1e-14)


def test_zero_one_loss_is_not_covered_and_the_program_finds_better(solve_private):
    z = np.array([0.1, 0.5, 0.1, 0.3])
    query = tv.Query.count(3)
    cost = loss_table(query, "zero_one")
    found = tv.transport(query, 0.7, z)
    ours = z @ (found.matrix * cost).sum(axis=1)
    assert solve_private(z[:, None] * cost, 0.7, marginal=(z, z))[0] < ours - 1e-4


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=30),
    st.floats(0.01, 5).map(lambda x: round(x, 3)),
)
@example([1.0, 0.0, 0.5, 0.0, 0.0, 2.2250738585e-313], 1.0)  # a subnormal mass
@example([1.0, 0.5, 1e-200], 5.0)
def test_private_and_on_target_for_any_law(weights, epsilon):
    total = sum(weights)
    source = np.array(weights) / total if total > 1e-3 else np.eye(len(weights))[0]
    target = source[::-1]
    found = tv.transport(tv.Query.count(len(source) - 1), epsilon, source, target)
    np.testing.assert_allclose(source @ found.matrix, target, atol=1e-13)
    assert found.realised_epsilon() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("columns", [slice(3), slice(-3, None)], ids=["lowest", "highest"])
def test_underflowing_tails_still_reach_the_nearest_column(columns):
    z = np.zeros(901)
    z[columns] = [0.5, 0.3, 0.2]
    found = tv.transport(tv.Query.count(900), 1.0, z)
    np.testing.assert_allclose(z @ found.matrix, z, atol=1e-15)
    assert (found.matrix[:, z == 0] == 0).all()
    np.testing.assert_allclose(found.matrix.sum(axis=1), 1, atol=1e-14)
    far, nearest = (900, 2) if columns == slice(3) else (0, 898)
    np.testing.assert_allclose(found.matrix[far, nearest], 1, atol=1e-14)
    assert tv.certify(found).exact_epsilon == 1


def test_remap_is_sparse_monotone_and_exact():
    rng = np.random.default_rng(6)
    before, after = random_distribution(rng, 50, 0.4), random_distribution(rng, 37, 0.4)
    remap = monotone_remap(before, after)
    assert len(remap.share) <= 50 + 37 - 1
    assert (np.diff(remap.row) >= 0).all()
    assert (np.diff(remap.column) >= 0).all()
    dense = np.zeros(remap.size)
    dense[remap.row, remap.column] = remap.share
    np.testing.assert_allclose(dense.sum(axis=1), 1)
    np.testing.assert_allclose(before @ dense, after, atol=1e-15)
    matrix = rng.random((4, 50))
    np.testing.assert_allclose(remap.after(matrix), matrix @ dense, rtol=1e-13)


def test_refusals():
    half = [0.5, 0.5]
    with pytest.raises(ArgumentError, match=r"'source' must sum to one\. Got a sum of 0\.9"):
        tv.transport(BIT, 1.0, [0.5, 0.4])
    with pytest.raises(ArgumentError, match="'target' must be finite and non-negative"):
        tv.transport(BIT, 1.0, half, [1.5, -0.5])
    with pytest.raises(ArgumentError, match="'source' must be a distribution with 2 entries"):
        tv.transport(BIT, 1.0, [1.0])
    with pytest.raises(QueryError, match="adjacent true answers"):
        tv.transport(tv.Query.maximum(0, 3), 1.0, np.full(4, 0.25))
    with pytest.raises(QueryError, match="same inputs and outputs"):
        tv.transport(tv.Query.custom([0, 1], [0, 1, 2], "path"), 1.0, half)
