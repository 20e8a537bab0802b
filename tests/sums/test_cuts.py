"""Scores cut at ranks, as a stable sort would cut them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.arrays import Floats
from tallyveil.sums.rounding import Cuts


def spread_scores(kind: str, draw: np.random.Generator, rows: int) -> Floats:
    if kind == "apart":
        return draw.gamma(0.3, 30, rows) - draw.random(rows)
    if kind == "tied":
        return draw.integers(-2, 3, rows).astype(float)
    if kind == "equal":
        return np.full(rows, -7.5)
    if kind == "of every size":
        return draw.normal(0, 1, rows) * 10.0 ** draw.integers(-300, 300, rows)
    return np.append(draw.random(rows - 1), -1e12)


KINDS = ("apart", "tied", "equal", "of every size", "one far below")


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 400), st.sampled_from(KINDS))
def test_runs_are_those_of_a_stable_sort(seed: int, rows: int, kind: str) -> None:
    draw = np.random.default_rng(seed)
    scores = spread_scores(kind, draw, rows)
    ends = np.flatnonzero(draw.random(rows) < draw.random()) + 1
    ends = ends[ends < rows]
    made = Cuts(scores, ends)
    ranking = np.argsort(scores, kind="stable")
    runs = np.empty(rows, dtype=np.int64)
    runs[ranking] = np.searchsorted(ends, np.arange(rows), side="right")
    assert made.limits.tolist() == scores[ranking][ends - 1].tolist()
    assert made.runs.tolist() == runs.tolist()
    values = np.concatenate([scores, scores + draw.normal(0, 3, rows), [-1e301, 1e301]])
    assert made.count_below(values).tolist() == np.searchsorted(made.limits, values).tolist()
    assert made.below.tolist() == np.searchsorted(made.limits, scores).tolist()


def test_few_scores_of_a_long_table_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    scores = draw.gamma(0.3, 30, 200_000)
    ends = np.unique(draw.integers(1, len(scores), 300))
    compared = []
    sort = np.sort

    def note(many: Floats) -> Floats:
        compared.append(len(many))
        return sort(many)

    monkeypatch.setattr(np, "sort", note)
    made = Cuts(scores, ends)
    assert made.below.tolist() == np.searchsorted(made.limits, scores).tolist()
    assert sum(compared) < len(scores) / 4
