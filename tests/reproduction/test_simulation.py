"""The parts of the simulations: errors in five metrics, standard errors, differences of shares."""

import math

import numpy as np
import pytest

from reproduction.kohli_split import (
    TABLE_3,
    combine_errors,
    compare_shares,
    fit_rule,
)


def test_the_standard_error_of_a_difference_of_shares_is_that_of_repeated_simulations():
    """The delta method against 300 independent pairs of simulations: within 25 %."""
    draw = np.random.default_rng(2)
    apart, stated = [], []
    for _ in range(300):
        first, second = (draw.gamma(20, 1, (40, 5)) for _ in range(2))
        difference, error = compare_shares(first, second)
        apart.append(difference)
        stated.append(error)
    assert np.mean(stated) == pytest.approx(np.std(apart), rel=0.25)
    assert combine_errors(np.full((3, 5), 2.0)) == pytest.approx(2 * math.log(2))


def test_the_rule_of_thumb_follows_from_the_printed_table():
    points = [(epsilon, share) for epsilon, row in TABLE_3.items() for share in row]
    assert fit_rule(points)[0] == pytest.approx((0.639, 0.106, 2.87), rel=5e-3)
