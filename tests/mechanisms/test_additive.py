import math
from decimal import Decimal, getcontext

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.additive import (
    CauchyNoise,
    LaplaceNoise,
    StaircaseNoise,
    discrete_gaussian_probabilities,
)

getcontext().prec = 60


def exp(x) -> Decimal:
    return Decimal(x).exp()


def laplace_cdf(x, scale=Decimal(2)):
    return exp(x / scale) / 2 if x < 0 else 1 - exp(-x / scale) / 2


INTERVALS = [(-1, 2), (0, 1), (-3, 0), (700, 701), (-1382, -1381.5), (1300, 1300.25), (-40, 1e-3)]


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_laplace_mass_keeps_twelve_digits_in_the_tails(low, high):
    wanted = laplace_cdf(Decimal(high)) - laplace_cdf(Decimal(low))
    if Decimal(low) > 0:  # both from above, where the CDF itself has no digits left
        wanted = (exp(-Decimal(low) / 2) - exp(-Decimal(high) / 2)) / 2
    found = LaplaceNoise(2.0).mass(np.array([float(low)]), np.array([float(high)]))[0]
    assert found == pytest.approx(float(wanted), rel=1e-12, abs=0)


def staircase_tail(x, step, epsilon, gamma):
    """Mass above x >= 0, by summing the printed steps exactly (Croft et al., equations 20, 21)."""
    x, step, gamma, fall = Decimal(x), Decimal(step), Decimal(gamma), exp(-Decimal(epsilon))
    y = (1 - fall) / (2 * step * (gamma + fall * (1 - gamma)))
    total, k = Decimal(0), int(x / step)
    for at in range(k, k + 400):
        for start, stop, height in (
            (at, at + gamma, fall**at),
            (at + gamma, at + 1, fall ** (at + 1)),
        ):
            width = max(Decimal(0), stop * step - max(x, start * step))
            total += y * height * width
    return total


@pytest.mark.parametrize("x", [0, 0.3, 1.0, 2.9, 3.0, 7.7, 150.1])
@pytest.mark.parametrize(("epsilon", "gamma"), [(0.5, 0.4), (3.0, 0.18), (4.0, 0.5)])
def test_staircase_tail_is_the_printed_law(x, epsilon, gamma):
    noise = StaircaseNoise(3.0, epsilon, gamma)
    found = noise.mass(np.array([x]), np.array([np.inf]))[0]
    assert found == pytest.approx(float(staircase_tail(x, 3, epsilon, gamma)), rel=1e-11, abs=0)
    mirrored = noise.mass(np.array([-np.inf]), np.array([-x]))[0]
    assert mirrored == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize(("low", "high"), [(-1, 2), (1e6, 1e6 + 1), (-5, -4), (3, np.inf)])
def test_cauchy_mass(low, high):
    noise = CauchyNoise(1.5)
    steps = np.linspace(low, 4000 if high == np.inf else high, 400_001)
    middle = (steps[1:] + steps[:-1]) / 2
    integral = (1.5 / (math.pi * (1.5**2 + middle**2)) * np.diff(steps)).sum()
    if high == np.inf:
        integral += 1.5 / (math.pi * 4000)
    assert noise.mass(np.array([low]), np.array([high]))[0] == pytest.approx(integral, rel=1e-6)


def test_discrete_gaussian_probabilities():
    probabilities, tails = discrete_gaussian_probabilities(1.3, 40)
    k = range(-60, 61)
    total = sum(exp(-Decimal(i * i) / (2 * Decimal("1.3") ** 2)) for i in k)
    for at in (0, 1, 5, 40):
        wanted = exp(-Decimal(at * at) / (2 * Decimal("1.3") ** 2)) / total
        assert probabilities[at] == pytest.approx(float(wanted), rel=1e-12, abs=0)
    assert tails[0] + tails[1] == pytest.approx(1, rel=1e-14)
    assert tails[3] == pytest.approx(probabilities[3:].sum(), rel=1e-12)


@pytest.mark.parametrize("boundary", ["snap", "normalize"])
@pytest.mark.parametrize("query", [tv.Query.count(12), tv.Query.maximum(0, 4)], ids=repr)
def test_discrete_gaussian_uses_its_whole_delta(query, boundary):
    m = tv.discrete_gaussian(query, 0.8, 1e-4, boundary)
    delta = m.privacy_profile([0.8])[0]
    assert delta <= 1e-4
    if boundary == "normalize":  # calibrated on this very matrix
        assert delta > 0.999e-4
        assert m.realised_epsilon() > 0.8


def test_exponential_takes_any_quality_and_guards_its_sensitivity():
    q = tv.Query.maximum(0, 3)
    m = tv.exponential(q, 1.0, lambda t, r: -((t - r) ** 2))
    assert m.realised_epsilon() <= 1.0
    assert tv.exponential(q, 1.0, sensitivity=6.0).realised_epsilon() < 1.0
    with pytest.raises(tv.ArgumentError, match="finite number of at least 3, the change"):
        tv.exponential(q, 1.0, sensitivity=2.0)
    constant = tv.exponential(q, 1.0, lambda t, r: 1.0)
    assert constant.isclose(tv.uniform(q), 1e-15)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda q: tv.laplace(q, 1, "clip"), "boundary"),
        (lambda q: tv.laplace(q, 1, "normalize", truncate="all"), "truncate"),
        (lambda q: tv.staircase(q, 1, "calibrate"), "boundary"),
        (lambda q: tv.staircase(q, 1, gamma=1.5), "gamma"),
        (lambda q: tv.discrete_gaussian(q, 1, 0), "delta"),
        (lambda q: tv.discrete_gaussian(q, 1, 1e-6, "clip"), "boundary"),
    ],
)
def test_bad_arguments_are_named(make, argument):
    with pytest.raises(tv.ArgumentError, match=f"'{argument}' must"):
        make(tv.Query.count(4))


def test_noise_on_the_grid_needs_a_grid():
    q = tv.Query.custom([0, 1, 3], [0, 1, 3], "path")
    for make in (tv.geometric, lambda q, e: tv.discrete_gaussian(q, e, 1e-6)):
        with pytest.raises(tv.QueryError, match="evenly spaced"):
            make(q, 1.0)
    gap = tv.Query.custom([0, 1], [(0, 0.5), (0.8, 1.2)], "path")
    with pytest.raises(tv.QueryError, match="without gaps"):
        tv.laplace(gap, 1.0)
    assert tv.laplace(gap, 1.0, "normalize").realised_epsilon() <= 1.0
