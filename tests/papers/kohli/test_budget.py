"""The paper's split of the budget."""

from fractions import Fraction

import pytest

import tallyveil as tv
from tallyveil.request.budget_split import rule_of_thumb


@pytest.mark.parametrize("epsilon", ["0.1", 1, "5"])
def test_the_rule_of_thumb_is_the_default(epsilon):
    parts = tv.papers.split_budget(epsilon)
    assert parts.epsilon1 + parts.epsilon2 == Fraction(epsilon)
    share = rule_of_thumb(float(Fraction(epsilon)))
    assert float(parts.epsilon1 / parts.epsilon) == pytest.approx(share, abs=1e-6)


def test_a_share_is_kept_exactly():
    parts = tv.papers.split_budget("0.9", "1/3")
    assert (parts.epsilon1, parts.epsilon2) == (Fraction(3, 10), Fraction(3, 5))
