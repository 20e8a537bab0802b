"""What a simulation measures is what releases have."""

from itertools import pairwise

import numpy as np
import pytest

from tallyveil.release.plan import Opened, plan_release
from tallyveil.release.preview import (
    InventedRows,
    invent_counts,
    invent_table,
    preview_table,
    simulate,
)
from tallyveil.release.request import check_options
from tests.asking import make_options


def simulated(**words):
    options = make_options(count="n", keep="all", **words)
    request = check_options(options)
    opened = Opened(request, invent_table(request, 400))
    return simulate(plan_release(opened, home=InventedRows(request)))[0]


def test_errors_are_those_of_geometric_noise():
    """Without bounds the mean error of one count is 2a/(1-a^2), of a sum that of its noise."""
    figures = simulated(epsilon=1, signed=True)
    a = np.exp(-1.0)
    expected = 2 * a / (1 - a * a)
    assert figures["runs"] >= 3
    spread = np.sqrt(2 * a / (1 - a) ** 2 - expected**2) / np.sqrt(figures["runs"] * 400)
    assert abs(figures["error"]["mean"] - expected) < 6 * spread
    assert sum(figures["histogram"]["before"]) == 400
    assert sum(figures["histogram"]["after"]) == pytest.approx(400, rel=2e-3)
    assert [part["name"] for part in figures["sums"]] == ["total", "30 rows"]


def test_a_smaller_epsilon_errs_more():
    few, many = simulated(epsilon="1/10", upper=60), simulated(epsilon=2, upper=60)
    assert few["error"]["mean"] > 2 * many["error"]["mean"]


def test_invented_counts_are_the_same_every_time():
    request = ask(["n", "m"])
    many = invent_counts(request, 1500)
    for name, counts in invent_counts(request, 1200).items():
        assert np.array_equal(many[name], np.concatenate([counts, counts[:300]]))


def ask(names, **words):
    words = {"keep": "all", "epsilon": 1, "upper": 100} | words
    return check_options(make_options(count=names, **words))


def test_invented_columns_go_together_and_are_no_copies():
    """Their correlation is that of cases in two years, or a little less; on real counties 0.93."""
    figures = invent_counts(ask(["first", "second", "third"]), 1200)
    related = np.corrcoef(np.log1p(list(figures.values())))
    for one, two in ((0, 1), (0, 2), (1, 2)):
        assert 0.6 < related[one, two] < 0.93
    means = [counts.mean() for counts in figures.values()]
    assert max(means) < 2 * min(means)


def test_invented_nested_columns_are_smaller_the_more_so_the_smaller_their_upper_bounds():
    names, chain = ["cases", "deaths", "hospitalised"], ("deaths", "hospitalised", "cases")
    quarters = (1 / 4, 1 / 4)
    for upper, shares in (([500, 10, 100], (0.1, 0.2)), (100, quarters), (None, quarters)):
        figures = invent_counts(ask(names, nested=chain, upper=upper), 1200)
        assert list(figures) == names
        for (small, large), share in zip(pairwise(chain), shares, strict=True):
            assert (figures[small] <= figures[large]).all()
            assert figures[small].sum() == pytest.approx(share * figures[large].sum(), rel=0.2)


def test_dry_runs_of_nested_columns_try_small_deaths():
    words = {"nested": "deaths,cases", "epsilon": 1, "upper": 40}
    seen = preview_table(None, make_options(count=["deaths", "cases"], keep="all", **words))
    deaths, cases = (column["histogram"]["before"] for column in seen.simulated)
    assert deaths[0] > 1.5 * cases[0]


def test_long_tables_are_tried_on_their_first_rows(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("n\n" + "3\n" * 50_001)
    options = make_options(count="n", upper=5, epsilon=1)
    seen = preview_table(path, options)
    assert seen.simulated[0]["rows"] == 50_000
    assert seen.columns[0]["method"] == "preserve"
