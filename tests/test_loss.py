import math

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.loss import loss_name, loss_table, parse_loss

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
    with pytest.raises(tv.ArgumentError, match="'loss' must") as refused:
        loss_table(Q, bad)
    assert not isinstance(bad, str) or refused.match('"absolute", "squared", "zero_one"')


def test_names_and_losses_written_as_text():
    assert loss_name(np.ones((5, 5))) == "table"
    assert loss_name(math.hypot) == "hypot"
    assert parse_loss("absolute") == "absolute"
    assert parse_loss("power:1.5") == ("power", 1.5)
    assert parse_loss("beyond:0") == ("beyond", 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beyond:x", "must have a number after 'beyond:'. Got 'beyond:x'"),
        ("beyond:", "must have a number after 'beyond:'"),
        ("beyond", "must have a number after 'beyond:'"),
        ("power:0", "must have a power greater than 0"),
        ("beyond:-1", "must have a distance of at least 0"),
        ("power:nan", "must give 'power' a finite number"),
        ("hinge", "must be a known loss. Got 'hinge'. Known losses: absolute, squared"),
        ("absolute:3", "must be a known loss"),
        ("", "must be a known loss"),
        (None, "must be a known loss"),
    ],
)
def test_bad_losses_written_as_text_have_one_right_message(text, message):
    with pytest.raises(tv.ArgumentError, match=f"'loss' {message}"):
        parse_loss(text)


WEIGHTS = [0, 1, 2, 1, 5]


def test_weighted_worst_case_is_the_largest_weighted_loss():
    m = tv.geometric(Q, 0.7)
    by_input = np.array(WEIGHTS) * m.loss_by_input("squared")
    assert m.worst_loss(tv.weigh_loss(Q, "squared", WEIGHTS)) == pytest.approx(by_input.max())


def test_the_design_for_a_weighted_worst_case_beats_the_unweighted_one():
    table = tv.weigh_loss(Q, "absolute", WEIGHTS)
    best = tv.design(Q, 0.7, table, worst_case=True)
    plain = tv.design(Q, 0.7, "absolute", worst_case=True)
    assert best.gap < 1e-6
    assert best.objective == pytest.approx(best.mechanism.worst_loss(table))
    assert best.objective < plain.mechanism.worst_loss(table) - 1e-3
    with pytest.raises(tv.UsageError, match="weigh_loss"):
        tv.design(Q, 0.7, worst_case=True, prior=[0.2] * 5)


@pytest.mark.parametrize("weights", [[1] * 4, [1, 1, 1, 1, -1], [0] * 5, [1, 1, 1, 1, math.inf], 3])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(tv.ArgumentError, match="'weights' must"):
        tv.weigh_loss(Q, "absolute", weights)
