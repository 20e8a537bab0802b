"""Budget shares: from public sizes, none for a level that is not worth it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tallyveil.errors import ArgumentError
from tallyveil.mechanisms.geometric import noise_variance
from tallyveil.sums.shares import default_weights, share_budget, share_margins

STATES = (1, 51, 3136)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 4, 10])
def test_shares_add_up_to_one(epsilon: float) -> None:
    shares = share_budget((1, 10, 300, 5000), epsilon)
    assert sum(shares) == 1
    assert all(share >= 0 for share in shares)
    assert shares[-1] > Fraction(1, 2)


def test_a_level_gets_what_its_groups_need() -> None:
    assert share_budget(STATES, 0.5)[1] > share_budget((1, 51, 22_615), 0.5)[1] > 0
    assert share_budget(STATES, 4) == (0, 0, 1)
    """Ten rows with counts to 30 in each group at 0.5: noise hides how rows differ."""
    districts = (1, 100, 1000)
    assert share_budget(districts, 0.46, upper=30)[1] == Fraction(98, 100)
    assert share_budget(districts, 2, upper=30)[1] < Fraction(1, 2)
    assert share_budget(districts, 0.46, upper=1000)[1] < Fraction(1, 2)


def test_weights_and_known_totals_move_the_budget() -> None:
    equal, states = share_budget(STATES, 1, (0, 1, 1)), share_budget(STATES, 1, (0, 9, 1))
    assert states[1] > equal[1]
    assert share_budget(STATES, 1, (0, 0, 1)) == (0, 0, 1)
    assert share_budget(STATES, 1, (0, 1, 0)) == (0, Fraction(999, 1000), Fraction(1, 1000))
    assert share_budget(STATES, 1, exact=1) == (0, 0, 1)  # known sums cost nothing
    assert share_budget(STATES, 1, exact=0)[0] == 0
    assert share_budget(STATES, 1, (4.0, 0.0, 1.0))[0] > 0
    assert share_budget(STATES, 1, (4.0, 0.0, 1.0), total_variance=1.0)[0] == 0


@pytest.mark.parametrize(
    ("weights", "got"),
    [((1, 1), "Got 2 numbers"), ((0, 0, 0), "nothing but 0"), ((-1, 1, 1), "a number below 0")],
)
def test_weights_that_do_not_fit_are_refused(weights: tuple[float, ...], got: str) -> None:
    with pytest.raises(ArgumentError, match=f"'weights' must.*{got}"):
        share_budget(STATES, 1, weights)


def weigh(sizes: tuple[int, int, int], epsilon: float, shares: tuple[float, float]) -> float:
    """The stated error of two margins and rows, in plain steps; infinite if a margin is harmed."""
    left, rows = epsilon * (1 - sum(shares)), sizes[-1]
    error = (np.sinh(epsilon) / np.sinh(left)) ** 2
    weights = default_weights(sizes, epsilon)
    for weight, size, share in zip(weights, sizes, shares, strict=False):
        own = 1 / noise_variance(epsilon * share) if share else 0.0
        variance = 1 / (own + size / (rows * noise_variance(left)))
        relative = variance * size / (rows * noise_variance(epsilon))
        error += 2 * weight * relative if relative < 1 + 1e-12 else np.inf
    return float(error)


@pytest.mark.parametrize("sizes", [(12, 16, 192), (16, 12, 1920), (2, 400, 9000), (100, 50, 5000)])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1, 2])
def test_no_other_shares_of_two_margins_are_better(
    sizes: tuple[int, int, int], epsilon: float
) -> None:
    first, second, _ = share_margins(sizes, epsilon)
    found = weigh(sizes, epsilon, (float(first), float(second)))
    others = [0, 0.004, 0.01, *np.arange(0.02, 0.7, 0.02)]
    tried = [(a, b) for a in others for b in others if a + b <= 0.98]
    assert found <= min(weigh(sizes, epsilon, pair) for pair in tried) * (1 + 1e-9)


def test_margins_of_few_rows_are_added_up_and_those_of_many_are_measured() -> None:
    assert share_margins((12, 16, 192), 1) == (0, 0, 1)
    assert share_margins((20, 20, 4000), 4) == (0, 0, 1)
    few, many, rows = share_margins((4, 100, 40_000), 0.5)
    assert 0 < few < many < rows
