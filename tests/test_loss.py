import math

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.loss import loss_name, loss_table, prior_law, side_mask

Q = tv.Query.count(4)
COARSE = tv.Query.count(8, categories=3)


def test_named_losses():
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert np.array_equal(loss_table(Q, "absolute"), distance)
    assert np.array_equal(loss_table(Q, "squared"), distance**2)
    assert np.array_equal(loss_table(Q, "zero_one"), distance > 0)
    assert np.array_equal(loss_table(Q, ("beyond", 1)), distance > 1)
    assert np.allclose(loss_table(Q, ("power", 1.5)), distance**1.5)


def test_zero_one_on_categories_asks_for_the_truths_own_category():
    table = loss_table(COARSE, "zero_one")
    assert (table.sum(axis=1) == len(COARSE.outputs) - 1).all()
    assert (table[np.arange(9), COARSE.home] == 0).all()


def test_functions_with_and_without_broadcasting():
    def steep(true, released):
        return 3 * (released - true) if released > true else true - released

    table = loss_table(Q, steep)
    assert table[1, 4] == 9
    assert table[4, 1] == 3
    assert np.array_equal(loss_table(Q, lambda t, r: np.abs(t - r)), loss_table(Q, "absolute"))
    assert np.array_equal(loss_table(Q, lambda t, r: 1.0), np.ones((5, 5)))
    assert np.array_equal(loss_table(Q, table), table)


@pytest.mark.parametrize(
    "bad",
    ["L7", ("beyond", -1), ("power", 0), ("power", math.nan), ("huber", 1), np.ones((2, 2)),
     np.full((5, 5), np.nan), "Absolute", 3.0, None, lambda t, r: math.inf],
)  # fmt: skip
def test_bad_losses_are_named(bad):
    with pytest.raises(tv.ArgumentError, match="'loss' must"):
        loss_table(Q, bad)


def test_unknown_loss_lists_the_known_ones():
    with pytest.raises(tv.ArgumentError, match=r'"absolute", "squared", "zero_one"'):
        loss_table(Q, "hinge")


def test_names():
    assert loss_name(np.ones((5, 5))) == "table"
    assert loss_name(math.hypot) == "hypot"


def test_priors():
    assert prior_law(None, 4) == pytest.approx([0.25] * 4)
    assert prior_law("uniform", 4) == pytest.approx([0.25] * 4)
    assert prior_law([1, 0, 3], 3) == pytest.approx([0.25, 0, 0.75])
    law = prior_law(("binomial", 0.3), 11)
    assert law == pytest.approx([math.comb(10, k) * 0.3**k * 0.7 ** (10 - k) for k in range(11)])
    assert prior_law(("binomial", 0.0), 3).tolist() == [1, 0, 0]
    assert prior_law(("binomial", 1.0), 3).tolist() == [0, 0, 1]
    assert prior_law([1e-320, 1e-320], 2) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    "bad",
    [[1, 2], [1, -1, 1], [0, 0, 0], [1, math.nan, 1], "normal", ("binomial", 2), ("binomial", "p"),
     [[1, 2, 3]], ["a", "b", "c"]],
)  # fmt: skip
def test_bad_priors_are_named(bad):
    with pytest.raises(tv.ArgumentError, match="'prior' must"):
        prior_law(bad, 3)


def test_side_information():
    assert side_mask(Q, None).all()
    assert side_mask(Q, [0, 3, 3]).tolist() == [True, False, False, True, False]
    for bad in ([], [9], [0.5], range(3, 3)):
        with pytest.raises(tv.ArgumentError, match="'side_information' must"):
            side_mask(Q, bad)
