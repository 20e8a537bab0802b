"""The solvers agree and are optimal; a bound holds whatever multipliers it is given."""

import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tallyveil.optimize.solver import Program, lower_bound, solve


def transport_program(seed: int = 0) -> Program:
    """A small transport problem with side rows: bounded, feasible, dense duals."""
    rng = np.random.default_rng(seed)
    n, m = 4, 5
    supply, demand = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    rows = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))[:-1]])
    right = np.concatenate([supply, demand[:-1]])
    cap = sparse.csc_array(np.eye(n * m))
    room = np.outer(supply, demand).ravel() + 0.05
    return Program(rng.random(n * m), sparse.csc_array(rows), right, cap, room)


OPTIMA = [solve(transport_program(seed), "highs").objective for seed in range(5)]


@settings(deadline=None, max_examples=200)
@given(
    st.integers(0, 4),
    st.lists(st.floats(-50, 50), min_size=8, max_size=8),
    st.lists(st.floats(-5, 50), min_size=20, max_size=20),
)
def test_any_multipliers_give_a_true_bound(seed, y_eq, y_ub):
    program = transport_program(seed)
    assert lower_bound(program, y_eq, y_ub, upper=1.0) <= OPTIMA[seed] + 1e-9


def test_rounding_goes_outwards():
    """One tenth times three is above 0.3 in doubles; the bound must not be."""
    program = Program(np.array([0.1]), sparse.csc_array([[1.0]]), np.array([3.0]))
    assert lower_bound(program, [-0.1], [], upper=3.0) < 0.1 * 3


def test_other_threads_may_solve():
    results = []
    worker = threading.Thread(target=lambda: results.append(solve(transport_program()).status))
    worker.start()
    worker.join()
    assert results == ["optimal"]
