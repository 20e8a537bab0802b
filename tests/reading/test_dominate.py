import math

import numpy as np
import pytest

import tallyveil as tv


def test_every_private_mechanism_is_dominated_for_every_unimodal_loss(
    best_private, random_unimodal
):
    """The theorem of docs/consumers.md, on vertices of the polytope of private mechanisms."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        epsilon = round(float(rng.uniform(0.1, 2.0)), 3)
        _, vertex = best_private(math.exp(-epsilon), rng.normal(size=(n, n)), prior=np.ones(n))
        vertex = np.maximum(vertex, 0.0)
        m = tv.Mechanism(vertex / vertex.sum(axis=1, keepdims=True), tv.Query.count(n - 1), epsilon)
        T = tv.dominating_remap(m)
        assert T.min() >= 0
        assert np.abs(T.sum(axis=1) - 1).max() < 1e-12
        better = tv.geometric(m.query, epsilon).matrix @ T
        for _ in range(5):
            losses = random_unimodal(rng, n)
            gain = ((m.matrix - better) * losses).sum(axis=1)
            assert gain.min() >= -1e-9


def test_the_geometric_mechanism_dominates_itself_by_staying():
    m = tv.geometric(tv.Query.count(7), 0.5)
    assert np.abs(tv.dominating_remap(m) - np.eye(8)).max() < 1e-9


def test_what_is_not_private_enough_is_refused():
    m = tv.geometric(tv.Query.count(4), 2.0)
    with pytest.raises(tv.ArgumentError, match="private at epsilon 1"):
        tv.dominating_remap(m, epsilon=1.0)
    with pytest.raises(tv.ArgumentError, match="one apart"):
        tv.dominating_remap(tv.exponential(tv.Query.maximum(0, 4), 1.0))
    with pytest.raises(tv.ArgumentError, match="states none"):
        tv.dominating_remap(tv.Mechanism(np.eye(2), tv.Query.count(1)))


def test_a_path_stated_as_pairs_is_a_path():
    q = tv.Query.custom(range(4), range(4), [(0, 1), (1, 2), (2, 3)])
    stated, count = tv.fair(q, 1.0), tv.fair(tv.Query.count(3), 1.0)
    assert tv.dominating_remap(stated).tolist() == tv.dominating_remap(count).tolist()
    branched = tv.Query.custom(range(4), range(4), [(0, 1), (1, 2), (1, 3)])
    with pytest.raises(tv.ArgumentError, match="one apart"):
        tv.dominating_remap(tv.Mechanism(stated.matrix, branched, 1.0))
