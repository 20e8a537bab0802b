"""Every public function that takes a mechanism takes a design and a certified mechanism too."""

import dataclasses

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanism import as_mechanism
from tallyveil.reading.interpret import describe_release

Q = tv.Query.count(6)
CERTIFIED = tv.certify(tv.fair(Q, "1/2"))
M = CERTIFIED.mechanism
DESIGN = dataclasses.replace(tv.design(Q, "1/2"), mechanism=M)
OTHER = tv.geometric(Q, "1/2")
CERTIFIED_GEOMETRIC = tv.certify_geometric(Q, "1/2")

FUNCTIONS = {
    "posterior": lambda m: tv.posterior(m, 3, ("binomial", 0.3)),
    "interpret": lambda m: tv.interpret(m, [3, 0]),
    "interpret with a prior": lambda m: tv.interpret(m, [3, 0], "uniform"),
    "describe_release": lambda m: describe_release(m, 3), "confidence_sets": tv.confidence_sets,
    "unbiased": tv.unbiased, "estimate_total": lambda m: tv.estimate_total(m, [1, 2]),
    "estimate_mean": lambda m: tv.estimate_mean(m, [1, 2]),
    "derivability": lambda m: tv.derivability(m, OTHER),
    "derivability of another": lambda m: tv.derivability(OTHER, source=m),
    "derivation": lambda m: tv.derivation(m, source=m),
    "is_derivable": lambda m: tv.is_derivable(m, source=m), "dominating_remap": tv.dominating_remap,
    "a Bayesian's response": lambda m: tv.Consumer("squared", "uniform").respond(m),
    "a minimax response": lambda m: tv.Consumer("absolute").respond(m),
    "compare": lambda m: tv.compare(m).rows,
    "compare a list": lambda m: tv.compare([m, OTHER]).rows,
    "compare a mapping": lambda m: tv.compare({"one": m}).rows,
    "accuracy": lambda m: tv.accuracy(Q, "1/2", mechanism=m),
    "accuracy of a maker": lambda m: tv.accuracy(Q, "1/2", mechanism=lambda *_: m),
    "chance_within": lambda m: tv.chance_within(Q, "1/2", 1, mechanism=m),
    "smaller_than": OTHER.smaller_than, "isclose": OTHER.isclose,
    "certify": lambda m: tv.certify(m).certificate["digest"],
    "repair": lambda m: tv.repair(m).mechanism.matrix, "as_mechanism": as_mechanism,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_kinds_give_the_same_result(name, same):
    expected = FUNCTIONS[name](M)
    assert same(FUNCTIONS[name](DESIGN), expected)
    assert same(FUNCTIONS[name](CERTIFIED), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [(None, "None"), ("geometri", "geometri|str"), (7, "int"), (object(), "object"),
     (np.eye(7), "ndarray|shape")],
    ids=["None", "str", "int", "object", "ndarray"],
)  # fmt: skip
def test_anything_else_is_named(name, wrong, said):
    if name == "estimate_total" and isinstance(wrong, str):  # the folder of a release
        with pytest.raises(tv.UsageError, match="A release holds its own values"):
            FUNCTIONS[name](wrong)
        return
    with pytest.raises(tv.ArgumentError, match="must") as caught:
        FUNCTIONS[name](wrong)
    if name != "compare" or not isinstance(wrong, np.ndarray):  # there a list of arrays
        assert caught.match(said)


def test_a_certified_geometric_mechanism_is_read_too(same):
    assert same(tv.posterior(CERTIFIED_GEOMETRIC, 3), tv.posterior(OTHER, 3))
    wide = tv.certify_geometric(tv.Query.count(10**6), 1)
    with pytest.raises(tv.ArgumentError, match="at most 4001"):
        tv.posterior(wide, 3)
    with pytest.raises(tv.ArgumentError, match="answer the query"):
        tv.accuracy(tv.Query.count(5), "1/2", mechanism=M)
    with pytest.raises(tv.ArgumentError, match="state epsilon 1"):
        tv.accuracy(Q, 1, mechanism=M)


WRONG = {
    "released, text": lambda: tv.posterior(M, "seven"),
    "released, None": lambda: tv.posterior(M, None),
    "released, list": lambda: tv.posterior(M, [1, 2]),
    "column, text": lambda: tv.interpret(M, ["a"]),
    "column, ragged": lambda: tv.interpret(M, [[1], [1, 2]]),
    "column, table": lambda: tv.interpret(M, [[1, 2], [3, 4]]),
    "total, None": lambda: tv.estimate_total(M, None),
    "total, nothing": lambda: tv.estimate_total(M, []),
    "set of text": lambda: tv.confidence_sets(M).of("x"),
    "confidence, text": lambda: tv.confidence_sets(M, "high"),
    "probability of text": lambda: tv.posterior(M, 3).probability("a", 2),
    "prior, object": lambda: tv.posterior(M, 3, object()),
    "side information, int": lambda: tv.Consumer(side_information=5),
    "side information, text": lambda: tv.Consumer(side_information=["x"]),
    "query, int": lambda: tv.Consumer().best_mechanism(5, 1.0),
    "accuracy of an int": lambda: tv.accuracy(5, 1.0),
    "within, text": lambda: tv.epsilon_for(Q, "near"),
    "within, None": lambda: tv.chance_within(Q, 1, None),
    "epsilon_for a mechanism": lambda: tv.epsilon_for(Q, 1, mechanism=M),
    "compare an int": lambda: tv.compare(5),
    "losses, int": lambda: tv.compare(M, 5),
    "priors, int": lambda: tv.compare(M, priors=5),
    "compare's confidence": lambda: tv.compare(M, confidence=95),
    "count_errors of None": lambda: tv.count_errors(None, [1]),
    "count_errors of text": lambda: tv.count_errors([12345, "a"], [1, 2]),
    "wasserstein of None": lambda: tv.wasserstein(None, [1.0]),
    "wasserstein of text": lambda: tv.wasserstein("ab", [1.0]),
    "exact_derivation": lambda: tv.papers.exact_derivation([[None, 1], [1, 0]], "1/2"),
    "profile of text": lambda: M.privacy_profile("x"),
    "from_dict": lambda: tv.Mechanism.from_dict(None),
    "from_dict, fields": lambda: tv.Mechanism.from_dict(
        {"format": "tallyveil-mechanism", "version": 1}
    ),
    "from_json": lambda: tv.Mechanism.from_json("nonsense"),
    "from_csv": lambda: tv.Mechanism.from_csv(5),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_wrong_kind_of_argument_is_our_error(name):
    with pytest.raises(tv.ArgumentError, match="must") as caught:
        WRONG[name]()
    assert "12345" not in str(caught.value)
