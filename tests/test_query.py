import numpy as np
import pytest

import tallyveil as tv
from tallyveil.neighbours import Neighbours
from tallyveil.query import Query


def test_count_is_a_path():
    q = Query.count(5)
    assert q.shape == (6, 6)
    assert q.is_square
    assert q.neighbours == Neighbours.path(6)
    assert q.sensitivity == 1


def test_mean_reaches_every_value_and_neighbours_span_the_attribute():
    q = Query.mean(records=10, lower=0, upper=4)  # Croft et al. (2020), 4.3 (errata, Croft 3)
    assert len(q.inputs) == 41
    assert q.inputs[1] == 0.1
    assert q.sensitivity == pytest.approx(0.4)
    pairs = q.neighbours.pairs
    assert (pairs[:, 1] - pairs[:, 0]).max() == 4
    assert len(pairs) == q.neighbours.count == 40 + 39 + 38 + 37


@pytest.mark.parametrize("make", [Query.maximum, Query.minimum, Query.median])
def test_extremes_have_all_pairs_as_neighbours(make):
    q = make(lower=2, upper=5)
    assert q.inputs.tolist() == [2, 3, 4, 5]
    assert len(q.neighbours.pairs) == 6
    assert q.sensitivity == 3


@pytest.mark.parametrize("scale", [0.25, 0.5, 1, 2, 4, 5])
def test_categories_cover_the_range_symmetrically(scale):
    q = Query.mean(records=10, lower=0, upper=4, categories=scale)
    lower, upper = q.edges()
    assert lower[0] <= 0
    assert upper[-1] >= 4
    assert np.allclose(upper - lower, 0.1 * scale)
    assert (q.home + q.home[::-1] == len(q.outputs) - 1).all()
    assert (np.abs(q.outputs[q.home] - q.inputs) <= 0.05 * scale + 1e-9).all()


def test_extended_outputs_are_three_times_as_wide():
    q = Query.maximum(0, 9, extend=3)
    assert len(q.outputs) == 30
    assert q.outputs.mean() == pytest.approx(4.5)
    assert (q.outputs[q.home] == q.inputs).all()


def test_inputs_belong_to_the_nearest_output():
    q = Query.custom([0, 1, 2, 3, 4], [(0, 1), (1, 3), (3, 4)], "path")
    assert q.home.tolist() == [0, 1, 1, 1, 2]
    assert Query.custom([0, 1, 2, 3], [0, 3], "path").home.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "query",
    [Query.count(7), Query.count(7, categories=2, extend=3),
     Query.mean(records=3, lower=-1, upper=2), Query.median(lower=0, upper=4),
     Query.custom([0, 1.5, 2], [(0, 1), (1, 3)], [(2, 0), (0, 1), (1, 0)]),
     Query.custom([0, 1, 2], [5, 6], "complete")],
    ids=repr,
)  # fmt: skip
def test_round_trip(query):
    again = Query.from_dict(query.to_dict())
    assert again == query
    assert hash(again) == hash(query)
    assert np.array_equal(again.home, query.home)
    assert np.array_equal(again.neighbours.pairs, query.neighbours.pairs)


def test_queries_are_frozen():
    q = Query.count(3)
    with pytest.raises(ValueError, match="read-only"):
        q.inputs[0] = 5
    with pytest.raises(AttributeError):
        q.kind = "mean"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Query.count(0), "'upper' must be at least 1"),
        (lambda: Query.count(2.5), "'upper' must be a whole number"),
        (lambda: Query.count(10**13), "'upper' must give at most 4,000,000 answers"),
        (lambda: Query.count(9, categories=1e-12), "'categories' must give at most"),
        (lambda: Query.mean(records=10**9, lower=0, upper=4), "'records' must give at most"),
        (lambda: Query.count("ten"), "'upper' must be a whole number"),
        (lambda: Query.count(True), "'upper' must be a whole number"),
        (lambda: Query.count(5, categories=0), "'categories' must be a finite number"),
        (lambda: Query.count(5, extend=0.5), "'extend' must be a finite number"),
        (lambda: Query.mean(records=0, lower=0, upper=1), "'records' must be at least 1"),
        (lambda: Query.mean(records=2, lower=1, upper=1), "'upper' must be greater than lower"),
        (lambda: Query.maximum(lower=3, upper=1), "'upper' must be greater than lower"),
        (lambda: Query.custom([0], [0], "path"), "'inputs' must hold at least two"),
        (lambda: Query.custom([1, 0], [0], "path"), "'inputs' must be strictly increasing"),
        (lambda: Query.custom(["a", "b"], [0], "path"), "'inputs' must be numbers"),
        (lambda: Query.custom([0, 1], [(0, 2), (1, 3)], "path"), "disjoint intervals"),
        (lambda: Query.custom([0, 1], [(0, 0.5)], "path"), "category around every true answer"),
        (lambda: Query.custom([0, 1], [(0, np.inf)], "path"), "'outputs' must be finite"),
        (lambda: Query.custom([0, 1], [(1, 0)], "path"), "lower edge below upper edge"),
        (lambda: Query.custom([0, 1], [0, 1], "ring"), "'neighbours' must be 'path'"),
        (lambda: Query.custom([0, 1], [0, 1], []), "'neighbours' must hold at least one pair"),
        (lambda: Query.custom([0, 1], [0, 1], [(0, 2)]), "'neighbours' must index inputs 0..1"),
        (lambda: Query.custom([0, 1], [0, 1], [(0, 0)]), "pair two different inputs"),
        (lambda: Query.custom([0, 1], [0, 1], Neighbours.path(3)), "cover the 2 inputs"),
        (lambda: Query.from_dict({"kind": "sum"}), "'kind' must name a query"),
    ],
)
def test_bad_queries_are_named(make, message):
    with pytest.raises(tv.QueryError, match=message):
        make()


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"kind": ["count"]}, {"kind": "count"},
     {"kind": "count", "upper": 3, "step": 1}, {"kind": "count", "upper": "3"},
     {"kind": "count", "upper": True}, {"kind": "count", "upper": 10**12},
     {"kind": "count", "upper": 10**400}, {"kind": "count", "upper": 3, "categories": "1"},
     {"kind": "count", "upper": 3, "categories": 5e-324},
     {"kind": "count", "upper": 3, "extend": 1e308},
     {"kind": "count", "upper": 3, "extend": 10**400},
     {"kind": "maximum", "lower": 10**400, "upper": 10**400 + 3},
     {"kind": "mean", "records": 1000, "lower": 2**53 - 5, "upper": 2**53},
     {"kind": "custom", "inputs": [0, 1], "outputs": [0, 1]},
     {"kind": "custom", "inputs": [0, 1], "outputs": [0, 1], "neighbours": None},
     {"kind": "custom", "inputs": [0, [1]], "outputs": [0, 1], "neighbours": {}},
     {"kind": "_on_grid", "inputs": [0, 1]}],
)  # fmt: skip
def test_descriptions_that_no_query_wrote_are_refused(data):
    with pytest.raises(tv.QueryError):
        Query.from_dict(data)
