"""Quick runs of every experiment: no claim fails without a known reason."""

import pytest

from reproduction.run import list_experiments

NAMES = {experiment.id for experiment in list_experiments()}
LONG = {  # more than a second or two each; `make test-slow` runs them
    "cormode-figure-5",
    "cormode-section-8",
    "croft-figure-1",
    "croft-figure-2",
    "croft-figure-3",
    "croft-figure-4",
    "croft-figure-6",
    "croft-figure-8",
    "kohli-figure-5",
    "kohli-figure-6",
    "kohli-figure-7",
    "kohli-figure-8",
    "kohli-section-6",
    "kohli-table-3",
}


def test_the_long_ones_exist():
    assert LONG < NAMES


@pytest.mark.parametrize("name", sorted(NAMES - LONG))
def test_experiment_holds(name, run_quickly):
    run_quickly(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_experiment_holds(name, run_quickly):
    run_quickly(name)
