"""Randomized response by its probability of the truth."""

import math

import pytest

import tallyveil as tv


@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("truth", [0.6, 0.75, 0.999, 1 - 1e-9])
def test_the_truth_has_the_probability_asked_for(n, truth):
    m = tv.randomized_response(tv.Query.count(n), truth=truth)
    assert m.matrix.diagonal() == pytest.approx([truth] * (n + 1), abs=1e-12)
    assert m.epsilon == pytest.approx(math.log(n * truth / (1 - truth)), rel=1e-9)
    assert m.realised_epsilon() <= m.epsilon
    assert tv.randomized_response(tv.Query.count(n), m.exact_epsilon).isclose(m, 1e-9)


def test_barely_more_than_guessing_is_still_private():
    m = tv.randomized_response(tv.Query.count(3), truth=math.nextafter(0.25, 1))
    assert 0 < m.realised_epsilon() <= m.epsilon < 1e-11
    assert tv.certify(tv.randomized_response(tv.Query.count(3), truth=0.3)).verify()


@pytest.mark.parametrize("truth", [0.25, 0.1, 0, 1, 1.5, -1, math.nan, "0.5", True])
def test_guessing_certainty_and_nonsense_are_refused(truth):
    with pytest.raises(tv.ArgumentError, match="'truth' must lie between 1/4"):
        tv.randomized_response(tv.Query.count(3), truth=truth)


@pytest.mark.parametrize("given", [{}, {"epsilon": 1, "truth": 0.5}])
def test_either_epsilon_or_truth(given):
    with pytest.raises(tv.ArgumentError, match="'epsilon' must be given"):
        tv.randomized_response(tv.Query.count(3), **given)
