"""What releases of every method keep: range, zeros, bounds, order, files that add up, a check."""

import numpy as np
import pandas as pd
import pytest

from tests.asking import privatize
from tests.attacks.forging import checks
from tests.attacks.releases import KINDS, TWO, WIDE, list_used, make_frame

EMPTY = {"structural_zeros": ["state = 3", "half = a and state = 1"]}
HIERARCHY, CROSSED = {"hierarchy": "region,state"}, {"margins": "state,half"}
PEOPLE = {"by": ["region", "sex"], "categories": {"region": [0, 1, 2], "sex": ["f", "m"]}}
MORE = {
    "preserve, zeros": {**EMPTY, "method": "preserve", "unbiased": True},
    "geometric, zeros": {**EMPTY, "method": "geometric", "unbiased": True},
    "counts first, zeros": {**EMPTY, "priority": "1/2"},
    "strata, zeros": {**EMPTY, "strata": "half"},
    "nested, zeros": {**TWO, **EMPTY, "nested": "tests,cases", "unbiased": True},
    "hierarchy, small epsilon": {**HIERARCHY, "epsilon": "1/20"},
    "hierarchy, large epsilon": {**HIERARCHY, "epsilon": 6},
    "hierarchy, zeros": {**HIERARCHY, **EMPTY, "format": "parquet", "unbiased": True},
    "hierarchy, two counts": {**TWO, **HIERARCHY},
    "bounds, zeros": {**EMPTY, "hierarchy": "region", "upper_column": "county"},
    "margins, small epsilon": {**CROSSED, "epsilon": "1/10"},
    "margins, zeros": {**CROSSED, **EMPTY, "upper": 200},
    "three margins": {"margins": "half,sex,state"},
    "people, hierarchy": {**PEOPLE, "hierarchy": "region", "count": None, "keep": None},
    "people, strata": {**PEOPLE, "strata": "region", "count": None, "keep": None},
}
REQUESTS = KINDS | {name: {**WIDE, **options} for name, options in MORE.items()}
SEVERAL = ("level", "exact account", "zcdp account")
"""Kinds that are several releases, or need a ledger."""

MARGINS_MET = 2
"""How many margins are met exactly; others are missed by a few."""


def is_empty(table):
    """Return which rows `EMPTY` declares to be zero."""
    state, half = table["state"].astype(int), table["half"]
    return (state == 3) | ((half == "a") & (state == 1))


@pytest.mark.parametrize("name", sorted(REQUESTS.keys() - set(SEVERAL)))
def test_a_release_keeps_what_its_options_say(name, tmp_path):
    options, folder = REQUESTS[name], tmp_path / "r"
    frame = make_frame().sample(frac=1, random_state=3).reset_index(drop=True)
    if name in MORE and "structural_zeros" in options:
        frame.loc[is_empty(frame), ["cases", "tests"]] = 0
    used = list_used(frame, options)
    frame = frame[[*used, "sex"] if name == "three margins" else used]
    release = privatize(frame, **options, out=folder)
    assert checks(folder)
    receipt, released = release.receipt, as_frame(release.table)
    for column in receipt.columns:
        counts = released[column.name]
        assert column.signed or counts.between(0, column.upper).all()
        if name in MORE and "structural_zeros" in options:
            assert not released.loc[is_empty(released), list(column.columns)].to_numpy().any()
            assert receipt.protected_rows == (~is_empty(released)).sum()
        if "upper_column" in options:
            assert (counts <= released["county"]).all()
        if column.unbiased is not None:
            a = np.exp(-float(column.stages[-1].epsilon))
            assert column.unbiased.variance == pytest.approx(2 * a / (1 - a) ** 2, rel=2e-5)
        require_sums(folder, released, column.name, options)
    if "nested" in options:
        assert (released["tests"] <= released["cases"]).all()


def as_frame(table):
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()


def require_sums(folder, released, name, options):
    """Require that the files of sums hold the sums of the rows, each inside its interval."""
    if "margins" in options:
        words = options["margins"]
        words = words.split(",") if isinstance(words, str) else words
        groups = [word.split("+") for word in words]
    elif "hierarchy" in options:
        levels = options["hierarchy"].split(",")
        groups = [levels[:depth] for depth in range(len(levels) + 1)]
    else:
        groups = []
    assert len(groups) == len(list(folder.glob("sums-*.csv")))
    for at, names in enumerate(groups):
        rows = pd.read_csv(folder / f"sums-{at}.csv")
        sums = released.groupby(names, sort=False)[name].sum() if names else None
        assert rows[name].tolist() == ([released[name].sum()] if sums is None else sums.tolist())
        parts = {part: rows[f"{name}_{part}"] for part in ("estimate", "deviation", "low", "high")}
        assert (parts["low"] <= parts["estimate"]).all()
        assert (parts["estimate"] <= parts["high"]).all()
        if "state" in names and "state = 3" in options.get("structural_zeros", ()):
            empty = rows["state"] == 3
            assert empty.any()
            assert all(not part[empty].any() for part in parts.values())
            assert (parts["deviation"][~empty] > 0).all()
        if "margins" in options:
            assert rows[f"{name}_missed"].abs().max() <= (0 if at < MARGINS_MET else 3)
