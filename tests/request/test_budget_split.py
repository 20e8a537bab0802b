"""The split of the budget: exact parts, the rules, refusals."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.errors import ArgumentError
from tallyveil.request.budget_split import rule_of_thumb, split_budget


@pytest.mark.parametrize(
    ("epsilon", "share"),
    [  # Kohli and Laskowski (2026), section 6: the rule of thumb
        (0.1, 0.5060227514701573),
        (0.22, 0.38947428799898776),
        (0.48, 0.24041357455819834),
        (1.05, 0.13218067188387095),
        (2.29, 0.10674544153194003),
        (5.0, 0.106000312321149),
    ],
)
def test_rule_of_thumb(epsilon, share):
    assert rule_of_thumb(epsilon) == pytest.approx(share, abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(Fraction(1, 1000), 20),
    st.sampled_from(["combined", "paper", "distribution_first", "0.3", "1/7", 0]),
    st.integers(1, 10**6),
    st.integers(2, 10**5),
)
def test_the_parts_add_up_exactly(epsilon, rule, records, size):
    split = split_budget(epsilon, rule, records=records, size=size)
    assert split.epsilon1 + split.epsilon2 == epsilon
    assert split.epsilon == epsilon
    assert split.epsilon1 >= 0
    assert split.epsilon2 > 0


def test_rules():
    def share(rule, epsilon, records=10_000, size=50):
        split = split_budget(epsilon, rule, records=records, size=size)
        return float(split.epsilon1 / split.epsilon)

    assert share("paper", 5) == pytest.approx(0.106, abs=1e-6)
    assert share("combined", 1) == pytest.approx(0.85 * rule_of_thumb(1), abs=1e-6)
    assert share("combined", 4.2) == 0  # ln(200) - 1.2 = 4.098
    assert share("combined", 1.9, records=5) == pytest.approx(0.85 * rule_of_thumb(1.9), abs=1e-6)
    assert share("combined", 2, records=5) == 0
    assert share("distribution_first", 0.1) == pytest.approx(0.75)
    assert share("distribution_first", 1) == pytest.approx(0.5)
    assert share("distribution_first", 4.2) == 0


@pytest.mark.parametrize("share", [1, 1.5, -0.1, "2"])
def test_shares_outside_zero_and_one_are_refused(share):
    with pytest.raises(ArgumentError, match=r"'split' must lie in \[0, 1\)"):
        split_budget(1, share, records=10, size=10)


def test_unknown_rule_is_refused():
    with pytest.raises(ArgumentError, match="'split' must be one of combined"):
        split_budget(1, "half", records=10, size=10)
