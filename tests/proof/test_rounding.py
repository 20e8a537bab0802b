"""Rows of integers that total 2^62."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tallyveil.proof.rounding import TOTAL, round_rows, round_segments, share_evenly

SEEDS = st.integers(0, 2**32)


@given(st.integers(1, 8), st.integers(1, 30), SEEDS, st.sampled_from([0, 1000, 2**40]))
def test_rows_total_exactly_and_stay_close(n, m, seed, reserve):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(m, 0.4), size=n)
    at = rng.integers(0, m, n)
    plain = round_rows(matrix, at, reserve=reserve)
    shared = round_rows(matrix, at, reserve=reserve, shared_by=np.ones((n, m), dtype=bool))
    for units in (plain, shared):
        assert (units.sum(axis=1) == TOTAL).all()
        assert np.abs(units / TOTAL - matrix).max() <= 1e-15 * m + 2 * reserve / TOTAL


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6), SEEDS)
def test_shares_are_even_and_lose_nothing(units, seed):
    rng = np.random.default_rng(seed)
    marked = rng.random((len(units), 7)) < 0.5
    marked[:, 3] = True
    shares = share_evenly(np.array(units), marked, np.full(len(units), 3))
    assert shares.sum(axis=1).tolist() == units
    assert (shares[~marked] == 0).all()
    others = np.where(marked, shares, shares[:, [3]])
    others[:, 3] = others.min(axis=1)
    assert (np.ptp(np.where(marked, others, others[:, [3]]), axis=1) <= 7).all()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=10), SEEDS)
def test_segments_total_exactly_and_stay_close(lengths, seed):
    rng = np.random.default_rng(seed)
    shares = np.concatenate([rng.dirichlet(np.ones(length)) for length in lengths])
    start = np.concatenate([[0], np.cumsum(lengths)])
    units = round_segments(shares, start)
    assert (np.add.reduceat(units, start[:-1]) == TOTAL).all()
    assert (units >= 0).all()
    assert np.abs(units / TOTAL - shares).max() < 1e-14
