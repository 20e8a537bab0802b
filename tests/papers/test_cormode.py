"""Cormode, Kulkarni and Srivastava (2018): objectives, costs and flowchart."""

import itertools
import math

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError
from tallyveil.loss import loss_table
from tallyveil.papers.cormode import paper_loss
from tallyveil.properties import SEVEN


@pytest.mark.parametrize("n", [2, 3, 8, 9])
@pytest.mark.parametrize("alpha", [0.3, 0.62, 0.95])
def test_lemma_5_no_fair_diagonal_is_larger(n, alpha):
    middle = np.abs(np.arange(n + 1) - n // 2)
    bound = 1 / (alpha**middle).sum()  # for even n (1-a)/(1+a-2a^(n/2+1))
    m = tv.fair(tv.Query.count(n), -math.log(alpha))
    assert m.matrix[0, 0] == pytest.approx(bound, rel=1e-12)
    if n % 2 == 0:
        printed = (1 - alpha) / (1 + alpha - 2 * alpha ** (n / 2 + 1))
        assert bound == pytest.approx(printed, rel=1e-12)


def test_theorem_1_symmetrising_is_free_only_for_even_priors():
    # an optimum for the uneven prior of errata, Cormode 10, loses when symmetrised
    q = tv.Query.count(3)
    m = tv.Mechanism(np.tile([0.97, 0.01, 0.01, 0.01], (4, 1)), q)
    uneven = [0.7, 0.1, 0.1, 0.1]
    assert m.symmetrized().has("symmetric")
    assert m.symmetrized().expected_loss("zero_one", uneven) > m.expected_loss("zero_one", uneven)
    even = [0.3, 0.2, 0.2, 0.3]
    for loss in ("zero_one", "absolute", "squared"):
        assert m.symmetrized().expected_loss(loss, even) == pytest.approx(
            m.expected_loss(loss, even), rel=1e-12
        )


def test_theorem_4_and_lemma_2_one_bit_is_randomized_response():
    q = tv.Query.count(1)
    assert tv.exponential(q, 2.0).isclose(tv.randomized_response(q, 1.0), 1e-15)
    assert tv.geometric(q, 0.7).isclose(tv.randomized_response(q, 0.7), 1e-15)


def test_refusals():
    for bad in ("L3", "L0,", "l1", "L0,1.5", "", None):
        with pytest.raises(tv.ArgumentError, match="'name' must be L0"):
            paper_loss(tv.Query.count(4), bad)
    with pytest.raises(tv.QueryError, match="'query' must"):
        paper_loss(4, "L0")
    with pytest.raises(ArgumentError, match=r"2/3.*tallyveil\.papers\.wm"):
        tv.papers.compute_wm_cost(5, 0.9, "monotone")
    for wrong in ({"n": 0}, {"n": 2.5}, {"alpha": 1.0}, {"reading": "strong"}):
        with pytest.raises(ArgumentError):
            tv.papers.compute_wm_cost(**({"n": 5, "alpha": 0.6} | wrong))
    with pytest.raises(tv.QueryError, match="be a count"):
        tv.papers.choose(tv.Query.maximum(0, 5), 1.0)
    with pytest.raises(tv.ArgumentError, match="known properties"):
        tv.papers.choose(tv.Query.count(4), 1.0, ["honest"])


def test_losses_keep_the_scaling_of_the_paper():
    q = tv.Query.count(4)
    m = tv.uniform(q)
    assert m.expected_loss(paper_loss(q, "L0")) == pytest.approx(1.0)
    assert m.expected_loss(paper_loss(q, "L0,0")) == pytest.approx(1.0)
    far = m.expected_loss(("beyond", 1))
    assert m.expected_loss(paper_loss(q, "L0,1")) == pytest.approx(far * 5 / 4)
    assert m.expected_loss(paper_loss(q, "L1")) == pytest.approx(m.expected_loss("absolute"))
    near = np.where(loss_table(q, "absolute") > 2, loss_table(q, "squared"), 0)
    assert m.expected_loss(paper_loss(q, "L2,2")) == pytest.approx(m.expected_loss(near))


GRID = [(n, a) for n in (1, 2, 3, 4, 7, 12) for a in (0.3, 0.5, 0.55, 2 / 3, 0.8, 0.9, 0.99)]


@pytest.mark.parametrize(("n", "alpha"), GRID)
def test_wm_costs_what_the_program_says(n, alpha):
    sets = [("weak", ["weakly_honest"])]
    if alpha <= 2 / 3 or n <= 2:  # the others have no closed form
        same = (["column_honest"], ["column_monotone"], ["weakly_honest", "column_monotone"])
        sets += [("monotone", names) for names in same]
    for reading, names in sets:
        found = tv.design(tv.Query.count(n), -math.log(alpha), "zero_one", properties=names)
        cost = (n + 1) / n * found.objective
        assert tv.papers.compute_wm_cost(n, alpha, reading) == pytest.approx(cost, abs=1e-7)


@pytest.mark.parametrize("n", [1, 2, 4, 20, 21])
@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.62, 10 / 11])
def test_all_128_sets_get_a_closed_form_that_holds_or_a_program(n, alpha):
    q, epsilon = tv.Query.count(n), -math.log(alpha)
    kinds = set()
    for size in range(8):
        for wanted in itertools.combinations(SEVEN, size):
            choice = tv.papers.choose(q, epsilon, wanted)
            kinds.add((choice.method, choice.properties))
            if choice.mechanism is not None:
                assert all(choice.mechanism.has(name) for name in wanted)
            else:
                gm = tv.geometric(q, epsilon)
                assert not all(gm.has(name) for name in wanted)
    assert len(kinds) <= 4


def test_flowchart_by_example():
    # Figure 5 at alpha = 10/11, where the threshold 2a/(1-a) is 20
    epsilon = math.log(1.1)
    small, large = tv.Query.count(8), tv.Query.count(20)
    assert tv.papers.choose(small, epsilon).method == "geometric"
    assert tv.papers.choose(small, epsilon, ["row_monotone", "symmetric"]).method == "geometric"
    assert tv.papers.choose(small, epsilon, ["fair", "column_monotone"]).method == "fair"
    assert tv.papers.choose(small, epsilon, ["weakly_honest"]).properties == ("weakly_honest",)
    assert tv.papers.choose(large, epsilon, ["weakly_honest"]).method in ("geometric", "program")
    assert tv.papers.choose(small, epsilon, ["column_honest"]).properties == ("column_monotone",)
    assert tv.papers.choose(small, epsilon, ["output_private"]).method == "program"
    assert "Weak honesty fails" in tv.papers.choose(small, epsilon, ["weakly_honest"]).reason
