"""The transport optimum drawn without its matrix."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.certified.transport import RemapSampler
from tallyveil.errors import ArgumentError
from tallyveil.mechanisms.transport import monotone_remap
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate


class Fixed(Entropy):
    """Words given in advance, to follow every path through a remap."""

    private = False

    def __init__(self, words):
        super().__init__()
        self.given = np.asarray(words, dtype=np.uint64)

    def words(self, count):
        assert count == len(self.given)
        return self.given


def test_the_law_of_the_remap_is_its_integer_weights():
    # 62-bit words at both sides of every cumulative weight must fall on either side of it
    remap = monotone_remap([0.3, 0.7], [0.1, 0.15, 0.25, 0.2, 0.3])
    sampler = RemapSampler(remap)
    for row in (0, 1):
        entries = range(remap.start[row], remap.start[row + 1])
        edges = np.cumsum([0, *(int(sampler.weights[e]) for e in entries)])
        assert edges[-1] == 2**62
        for entry, low, high in zip(entries, edges[:-1], edges[1:], strict=True):
            words = np.array([low, high - 1], dtype=np.uint64) << np.uint64(2)
            drawn = sampler.draw(np.array([row, row]), Fixed(words))
            assert (drawn == remap.column[entry]).all()


def test_released_counts_follow_the_dense_mechanism():
    # chi-square against the exact law; the seed is fixed, so the test cannot flake
    z = np.array([0.4, 0.1, 0.0, 0.3, 0.2])
    built = tv.implicit_transport(4, 0.8, z)
    law = built.mechanism().matrix
    source = SeededNotPrivate(11)
    for true in range(5):
        drawn = built.release(np.full(40_000, true), source)
        observed, expected = np.bincount(drawn, minlength=5), 40_000 * law[true]
        assert observed[expected == 0].sum() == 0
        kept = expected > 0
        statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
        assert statistic < 27.9  # 1e-5 quantile for 4 degrees of freedom


def test_a_million_counts_need_two_million_numbers():
    n = 1_000_000
    z = 1.0 / (np.arange(n) + 1.0)
    built = tv.implicit_transport(n - 1, "0.5", z / z.sum())
    assert len(built.remap.share) <= 2 * n - 1
    assert built.certified.verify().ok
    released = built.release([0, 5, n - 1], SeededNotPrivate(1))
    assert ((released >= 0) & (released < n)).all()


def test_privacy_rests_on_the_certified_draw():
    built = tv.implicit_transport(3, "1/3", [0.25] * 4)
    assert str(built.exact_epsilon) == "1/3"
    assert built.certified.certificate["epsilon"] == "1/3"
    assert built.release(2).shape == (1,)


def test_refusals():
    with pytest.raises(ArgumentError, match="public range"):
        tv.implicit_transport(3, 1.0, [0.25] * 4).release([4])
    with pytest.raises(ArgumentError, match="'values' must lie"):
        RemapSampler(monotone_remap([1.0], [1.0])).draw(np.array([3]), Entropy())
    with pytest.raises(ArgumentError, match="'target' must be a distribution with 4 entries"):
        tv.implicit_transport(3, 1.0, [0.25] * 4, [1.0])
