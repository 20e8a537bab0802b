"""OpenDP treats a certified mechanism as one of its own, and its maps can be read back."""

import sys
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import GLOBAL_FEATURES, OpenDPException

import tallyveil as tv
from tallyveil.opendp import PrivacyClaim, as_measurement, read_privacy_map

dp.enable_features("contrib")
COUNT = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
GEOMETRIC = tv.certify(tv.geometric(tv.Query.count(9), "0.5"))
RANGE_FREE = tv.certify_geometric(tv.Query.count(9), "0.5")
NOISE = tv.certify_noise("0.5")


@pytest.mark.parametrize("certified", [GEOMETRIC, RANGE_FREE, NOISE], ids=repr)
def test_the_map_is_epsilon_times_the_distance(certified):
    measurement = as_measurement(certified)
    assert [measurement.map(d) for d in (0, 1, 2, 9)] == [0.0, 0.5, 1.0, 4.5]
    with pytest.raises(OpenDPException, match="at least 0"):
        measurement.map(-1)
    assert measurement.check(1, 0.5)
    assert not measurement.check(1, 0.4999)
    assert measurement.map(1_000) == (500.0 if certified is NOISE else 4.5)  # a range bounds it


def test_an_epsilon_that_is_no_double_is_rounded_up():
    measurement = as_measurement(tv.certify_noise("1/3"))
    for distance in range(1, 50):
        assert Fraction(measurement.map(distance)) >= Fraction(distance, 3)
        assert measurement.map(distance) == pytest.approx(distance / 3, rel=1e-15)


def test_neighbours_further_apart_make_fewer_steps():
    complete = as_measurement(tv.certify(tv.exponential(tv.Query.maximum(0, 5), "1.0")))
    assert [complete.map(d) for d in (0, 1, 2, 5, 50)] == [0.0, 1.0, 1.0, 1.0, 1.0]
    query = tv.Query.custom(range(7), range(7), tv.Neighbours.band(7, 2))
    band = as_measurement(tv.certify(tv.exponential(query, "1.0")))
    assert [band.map(d) for d in (1, 2, 3, 4, 6, 60)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def test_delta_grows_with_the_distance():
    certified = tv.certify(tv.canonical(tv.Query.count(9), "0.5", delta="0.01"))
    measurement = as_measurement(certified)
    assert str(measurement.output_measure) == "Approximate(MaxDivergence)"
    assert measurement.map(1) == (0.5, 0.01)
    epsilon, delta = measurement.map(2)
    assert epsilon == 1.0
    # the true profile of two steps, which the map must not fall short of
    matrix = certified.mechanism.matrix
    two = max(
        np.maximum(first - np.e * second, 0).sum()
        for low, high in zip(matrix[:-2], matrix[2:], strict=True)
        for first, second in ((low, high), (high, low))
    )
    assert two <= delta == pytest.approx(0.01 * (1 + np.exp(0.5)), rel=1e-12)
    assert measurement.map(9)[1] <= 1.0


def test_draws_have_the_certified_distribution():
    measurement = as_measurement(GEOMETRIC, vector=True)
    draws = np.bincount(measurement([4] * 40_000), minlength=10)
    expected = 40_000 * GEOMETRIC.mechanism.matrix[4]
    assert ((draws - expected) ** 2 / expected).sum() < 45  # chi-square, 9 degrees: p = 1e-6


def test_counts_outside_the_range_are_clamped():
    high = tv.certify_geometric(tv.Query.count(9), 50)
    assert [as_measurement(high)(count) for count in (-3, 0, 9, 2_000_000_000)] == [0, 0, 9, 9]
    assert as_measurement(high, vector=True)([-1, 5, 99]) == [0, 5, 9]
    assert as_measurement(high, vector=True)([]) == []


def test_it_chains_after_transformations_and_before_functions():
    chained = ROWS >> dp.t.then_count() >> as_measurement(tv.certify_noise(60))
    assert chained([1] * 7) == 7
    assert chained.map(2) == 120.0
    dp.enable_features("honest-but-curious")
    assert (chained >> (lambda count: count * 2))([1] * 7) == 14
    dp.disable_features("honest-but-curious")


def test_it_composes_with_measurements_of_opendp():
    ours, theirs = as_measurement(GEOMETRIC), dp.m.make_geometric(*COUNT, scale=2.0)
    together = dp.c.make_composition([ours, theirs])
    assert together.map(1) == pytest.approx(1.0, rel=1e-12)
    assert len(together(4)) == 2
    queryable = dp.c.make_adaptive_composition(
        *COUNT, output_measure=dp.max_divergence(), d_in=1, d_mids=[0.5, 0.5]
    )(4)
    assert 0 <= queryable(ours) <= 9
    assert 0 <= queryable(as_measurement(RANGE_FREE)) <= 9
    with pytest.raises(OpenDPException):
        queryable(ours)
    concentrated = dp.c.make_pureDP_to_zCDP(ours)
    assert concentrated.map(1) == pytest.approx(0.5**2 / 2, rel=1e-9)


def test_nobody_else_is_allowed_more_than_before():
    before = set(GLOBAL_FEATURES)
    as_measurement(NOISE)
    assert before == GLOBAL_FEATURES
    assert "honest-but-curious" not in GLOBAL_FEATURES


@pytest.mark.parametrize(
    "query",
    [
        tv.Query.mean(4, 0, 2),
        tv.Query.custom([0, 2, 5], [0, 2, 5], "path"),
        tv.Query.custom([0, 1, 2], [0, 1, 2], [(0, 2), (1, 2)]),
    ],
    ids=repr,
)
def test_other_queries_are_refused(query):
    with pytest.raises(tv.ArgumentError, match="consecutive whole numbers"):
        as_measurement(tv.certify(tv.exponential(query, 1.0)))


@pytest.mark.parametrize("wrong", [None, 3, tv.geometric(tv.Query.count(3), 1.0)])
def test_what_is_not_certified_is_refused(wrong):
    with pytest.raises(tv.ArgumentError, match="'certified' must be a certified mechanism"):
        as_measurement(wrong)


def test_claims_of_every_measure_are_read():
    laplace = dp.m.make_laplace(*COUNT, scale=2.0)
    gaussian = dp.m.make_gaussian(*COUNT, scale=2.0)
    assert read_privacy_map(laplace) == PrivacyClaim(Fraction(1, 2), Fraction(0))
    assert read_privacy_map(dp.c.make_approximate(laplace), 2).epsilon == 1
    for given in (gaussian, dp.c.make_zCDP_to_approxDP(gaussian)):
        claim = read_privacy_map(given, delta="1e-6")
        assert claim.delta == Fraction(1e-6)
        assert 2.0 < claim.epsilon < 3.0
        with pytest.raises(tv.ArgumentError, match="'delta' must be given"):
            read_privacy_map(given)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta=1e-6)
    assert read_privacy_map(fixed).epsilon == claim.epsilon
    assert read_privacy_map(as_measurement(GEOMETRIC), 3).epsilon == Fraction(3, 2)


@pytest.mark.parametrize("wrong", [None, "laplace", 0.5])
def test_only_measurements_have_maps(wrong):
    with pytest.raises(tv.ArgumentError, match="'measurement' must be an OpenDP measurement"):
        read_privacy_map(wrong)


def test_the_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(tv.MissingExtraError, match=r"opendp.*\[opendp\]"):
        as_measurement(NOISE)
