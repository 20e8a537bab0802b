"""Two confidential tables with the same released data give the same package, byte for byte."""

import json
import re

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.release.entropy import SeededNotPrivate
from tallyveil.table.plan import ColumnPlan

N = 400
ONE = [i % 4 for i in range(N)]
OTHER = [(i * i) % 9 + 20 * (i == 7) for i in range(N)]
VARYING = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # the release's name
    rb"|20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"  # when it was made
)


def csv_table(path, counts, quote=False):
    cell = '"{}"' if quote else "{}"
    lines = [f"c{i}," + cell.format(count) for i, count in enumerate(counts)]
    path.write_text("county,cases\n" + "\n".join(lines) + "\n")
    return path


def package(folder, table, **options):
    """The bytes of every file of a release, without its name and its time."""
    rel = tv.privatize(table, count="cases", upper=9, epsilon=1, **options)
    rel.save(folder)
    files = {path.name: VARYING.sub(b"*", path.read_bytes()) for path in folder.iterdir()}
    files.pop("SHA256SUMS")  # digests of texts with names and times in them
    return files


def test_a_mechanism_that_ignores_the_truth_gives_identical_packages(tmp_path):
    """No part of the program is replaced: every row of the matrix is the same law."""
    blind = tv.certify(tv.uniform(tv.Query.count(9)), 1).save(tmp_path / "blind.json")
    made = [
        package(tmp_path / f"out{at}", csv_table(tmp_path / f"{at}.csv", counts),
                method=blind, entropy=SeededNotPrivate(5))
        for at, counts in enumerate((ONE, OTHER))
    ]  # fmt: skip
    assert made[0] == made[1]
    assert len(made[0]) == 6


@pytest.mark.parametrize("method", ["preserve", "geometric", "fair"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
def test_the_same_draws_give_identical_packages(tmp_path, monkeypatch, method, kind):
    """The draw is fixed from outside; all the rest must not have looked at the truth."""
    draw = ColumnPlan.draw
    fixed = np.array(ONE)

    def same_draw(self, counts, entropy):
        return draw(self, fixed, SeededNotPrivate(3))

    monkeypatch.setattr(ColumnPlan, "draw", same_draw)
    made = []
    for at, counts in enumerate((ONE, OTHER)):
        table = csv_table(tmp_path / f"{at}.csv", counts, quote=at == 1)
        if kind != "csv":
            import pandas as pd

            table = pd.read_csv(table)
        if kind == "parquet":
            path = tmp_path / f"{at}.parquet"
            table.to_parquet(path)
            table = path
        made.append(package(tmp_path / f"out{at}", table, method=method))
    assert made[0] == made[1]


def test_what_a_release_holds_is_public(tmp_path):
    """A release object keeps no confidential count, not even where nobody looks."""
    marked = [9999 + i for i in range(60)]
    rel = tv.privatize(csv_table(tmp_path / "t.csv", marked), count="cases", upper=9, epsilon=1)
    text = repr(vars(rel)) + json.dumps(rel.receipt)
    assert not re.search(r"\b(99[9]\d|100[0-5]\d)\b", text)


def test_a_seed_is_marked_everywhere(tmp_path):
    rel = tv.privatize(ONE, upper=9, epsilon=1, entropy=SeededNotPrivate(1))
    assert rel.receipt["private"] is False
    assert "NOT PRIVATE" in rel.receipt["warning"]
    rel.save(tmp_path / "out")
    assert "NOT PRIVATE" in (tmp_path / "out" / "METHODOLOGY.html").read_text()
    assert not all(finding.ok for finding in tv.check_package(tmp_path / "out"))
    again = tv.privatize(ONE, upper=9, epsilon=1, entropy=SeededNotPrivate(1))
    assert rel.table == again.table
    assert tv.privatize(ONE, upper=9, epsilon=1).receipt["private"] is True
