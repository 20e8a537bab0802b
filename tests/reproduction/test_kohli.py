"""Experiments of Kohli and Laskowski (2026): the rule of thumb, six tables, stage one."""

import pytest

from reproduction.kohli_split import TABLE_3, fit_rule, make_six_tables


def test_stage_one_of_ours_beats_cyclic_laplace(run_quickly):
    better = [finding for finding in run_quickly("kohli-figure-3").values() if finding.ours]
    assert better
    assert all(finding.agrees for finding in better)


def test_the_rule_of_thumb_follows_from_the_printed_table():
    points = [(epsilon, share) for epsilon, row in TABLE_3.items() for share in row]
    assert fit_rule(points) == pytest.approx((0.639, 0.106, 2.87), rel=5e-3)


def test_the_six_tables_have_their_sizes():
    tables = make_six_tables(1)
    assert [len(t) for t in tables.values()] == [3000, 10_000, 10_000, 20_000, 10_000, 10_000]
    largest = (29, 69, 69, 39, 79, 79)
    assert all(t.max() <= top for t, top in zip(tables.values(), largest, strict=True))
    left, right = tables["left-skewed"].mean(), tables["right-skewed"].mean()
    assert left > 34.5 > right
    # 20,000 draws with share 0.7 or 0.3 of 39: means 27.3 and 11.7, sd 0.03 each
    assert tables["bimodal"][:10_000].mean() == pytest.approx(27.3, abs=0.2)
    assert tables["bimodal"][10_000:].mean() == pytest.approx(11.7, abs=0.2)
