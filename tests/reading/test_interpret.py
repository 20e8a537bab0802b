import numpy as np
import pytest

import tallyveil as tv
from tallyveil.reading.interpret import describe_release


def test_columns_agree_with_single_values():
    m = tv.fair(tv.Query.count(10), 0.6)
    released = np.array([0, 10, 4, 4, 7])
    plain, believed = tv.interpret(m, released), tv.interpret(m, released, "uniform", 0.8)
    sets = tv.confidence_sets(m)
    assert (plain.kind, believed.kind) == ("confidence", "credible")
    for k, value in enumerate(released):
        belief = tv.posterior(m, value)
        assert (plain.low[k], plain.high[k]) == sets.of(value)
        assert (believed.low[k], believed.high[k]) == belief.interval(0.8)
        assert believed.standard_error[k] == pytest.approx(belief.standard_deviation)
        assert plain.standard_error[k] == pytest.approx(belief.standard_deviation)


def test_a_reading_holds_every_number_it_speaks_of():
    found = describe_release(tv.geometric(tv.Query.count(20), 1.0), 0, ("binomial", 0.2))
    assert found["unbiased_estimate"] < 0
    assert "may be negative or fractional" in found["words"]
    assert (
        f"from {found['confidence_set'][0]:g} to {found['confidence_set'][1]:g}" in found["words"]
    )
    assert found["least_coverage"] >= 0.95
    assert found["credible_probability"] >= 0.95
    silent = describe_release(tv.uniform(tv.Query.count(4), 1.0), 2)
    assert silent["unbiased_estimate"] is None
    assert "no unbiased estimate" in silent["words"]


def test_values_ruled_out_by_the_prior_are_refused():
    sure = tv.Mechanism(np.eye(3), tv.Query.count(2))
    with pytest.raises(tv.ArgumentError, match="possible under the prior"):
        tv.interpret(sure, [0, 2], prior=[1, 1, 0])
    assert tv.interpret(sure, [0, 1], prior=[1, 1, 0]).low.tolist() == [0, 1]
