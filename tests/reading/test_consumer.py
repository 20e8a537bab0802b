import math
from itertools import product

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.loss import loss_table
from tallyveil.reading.consumer import is_unimodal

Q3 = tv.Query.count(3)
RATIOS = {"1/4": 0.25, "1/2": 0.5, "4/5": 0.8}
SIDES = {
    1: [(0, 1), (1,)], 2: [(0, 1, 2), (1, 2), (0, 2)], 3: [(0, 1, 2, 3), (1, 2, 3), (0, 3)],
    4: [(0, 1, 2, 3, 4), (1, 2, 3, 4), (0, 4), (2, 3, 4)],
    5: [(0, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5), (0, 5), (2, 3, 4, 5)],
    7: [tuple(range(8)), tuple(range(1, 8)), (0, 7), (3, 4, 5, 6, 7)],
}  # fmt: skip
GRID = [
    (n, ratio, loss, side)
    for n, sides in SIDES.items()
    for ratio, loss, side in product(RATIOS, ("absolute", "squared", "zero_one"), sides)
]


def deployed(n, ratio):
    return tv.geometric(tv.Query.count(n), repr(-math.log(ratio)))


def test_theorem_1_on_the_grid(solve_private):
    """A response to the geometric mechanism is as good as the mechanism made for the consumer."""
    for n, ratio, loss, side in GRID:
        agent = tv.Consumer(loss, side_information=side)
        found = agent.respond(deployed(n, RATIOS[ratio]))
        losses = loss_table(tv.Query.count(n), loss)
        optimum, _ = solve_private(losses, -math.log(RATIOS[ratio]), worst=side)
        assert found.loss == pytest.approx(optimum, abs=1e-8), (n, ratio, loss, side)
        assert found.universal
        best = agent.best_mechanism(tv.Query.count(n), repr(-math.log(RATIOS[ratio])))
        assert best.worst_loss(loss, side) == pytest.approx(optimum, abs=1e-8)
        assert best.realised_epsilon() <= -math.log(RATIOS[ratio]) + 1e-9


def test_random_monotone_and_unimodal_losses(solve_private, random_monotone, random_unimodal):
    rng = np.random.default_rng(6)
    for trial in range(40):
        n = int(rng.integers(2, 8))
        epsilon = round(float(rng.uniform(0.1, 2.0)), 3)
        losses = (random_monotone if trial % 2 else random_unimodal)(rng, n)
        assert is_unimodal(losses)
        side = sorted(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False).tolist())
        g = tv.geometric(tv.Query.count(n - 1), epsilon)
        minimax = tv.Consumer(losses, side_information=side).respond(g)
        optimum, _ = solve_private(losses, epsilon, worst=side)
        assert minimax.loss == pytest.approx(optimum, abs=1e-8)
        prior = rng.dirichlet(np.ones(n))
        bayes = tv.Consumer(losses, prior).respond(g)
        optimum, _ = solve_private(prior[:, None] * losses, epsilon)
        assert bayes.loss == pytest.approx(optimum, abs=1e-8)
        assert minimax.universal
        assert bayes.universal


def test_certificates_can_be_checked_with_one_call():
    """Weak duality: the mean under any prior bounds the worst case from below."""
    rng = np.random.default_rng(7)
    for name in ("geometric", "fair", "exponential"):
        m = getattr(tv, name)(tv.Query.count(9), 0.6)
        for loss in ("absolute", "squared", "zero_one", ("beyond", 2)):
            r = tv.Consumer(loss).respond(m)
            assert r.certificate.prior.sum() == pytest.approx(1)
            assert r.certificate.prior.min() >= 0
            proved = m.bayes_loss(loss, r.certificate.prior)
            assert r.certificate.lower_bound <= proved + 1e-12
            assert r.loss - proved <= 1e-8 * max(1, r.loss)
            assert r.induced.worst_loss(loss) == pytest.approx(r.loss, abs=1e-12)
            assert r.remap.min() >= 0
            assert np.abs(r.remap.sum(axis=1) - 1).max() < 1e-12
            for _ in range(5):  # no random remap does better than the proved bound
                T = rng.dirichlet(np.full(10, 0.2), size=10)
                losses = loss_table(m.query, loss)
                assert ((m.matrix @ T) * losses).sum(axis=1).max() >= r.certificate.lower_bound


def test_bayes_response_and_its_ties():
    m = tv.Mechanism([[0.5, 0.5], [0.5, 0.5]], tv.Query.count(1), 1.0)
    r = tv.Consumer("absolute", "uniform").respond(m)
    assert r.loss == pytest.approx(0.5)
    assert [(tie.released, tie.guesses) for tie in r.ties] == [(0.0, (0.0, 1.0)), (1.0, (0.0, 1.0))]
    assert r.remap.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    skewed = tv.Consumer("absolute", [0.9, 0.1]).respond(m)
    assert not skewed.ties
    assert skewed.certificate.gap == pytest.approx(0, abs=1e-15)


def test_side_information_conditions_a_prior():
    m = tv.geometric(tv.Query.count(5), 1.0)
    r = tv.Consumer("absolute", "uniform", side_information=[2, 3]).respond(m)
    assert r.certificate.prior.tolist() == [0, 0, 0.5, 0.5, 0, 0]
    assert set(r.remap.argmax(axis=1)) == {2, 3}
    with pytest.raises(tv.ArgumentError, match="side information"):
        tv.Consumer("absolute", [1, 0, 0, 0, 0, 0], side_information=[2, 3]).respond(m)


def test_rectangular_mechanisms_are_answered_over_the_true_answers():
    q = tv.Query.maximum(0, 4, categories=2, extend=3)
    m = tv.laplace(q, 1.0)
    for prior in (None, "uniform"):
        r = tv.Consumer("absolute", prior).respond(m)
        assert r.remap.shape == (len(q.outputs), 5)
        assert r.induced.query.outputs.tolist() == q.inputs.tolist()
        assert r.certificate.gap <= 1e-8
        assert not r.universal


def test_a_loss_that_is_not_unimodal_says_what_that_means(solve_private):
    """The response stays the best response; another mechanism may be strictly better."""
    rng = np.random.default_rng(11)
    q = tv.Query.count(4)
    improved = 0
    for _ in range(10):
        losses = rng.normal(size=(5, 5))
        agent = tv.Consumer(losses)
        r = agent.respond(tv.geometric(q, 1.0))
        assert not r.universal
        assert "best_mechanism" in r.note
        optimum, _ = solve_private(losses, 1, worst=range(5))
        best = agent.best_mechanism(q, 1.0)
        assert best.worst_loss(losses) == pytest.approx(optimum, abs=1e-7)
        improved += r.loss > optimum + 1e-6
        prior = rng.dirichlet(np.ones(5))
        bayes = tv.Consumer(losses, prior).best_mechanism(q, 1.0)
        optimum, _ = solve_private(prior[:, None] * losses, 1)
        assert bayes.expected_loss(losses, prior) == pytest.approx(optimum, abs=1e-7)
    assert improved > 0


@pytest.mark.parametrize("side", [[], [9], [-1], [1.5]])
def test_bad_side_information(side):
    with pytest.raises(tv.ArgumentError, match="side_information"):
        tv.Consumer("absolute", side_information=side).respond(tv.geometric(tv.Query.count(4), 1))


def test_a_mechanism_with_another_epsilon_than_it_states_is_not_called_universal():
    m = tv.Mechanism(tv.geometric(tv.Query.count(4), 1.0).matrix, tv.Query.count(4), 2.0)
    assert not tv.Consumer("absolute").respond(m).universal


def test_a_path_stated_as_pairs_is_a_path():
    q = tv.Query.custom(range(4), range(4), [(0, 1), (1, 2), (2, 3)])
    agent = tv.Consumer("absolute")
    found, count = agent.respond(tv.geometric(q, 1)), agent.respond(tv.geometric(Q3, 1))
    assert found.universal
    assert found.note == count.note
    assert found.loss == pytest.approx(count.loss, abs=1e-12)
    best = agent.best_mechanism(q, 1.0)
    assert best.worst_loss() == pytest.approx(found.loss, abs=1e-9)
    branched = tv.Query.custom(range(4), range(4), [(0, 1), (1, 2), (1, 3)])
    other = tv.Mechanism(tv.geometric(q, 1).matrix, branched, 1)
    assert not agent.respond(other).universal
