"""Quiet ways out of a release: ties in the order of the file, paths, counts above their bound."""

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil.estimate import ranks
from tallyveil.release.methods.base import Plan
from tests.asking import privatize
from tests.attacks import hostile, releases
from tests.attacks.forging import checks

ROWS = 1200
RANKED = {
    "preserve": {"method": "preserve"},
    "strata": {"strata": "state"},
    "hierarchy": {"hierarchy": "state"},
    "nested": {
        **{"count": ["cases", "tests"], "nested": "cases,tests", "method": "preserve"},
        "epsilon": ["1/4", 4],
    },
}


@pytest.mark.parametrize("sorting", [True, False], ids=["sorted", "in bins"])
@pytest.mark.parametrize("name", RANKED)
def test_rows_with_equal_draws_do_not_follow_the_order_of_the_file(name, sorting, monkeypatch):
    """Files are often sorted by what is confidential; ties would tell it."""
    if not sorting:
        monkeypatch.setattr(ranks, "MOST_SORTED", 100)
    rows = np.arange(ROWS)
    columns = {"state": rows % 2, "half": rows // 2 % 2, "cases": rows * 13 // ROWS, "tests": 9}
    table = pd.DataFrame({"county": rows, **columns})
    if name != "nested":
        del table["tests"]
    keys = {"count": "cases", "keep": "all", "upper": 20, "epsilon": "1/4", "unbiased": True}
    released = privatize(table, **keys | RANKED[name], entropy=tv.SeededNotPrivate(1)).table
    drawn = [name for name in released if name.endswith("_unbiased")]
    public = [] if name == "preserve" else ["state", "half"]
    ties = [
        np.corrcoef(group["county"], group["cases"])[0, 1]
        for _, group in released.groupby([*drawn, *public])
        if len(group) > 5 and group["cases"].nunique() > 1
    ]
    assert len(ties) > 3
    assert abs(np.mean(ties)) < 0.3  # in the order of the file it is above 0.6


def test_no_path_and_no_query_goes_into_a_folder(tmp_path):
    home = tmp_path / "Anna-Schmidt"
    home.mkdir()
    table = pd.DataFrame({"county": [f"c{at}" for at in range(60)], "cases": [1, 2, 3] * 20})
    table.to_csv(home / "cases.csv", index=False)
    tv.certify(tv.fair(tv.Query.count(9), 1)).save(home / "mechanism.json")
    (home / "counties.txt").write_text("\n".join(table["county"]) + "\n")
    with duckdb.connect(home / "cases.db") as database:
        database.register("frame", pa.Table.from_pandas(table))
        database.execute("CREATE TABLE cases AS SELECT * FROM frame")
    book = tv.Ledger.create(home / "budget.db")
    book.open("cases", 9)
    keys = {"upper": 9, "epsilon": 1, "ledger": home / "budget.db", "dataset": "cases"}
    counted = {"count": "cases", "keep": "all", **keys}
    requests = [
        (home / "cases.csv", {**counted, "method": str(home / "mechanism.json")}),
        (home / "cases.csv", {"by": "county", "categories": str(home / "counties.txt"), **keys}),
        (f"duckdb:{home / 'cases.db'}", {**counted, "sql": "FROM cases -- for Anna-Schmidt"}),
    ]
    for at, (source, options) in enumerate(requests):
        release = privatize(source, **options, out=tmp_path / str(at))
        assert checks(tmp_path / str(at))
        assert "Anna" not in repr(release)
        for path in (tmp_path / str(at)).iterdir():
            assert b"Anna" not in path.read_bytes(), path.name


@pytest.mark.parametrize("name", releases.KINDS)
def test_counts_above_their_bound_are_never_drawn(name, monkeypatch, tmp_path):
    """A guard: whoever forgets to clamp gets an error, not a draw that was not certified."""
    draw, above = Plan.draw, 10**12
    monkeypatch.setattr(
        Plan, "draw", lambda plan, counts, bits: draw(plan, counts.astype(int) + above, bits)
    )
    with pytest.raises(tv.CertificationError, match="clamped"):
        releases.make_release(name, tmp_path)
    assert not (tmp_path / name).exists()


def write_long(path, kind, rows=20_000_000):
    """Write many rows: every label another, in the order of no count."""
    labels = np.arange(rows) * 7919 % 1_000_000_007
    counts = np.arange(rows) % 23
    if kind == "parquet":
        pq.write_table(pa.table({"place": labels, "cases": counts}), path)
        return
    line = '"{}",{}\n' if kind == "quoted" else "{},{}\n"
    with path.open("w") as file:
        file.write("place,cases\n")
        file.writelines(map(line.format, labels.tolist(), counts.tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "quoted", "parquet"])
def test_twenty_million_rows_take_little_memory(kind, tmp_path):
    path = tmp_path / ("t.parquet" if kind == "parquet" else "t.csv")
    write_long(path, kind)
    words = ["--count", "cases", "--keep", "place", "--upper", "9", "--epsilon", "1", "--out"]
    code, _, megabytes, shown = hostile.run_measured("privatize", path, *words, tmp_path / "r")
    assert (code, megabytes <= 512) == (0, True), (megabytes, shown)
