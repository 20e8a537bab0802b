import math
from fractions import Fraction

import pytest

import tallyveil as tv


def geometric_failure(n, d, epsilon):
    """Pr(|released - true| > d) for the worst truth, from the noise distribution by hand."""
    a = math.exp(-epsilon)
    sides = (n >= d + 1) + (n >= 2 * d + 2)
    return sides * a ** (d + 1) / (1 + a)


@pytest.mark.parametrize("n", [4, 9, 40, 200])
@pytest.mark.parametrize("d", [0, 1, 3])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_smallest_epsilon_for_the_geometric_mechanism(n, d, confidence):
    if geometric_failure(n, d, 1e-6) <= 1 - confidence:
        with pytest.raises(tv.ArgumentError, match="smaller distance"):
            tv.epsilon_for(tv.Query.count(n), d, confidence)
        return
    epsilon = tv.epsilon_for(tv.Query.count(n), within=d, confidence=confidence)
    assert geometric_failure(n, d, epsilon) <= 1 - confidence + 1e-12
    unit = 10.0 ** (math.ceil(math.log10(epsilon)) - 6)
    assert geometric_failure(n, d, epsilon - unit) > 1 - confidence
    assert tv.accuracy(tv.Query.count(n), epsilon, confidence) <= d


@pytest.mark.parametrize("mechanism", ["geometric", "fair", "exponential", "laplace", "staircase"])
def test_both_ways_agree(mechanism):
    q = tv.Query.count(20)
    epsilon = tv.epsilon_for(q, within=2, confidence=0.8, mechanism=mechanism)
    assert tv.accuracy(q, epsilon, 0.8, mechanism) == 2
    assert tv.accuracy(q, epsilon * 0.999, 0.8, mechanism) > 2
    assert tv.chance_within(q, epsilon, 2, mechanism) >= 0.8


def test_accuracy_by_summing_the_matrix():
    q = tv.Query.count(30)
    for epsilon in (0.1, 0.5, 2.0):
        m = tv.geometric(q, epsilon)
        reach = tv.accuracy(q, epsilon, 0.9)
        for i, row in enumerate(m.matrix):
            near = sum(Fraction(p) for j, p in enumerate(row) if abs(i - j) <= reach)
            assert near >= Fraction(9, 10) * sum(map(Fraction, row))
        assert (
            min(
                sum(p for j, p in enumerate(row) if abs(i - j) <= reach - 1)
                for i, row in enumerate(m.matrix)
            )
            < 0.9
        )


def test_bad_input():
    q = tv.Query.count(9)
    with pytest.raises(tv.ArgumentError, match="smaller distance"):
        tv.epsilon_for(q, within=9)
    with pytest.raises(tv.ArgumentError, match="at least 0"):
        tv.epsilon_for(q, within=-1)
    with pytest.raises(tv.ArgumentError, match="strictly between"):
        tv.epsilon_for(q, within=1, confidence=1)
    with pytest.raises(tv.ArgumentError, match="closed form"):
        tv.accuracy(q, 1.0, mechanism="magic")
    with pytest.raises(tv.InfeasibleError, match="Even epsilon 500"):
        tv.epsilon_for(q, within=1, confidence=0.9, mechanism="uniform")
