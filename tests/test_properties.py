"""The property tests agree with the papers' definitions, written out cell by cell."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.properties import IMPLIED, PROPERTIES, SEVEN, check_names, rows

TOL = 1e-9


def printed(P, name):
    """Cormode et al. (2018), equations 8 to 15, on P[released, true] for a square query."""
    n = len(P) - 1
    span = range(n + 1)
    pairs = list(itertools.product(span, span))
    return {
        "row_honest": lambda: all(P[i, i] >= P[i, j] - TOL for i, j in pairs),
        "row_monotone": lambda: all(
            (P[i, j - 1] <= P[i, j] + TOL if 1 <= j <= i else True)
            and (P[i, j + 1] <= P[i, j] + TOL if i <= j < n else True)
            for i, j in pairs
        ),
        "column_honest": lambda: all(P[j, j] >= P[i, j] - TOL for i, j in pairs),
        "column_monotone": lambda: all(
            (P[i - 1, j] <= P[i, j] + TOL if 1 <= i <= j else True)
            and (P[i + 1, j] <= P[i, j] + TOL if j <= i < n else True)
            for i, j in pairs
        ),
        "fair": lambda: all(abs(P[i, i] - P[j, j]) <= n * TOL for i, j in pairs),
        "weakly_honest": lambda: all(P[i, i] >= 1 / (n + 1) - TOL for i in span),
        "symmetric": lambda: all(abs(P[i, j] - P[n - i, n - j]) <= TOL for i, j in pairs),
    }[name]()


@st.composite
def square_mechanisms(draw):
    """Random matrices, many of them with some property."""
    n = draw(st.integers(1, 5))
    q = tv.Query.count(n)
    kind = draw(st.sampled_from(["free", "geometric", "fair", "uniform", "blend", "levels"]))
    epsilon = draw(st.floats(0.05, 3.0))
    if kind in ("geometric", "fair", "uniform"):
        return getattr(tv, kind)(q, epsilon)
    levels = st.lists(st.integers(0, 2 if kind == "levels" else 50), min_size=n + 1, max_size=n + 1)
    table = np.array([draw(levels) for _ in range(n + 1)], dtype=float) + 0.1
    matrix = table / table.sum(axis=1, keepdims=True)
    if kind == "blend":
        matrix = 0.9 * tv.fair(q, epsilon).matrix + 0.1 * (matrix + matrix[::-1, ::-1]) / 2
    return tv.Mechanism(matrix, q)


@settings(max_examples=300, deadline=None)
@given(square_mechanisms())
def test_properties_are_those_of_the_paper(m):
    for name in SEVEN:
        assert m.has(name) == printed(m.matrix.T, name), name


@settings(max_examples=300, deadline=None)
@given(square_mechanisms())
def test_implications(m):
    held = {name for name, value in m.properties().items() if value}
    for name, brings in IMPLIED.items():
        if name in held:
            assert set(brings) <= {other for other in SEVEN if m.has(other, 1e-8)}
    if "fair" in held:  # F with RH <=> F with CH
        assert m.has("row_honest", 1e-8) == m.has("column_honest", 1e-8) or (
            m.has("row_honest") == m.has("column_honest")
        )


def test_rows_of_the_papers_are_columns_of_ours():
    # released answer 0 is likelier for input 1 than for input 0: the papers' ROW 0, our column
    m = tv.Mechanism([[0.4, 0.6], [0.5, 0.5]], tv.Query.count(1))
    assert not m.has("row_honest")
    broken = m.witness("row_honest")
    assert (broken.larger, broken.smaller) == ((0, 0), (1, 0))
    # given input 0 the wrong answer is likelier: the papers' COLUMN 0, our row
    broken = m.witness("column_honest")
    assert (broken.larger, broken.smaller) == ((0, 0), (0, 1))
    assert broken.shortfall == pytest.approx(0.2)


def test_rectangular_definitions_of_paper_001():
    # equations 10 to 15 on 4 inputs in 2 categories: inputs 0, 1 -> 0 and 2, 3 -> 1
    q = tv.Query.custom([0, 1, 2, 3], [(-0.5, 1.5), (1.5, 3.5)], "path")
    fine = tv.Mechanism([[0.7, 0.3], [0.7, 0.3], [0.3, 0.7], [0.3, 0.7]], q)
    assert all(fine.has(name) for name in SEVEN)
    # inputs sharing a category must be equally likely to report it (both 12 and 13 apply)
    uneven = tv.Mechanism([[0.8, 0.2], [0.7, 0.3], [0.3, 0.7], [0.2, 0.8]], q)
    assert not uneven.has("row_monotone")
    assert uneven.has("column_monotone")
    assert uneven.has("symmetric")
    assert not uneven.has("fair")


def test_output_privacy_bounds_neighbouring_outputs():
    q = tv.Query.count(2)
    assert tv.fair(q, 1.0).has("output_private")
    m = tv.Mechanism([[0.6, 0.2, 0.2], [0.4, 0.3, 0.3], [0.3, 0.3, 0.4]], q, epsilon=1.0)
    assert not m.has("output_private")  # 0.6 > e * 0.2
    assert m.witness("output_private").smaller == (0, 0)
    assert "output_private" not in tv.Mechanism(np.eye(3), q).properties()


def test_unknown_property_lists_the_known_ones():
    m = tv.uniform(tv.Query.count(2))
    with pytest.raises(tv.ArgumentError, match="row_honest, row_monotone"):
        m.has("honest")
    with pytest.raises(tv.ArgumentError, match="'properties' must be known"):
        check_names(["fair", "nice"])


@pytest.mark.parametrize("name", PROPERTIES)
def test_uniform_has_every_property_on_every_query(name):
    for q in (
        tv.Query.count(4),
        tv.Query.mean(records=3, lower=0, upper=2, categories=2),
        tv.Query.maximum(0, 3, extend=3),
    ):
        m = tv.uniform(q, 0.5)
        assert m.has(name)
        for block in rows(name, q, 0.5):
            assert block.slack(m.matrix).min(initial=0.0) >= -1e-15
