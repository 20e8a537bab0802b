"""Independent programs: generic LPs that share no code with the package."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog


def best_private(ratio, losses, possible=None, prior=None):
    """Optimum over all mechanisms of a count (Gupte 2010, 2.5): minimax, or Bayes by prior."""
    n = len(losses)
    cells = n * n
    index = np.arange(cells).reshape(n, n)
    rows, columns, values = [], [], []
    for row, (larger, smaller) in enumerate(
        pair
        for i in range(n - 1)
        for r in range(n)
        for pair in ((index[i, r], index[i + 1, r]), (index[i + 1, r], index[i, r]))
    ):
        rows += [row, row]
        columns += [larger, smaller]
        values += [ratio, -1.0]
    count = 2 * (n - 1) * n
    cost = np.zeros(cells + 1)
    if prior is None:
        cost[-1] = 1.0
        for i in range(n) if possible is None else possible:
            rows += [count] * (n + 1)
            columns += [*index[i], cells]
            values += [*losses[i], -1.0]
            count += 1
    else:
        cost[:cells] = (np.asarray(prior)[:, None] * losses).ravel()
    above = sparse.csr_matrix((values, (rows, columns)), shape=(count, cells + 1))
    sums = sparse.kron(sparse.eye(n), np.ones((1, n)), format="csr")
    sums = sparse.hstack([sums, sparse.csr_matrix((n, 1))], format="csr")
    bounds = [(0, None)] * cells + [(None, None)]
    found = linprog(cost, above, np.zeros(count), sums, np.ones(n), bounds=bounds, method="highs")
    assert found.status == 0
    return found.fun, found.x[:cells].reshape(n, n)


def random_unimodal(rng, n):
    """A loss that grows away from the truth, differently on either side, with flat parts."""
    table = np.zeros((n, n))
    for i in range(n):
        right = rng.exponential(size=n - 1 - i) * (rng.random(n - 1 - i) < 0.7)
        left = rng.exponential(size=i) * (rng.random(i) < 0.7)
        table[i, i + 1 :] = np.cumsum(right)
        table[i, :i] = np.cumsum(left)[::-1]
    return table


def random_monotone(rng, n):
    """A loss non-decreasing in the distance, row by row (Gupte 2010, section 2.3)."""
    distance = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    steps = np.cumsum(rng.exponential(size=(n, n)), axis=1)
    return np.take_along_axis(np.hstack([np.zeros((n, 1)), steps]), distance, axis=1)


@pytest.fixture(name="best_private", scope="session")
def best_private_fixture():
    return best_private


@pytest.fixture(name="random_unimodal", scope="session")
def random_unimodal_fixture():
    return random_unimodal


@pytest.fixture(name="random_monotone", scope="session")
def random_monotone_fixture():
    return random_monotone
