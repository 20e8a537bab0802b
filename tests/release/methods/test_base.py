"""A signed column beside the counts: right on average, its variance exact, checked, and free."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.errors import UsageError
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize
from tests.attacks.forging import checks, reseal

ROWS = 400


def table():
    counts = [0] * 250 + [i % 9 for i in range(140)] + [40, 60, 90, 20, 33, 45, 12, 15, 70, 31]
    return pd.DataFrame({"area": range(ROWS), "state": ["a", "b"] * 200, "cases": counts})


def publish(source=None, **options):
    keys = {"count": "cases", "keep": "all", "upper": 50, "epsilon": 1, "unbiased": True}
    return privatize(table() if source is None else source, **{**keys, **options})


@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_it_is_right_on_average_and_has_the_stated_variance(method):
    """24 releases of 400 rows: four standard errors."""
    true = table().cases.clip(upper=50)
    noise = []
    for seed in range(24):
        rel = publish(method=method, entropy=SeededNotPrivate(seed))
        noise.append(np.array(rel.table.cases_unbiased) - np.array(true))
    drawn = np.array(noise, dtype=float)
    variance = rel.receipt.columns[0].unbiased.variance
    assert (drawn + np.array(true) < 0).any(), "it is not clamped"
    assert abs(drawn.mean()) <= 4 * np.sqrt(variance / drawn.size)
    squared = drawn**2
    assert abs(squared.mean() - variance) <= 4 * squared.std() / np.sqrt(drawn.size)
    by_row = drawn.mean(axis=0)
    assert (np.abs(by_row) <= 5.5 * np.sqrt(variance / 24)).all(), "whatever the true count is"


@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_it_changes_nothing_else_and_costs_nothing(method):
    alone = publish(method=method, unbiased=False, entropy=SeededNotPrivate(5))
    beside = publish(method=method, entropy=SeededNotPrivate(5))
    assert alone.receipt.epsilon == beside.receipt.epsilon == 1
    assert list(alone.table.cases) == list(beside.table.cases)
    assert alone.proofs == beside.proofs
    assert "cases_unbiased" not in beside.receipt.table.published_unchanged


@pytest.mark.parametrize("epsilon", ["1/10", "1", "7/2"])
def test_the_variance_is_that_of_the_certified_integers(epsilon):
    noise = GeometricNoise.of(Fraction(epsilon))
    a = np.exp(-float(Fraction(epsilon)))
    assert float(noise.variance) == pytest.approx(2 * a / (1 - a) ** 2, rel=2e-5)
    direct = 2 * sum(d * d * int(w) for d, w in enumerate(noise.near)) / 2**62
    assert direct <= float(noise.variance) <= direct * 1.01


@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_check_proves_that_the_counts_were_made_from_it(method, tmp_path):
    folder = tmp_path / "release"
    table().to_csv(tmp_path / "cases.csv", index=False)
    publish(tmp_path / "cases.csv", method=method, out=folder)
    assert checks(folder)
    fields = json.loads((folder / "datapackage.json").read_text())["resources"][0]["schema"]
    assert fields["fields"][-1]["name"] == "cases_unbiased"
    assert "cases_unbiased" in (folder / "METHODOLOGY.html").read_text()
    total = tv.estimate_total(folder, by="state")
    assert set(total) == {"a", "b"}
    assert all(one.bias_bound == 0 for one in total.values())
    lines = (folder / "data.csv").read_text().splitlines()
    row = next(i for i, line in enumerate(lines) if i and 2 < int(line.split(",")[-1]) < 40)
    start, _, value = lines[row].rpartition(",")
    lines[row] = f"{start},{int(value) + 7}"
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    reseal(folder)
    findings = {finding.name: finding for finding in tv.check_package(folder)}
    assert not findings["published counts"].ok
    assert "draws behind cases" in findings["published counts"].detail


def test_what_cannot_have_one_is_refused_before_anything_is_spent():
    with pytest.raises(UsageError, match="geometric or preserve"):
        publish(method="fair")
    with pytest.raises(UsageError, match="give a table"):
        privatize([1, 2, 3], upper=9, epsilon=1, unbiased=True)
    with pytest.raises(UsageError, match="already"):
        publish(table().rename(columns={"area": "cases_unbiased"}))
