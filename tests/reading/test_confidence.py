from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv

CASES = [
    tv.geometric(tv.Query.count(20), 0.7), tv.geometric(tv.Query.count(1), 0.1),
    tv.fair(tv.Query.count(12), 0.3), tv.laplace(tv.Query.maximum(0, 6, extend=3), 1.0),
    tv.uniform(tv.Query.count(5), 1.0), tv.certify(tv.geometric(tv.Query.count(15), 2.0)).mechanism,
]  # fmt: skip


@pytest.mark.parametrize("m", CASES, ids=str)
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_coverage_summed_exactly_is_never_below_the_level(m, confidence):
    sets = tv.confidence_sets(m, confidence)
    for i, row in enumerate(m.matrix):
        exact = [Fraction(x) for x in row]
        covered = sum(
            (p for p, inside in zip(exact, sets.members[i], strict=True) if inside),
            start=Fraction(0),
        )
        assert covered >= Fraction(confidence) * sum(exact)
        assert sets.coverage[i] == pytest.approx(float(covered))
        truth = m.query.inputs[i]
        hull = sum(
            (
                p
                for p, low, high in zip(exact, sets.low, sets.high, strict=True)
                if low <= truth <= high
            ),
            start=Fraction(0),
        )
        assert hull >= covered
        assert sets.interval_coverage[i] == pytest.approx(float(hull))


@pytest.mark.parametrize("m", CASES, ids=str)
def test_no_set_is_empty_and_the_likeliest_truth_is_inside(m):
    sets = tv.confidence_sets(m, 0.5)
    assert sets.members.any(axis=0).all()
    assert sets.members[m.matrix.argmax(axis=0), np.arange(m.matrix.shape[1])].all()


def test_released_values_are_checked():
    with pytest.raises(tv.ArgumentError, match="can report"):
        tv.confidence_sets(CASES[0]).of(21)
