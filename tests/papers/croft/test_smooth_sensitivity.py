"""Smooth sensitivity by enumeration, and the Cauchy noise scaled to it."""

import itertools
import math

import numpy as np
import pytest

import tallyveil as tv


def brute(query, database, beta):
    """S(D) = max over D' of e^(-beta d(D, D')) * local sensitivity of D', over all databases."""
    answer = {"maximum": max, "minimum": min, "median": lambda d: sorted(d)[len(d) // 2]}[
        query.kind
    ]
    values = query.inputs.tolist()
    best = 0.0
    for other in itertools.product(values, repeat=len(database)):
        local = max(
            abs(answer(other) - answer((*other[:at], v, *other[at + 1 :])))
            for at in range(len(other))
            for v in values
        )
        distance = sum(a != b for a, b in zip(database, other, strict=True))
        best = max(best, math.exp(-beta * distance) * local)
    return best


@pytest.mark.parametrize("make", [tv.Query.maximum, tv.Query.minimum, tv.Query.median])
@pytest.mark.parametrize("database", [(0, 1, 4), (2, 2, 2), (4, 4, 4), (0, 0, 3), (1,)])
@pytest.mark.parametrize("beta", [0.05, 0.4, 2.0])
def test_smooth_sensitivity_by_enumeration(make, database, beta):
    q = make(lower=0, upper=4)
    wanted = brute(q, database, beta)
    assert tv.papers.smooth_sensitivity(q, database, beta) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(("beta", "share"), [(0.5, 0.53), (None, 1.0)])
def test_cauchy_noise_is_private_over_all_databases(beta, share):
    q, epsilon = tv.Query.maximum(0, 3), 1.0
    released = {
        d: tv.papers.cauchy(q, epsilon, d, beta=beta) for d in itertools.product(range(4), repeat=3)
    }
    worst = max(
        float(np.log(released[d] / released[(*d[:at], v, *d[at + 1 :])]).max())
        for d in released
        for at in range(3)
        for v in range(4)
    )
    assert worst <= epsilon * share  # errata, Croft 9: the scale 8 S/epsilon is loose
    assert worst > epsilon * share * 0.6


def test_a_beta_that_breaks_the_promise_is_refused():
    with pytest.raises(tv.ArgumentError, match=r"'beta' must be at most 0\.875"):
        tv.papers.cauchy(tv.Query.maximum(0, 3), 1.0, [1, 2], beta=0.9)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: tv.papers.smooth_sensitivity(tv.Query.count(4), [1], 0.1), "query"),
        (lambda: tv.papers.smooth_sensitivity(tv.Query.maximum(0, 4), [1], 0), "beta"),
        (lambda: tv.papers.smooth_sensitivity(tv.Query.maximum(0, 4), [], 0.1), "database"),
        (lambda: tv.papers.smooth_sensitivity(tv.Query.maximum(0, 4), [9], 0.1), "database"),
        (lambda: tv.papers.smooth_sensitivity(tv.Query.median(0, 4), [1, 2], 0.1), "database"),
    ],
)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(tv.ArgumentError, match=f"'{argument}' must"):
        call()


def test_the_refusal_of_a_database_does_not_quote_it():
    with pytest.raises(tv.ArgumentError) as refused:
        tv.papers.smooth_sensitivity(tv.Query.maximum(0, 4), [777], 0.1)
    assert "777" not in str(refused.value)
