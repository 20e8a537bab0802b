"""Property tests repeat themselves in the normal run, and explore in `make test-slow`."""

import os

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse
from scipy.optimize import linprog

import tallyveil as tv

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("TALLYVEIL_HYPOTHESIS", "steady"))


def solve_private(costs, epsilon, *, delta=0.0, worst=None, marginal=None, z=None, rate=0.0):
    """The least cost of any private mechanism of a count, and its matrix; no code of the package.

    The cost is the sum of `costs` times the matrix T, or the largest of its rows `worst`, plus,
    with a distribution z, the sum of `rate` times the cumulative differences of z T and z.
    `marginal` is a source and its target.
    """
    n, m = costs.shape
    steps, step = np.zeros((2 * (n - 1), n)), np.arange(n - 1)
    steps[2 * step, step] = steps[2 * step + 1, step + 1] = 1.0
    steps[2 * step, step + 1] = steps[2 * step + 1, step] = -np.exp(epsilon)
    slacks = len(steps) * m
    rows = [] if worst is None else list(worst)
    losses = np.zeros((max(1, len(rows)), n * m))
    for line, i in enumerate(rows):
        losses[line, i * m : (i + 1) * m] = costs[i]
    z = np.zeros(n) if z is None else z
    sums = np.kron(z, np.tri(m - 1, m))
    level = sums @ np.eye(n, m).ravel()
    above = sparse.bmat(
        [
            [sparse.kron(steps, sparse.eye(m)), -sparse.eye(slacks), None, None],
            [None, sparse.kron(sparse.eye(len(steps)), np.ones((1, m))), None, None],
            [losses, None, -np.ones((len(losses), 1)), None],
            [sums, None, None, -sparse.eye(m - 1)],
            [-sums, None, None, -sparse.eye(m - 1)],
        ]
    )
    limits = [np.zeros(slacks), np.full(len(steps), delta), np.zeros(len(losses)), level, -level]
    equal, right = np.kron(np.eye(n), np.ones(m)), np.ones(n)
    if marginal is not None:
        equal = np.vstack([equal, np.kron(marginal[0], np.eye(m)[:-1])])
        right = np.append(right, marginal[1][:-1])
    others = above.shape[1] - n * m
    solved = linprog(
        np.concatenate(
            [
                np.zeros(n * m) if rows else costs.ravel(),
                np.zeros(slacks),
                [float(bool(rows))],
                np.full(m - 1, 1.0) * rate,
            ]
        ),
        A_ub=above,
        b_ub=np.concatenate(limits),
        A_eq=np.hstack([equal, np.zeros((len(equal), others))]),
        b_eq=right,
        bounds=[(0, None)] * (n * m + slacks) + [(None, None)] * (others - slacks),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0
    return solved.fun, solved.x[: n * m].reshape(n, m)


@pytest.fixture(name="solve_private", scope="session")
def solve_private_fixture():
    return solve_private


@pytest.fixture
def paid(tmp_path):
    """Where releases go and what pays; afterwards, nothing was spent and nothing is there."""
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    yield {"ledger": book, "dataset": "cases", "out": tmp_path / "out"}
    assert book.history("cases") == []
    assert not (tmp_path / "out").exists()
