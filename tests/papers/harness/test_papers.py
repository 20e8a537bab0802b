"""Quick runs of experiments: no claim fails without a known reason, and the key numbers hold."""

import numpy as np
import pytest

from tallyveil.papers.cormode import programs as constrained_programs
from tallyveil.papers.cormode.data_figures import group_counts
from tallyveil.papers.cormode.models import chow_liu, mutual_information
from tallyveil.papers.gupte.experiments import EXACT_1A, _lemma_5
from tallyveil.papers.harness.experiment import Context
from tallyveil.papers.harness.paper_terms import fair_diagonal
from tallyveil.papers.harness.registry import experiments
from tallyveil.papers.kohli import split as preserve_split

BY_ID = {experiment.id: experiment for experiment in experiments()}
LONG = {  # more than a second or two each; `make test-slow` runs them
    "000-figure-5", "000-section-8", "001-figure-1", "001-figure-2", "001-figure-3",
    "001-figure-4", "001-figure-6", "001-figure-8", "002-figure-5", "002-figure-6",
    "002-figure-7", "002-figure-8", "002-table-3",
}  # fmt: skip


def checked(name):
    found = BY_ID[name].run(Context(quick=True))
    assert found.verdict != "unexplained", found.verdict_line
    assert found.findings
    assert all(table.rows for table in found.tables.values())
    return {finding.claim: finding for finding in found.findings}


@pytest.mark.parametrize("name", sorted(set(BY_ID) - LONG))
def test_experiment_holds(name):
    checked(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_experiment_holds(name):
    checked(name)


def test_figure_1_of_000_cannot_be_had_at_the_stated_privacy():
    """Errata 000.17: at a = 0.62 the masses are at most .112, .29 and .62."""
    findings = checked("000-figure-1")
    assert findings["L1, n = 7: Pr(2 or 5) at least"].agrees is False
    assert findings["corrected, L1: at most"].agrees is True


def test_figure_7_of_000_belongs_to_another_a():
    """Errata 000.16: 0.224 and 0.238 are for a = 10/11, not 0.9."""
    findings = checked("000-figure-7")
    assert findings["EM tells the truth, a = 0.9"].agrees is False
    assert findings["EM tells the truth, a = 10/11"].agrees is True


def test_the_mass_bound_is_a_bound():
    bound = constrained_programs.largest_least_mass(5, ("beyond", 1), (1, 4), 0.62)
    assert bound == pytest.approx(0.62, abs=1e-4)


def test_stage_one_of_ours_beats_cyclic_laplace():
    findings = checked("002-figure-3")
    better = [f for f in findings.values() if f.ours]
    assert better
    assert all(f.agrees for f in better)


def test_the_rule_of_thumb_follows_from_the_printed_table():
    points = [(e, f) for e, row in preserve_split.TABLE_3.items() for f in row]
    assert preserve_split.fit_rule(points) == pytest.approx((0.639, 0.106, 2.87), rel=5e-3)


def test_the_six_tables_have_their_sizes():
    tables = preserve_split.six_tables(1)
    assert [len(t) for t in tables.values()] == [3000, 10_000, 10_000, 20_000, 10_000, 10_000]
    assert [int(t.max()) <= top for t, top in zip(tables.values(), (29, 69, 69, 39, 79, 79),
            strict=True)] == [True] * 6  # fmt: skip
    left, right = tables["left-skewed"].mean(), tables["right-skewed"].mean()
    assert left > 34.5 > right
    # 20,000 draws with share 0.7 or 0.3 of 39: means 27.3 and 11.7, sd 0.03 each
    assert tables["bimodal"][:10_000].mean() == pytest.approx(27.3, abs=0.2)
    assert tables["bimodal"][10_000:].mean() == pytest.approx(11.7, abs=0.2)


def test_groups_and_trees():
    assert group_counts(np.array([1, 0, 1, 1, 1]), 2).tolist() == [1, 2]
    assert mutual_information(np.full((2, 2), 1e6)) == pytest.approx(0, abs=1e-9)
    tree = chow_liu({("a", "b"): 1.0, ("b", "c"): 2.0, ("a", "c"): 3.0})
    assert tree == [("a", "c"), ("b", "c")]


def test_fair_diagonal_at_both_parities():
    assert fair_diagonal(4, 10 / 11) == pytest.approx(121 / 541)  # 000, section 6.3
    assert fair_diagonal(5, 2 / 3) == pytest.approx(27 / 95)


def test_lemma_5_can_fail():
    assert _lemma_5(EXACT_1A, 0.25)
    assert not _lemma_5(np.full((3, 3), 1 / 3), 0.25)
