"""dp-accounting composes certified mechanisms as our own proof does, and never below the truth."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as google

import tallyveil as tv
from tallyveil.dp_accounting import as_privacy_loss_distribution

DELTA = 1e-6
COUNT = tv.Query.count(12)
EPSILONS = np.linspace(0, 1.2, 25)


def total(distributions):
    composed = distributions[0]
    for further in distributions[1:]:
        composed = composed.compose(further)
    return composed.get_epsilon_for_delta(DELTA)


@pytest.mark.parametrize("epsilon", ["0.05", "0.1", "0.25", "1"])
@pytest.mark.parametrize("times", [1, 7, 60])
def test_geometric_mechanisms_compose_as_our_own_proof_says(epsilon, times):
    proved = float(tv.compose([Fraction(epsilon)] * times).epsilon(Fraction(1, 10**6)))
    for certified in (
        tv.certify_noise(epsilon),
        tv.certify_geometric(COUNT, epsilon),
        tv.certify(tv.geometric(COUNT, epsilon)),
    ):
        pld = as_privacy_loss_distribution(certified).self_compose(times)
        assert pld.get_epsilon_for_delta(DELTA) == pytest.approx(proved, rel=1e-7)


def test_a_mixed_ledger_and_an_epsilon_off_the_grid():
    epsilons = ["0.1", "0.25", "0.25", "0.5"]
    plds = [as_privacy_loss_distribution(tv.certify_noise(epsilon)) for epsilon in epsilons]
    proved = float(tv.compose([Fraction(e) for e in epsilons]).epsilon(Fraction(1, 10**6)))
    assert total(plds) == pytest.approx(proved, rel=1e-7)
    pld = as_privacy_loss_distribution(tv.certify_noise("1/3"), interval=0.01)
    assert pld.get_epsilon_for_delta(0) == pytest.approx(0.34)


def test_it_is_the_distribution_that_google_has_for_this_noise():
    ours = as_privacy_loss_distribution(tv.certify_noise("0.3"))
    theirs = google.from_discrete_laplace_mechanism(0.3, value_discretization_interval=1e-4)
    ours, theirs = (np.array(pld.get_delta_for_epsilon(list(EPSILONS))) for pld in (ours, theirs))
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [tv.geometric(COUNT, 1.0), tv.fair(COUNT, 0.7), tv.laplace(COUNT, 0.9),
     tv.exponential(tv.Query.maximum(0, 6), 1.0), tv.canonical(COUNT, 0.8, delta=0.02),
     tv.discrete_gaussian(COUNT, 1.0)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("interval", [1e-4, 0.03])
def test_the_curve_is_that_of_the_weights_and_never_below_it(mechanism, interval):
    certified = tv.certify(mechanism)
    pld = as_privacy_loss_distribution(certified, interval=interval)
    curve = np.array(pld.get_delta_for_epsilon(list(EPSILONS)))
    truth = certified.mechanism.privacy_profile(EPSILONS)
    assert (curve >= truth - 1e-15).all()
    assert (curve <= truth + interval).all()
    assert np.isfinite(pld.get_epsilon_for_delta(certified.delta + 1e-12))


def test_a_mechanism_better_than_randomized_response_composes_better():
    certified = tv.certify(tv.fair(COUNT, "0.1"))
    exact = as_privacy_loss_distribution(certified).self_compose(50).get_epsilon_for_delta(DELTA)
    bound = tv.compose([Fraction("0.1")] * 50).epsilon(Fraction(1, 10**6))
    assert exact < 0.995 * float(bound)


@pytest.mark.parametrize("wrong", [None, 1.0, tv.geometric(COUNT, 1.0)])
def test_what_is_not_certified_is_refused(wrong):
    with pytest.raises(tv.ArgumentError, match="'certified' must be a certified mechanism"):
        as_privacy_loss_distribution(wrong)


@pytest.mark.parametrize("wrong", [0, -1.0, 2.0, "fine", float("nan")])
def test_wrong_intervals_are_refused(wrong):
    with pytest.raises(tv.ArgumentError, match="'interval' must lie between"):
        as_privacy_loss_distribution(tv.certify_noise(1), interval=wrong)


def test_the_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.pld_pmf", None)
    with pytest.raises(tv.MissingExtraError, match=r"dp-accounting.*\[accounting\]"):
        as_privacy_loss_distribution(tv.certify_noise(1))
