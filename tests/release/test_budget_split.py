"""The split of the budget: exact parts, the rules, refusals."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.errors import ArgumentError
from tallyveil.release.split import predict_distance, predict_error, rule_of_thumb, split_budget


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
    assert float(share_of(epsilon, 1, 1, "paper")) == pytest.approx(share, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(Fraction(1, 1000), 20),
    st.sampled_from(["predicted", "paper", "0.3", "1/7", 0]),
    st.integers(1, 10**6),
    st.integers(2, 10**5),
)
def test_the_parts_add_up_exactly(epsilon, rule, records, size):
    split = split_budget(epsilon, rule, records=records, size=size)
    assert split.epsilon1 + split.epsilon2 == epsilon
    assert split.epsilon == epsilon
    assert split.epsilon1 >= 0
    assert split.epsilon2 > 0


def share_of(epsilon, records, size, rule="predicted"):
    split = split_budget(epsilon, rule, records=records, size=size)
    return split.epsilon1 / split.epsilon


@pytest.mark.parametrize(
    ("epsilon", "records", "size", "share"),
    [
        ("0.1", 3136, 51, "0.38"),
        ("0.5", 3136, 51, "0.21"),
        ("0.5", 3143, 101, "0.09"),  # few rows for each count: the totals tell less
        ("0.5", 22615, 81, "0.23"),  # at most the paper's share, 0.233
        ("0.25", 500, 51, "0.19"),  # the least that tells anything, 16 sqrt(2)/(500/4) = 0.181
        ("0.1", 400, 21, "0.57"),  # so too, though above the paper's share
        ("0.1", 300, 21, 0),  # nothing below 0.6 would tell anything
        ("0.5", 250, 51, 0),  # fewer than five rows for each count
        ("0.25", 3143, 601, "0.21"),  # of a wide range a hundred cells are in use
        ("0.25", 3143, 10**6, "0.21"),
        (1, 3143, 101, "0.08"),  # no smaller share: a few atoms are not smooth
        (4, 3136, 51, 0),  # the draws alone tell the distribution
    ],
)
def test_the_share_by_public_sizes(epsilon, records, size, share):
    assert share_of(epsilon, records, size) == Fraction(share)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 6), st.integers(600, 10**6), st.integers(2, 100))
def test_no_other_share_is_predicted_better(epsilon, records, size):
    def predict(share):
        distance = predict_distance(epsilon, share, records, size)
        return predict_error(epsilon * (1 - share)) * distance**0.5

    best = float(share_of(epsilon, records, size))
    allowed = [part / 100 for part in range(61) if part / 100 <= rule_of_thumb(epsilon)]
    allowed = [s for s in allowed if not s or (s >= 0.08 and epsilon * s * records >= 23)]
    assert all(predict(best) <= predict(share) * (1 + 1e-9) for share in allowed)


def test_predictions_fall_with_rows_and_with_the_share():
    few, many = (predict_distance(0.5, 0.2, rows, 51) for rows in (500, 50_000))
    assert many < few
    distances = [predict_distance(0.5, part / 10, 3136, 51) for part in range(7)]
    assert distances == sorted(distances, reverse=True)
    assert predict_error(0.4) > predict_error(0.5)


@pytest.mark.parametrize("share", [1, 1.5, -0.1, "2", "half"])
def test_shares_outside_zero_and_one_and_unknown_rules_are_refused(share):
    words = "be one of predicted" if share == "half" else r"lie in \[0, 1\)"
    with pytest.raises(ArgumentError, match=f"'split' must {words}"):
        split_budget(1, share, records=10, size=10)
