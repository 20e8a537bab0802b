"""Cells of counts: they cover the range, grow slowly, and know where draws fall."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.estimate.draws import MOST_CELLS, Cells, growing_thresholds


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


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 5.0])
def test_draws_of_a_cell_are_the_mean_over_its_counts(epsilon):
    cells = Cells.ending_at(np.array([0, 1, 4, 11, 30]))
    fine = Cells.ending_at(np.arange(31)).draw_cumulative(epsilon)
    for cell, (low, high) in enumerate(zip(cells.low, cells.high, strict=True)):
        mean = fine[low : high + 1].mean(axis=0)[cells.high[:-1]]
        np.testing.assert_allclose(cells.draw_cumulative(epsilon)[cell], mean, atol=1e-12)
