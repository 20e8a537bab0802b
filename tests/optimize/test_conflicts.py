"""A proved miss of an output distribution, against one worked out by hand."""

import pytest

import tallyveil as tv
from tallyveil.errors import InfeasibleError
from tallyveil.optimize.problem import DesignOptions, pose
from tallyveil.optimize.search import bound_miss, raise_conflict


def posed(**options):
    return pose(tv.Query.count(1), 1.0, DesignOptions(**options))


def test_the_least_miss_is_proved():
    """All true answers are 0 and half of them must be told: at most half can become 1."""
    problem = posed(prior=[1, 0], target=[0.1, 0.9], properties=["weakly_honest"])
    assert bound_miss(problem) == pytest.approx(0.8, abs=1e-6)
    with pytest.raises(InfeasibleError, match="output distributions are missed") as caught:
        raise_conflict(problem)
    assert set(caught.value.conflict) == {"weakly_honest", "target"}


def test_demands_that_can_be_met_are_no_conflict():
    problem = posed(fixed_point=[0.5, 0.5])
    assert bound_miss(problem) <= 1e-7
    raise_conflict(problem)  # returns
    assert bound_miss(posed()) == 0
