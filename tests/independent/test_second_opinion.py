"""Two verifiers that share no code agree on certificates of every kind, and on forged ones."""

import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.additive import whole_staircase
from tallyveil.proof import certificate as document
from tallyveil.proof.exponent import Growth
from tallyveil.proof.ratios import check_weights
from tallyveil.proof.verify import describe_findings
from tests.independent import judge as second

EPSILONS = ("1/1000", "1/10", "1/3", "0.7", "1", "2", "5", "30", "700")
QUERIES = {
    "count 1": lambda: tv.Query.count(1), "count 6": lambda: tv.Query.count(6),
    "wide categories": lambda: tv.Query.count(6, categories=2),
    "extended": lambda: tv.Query.count(4, extend=3), "mean": lambda: tv.Query.mean(3, 0, 2),
    "maximum": lambda: tv.Query.maximum(0, 4), "median": lambda: tv.Query.median(1, 5),
    "band": lambda: tv.Query.custom(range(7), range(7), tv.Neighbours.band(7, 3)),
    "listed": lambda: tv.Query.custom([0, 1, 3, 7], [0, 1, 3, 7], [(0, 1), (1, 3), (0, 2)]),
    "ranges": lambda: tv.Query.custom([0, 1, 2], [(-0.5, 1.5), (1.5, 2.5)], "path"),
}  # fmt: skip
MAKERS = {
    "geometric": tv.geometric, "fair": tv.fair, "randomized response": tv.randomized_response,
    "exponential": tv.exponential, "laplace": tv.laplace, "staircase": tv.staircase,
    "uniform": tv.uniform,
    "gaussian": lambda query, epsilon: tv.discrete_gaussian(query, epsilon, delta="1/1000"),
    "transport": lambda query, epsilon: tv.transport(
        query, epsilon,
        np.arange(1, query.shape[0] + 1) / sum(range(query.shape[0] + 1)),
    ),
    "repaired": lambda query, epsilon: tv.repair(_disturbed(query), epsilon).mechanism,
}  # fmt: skip


def _disturbed(query):
    draw = random.Random(repr(query))
    rows = [[draw.random() + 0.05 for _ in range(query.shape[1])] for _ in range(query.shape[0])]
    matrix = np.array(rows)
    return tv.Mechanism(matrix / matrix.sum(axis=1, keepdims=True), query)


LEAST = 120
"""How many certificates of every kind are judged in every run."""

SPREAD = [Fraction(k, 25) for k in range(1, LEAST + 1)]


def texts():
    """The text of a certificate for every maker, query and epsilon that go together."""
    made = {}
    for maker, make in MAKERS.items():
        for name, query in QUERIES.items():
            for epsilon in EPSILONS[::2]:
                try:
                    text = tv.certify(make(query(), epsilon)).to_json()
                except (tv.ArgumentError, tv.CertificationError):
                    continue  # not every mechanism is for every query
                made[f"{maker}, {name}, {epsilon}"] = text
    for epsilon in (*map(Fraction, EPSILONS[1:]), *SPREAD):
        made[f"noise, {epsilon}"] = tv.certify_noise(epsilon).to_json()
    for name in ("count 6", "mean", "maximum", "extended"):
        for epsilon in (*map(Fraction, EPSILONS[1:]), *SPREAD[::4]):
            certified = tv.certify_geometric(QUERIES[name](), epsilon)
            made[f"clamped noise, {name}, {epsilon}"] = certified.to_json()
    return made | texts_of_levels() | texts_of_deltas() | texts_of_staircases()


def texts_of_levels():
    """Ladders, and what readers of their last level are shown."""
    made = {}
    several = [[str(e) for e in (3 * k, 2 * k, k)] for k in SPREAD[:25:2]]
    for levels in (["1"], ["2", "1"], ["2", "1", "1/2"], ["5", "1/3"], *several):
        for name in ("count 1", "count 6", "mean", "wide categories", "band"):
            try:
                ladder = tv.Ladder(QUERIES[name](), levels)
            except (tv.ArgumentError, tv.CertificationError):
                continue
            made[f"ladder, {name}, {levels}"] = ladder.to_json()
            for level in range(1, len(levels) + 1):
                made[f"level {level}, {name}, {levels}"] = ladder.level(level).to_json()
    return made


def texts_of_deltas():
    """Canonical noise, what `--delta` draws from."""
    return {
        f"canonical, {upper}, {epsilon}, {delta}": tv.certify(
            tv.canonical(tv.Query.count(upper), epsilon, delta)
        ).to_json()
        for upper in (1, 2, 5, 9)
        for epsilon in (*EPSILONS[:6], *SPREAD[:10])
        for delta in ("1e-9", "1/1000", "1/2")
    }


def texts_of_staircases():
    """Noise for several moves of one count together, what `--one-row` draws from."""
    return {
        f"one row, {upper}, {moves}, {epsilon}": tv.certify(
            whole_staircase(upper, moves, epsilon)
        ).to_json()
        for upper in (1, 3, 6, 11)
        for moves in (2, 3, 5)
        for epsilon in SPREAD[2::12]
    }


def kind_of(text):
    """What a certificate is of: its form, whether it has a delta, how far neighbours are apart."""
    claim = json.loads(text)["certificate"]
    if claim["law"] != "weights":
        return claim["law"]
    if claim["delta"] != "0":
        return "weights with a delta"
    return "weights for several moves" if claim["query"]["kind"] == "custom" else "weights"


@pytest.fixture(scope="module")
def made():
    return texts()


def test_there_are_hundreds_of_every_kind(made):
    kinds = Counter(map(kind_of, made.values()))
    assert kinds.keys() == {
        *("weights", "weights with a delta", "weights for several moves"),
        *("geometric", "noise", "ladder"),
    }
    assert min(kinds.values()) >= LEAST, kinds
    makers = {name.split(",")[0] for name in made}
    assert {*MAKERS, "canonical", "one row"} <= makers


def test_the_second_opinion_imports_nothing_of_ours():
    assert "tallyveil" not in {
        word.split(".")[0]
        for line in Path(second.__file__).read_text(encoding="utf-8").splitlines()
        if line.startswith(("import ", "from "))
        for word in line.split()[1:2]
    }


def test_both_accept_what_was_certified(made):
    for name, text in made.items():
        assert tv.verify(json.loads(text)), name
        assert second.judge(text), name


def lower(text):
    """The same weights under a smaller epsilon, sealed again: a claim that may be false."""
    data = json.loads(text)
    claim = data["certificate"]
    epsilon = Fraction(claim["epsilon"]) * Fraction(9, 10)
    growth = Growth.of(epsilon)
    claim |= {"epsilon": str(epsilon)}
    claim |= {"growth": {"numerator": str(growth.numerator), "shift": growth.shift}}
    if claim["law"] == "weights":
        weights, query = document.read_rows(data["weights"]), tv.Query.from_dict(claim["query"])
        verdict = check_weights(weights, query.neighbours, epsilon, Fraction(claim["delta"]))
        claim |= describe_findings(verdict)
    elif claim["law"] != "ladder":
        claim["achieved_epsilon"] = float(epsilon)
    return reseal(data)


def move(text, units):
    """Some units of weight moved from one output to another, everything else worked out again."""
    data = json.loads(text)
    claim = data["certificate"]
    if claim["law"] != "weights":
        return None
    weights = document.read_rows(data["weights"]).copy()
    row = weights[len(weights) // 2]
    most, least = int(row.argmax()), int(row.argmin())
    row[most] -= units
    row[least] += units
    data["weights"] = document.rows_text(weights)
    claim["weights_sha256"] = document.weights_sha256(weights)
    query = tv.Query.from_dict(claim["query"])
    epsilon, delta = Fraction(claim["epsilon"]), Fraction(claim["delta"])
    claim |= describe_findings(check_weights(weights, query.neighbours, epsilon, delta))
    return reseal(data)


def reseal(data):
    data["certificate"] = document.seal(data["certificate"])
    return document.canonical(data)


def test_both_give_the_same_verdict_on_forged_ones(made):
    verdicts = {True: 0, False: 0}
    forgeries = (lower, *(lambda text, k=k: move(text, k) for k in (1, 2**20, 2**50, 2**58)))
    for name, text in list(made.items())[::3]:
        for forge in forgeries:
            forged = forge(text)
            if forged is None:
                continue
            ours, theirs = bool(tv.verify(json.loads(forged))), second.judge(forged)
            assert ours <= theirs, f"{name}: we accept what is not private"
            assert ours == theirs or json.loads(text)["certificate"]["law"] != "weights", name
            verdicts[ours] += 1
    assert min(verdicts.values()) > 200, verdicts


@pytest.mark.parametrize("width", [0, -7, 1e-15, False, 99])
def test_a_band_without_pairs_is_refused_by_both(width):
    data = tv.certify_noise(40).to_dict()
    numbers = list(range(5))
    relation = {"kind": "band", "size": 5, "width": width}
    query = {"kind": "custom", "inputs": numbers, "outputs": numbers, "neighbours": relation}
    claim = data["certificate"] | {"law": "geometric", "query": query, "neighbours": relation}
    claim |= {"shape": [5, 5], "epsilon": "1/1000000"}
    text = reseal({**data, "certificate": claim})
    assert not tv.verify(json.loads(text))
    assert not second.judge(text)
