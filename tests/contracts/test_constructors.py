"""Every mechanism constructor passes the same checks; a new one must be registered here."""

import importlib
import inspect
import pkgutil
import typing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil import mechanisms
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.additive import whole_staircase

DELTA = 1e-6
BUILD = {
    "geometric": tv.geometric, "fair": tv.fair, "uniform": tv.uniform,
    "randomized_response": tv.randomized_response, "exponential": tv.exponential,
    "laplace": tv.laplace, "staircase": tv.staircase,
    "whole_staircase": lambda q, e: whole_staircase(len(q.inputs) - 1, 1, e),
    "discrete_gaussian": lambda q, e: tv.discrete_gaussian(q, e, DELTA),
    "canonical": lambda q, e: tv.canonical(q, e, DELTA),
    "laplace normalized": lambda q, e: tv.laplace(q, e, "normalize"),
    "staircase normalized": lambda q, e: tv.staircase(q, e, "normalize"),
    "transport": lambda q, e: tv.transport(q, e, source=_law(q), target=_law(q)),
    "oblivious": lambda q, e: tv.papers.oblivious(tv.geometric(q, e).matrix, q.inputs, q, e),
}  # fmt: skip


def _law(query):
    return np.arange(1, len(query.inputs) + 1) / (len(query.inputs) * (len(query.inputs) + 1) / 2)


def constructors() -> set[str]:
    """Public functions of `tallyveil.mechanisms` that return a Mechanism."""
    found = set()
    for module in pkgutil.iter_modules(mechanisms.__path__, "tallyveil.mechanisms."):
        home = importlib.import_module(module.name)
        for name, member in inspect.getmembers(home, inspect.isfunction):
            public = member.__module__ == module.name and not name.startswith("_")
            if public and typing.get_type_hints(member).get("return") is Mechanism:
                found.add(name)
    return found


def test_every_constructor_is_registered():
    assert constructors() <= set(BUILD)


def check(mechanism: Mechanism, epsilon: float) -> None:
    sums = mechanism.matrix.sum(axis=1)
    assert np.abs(sums - 1).max() <= 1e-12
    assert (mechanism.matrix >= 0).all()
    assert not mechanism.matrix.flags.writeable
    if mechanism.delta:
        assert mechanism.privacy_profile([epsilon])[0] <= mechanism.delta * (1 + 1e-9)
    else:
        assert mechanism.realised_epsilon() <= epsilon * (1 + 1e-9)
    assert Mechanism.from_json(mechanism.to_json()) == mechanism


@pytest.mark.parametrize("name", BUILD)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_private_and_stochastic_on_counts(name, data):
    upper = data.draw(st.integers(1, 60), "upper")
    # epsilon * n up to 600: beyond about 700 far tails underflow in doubles
    epsilon = data.draw(st.floats(1e-3, min(20.0, 600 / upper)), "epsilon")
    check(BUILD[name](tv.Query.count(upper), epsilon), epsilon)


EVERY_QUERY = [
    tv.Query.count(1), tv.Query.mean(records=3, lower=0, upper=2),
    tv.Query.maximum(lower=0, upper=6), tv.Query.minimum(lower=-2, upper=2),
    tv.Query.median(lower=1, upper=5),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(BUILD) - {"transport", "canonical"}))
@pytest.mark.parametrize("query", EVERY_QUERY, ids=repr)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_private_and_stochastic_on_every_query(name, query, epsilon):
    check(BUILD[name](query, epsilon), epsilon)


RECTANGULAR = [
    tv.Query.count(6, extend=3),
    tv.Query.mean(records=4, lower=0, upper=2, categories=2),
    tv.Query.maximum(0, 5, categories=0.5),
    tv.Query.custom([0, 1, 2, 5], [(-0.5, 1.5), (1.5, 3), (3, 6)], [(0, 1), (1, 2), (0, 3)]),
]


@pytest.mark.parametrize(
    "name",
    ["uniform", "exponential", "laplace", "staircase", "laplace normalized",
     "staircase normalized"],
)  # fmt: skip
@pytest.mark.parametrize("query", RECTANGULAR, ids=repr)
def test_private_and_stochastic_on_rectangular_queries(name, query):
    check(BUILD[name](query, 0.8), 0.8)


@pytest.mark.parametrize("name", ["fair", "randomized_response"])
def test_square_constructors_refuse_rectangular_queries(name):
    with pytest.raises(tv.QueryError, match="same inputs and outputs"):
        BUILD[name](tv.Query.count(4, extend=3), 1.0)


@pytest.mark.parametrize("name", sorted(set(BUILD) - {"uniform"}))
@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), "one", True, None, "1e-999"])
def test_bad_epsilon_is_named(name, bad):
    with pytest.raises(tv.ArgumentError, match="'epsilon' must"):
        BUILD[name](tv.Query.count(3), bad)
