"""Experiments of Cormode et al. (2018): misprints are found, and the parts can fail."""

import numpy as np
import pytest

from reproduction.cormode_groups import count_by_group
from reproduction.cormode_optima import bound_least_mass, build_compared, fair_diagonal


def test_figure_1_is_impossible_at_the_stated_privacy(run_quickly):
    """Errata, Cormode 17: at a = 0.62 the masses are at most .112, .29 and .62."""
    findings = run_quickly("cormode-figure-1")
    assert findings["L1, n = 7: Pr(2 or 5) at least"].agrees is False
    assert findings["corrected, L1: at most"].agrees is True


def test_figure_7_belongs_to_another_alpha(run_quickly):
    """Errata, Cormode 16: 0.224 and 0.238 are for a = 10/11, not 0.9."""
    findings = run_quickly("cormode-figure-7")
    assert findings["EM tells the truth, a = 0.9"].agrees is False
    assert findings["EM tells the truth, a = 10/11"].agrees is True


def test_the_mass_bound_is_a_bound():
    assert bound_least_mass(5, ("beyond", 1), (1, 4), 0.62) == pytest.approx(0.62, abs=1e-4)


def test_an_incomplete_group_is_left_out():
    assert count_by_group(np.array([1, 0, 1, 1, 1]), 2).tolist() == [1, 2]


@pytest.mark.parametrize(("n", "alpha", "truth"), [(4, 10 / 11, 121 / 541), (5, 2 / 3, 27 / 95)])
def test_fair_diagonal_at_both_parities(n, alpha, truth):
    assert fair_diagonal(n, alpha) == pytest.approx(truth)  # section 6.3
    assert build_compared(n, alpha)["EM"].matrix[0, 0] == pytest.approx(truth)
