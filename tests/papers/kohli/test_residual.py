"""The residual of Algorithm 1: rounding may lift a small block, never move a large one."""

import numpy as np
import pytest

from tallyveil.papers.kohli.greedy import Residual


def test_taking_a_scale_uses_up_one_bound_exactly():
    rest = Residual.of([1.0, 1.0, 1.0], 0.5)
    taken, full = rest.take(np.array([1, -1]))
    assert not full
    assert int(rest.free.sum()) <= 1
    np.testing.assert_allclose(np.exp(rest.log) + taken, 1, rtol=1e-14)
    for i in np.flatnonzero(rest.tight):
        assert np.diff(rest.log)[i] == pytest.approx(0.5 * rest.tight[i], rel=1e-15)


def test_the_cap_is_met_when_no_bound_is():
    rest = Residual.of(np.ones(4), 0.5)
    weights = np.log([0.1, 0.2, 0.3, 0.4])
    taken, full = rest.take(np.array([1, 1, -1]), float(np.log(1e-3)), weights)
    assert full
    assert np.exp(weights) @ taken == pytest.approx(1e-3, rel=1e-12)
    assert rest.free.all()


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_smaller_block_follows_the_larger(mirrored):
    # a large row beside one that cancellation left 30 orders of magnitude too small
    values = [1e-30, 1.0] if mirrored else [1.0, 1e-30]
    rest = Residual.of(values, 0.5)
    large, small = (1, 0) if mirrored else (0, 1)
    assert rest.log[large] == 0.0
    assert rest.log[small] == pytest.approx(-0.5)
    assert rest.tight[0] == (1 if mirrored else -1)


def test_a_lifted_block_lifts_the_next_one():
    rest = Residual.of([1.0, 1e-30, 1e-40], 0.5)
    np.testing.assert_allclose(rest.log, [0.0, -0.5, -1.0])
    assert rest.tight.tolist() == [-1, -1]
