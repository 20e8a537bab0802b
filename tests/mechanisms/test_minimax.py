"""The lower bound for releases of a distribution."""

import math

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.frontier import least_uniform_error


def uniform_error(upper, epsilon):
    """The Bayes optimum sum_k min_j of a uniform count, from the matrix."""
    drawn = tv.geometric(tv.Query.count(upper), repr(epsilon)).matrix
    distance = np.abs(np.subtract.outer(np.arange(upper + 1), np.arange(upper + 1)))
    return float((drawn.T @ distance).min(axis=1).sum() / (upper + 1))


@pytest.mark.parametrize("upper", [1, 2, 3, 8, 41, 300])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 0.003, 0.1, 0.7, 2.0, 6.0])
def test_the_error_of_a_uniform_count(upper, epsilon):
    found, exact = least_uniform_error(upper, epsilon), uniform_error(upper, epsilon)
    assert found <= exact * (1 + 1e-9)
    assert found >= exact * (1 - 2e-3)


@pytest.mark.parametrize(
    ("rows", "upper", "epsilon", "most"), [(22_615, 80, 0.1, 1.06), (10_000, 20, 0.1, 1.04)]
)
def test_noise_on_the_cumulative_histogram_is_nearly_minimax(rows, upper, epsilon, most):
    a = math.exp(-epsilon)
    noise = upper / rows * 2 * a / (1 - a * a)
    assert 1 < noise / tv.bound_distribution_error(rows, upper, epsilon) < most


def test_blocks_help_where_rows_are_few():
    """50 rows, 40 thresholds: each threshold alone has one row to itself."""
    alone = 40 / 50 * least_uniform_error(1, 0.1)
    assert tv.bound_distribution_error(50, 40, 0.1) > 2 * alone


def test_every_private_release_of_two_rows_obeys_the_bound():
    """Two rows of counts 0..2, all tables, the best minimax release by a program."""
    from scipy.optimize import linprog

    tables = [(b, c) for b in range(3) for c in range(b, 3)]  # cumulative vectors C_0 <= C_1
    outputs = tables
    n, m, grow = len(tables), len(outputs), math.exp(0.5)
    cost = np.array([[(abs(a - x) + abs(b - y)) / 2 for x, y in outputs] for a, b in tables])
    above, eye = [], np.eye(n)
    for i, (a, b) in enumerate(tables):
        for k, (x, y) in enumerate(tables):
            if abs(a - x) + abs(b - y) == 1:
                above += [np.append(np.kron(eye[i] - grow * eye[k], unit), 0) for unit in np.eye(m)]
    above += [np.append(np.kron(eye[i], cost[i]), -1) for i in range(n)]
    equal = [np.append(np.kron(eye[i], np.ones(m)), 0) for i in range(n)]
    aim = np.append(np.zeros(n * m), 1)
    solved = linprog(aim, above, np.zeros(len(above)), equal, np.ones(n), method="highs")
    assert tv.bound_distribution_error(2, 2, 0.5) <= solved.fun + 1e-9


@pytest.mark.parametrize(("name", "sizes"), [("rows", (0, 5)), ("upper", (5, 2.5))])
def test_refusals(name, sizes):
    with pytest.raises(tv.ArgumentError, match=f"'{name}' must be a whole number of at least 1"):
        tv.bound_distribution_error(*sizes, 1)
