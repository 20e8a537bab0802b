import math

import numpy as np
import pytest

import tallyveil as tv


@pytest.mark.parametrize("n", [1, 2, 9, 200])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_geometric_only_corrects_the_ends(n, epsilon):
    m = tv.geometric(tv.Query.count(n), epsilon)
    u = tv.unbiased(m)
    a = math.exp(-epsilon)
    assert u.values[0] == pytest.approx(-a / (1 - a))
    assert u.values[-1] == pytest.approx(n + a / (1 - a))
    assert u.values[1:-1].tolist() == list(range(1, n))
    scale = max(1.0, n, a / (1 - a) ** 2)
    assert np.abs(m.matrix @ u.values - np.arange(n + 1)).max() < 1e-11 * scale
    assert np.abs(m.matrix @ u.variance_estimates - u.variance).max() < 1e-9 * scale**2


@pytest.mark.parametrize(
    "m",
    [
        tv.fair(tv.Query.count(8), 0.8),
        tv.geometric(tv.Query.count(6, extend=3), 0.5),
        tv.geometric(tv.Query.mean(records=4, lower=0, upper=2), 0.5),
        tv.exponential(tv.Query.maximum(3, 9), 2.0),
    ],
    ids=str,
)
def test_expectation_and_variance_by_summing_the_matrix(m):
    u = tv.unbiased(m)
    true = m.query.inputs.astype(float)
    assert np.abs(m.matrix @ u.values - true).max() < 1e-6
    variance = m.matrix @ u.values**2 - true**2
    assert np.abs(u.variance - variance).max() < 1e-5 * variance.max()
    assert np.abs(m.matrix @ u.variance_estimates - variance).max() < 1e-4 * variance.max()


def test_more_outputs_than_answers_gives_the_least_mean_variance():
    m = tv.geometric(tv.Query.count(4, extend=3), 0.7)
    best = tv.unbiased(m)
    null = np.linalg.svd(m.matrix)[2][len(m.matrix) :]
    for direction in null:  # any other unbiased estimator differs by such a vector
        for push in (0.1, -0.1):
            other = best.values + push * direction
            mean = (m.matrix @ other**2 - (m.matrix @ other) ** 2).mean()
            assert mean >= best.variance.mean() - 1e-9


def test_where_there_is_none():
    with pytest.raises(tv.InfeasibleError, match="no unbiased estimator"):
        tv.unbiased(tv.uniform(tv.Query.count(5), 1.0))


def test_totals_and_means_of_many_groups():
    """400 groups; the estimate must lie within 6 standard errors (false alarms below 2e-9)."""
    q = tv.Query.count(10)
    c = tv.certify(tv.geometric(q, 0.5))
    true = np.arange(400) % 11
    released = c.release(true, tv.SeededNotPrivate(1))
    total = tv.estimate_total(c.mechanism, released)
    assert abs(total.value - true.sum()) < 6 * total.standard_error
    assert total.low < total.value < total.high
    exact = np.sqrt(tv.unbiased(c.mechanism).variance[true].sum())
    assert total.standard_error == pytest.approx(exact, rel=0.1)
    mean = tv.estimate_mean(c.mechanism, released)
    assert mean.value == pytest.approx(total.value / 400)
    assert mean.standard_error == pytest.approx(total.standard_error / 400)
    assert mean.groups == 400


def test_bad_input():
    m = tv.geometric(tv.Query.count(5), 1.0)
    with pytest.raises(tv.ArgumentError, match="at least one"):
        tv.estimate_total(m, [])
    with pytest.raises(tv.ArgumentError, match="can report"):
        tv.estimate_total(m, [6])
    with pytest.raises(tv.ArgumentError, match="every output possible"):
        tv.unbiased(tv.Mechanism(np.eye(3), tv.Query.count(2)), prior=[1, 0, 0])


def test_the_interval_of_a_total_covers():
    """2000 seeded repetitions of 50 groups: between 93 % and 97 % contain the truth."""
    q = tv.Query.count(6)
    c = tv.certify(tv.geometric(q, 1.0))
    true = np.arange(50) % 7
    u = tv.unbiased(c.mechanism)
    released = c.release(np.tile(true, 2000), tv.SeededNotPrivate(2)).reshape(2000, 50)
    values = u.values[released].sum(axis=1)
    errors = np.sqrt(u.variance_estimates[released].sum(axis=1))
    covered = (np.abs(values - true.sum()) <= 1.96 * errors).mean()
    assert 0.93 < covered < 0.97
