"""Staircase noise on whole numbers: private for all moves together, and better than geometric."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.additive import count_moved_by, whole_staircase


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
@pytest.mark.parametrize("moves", [1, 2, 5])
def test_it_is_private_for_all_moves_and_no_more(moves, epsilon):
    made = whole_staircase(40, moves, epsilon)
    assert made.realised_epsilon() == pytest.approx(epsilon, rel=1e-9)
    certified = tv.certify(made)
    assert certified.verify().ok
    assert certified.query == count_moved_by(40, moves)
    assert np.allclose(made.matrix, made.matrix[::-1, ::-1], atol=1e-15)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_for_one_move_it_is_geometric(epsilon):
    plain = tv.geometric(tv.Query.count(30), epsilon)
    assert np.allclose(whole_staircase(30, 1, epsilon).matrix, plain.matrix, atol=1e-12)


@pytest.mark.parametrize(("moves", "epsilon", "most"), [(2, 2, 0.86), (10, 2, 0.86), (5, 4, 0.55)])
def test_it_errs_less_than_noise_for_every_single_move(moves, epsilon, most):
    """In the middle of a wide range, where nothing is clamped."""
    away = np.abs(np.arange(301) - 150)
    stairs = whole_staircase(300, moves, epsilon).matrix[150] @ away
    plain = tv.geometric(tv.Query.count(300), epsilon / moves).matrix[150] @ away
    assert stairs <= most * plain
