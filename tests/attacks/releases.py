"""One release of every kind, to be attacked."""

import numpy as np
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
        **{**FEW, "epsilon": "1/50"},
        **{"contributions": 50, "delta": "1e-6", "spread": "distinct_rows"},
    },
    "several rows": {**FEW, "contributions": 3, "neighbours": "replace_one"},
    "strata": {**WIDE, "strata": "state"},
    "hierarchy": {**WIDE, "hierarchy": "region,state"},
    "invariant": {**WIDE, "hierarchy": "region,state", "invariant": "total"},
    "upper_column": {**WIDE, "hierarchy": "state", "upper_column": "county", "unbiased": True},
    "margins": {**WIDE, "margins": "state,half"},
    "zeros": {**FEW, "structural_zeros": ["county = 7", "county = 14 and half = a"]},
    "zeros, hierarchy": {**WIDE, "hierarchy": "region,state", "structural_zeros": "county = 7"},
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
    "parquet": {**FEW, "format": "parquet"},
    "exact account": {**FEW, "dataset": "exact"},
    "zcdp account": {**TWO, "dataset": "zcdp"},
}
"""Options of each kind; those with a dataset debit a ledger."""

ACCOUNTS = {"exact": (20, "1e-6"), "zcdp": (20, "1e-6")}


def make_frame():
    """Make a table with a column of every type that an option needs."""
    rows = range(300)
    return pd.DataFrame(
        {
            "county": rows,
            "state": [i % 5 for i in rows],
            "region": [i % 5 // 3 for i in rows],
            "half": ["ab"[i // 5 % 2] for i in rows],
            "cases": COUNTS,
            "tests": [c // 2 for c in COUNTS],
            "sex": ["fm"[i % 2] for i in rows],
            "who": [f"p{i // 3}" for i in rows],
        }
    )


def list_used(frame, options):
    """List the columns of a request: of a table of counts, those that are about an area."""
    if options.get("count") is None:
        return list(frame)
    used = {*np.atleast_1d(options["count"]), "county", "state", "region", "half"}
    return [name for name in frame if name in used]


def make_release(name, place):
    """Release one kind, unless that was done, and return its folder; of a ladder the last level."""
    folder = place / name
    if folder.exists():
        return folder
    place.mkdir(exist_ok=True)
    options = dict(KINDS[name])
    frame = make_frame()
    frame[list_used(frame, options)].to_csv(place / f"{name}.csv", index=False)
    if "dataset" in options:
        ledger = tv.Ledger.create(place / f"{name}.db")
        dataset = options["dataset"]
        ledger.open(dataset, *ACCOUNTS[dataset], accounting=dataset)
        if dataset == "exact":
            ledger.plan(dataset, [options["epsilon"]])
        options["ledger"] = ledger
    out = place / "levels" if "epsilons" in options else folder
    privatize(place / f"{name}.csv", out=out, **options)
    if out != folder:
        (out / "level-2-epsilon-1").rename(folder)
    return folder
