"""What must stay the same whatever moves in the source; seeded, so that it repeats.

Whole numbers, draws and data stay the same to the byte. What is worked out in doubles, matrices of
closed forms and of solvers, differs between processors in its last digits: numbers are kept.

`python tests/golden/cases.py` writes ``expected.json`` anew; do so only for a difference that
CHANGELOG.md explains.
"""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import tallyveil as tv
from tests.asking import privatize

EXPECTED = Path(__file__).with_name("expected.json")
ROWS = 300
CASES = [(i * i) % 7 + i % 4 for i in range(ROWS)]
TESTS = [(i * 5) % 11 for i in range(ROWS)]
COUNTIES = [f"county {i}" for i in range(ROWS)]

RELEASES = {
    "preserve": {"upper": 9, "epsilon": 1, "method": "preserve"},
    "geometric": {"upper": 40, "epsilon": "0.3", "method": "geometric"},
    "fair": {"upper": 9, "epsilon": 2, "method": "fair"},
    "design": {"upper": 9, "epsilon": 1, "method": "design", "properties": ["row_monotone"]},
    "changed record": {"upper": 9, "epsilon": 1, "neighbours": "replace_one", "contributions": 2},
}
STATES = [f"state {i % 4}" for i in range(ROWS)]
SEXES = ["female" if i % 3 else "male" for i in range(ROWS)]
PERSONS = [i * 7 % 90 for i in range(ROWS)]
MOST = [9 if i % 2 else 6 for i in range(ROWS)]
CLOSED = ["no" if i % 28 else "yes" for i in range(ROWS)]
PUBLIC = ["county", "state", "sex"]

GEOMETRIC = {"upper": 9, "epsilon": 1, "method": "geometric"}
SUMS = {"upper": 9, "epsilon": 2, "hierarchy": ["state", "county"]}
METHODS = {
    "auto": {"upper": 9, "epsilon": 1},
    "auto, few rows for its range": {"upper": 900, "epsilon": 2},
    "balanced": {"upper": 9, "epsilon": 1, "priority": "balanced"},
    "counts": {"upper": 9, "epsilon": 1, "priority": "counts"},
    "a quarter": {"upper": 9, "epsilon": 1, "priority": "1/4"},
    "best guesses": {"upper": 9, "epsilon": 1, "priority": 0},
    "preserve, open": {"epsilon": 1, "method": "preserve"},
    "geometric, open": {"epsilon": 1, "method": "geometric"},
    "signed": {"epsilon": 1, "signed": True},
    "unbiased": {**GEOMETRIC, "unbiased": True},
    "unbiased ranks": {"upper": 9, "epsilon": 1, "method": "preserve", "unbiased": True},
    "accuracy": {"upper": 9, "accuracy": 3},
    "one row": {**GEOMETRIC, "contributions": 3, "spread": "one_row"},
    "delta": {"upper": 9, "epsilon": 1, "delta": "1e-4", "method": "geometric"},
    "separate rows": {
        "upper": 9, "epsilon": 2, "delta": "1e-6", "contributions": 6, "spread": "distinct_rows",
        "method": "geometric",
    },
    "strata": {"upper": 9, "epsilon": 1, "strata": "state"},
    "zeros": {
        "upper": 9,
        "epsilon": 1,
        "structural_zeros": "closed = yes",
        "keep": [*PUBLIC, "closed"],
    },
    "hierarchy": SUMS,
    "hierarchy, invariant": {**SUMS, "invariant": "state"},
    "hierarchy, weights": {**SUMS, "weights": "1,4,1"},
    "hierarchy, bounds": {**SUMS, "upper_column": "most", "keep": [*PUBLIC, "most"]},
    "hierarchy, zeros": {**SUMS, "structural_zeros": "closed = yes", "keep": [*PUBLIC, "closed"]},
    "margins": {"upper": 9, "epsilon": 2, "margins": "state,sex"},
    "nested": {"count": ["cases", "most"], "upper": 9, "epsilon": 1, "nested": "cases,most"},
    "disjoint": {"count": ["cases", "tests"], "upper": 9, "epsilon": 1, "disjoint": "cases,tests"},
}  # fmt: skip
"""Every method and what changes its draws: only the published counts are compared."""

DESIGNS = {
    f"{kind} {loss} epsilon {epsilon} {'+'.join(properties) or 'plain'}": (
        kind, epsilon, loss, properties,
    )
    for kind, epsilon, loss, properties in [
        ("count", "0.5", "absolute", ()), ("count", "1", "absolute", ("fair",)),
        ("count", "1", "squared", ("row_monotone",)), ("count", "1", "squared", ()),
        ("count", "2", "zero_one", ("weakly_honest",)), ("count", "1", "zero_one", ()),
        ("count", "1", "absolute", ("column_monotone",)), ("count", "0.1", "absolute", ()),
        ("count", "1", "absolute", ("output_private",)), ("count", "4", "squared", ("fair",)),
        ("count", "1", "absolute", ("symmetric",)), ("count", "1", "absolute", ("row_honest",)),
        ("count", "1", "squared", ("column_honest",)), ("maximum", "1", "absolute", ()),
        ("maximum", "0.5", "squared", ("row_honest",)), ("mean", "1", "absolute", ()),
        ("mean", "2", "squared", ("symmetric",)), ("median", "1", "absolute", ()),
        ("median", "0.5", "zero_one", ("fair",)), ("count", "3", "absolute", ("row_monotone",
                                                                             "column_monotone")),
    ]
}  # fmt: skip
QUERIES = {
    "count": lambda: tv.Query.count(8), "maximum": lambda: tv.Query.maximum(0, 6),
    "mean": lambda: tv.Query.mean(3, 0, 4), "median": lambda: tv.Query.median(0, 5),
}  # fmt: skip


def digest(content):
    return hashlib.sha256(content).hexdigest()


def numbers(matrix):
    """A matrix as text of ten digits, which is compared as numbers."""
    return [" ".join(f"{value:.10g}" for value in row) for row in np.asarray(matrix).tolist()]


def tables(folder):
    """The same table in every kind that can come in."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = {"county": COUNTIES, "cases": CASES, "tests": TESTS}
    arrow = pa.table(columns)
    text = "county,cases,tests\n" + "".join(
        f"{a},{b},{c}\n" for a, b, c in zip(COUNTIES, CASES, TESTS, strict=True)
    )
    (folder / "cases.csv").write_text(text)
    pq.write_table(arrow, folder / "cases.parquet")
    return {
        "csv": folder / "cases.csv", "parquet": folder / "cases.parquet", "arrow": arrow,
        "pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns), "array": CASES,
    }  # fmt: skip


def released(table, **options):
    if not isinstance(table, list):
        options = {"count": "cases", "keep": ["county"], **options}
    return privatize(table, entropy=tv.SeededNotPrivate(7), **options)


def of_release(release):
    """Digests of the data and of everything certified; the receipt's figures apart."""
    from_doubles = release.receipt.columns[0].method in ("fair", "design")
    kept = ("data.",) if from_doubles else ("data.", "mechanism", "certificate")
    files = {
        name: digest(content)
        for name, content in sorted(release.files.items())
        if name.startswith(kept) and name != "data.parquet"  # its bytes are the writer's
    }
    if "data.parquet" in release.files:
        decoded = pq.read_table(io.BytesIO(release.files["data.parquet"])).to_pydict()
        files["data"] = digest(json.dumps(decoded).encode())
    if from_doubles:
        files["matrix"] = numbers(release.figures[0].mechanism.matrix)
    columns = release.receipt.to_dict()["columns"]
    return files | {
        "epsilon": str(release.receipt.epsilon),
        "stages": [[s.name, str(s.epsilon)] for s in release.receipt.stages],
        "histogram": digest(json.dumps([written_out(c) for c in columns]).encode()),
    }


def method_table():
    import pandas as pd

    return pd.DataFrame(
        {"county": COUNTIES, "state": STATES, "sex": SEXES, "closed": CLOSED, "most": MOST,
         "cases": CASES, "tests": TESTS}
    )  # fmt: skip


def counts_of(release):
    """The published counts of every column, by value: whatever the format, they stay."""
    table = release.table
    names = [name for column in release.receipt.columns for name in column.columns]
    return {name: digest(json.dumps(table[name].tolist()).encode()) for name in names}


def of_methods():
    """The published counts of every method, of levels and of persons."""
    table, seeded = method_table(), tv.SeededNotPrivate
    found = {}
    for name, changes in METHODS.items():
        options = {"count": "cases", "keep": PUBLIC, **changes}
        release = privatize(table, entropy=seeded(7), **options)
        found[f"counts {name}"] = counts_of(release)
    levels = privatize(
        table[["county", "cases"]], count="cases", keep="all", upper=9, epsilons=[2, 1, "1/2"],
        entropy=seeded(7),
    )  # fmt: skip
    found["counts levels"] = {str(i): counts_of(level) for i, level in enumerate(levels)}
    people = table.assign(person=PERSONS)[["state", "sex", "person"]]
    release = privatize(
        people, by="state", categories=["state 3", "state 2", "state 1", "state 0", "state 9"],
        id_column="person", contributions=2, upper=200, epsilon=1, entropy=seeded(7),
    )  # fmt: skip
    found["counts persons"] = counts_of(release)
    return found


def written_out(column):
    """The rows of every count 0..upper, whether it occurs or not."""
    found = dict(zip(*(column["distribution"][part] for part in ("counts", "rows")), strict=True))
    return [found.get(count, 0) for count in range(column["upper"] + 1)]


def compute(folder):
    """Everything, as JSON-ready data."""
    kinds = tables(folder)
    found = of_methods() | {
        f"release {name}, {kind}": of_release(released(table, **options))
        for name, options in RELEASES.items()
        for kind, table in kinds.items()
        if kind in ("csv", "parquet") or name == "preserve"
    }
    two = {"count": ["cases", "tests"], "upper": [9, 12], "epsilon": ["1/2", "1/4"]}
    found["release two columns"] = of_release(released(kinds["csv"], **two))
    people = {"count": None, "keep": None, "by": "county", "categories": [*COUNTIES[:250], "new"],
              "where": "tests > 2", "upper": 20, "epsilon": 1}  # fmt: skip
    small = kinds["pandas"].head(250)
    found["release microdata"] = of_release(released(small, **people))
    count = tv.Query.count(12)
    ladder = tv.Ladder(count, ["2", "1", "1/2"])
    found["ladder"] = {
        "matrices": [row for rung in ladder.rungs for row in numbers(rung.mechanism.matrix)],
        "draws": digest(ladder.release([0, 5, 12] * 50, tv.SeededNotPrivate(3)).tobytes()),
    }
    certified = {
        "geometric": tv.certify(tv.geometric(count, 1)),
        "fair": tv.certify(tv.fair(count, "0.4")),
        "wide": tv.certify_geometric(tv.Query.count(100_000), "0.01"),
        "gaussian": tv.certify(tv.discrete_gaussian(count, 1, delta="1e-6")),
        "maximum": tv.certify(tv.exponential(tv.Query.maximum(0, 6), 1)),
        "staircase": tv.certify(tv.staircase(tv.Query.mean(3, 0, 4), 1)),
    }
    for name, made in certified.items():
        answers = made.query.inputs[[0, -1]].tolist() * 100
        draws = made.release(answers, tv.SeededNotPrivate(11))
        exact = {"document": digest(made.to_json().encode())}
        found[f"certificate {name}"] = {
            **(exact if name == "wide" else {"matrix": numbers(made.mechanism.matrix)}),
            "draws": digest(json.dumps(draws.tolist()).encode()),
        }
    for name, (kind, epsilon, loss, properties) in DESIGNS.items():
        made = tv.design(QUERIES[kind](), epsilon, loss=loss, properties=properties)
        found[f"design {name}"] = {"matrix": numbers(made.mechanism.matrix)}
    return found


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(compute(Path(place)), indent=1, sort_keys=True)
    EXPECTED.write_text(text + "\n")
