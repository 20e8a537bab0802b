import numpy as np
import pytest

import tallyveil as tv
from tallyveil.loss import loss_table
from tallyveil.reading import minimax
from tallyveil.reading.minimax import minimax_remap


def gap(saddle):
    return (saddle.loss - saddle.lower_bound) / saddle.loss


@pytest.mark.parametrize("loss", ["absolute", "squared", "zero_one", ("power", 0.5)])
@pytest.mark.parametrize("low", [0, 7])
def test_growing_agrees_with_the_whole_program(monkeypatch, loss, low):
    """Two ways to the same value: a vertex of the whole program, and column generation."""
    q = tv.Query.count(24)
    matrix, losses = tv.geometric(q, 0.3).matrix[low:], loss_table(q, loss)[low:]
    vertex = minimax_remap(matrix, losses)
    monkeypatch.setattr(minimax, "SMALL", 0)
    grown = minimax_remap(matrix, losses)
    assert grown.loss == pytest.approx(vertex.loss, rel=1e-7)
    assert gap(grown) <= 2e-8
    assert gap(vertex) <= 1e-8


@pytest.mark.parametrize(("epsilon", "low"), [("0.02", 0), ("1", 3)])
def test_larger_ranges_close_the_gap(epsilon, low):
    q = tv.Query.count(150)
    saddle = minimax_remap(tv.geometric(q, epsilon).matrix[low:], loss_table(q, "absolute")[low:])
    assert gap(saddle) <= 2e-8


def test_random_matrices_and_losses(monkeypatch):
    rng = np.random.default_rng(5)
    for _ in range(10):
        k, m, g = rng.integers(2, 12, size=3)
        matrix, losses = rng.dirichlet(np.ones(m), size=k), rng.normal(size=(k, g))
        monkeypatch.setattr(minimax, "SMALL", 40_000)
        vertex = minimax_remap(matrix, losses)
        monkeypatch.setattr(minimax, "SMALL", 0)
        grown = minimax_remap(matrix, losses)
        scale = np.ptp(losses)
        assert grown.loss == pytest.approx(vertex.loss, abs=1e-7 * scale)
        assert vertex.loss - vertex.lower_bound <= 1e-7 * scale


def test_degenerate_games():
    matrix = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    saddle = minimax_remap(matrix, 1.0 - np.eye(2))
    assert saddle.remap.sum(axis=1).tolist() == pytest.approx([1, 1, 1])
    q = tv.Query.count(5)
    saddle = minimax_remap(tv.geometric(q, 0.5).matrix[2:3], loss_table(q, "absolute")[2:3])
    assert saddle.loss == 0
    assert (saddle.remap[:, 2] == 1).all()


@pytest.mark.parametrize("size", [24, 25])
@pytest.mark.parametrize("loss", ["absolute", "squared", "zero_one"])
def test_a_known_interval_leaves_the_game_of_that_interval(size, loss):
    """Outputs beyond it say the same, guesses beyond it are never better."""
    q = tv.Query.count(40)
    known = slice(9, 9 + size)
    matrix, losses = tv.geometric(q, 0.3).matrix[known], loss_table(q, loss)[known]
    left = minimax._Reduction.of(matrix, losses)
    assert left.game.matrix.shape == left.game.losses.shape == (size, size)
    assert left.game.is_mirrored
    smaller = tv.Query.count(size - 1)
    alone = minimax_remap(tv.geometric(smaller, 0.3).matrix, loss_table(smaller, loss))
    whole = minimax_remap(matrix, losses)
    assert whole.loss == pytest.approx(alone.loss, rel=1e-7)
    assert gap(whole) <= 2e-8
    assert whole.remap.shape == (41, 41)
    assert np.allclose(whole.remap.sum(axis=1), 1)


@pytest.mark.slow
def test_1001_answers_close_the_gap():
    q = tv.Query.count(1000)
    saddle = minimax_remap(tv.geometric(q, "0.1").matrix, loss_table(q, "absolute"))
    assert gap(saddle) <= 2e-8


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "2"])
def test_known_answers_with_holes_close_the_gap(epsilon):
    q = tv.Query.count(180)
    known = np.delete(np.arange(181), np.arange(50, 60))
    saddle = minimax_remap(tv.geometric(q, epsilon).matrix[known], loss_table(q, "absolute")[known])
    assert gap(saddle) <= 2e-8
