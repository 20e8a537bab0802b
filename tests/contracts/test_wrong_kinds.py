"""A wrong kind of argument gets an error of ours, from every public function of the core."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.certified.transport import implicit_transport
from tallyveil.exact import exact_delta, exact_epsilon, exact_ratio, exact_rational
from tallyveil.loss import loss_table, parse_loss
from tallyveil.mechanisms.geometric import exact_geometric
from tallyveil.neighbours import Neighbours
from tallyveil.prior import mark_possible_answers, require_distribution, resolve_prior
from tallyveil.properties import check_names, rows
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate
from tallyveil.sampling.positions import input_positions

WRONG = {"None": None, "a string": "wrong", "an object": object()}
COUNT = tv.Query.count(3)
EVEN = [0.25] * 4
MECHANISM = tv.geometric(COUNT, 1)
TRANSPORT = implicit_transport(3, 1, EVEN)

CALLS = {
    "Query.count": (tv.Query.count, {"upper": 3, "categories": 1, "extend": 1}),
    "Query.mean": (tv.Query.mean, {"records": 2, "lower": 0, "upper": 2}),
    "Query.maximum": (tv.Query.maximum, {"lower": 0, "upper": 2}),
    "Query.custom": (
        tv.Query.custom,
        {"inputs": [0, 1], "outputs": [0, 1], "neighbours": [(0, 1)]},
    ),
    "Query.from_dict": (tv.Query.from_dict, {"data": COUNT.to_dict()}),
    "Neighbours.path": (Neighbours.path, {"size": 3}),
    "Neighbours.band": (Neighbours.band, {"size": 5, "width": 2}),
    "Neighbours.complete": (Neighbours.complete, {"size": 3}),
    "Neighbours.explicit": (Neighbours.explicit, {"size": 3, "pairs": [(0, 1)]}),
    "Neighbours.from_dict": (Neighbours.from_dict, {"data": Neighbours.path(3).to_dict()}),
    "geometric": (tv.geometric, {"query": COUNT, "epsilon": 1}),
    "fair": (tv.fair, {"query": COUNT, "epsilon": 1}),
    "uniform": (tv.uniform, {"query": COUNT, "epsilon": 1}),
    "randomized_response": (tv.randomized_response, {"query": COUNT, "epsilon": 1}),
    "exponential": (
        tv.exponential,
        {"query": COUNT, "epsilon": 1, "quality": np.eye(4), "sensitivity": 1.0},
    ),
    "laplace": (
        tv.laplace,
        {"query": COUNT, "epsilon": 1, "boundary": "snap", "truncate": "categories"},
    ),
    "staircase": (tv.staircase, {"query": COUNT, "epsilon": 1, "boundary": "snap", "gamma": 0.5}),
    "canonical": (tv.canonical, {"query": COUNT, "epsilon": 1, "delta": 1e-6}),
    "discrete_gaussian": (
        tv.discrete_gaussian,
        {"query": COUNT, "epsilon": 1, "delta": 1e-6, "boundary": "snap"},
    ),
    "transport": (tv.transport, {"query": COUNT, "epsilon": 1, "source": EVEN, "target": EVEN}),
    "implicit_transport": (
        implicit_transport, {"upper": 3, "epsilon": 1, "source": EVEN, "target": EVEN},
    ),
    "frontier": (
        tv.frontier,
        {"query": COUNT, "epsilon": 1, "distribution": EVEN, "loss": "squared", "tradeoffs": [0.5]},
    ),
    "bound_distribution_error": (
        tv.bound_distribution_error, {"rows": 100, "upper": 5, "epsilon": 1},
    ),
    "ImplicitTransport.release": (TRANSPORT.release, {"counts": [1], "entropy": Entropy()}),
    "exact_geometric": (exact_geometric, {"ratio": Fraction(1, 2)}, {"size": 3}),
    "repair": (
        tv.repair,
        {"mechanism": MECHANISM, "epsilon": 1, "target": EVEN, "loss": "absolute", "prior": EVEN},
    ),
    "loss_table": (loss_table, {"query": COUNT, "loss": "absolute"}),
    "parse_loss": (parse_loss, {"text": "absolute"}),
    "resolve_prior": (resolve_prior, {"prior": EVEN}, {"size": 4}),
    "require_distribution": (require_distribution, {"values": EVEN}, {"size": 4}),
    "mark_possible_answers": (mark_possible_answers, {"query": COUNT, "side_information": [1]}),
    "check_names": (check_names, {"names": ["fair"]}),
    "rows": (rows, {"name": "fair", "query": COUNT}),
    "exact_rational": (exact_rational, {"value": 1}),
    "exact_epsilon": (exact_epsilon, {"value": 1}), "exact_delta": (exact_delta, {"value": 0}),
    "exact_ratio": (exact_ratio, {"value": "1/2"}),
    "Entropy.fresh": (Entropy.fresh, {"given": Entropy()}),
    "Entropy.below": (Entropy().below, {"bound": 3, "size": 2}),
    "Entropy.permutation": (Entropy().permutation, {"size": 2}),
    "SeededNotPrivate": (SeededNotPrivate, {"seed": 1}),
    "geometric_noise": (tv.geometric_noise, {"size": 2, "epsilon": 1, "entropy": Entropy()}),
    "discrete_gaussian_noise": (
        tv.discrete_gaussian_noise, {"size": 2, "sigma2": 1, "entropy": Entropy()},
    ),
    "input_positions": (input_positions, {"counts": [1], "query": COUNT}),
}  # fmt: skip
"""Each function, good values for the arguments that are tried, and for those that are not."""

ALLOWED = {
    ("uniform", "epsilon", "None"), ("exponential", "quality", "None"),
    ("exponential", "sensitivity", "None"), ("staircase", "gamma", "None"),
    ("transport", "target", "None"), ("implicit_transport", "target", "None"),
    ("frontier", "tradeoffs", "None"), ("ImplicitTransport.release", "entropy", "None"),
    ("repair", "epsilon", "None"), ("repair", "target", "None"), ("repair", "prior", "None"),
    ("resolve_prior", "prior", "None"), ("mark_possible_answers", "side_information", "None"),
    ("check_names", "names", "None"), ("Entropy.fresh", "given", "None"),
    ("geometric_noise", "entropy", "None"), ("discrete_gaussian_noise", "entropy", "None"),
}  # fmt: skip
"""None where the documentation says what it means."""

CASES = [
    (name, argument, kind)
    for name, (_, tried, *_) in CALLS.items()
    for argument in tried
    for kind in WRONG
]


HOMES = (
    "tallyveil.mechanisms.", "tallyveil.sampling.", "tallyveil.proof.repair",
    "tallyveil.certified.transport",
)  # fmt: skip


def call(name, changed=None):
    function, tried, *others = CALLS[name]
    return function(**{**tried, **(others[0] if others else {}), **(changed or {})})


def test_every_public_function_of_the_core_is_tried():
    functions = {name for name in tv.__all__ if inspect.isfunction(getattr(tv, name))}
    ours = {name for name in functions if getattr(tv, name).__module__.startswith(HOMES)}
    assert "transport" in ours
    assert ours <= set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_the_good_values_are_good(name):
    call(name)


@pytest.mark.parametrize(("name", "argument", "kind"), sorted(set(CASES) - ALLOWED))
def test_a_wrong_kind_is_an_error_of_ours(name, argument, kind):
    with pytest.raises(tv.TallyveilError) as caught:
        call(name, {argument: WRONG[kind]})
    assert "object at 0x" not in str(caught.value)


@pytest.mark.parametrize(("name", "argument", "kind"), sorted(ALLOWED))
def test_none_is_allowed_where_it_means_something(name, argument, kind):
    call(name, {argument: WRONG[kind]})
