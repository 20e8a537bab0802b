"""Cells of counts: they cover the range, grow slowly, and know where draws fall."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.estimate.draws import MOST_CELLS, Cells, choose_cells, growing_thresholds


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 10**9))
def test_thresholds_rise_and_are_few(ceiling):
    thresholds = growing_thresholds(ceiling)
    assert thresholds[0] == 0
    assert (np.diff(thresholds) >= 1).all()
    assert thresholds[-1] < ceiling
    assert len(thresholds) <= MOST_CELLS - 1
    width = np.diff(np.append(thresholds, ceiling))
    assert (width <= 1 + 0.1 * np.append(thresholds[1:], ceiling)).all()


def test_single_counts_come_first():
    assert growing_thresholds(10**9)[:64].tolist() == list(range(64))
    assert growing_thresholds(255).tolist() == list(range(255))


def test_draws_of_single_counts_follow_the_geometric_matrix():
    cells = Cells.ending_at(np.arange(9))
    expected = np.cumsum(tv.geometric(tv.Query.count(8), "0.7").matrix, axis=1)[:, :-1]
    np.testing.assert_allclose(cells.draw_cumulative(0.7), expected, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 5.0])
def test_draws_of_a_cell_are_the_mean_over_its_counts(epsilon):
    cells = Cells.ending_at(np.array([0, 1, 4, 11, 30]))
    fine = Cells.ending_at(np.arange(31)).draw_cumulative(epsilon)
    for cell, (low, high) in enumerate(zip(cells.low, cells.high, strict=True)):
        mean = fine[low : high + 1].mean(axis=0)[cells.high[:-1]]
        np.testing.assert_allclose(cells.draw_cumulative(epsilon)[cell], mean, atol=1e-12)


def test_values_outside_count_to_the_nearest_cell():
    cells = Cells.ending_at(np.array([0, 1, 4, 11]))
    assert cells.locate(np.array([-5, 0, 2, 4, 5, 11, 99])).tolist() == [0, 0, 2, 2, 3, 3, 3]
    assert Cells.ending_at(np.arange(3)).locate(np.array([-1, 1, 7])).tolist() == [0, 1, 2]


def test_cells_that_no_count_can_reach_are_left_out():
    assert choose_cells(None, 10**6, 40.2).high[-1] == 41
    thresholds = growing_thresholds(10**9)
    cells = choose_cells(thresholds, 10**9 + 1, 500.0)
    assert cells.high[-2] < 500 <= cells.high[-1]
    assert len(choose_cells(thresholds, 10**9 + 1, -3.0)) == 2
