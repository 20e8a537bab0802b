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


@pytest.mark.parametrize(
    ("name", "differs", "agrees"),
    [  # errata, Cormode 17 and 16
        ("cormode-figure-1", "L1, n = 7: Pr(2 or 5) at least", "corrected, L1: at most"),
        ("cormode-figure-7", "EM tells the truth, a = 0.9", "EM tells the truth, a = 10/11"),
    ],
)
def test_misprints_are_found(name, differs, agrees, run_quickly):
    findings = run_quickly(name)
    assert (findings[differs].agrees, findings[agrees].agrees) == (False, True)


def test_stage_one_of_ours_beats_cyclic_laplace(run_quickly):
    better = [finding for finding in run_quickly("kohli-figure-3").values() if finding.ours]
    assert better
    assert all(finding.agrees for finding in better)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_experiment_holds(name, run_quickly):
    run_quickly(name)
