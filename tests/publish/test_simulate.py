"""What a simulation measures is what releases have."""

import numpy as np
import pytest

from tallyveil.plans.prepare import prepare_opened
from tallyveil.plans.prepared import Opened
from tallyveil.publish.preview import preview_table
from tallyveil.publish.simulate import invent_counts, invent_table, read_invented, simulate
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.request import check_options


def simulated(**words):
    options = ReleaseOptions(count="n", keep="all", **words)
    request = check_options(options)
    opened = Opened(request, invent_table(["n"], 400))
    return simulate(prepare_opened(opened, read=read_invented(request)))[0]


def test_errors_are_those_of_geometric_noise():
    """Without bounds the mean error of one count is 2a/(1-a^2), of a sum that of its noise."""
    found = simulated(epsilon=1, signed=True)
    a = np.exp(-1.0)
    wanted = 2 * a / (1 - a * a)
    assert found["runs"] >= 3
    spread = np.sqrt(2 * a / (1 - a) ** 2 - wanted**2) / np.sqrt(found["runs"] * 400)
    assert abs(found["error"]["mean"] - wanted) < 6 * spread
    assert sum(found["histogram"]["before"]) == 400
    assert sum(found["histogram"]["after"]) == pytest.approx(400, rel=2e-3)
    assert [part["name"] for part in found["sums"]] == ["total", "30 rows"]


def test_a_smaller_epsilon_errs_more():
    few, many = simulated(epsilon="1/10", upper=60), simulated(epsilon=2, upper=60)
    assert few["error"]["mean"] > 2 * many["error"]["mean"]


def test_invented_counts_are_the_same_every_time():
    assert np.array_equal(invent_counts(1500)[:1200], invent_counts(1200))
    assert np.array_equal(invent_counts(1500)[1200:], invent_counts(300))


def test_long_tables_are_tried_on_their_first_rows(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("n\n" + "3\n" * 50_001)
    options = ReleaseOptions(count="n", upper=5, epsilon=1)
    seen = preview_table(path, options)
    assert seen.simulated[0]["rows"] == 50_000
    assert seen.columns[0]["method"] == "preserve"
