from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv

MECHANISMS = {
    "geometric": lambda: tv.geometric(tv.Query.count(20), 0.7),
    "fair": lambda: tv.fair(tv.Query.count(12), 0.3),
    "laplace": lambda: tv.laplace(tv.Query.maximum(0, 6, categories=2, extend=3), 1.0),
    "uniform": lambda: tv.uniform(tv.Query.count(5), 1.0),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_bayes_rule_in_fractions(name):
    m = MECHANISMS[name]()
    prior = np.arange(1.0, len(m.matrix) + 1)
    at = len(m.query.outputs) // 2
    found = tv.posterior(m, m.query.outputs[at], prior).distribution
    joint = [Fraction(p) * Fraction(x) for p, x in zip(prior, m.matrix[:, at], strict=True)]
    assert found == pytest.approx([float(j / sum(joint)) for j in joint], abs=1e-14)


def test_summaries_of_a_known_distribution():
    m = tv.Mechanism(
        [[0.6, 0.4], [0.3, 0.7], [0.1, 0.9]], tv.Query.custom([0, 1, 2], [0, 1], "path")
    )
    found = tv.posterior(m, released=0)
    assert found.distribution == pytest.approx([0.6, 0.3, 0.1])
    assert (found.mode, found.median) == (0, 0)
    assert found.mean == pytest.approx(0.5)
    assert found.standard_deviation == pytest.approx(np.sqrt(0.3 + 0.4 - 0.25))
    assert found.interval(0.9) == (0, 2)
    assert found.interval(0.5) == (0, 1)
    assert found.highest(0.85).tolist() == [0, 1]
    assert found.probability(1, 2) == pytest.approx(0.4)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(MECHANISMS)), st.floats(0.05, 0.999), st.integers(0, 100),
)  # fmt: skip
def test_credible_sets_never_hold_less_than_they_say(name, confidence, which):
    m = MECHANISMS[name]()
    found = tv.posterior(m, m.query.outputs[which % len(m.query.outputs)])
    exact = {a: Fraction(p) for a, p in zip(found.answers, found.distribution, strict=True)}
    total = sum(exact.values())
    low, high = found.interval(confidence)
    assert sum(p for a, p in exact.items() if low <= a <= high) >= Fraction(confidence) * total
    chosen = found.highest(confidence)
    assert sum(exact[a] for a in chosen) >= Fraction(confidence) * total
    fewest = sorted(exact.values(), reverse=True)[: len(chosen) - 1]
    assert sum(fewest) < (Fraction(confidence) + Fraction(1, 10**9)) * total


def test_values_that_cannot_have_been_released_are_refused():
    m = tv.geometric(tv.Query.count(5), 1.0)
    for value in (6, -1, 2.5, float("nan"), float("inf")):
        with pytest.raises(tv.ArgumentError, match="released"):
            tv.posterior(m, released=value)
    never = tv.Mechanism([[1.0, 0.0], [1.0, 0.0]], tv.Query.count(1))
    with pytest.raises(tv.ArgumentError, match="can report"):
        tv.posterior(never, released=1)
    sure = tv.Mechanism(np.eye(2), tv.Query.count(1))
    with pytest.raises(tv.ArgumentError, match="possible under the prior"):
        tv.posterior(sure, released=1, prior=[1, 0])
