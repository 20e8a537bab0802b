"""Releases of every kind, to be attacked: what was asked for, on tables that need no file."""

import pandas as pd

import tallyveil as tv
from tests.asking import privatize

COUNTS = [i % 7 for i in range(300)]
WIDE = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
FEW = {**WIDE, "method": "geometric"}
TWO = {**WIDE, "count": ["cases", "tests"]}
PEOPLE = {"by": "sex", "categories": ["f", "m"], "upper": 60, "epsilon": 1}

KINDS = {
    "preserve": WIDE,
    "fair": {**WIDE, "method": "fair"},
    "level": {**WIDE, "epsilons": [2, 1], "epsilon": None},
    "delta": {**WIDE, "delta": "1e-6"},
    "delta, disjoint": {**TWO, "delta": "1e-3", "disjoint": ["cases", "tests"]},
    "design": {**WIDE, "method": "design", "delta": "0.01", "loss": "squared"},
    "one row": {**FEW, "contributions": 3, "spread": "one_row"},
    "separate rows": {
        **{**FEW, "epsilon": "1/50", "method": "geometric"},
        **{"contributions": 50, "delta": "1e-6", "spread": "distinct_rows"},
    },
    "several rows": {**FEW, "contributions": 3, "neighbours": "replace_one"},
    "strata": {**WIDE, "strata": "state"},
    "hierarchy": {**WIDE, "hierarchy": "region,state"},
    "invariant": {**WIDE, "hierarchy": "region,state", "invariant": "total"},
    "upper_column": {**WIDE, "hierarchy": "state", "upper_column": "county", "unbiased": True},
    "margins": {**WIDE, "margins": "state,half"},
    "structural_zeros": {**FEW, "structural_zeros": ["county = 7", "county = 14 and half = a"]},
    "zero, hierarchy": {**WIDE, "hierarchy": "region,state", "structural_zeros": "county = 7"},
    "nested": {**TWO, "nested": "tests,cases", "method": "preserve"},
    "unbiased": {**WIDE, "unbiased": True, "method": "preserve"},
    "signed": {**FEW, "upper": None, "signed": True},
    "no upper": {**WIDE, "upper": None, "method": "preserve"},
    "a wide range": {**WIDE, "upper": 10**7, "method": "geometric"},
    "priority": {**WIDE, "priority": "1/3"},
    "disjoint": {**TWO, "disjoint": ["cases", "tests"]},
    "people": {**PEOPLE, "id_column": "who", "contributions": 2, "where": "county >= 3"},
    "ranges": {"by": "county", "bins": {"county": [0, 50, 200]}, "upper": 400, "epsilon": 1},
    "events": {**PEOPLE, "kind": "event", "other": "x", "method": "geometric", "title": "Visits"},
    "workbook": {**FEW, "format": "xlsx"},
    "stata": {**FEW, "format": "dta"},
    "parquet": {**FEW, "format": "parquet"},
    "exact account": {**FEW, "dataset": "exact"},
    "zcdp account": {**TWO, "dataset": "zcdp"},
}
"""What each kind of release asks for; those with a dataset are paid for from a ledger."""

ACCOUNTS = {"pure": (20, 0), "exact": (20, "1e-6"), "zcdp": (20, "1e-6")}


def make_frame():
    """A table of counts, with a column of every kind that an option needs."""
    at = range(300)
    return pd.DataFrame(
        {
            "county": at,
            "state": [i % 5 for i in at],
            "region": [i % 5 // 3 for i in at],
            "half": ["ab"[i // 5 % 2] for i in at],
            "cases": COUNTS,
            "tests": [c // 2 for c in COUNTS],
            "sex": ["fm"[i % 2] for i in at],
            "who": [f"p{i // 3}" for i in at],
        }
    )


def make_release(name, place):
    """The folder of one kind of release, made once; of a ladder the last level."""
    folder = place / name
    if folder.exists():
        return folder
    place.mkdir(exist_ok=True)
    options = dict(KINDS[name])
    frame = make_frame()
    if "count" in options:
        count = options["count"]
        named = {*([count] if isinstance(count, str) else count), "county", "state", "region"}
        frame = frame[[column for column in frame if column in {*named, "half"}]]
    frame.to_csv(place / f"{name}.csv", index=False)
    if "dataset" in options:
        book = tv.Ledger.create(place / f"{name}.db")
        book.open(options["dataset"], *ACCOUNTS[options["dataset"]], accounting=options["dataset"])
        if options["dataset"] == "exact":
            book.plan("exact", [options["epsilon"]])
        options["ledger"] = book
    if "levels" in options:
        privatize(place / f"{name}.csv", out=place / "levels", **options)
        (place / "levels" / "level-2-epsilon-1").rename(folder)
    else:
        privatize(place / f"{name}.csv", out=folder, **options)
    return folder
