import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv

Q = tv.Query.count(3)
M = tv.Mechanism(
    [[0.4, 0.3, 0.2, 0.1], [0.2, 0.4, 0.2, 0.2], [0.1, 0.2, 0.5, 0.2], [0.1, 0.2, 0.3, 0.4]],
    Q,
    epsilon="1/2",
)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), r"have shape \(4, 4\)"),
        (np.full((4, 4), np.nan), "be finite"),
        (np.array([[1.1, -0.1, 0, 0]] * 4), r"non-negative. Got -0.1 at \(0, 1\)"),
        (np.array([[0.5, 0.4, 0, 0]] * 4), "rows that sum to 1. Got 0.9 in row 0"),
        ([["a"] * 4] * 4, "be a table of numbers"),
    ],
)
def test_a_matrix_that_is_no_mechanism(matrix, message):
    with pytest.raises(tv.MechanismError, match=message):
        tv.Mechanism(matrix, Q)


def test_solver_round_off_is_tolerated_and_judged():
    noisy = np.eye(4) * (1 + 3e-8)
    noisy[0, 1] = -2e-9
    m = tv.Mechanism(noisy, Q)
    assert m.matrix.min() == 0
    assert m.realised_epsilon() == math.inf


def test_realised_epsilon_and_its_witness():
    worst = M.worst_pair()
    assert M.realised_epsilon() == pytest.approx(math.log(0.5 / 0.2))
    assert (worst.likelier, worst.rarer, worst.output) == (2, 1, 2)


def brute_epsilon(m):
    worst = 0.0
    for i, k in m.query.neighbours.pairs.tolist():
        for a, b in zip(m.matrix[i], m.matrix[k], strict=True):
            if a != b:
                worst = max(worst, math.inf if min(a, b) == 0 else abs(math.log(a / b)))
    return worst


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_realised_epsilon_over_every_relation(data):
    size = data.draw(st.integers(3, 6))
    pairs = data.draw(
        st.sets(
            st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
                lambda p: p[0] != p[1]
            ),
            min_size=1,
        )
    )
    relation = data.draw(st.sampled_from(["path", "complete", sorted(pairs)]))
    q = tv.Query.custom(range(size), [0, 1, 2], relation)
    cells = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any)
    table = np.array([data.draw(cells) for _ in range(size)], dtype=float)
    m = tv.Mechanism(table / table.sum(axis=1, keepdims=True), q)
    assert m.realised_epsilon() == pytest.approx(brute_epsilon(m), rel=1e-12)
    worst = m.worst_pair()
    if worst.epsilon > 0:
        a, b = m.matrix[worst.likelier, worst.output], m.matrix[worst.rarer, worst.output]
        assert worst.epsilon == pytest.approx(math.inf if b == 0 else math.log(a / b))
        assert sorted((worst.likelier, worst.rarer)) in q.neighbours.pairs.tolist()


def test_small_epsilons_keep_their_digits_and_underflow_is_reported():
    small = tv.geometric(tv.Query.count(5), "1e-9")
    assert small.realised_epsilon() == pytest.approx(1e-9, rel=1e-6)
    assert tv.geometric(tv.Query.count(2000), 1.0).realised_epsilon() == math.inf


def test_privacy_profile_is_the_hockey_stick():
    m = tv.discrete_gaussian(tv.Query.count(12), 0.5, 1e-3)
    epsilons = [0.0, 0.25, 0.5, 1.0]
    wanted = [
        max(
            np.maximum(m.matrix[i] - math.exp(e) * m.matrix[k], 0).sum()
            for a, b in m.query.neighbours.pairs.tolist()
            for i, k in ((a, b), (b, a))
        )
        for e in epsilons
    ]
    assert m.privacy_profile(epsilons) == pytest.approx(wanted, rel=1e-12)
    pure = tv.geometric(Q, 0.7)
    assert pure.privacy_profile([0.7])[0] <= 1e-15
    with pytest.raises(tv.ArgumentError, match="'epsilons' must"):
        pure.privacy_profile([-1])


def test_losses_bias_and_spread():
    draws = np.array([[0, 1, 2, 3]])
    mean = (M.matrix * draws).sum(axis=1)
    assert M.bias() == pytest.approx(mean - np.arange(4))
    assert M.variance() == pytest.approx((M.matrix * draws**2).sum(axis=1) - mean**2)
    assert M.rmse() ** 2 == pytest.approx(M.variance() + M.bias() ** 2)
    assert M.expected_loss("absolute") == pytest.approx(M.loss_by_input("absolute").mean())
    assert M.worst_loss("squared") == pytest.approx(M.loss_by_input("squared").max())
    assert M.worst_loss("squared", [2]) == pytest.approx(M.loss_by_input("squared")[2])
    assert M.error_probability([0, 0, 1, 0]) == pytest.approx(0.5)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("name", ["geometric", "fair", "uniform"])
def test_intervals_cover_at_least_their_confidence(name, confidence):
    m = getattr(tv, name)(tv.Query.count(15), 0.6)
    for i, (low, high) in enumerate(m.interval(confidence)):
        inside = (m.query.outputs >= low) & (m.query.outputs <= high)
        assert m.matrix[i, inside].sum() >= confidence - 1e-15
        assert m.matrix[i, m.query.outputs < low].sum() <= (1 - confidence) / 2 + 1e-15
        assert m.matrix[i, m.query.outputs > high].sum() <= (1 - confidence) / 2 + 1e-15


@pytest.mark.parametrize("bad", [0, 1, -0.5, 95])
def test_confidence_is_a_probability(bad):
    with pytest.raises(tv.ArgumentError, match="'confidence' must"):
        M.interval(bad)


def test_bayes_loss_by_trying_every_remap():
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    distance = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    best = min(
        sum(prior[t] * M.matrix[t, r] * distance[t, guess[r]] for t in range(4) for r in range(4))
        for guess in itertools.product(range(4), repeat=4)
    )
    assert M.bayes_loss("absolute", prior) == pytest.approx(best)
    remap = M.bayes_remap("absolute", prior)
    used = sum(
        prior[t] * M.matrix[t, r] * distance[t, remap[r]] for t in range(4) for r in range(4)
    )
    assert used == pytest.approx(best)


def test_bayes_loss_obeys_sufficiency():
    # splitting one output in two halves must change nothing (errata, Croft 2)
    q = tv.Query.custom([0, 1, 2], [0, 1, 2, 3], "path")
    m = tv.Mechanism([[0.6, 0.3, 0.1, 0], [0.2, 0.5, 0.3, 0], [0.1, 0.3, 0.6, 0]], q)
    halved = m.matrix.copy()
    halved[:, 3] = halved[:, 1] / 2
    halved[:, 1] /= 2
    assert tv.Mechanism(halved, q).bayes_loss() == pytest.approx(m.bayes_loss())


def test_the_stochastic_order_of_errors():
    q = tv.Query.count(6)
    sharp, blunt = tv.geometric(q, 1.0), tv.geometric(q, 0.5)
    assert sharp.smaller_than(blunt)
    assert not blunt.smaller_than(sharp)
    assert sharp.smaller_than(sharp)
    assert not tv.fair(q, 0.5).smaller_than(blunt)  # the ends lose mass
    with pytest.raises(tv.ArgumentError, match="same query"):
        sharp.smaller_than(tv.geometric(Q, 1.0))


def test_json_round_trip_without_loss():
    for m in (M, tv.geometric(tv.Query.mean(records=3, lower=0, upper=2), 0.1)):
        again = tv.Mechanism.from_json(m.to_json())
        assert again == m
        assert hash(again) == hash(m)
        assert again.name == m.name
    with pytest.raises(tv.MechanismError, match="'data' must be a tallyveil-mechanism"):
        tv.Mechanism.from_json(json.dumps({"format": "other"}))


@pytest.mark.parametrize("form", ["to_csv", "to_ptable"])
def test_text_round_trips_without_loss(form, tmp_path):
    path = tmp_path / "matrix.csv"
    text = getattr(M, form)(path)
    for source in (path, str(path), text):
        again = tv.Mechanism.from_csv(source, epsilon="1/2")
        assert again == M


def test_plain_and_foreign_tables_are_read(tmp_path):
    plain = tmp_path / "plain.csv"
    plain.write_text("\ufeff0.5,0.5\n0.25,0.75\n", encoding="utf-8")
    assert tv.Mechanism.from_csv(plain).query == tv.Query.count(1)
    foreign = '"i";"j";"p";"v"\n0;0;1;0\n1;0;0.25;-1\n1;2;0.75;1\n'
    m = tv.Mechanism.from_csv(foreign)
    assert m.query.inputs.tolist() == [0, 1]
    assert m.query.outputs.tolist() == [0, 2]
    assert m.matrix.tolist() == [[1, 0], [0.25, 0.75]]
    assert m.realised_epsilon() == math.inf


def test_frozen_and_readable():
    with pytest.raises(AttributeError):
        M.epsilon = 2.0
    with pytest.raises(ValueError, match="read-only"):
        M.matrix[0, 0] = 1
    assert repr(M) == "<mechanism: 4 x 4, Query.count(upper=3), epsilon=0.5>"
    assert not hasattr(M, "release")


def test_plot_writes_a_picture(tmp_path):
    for name in ("small.png", "small.svg"):
        M.plot(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 3000
    tv.geometric(tv.Query.count(60), 0.5).plot(tmp_path / "large.png")
    M.plot(tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "small.svg").read_bytes()
