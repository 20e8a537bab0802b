import math

import pytest

import tallyveil as tv
from tallyveil.prior import mark_possible_answers, require_distribution, resolve_prior

Q = tv.Query.count(4)


def test_priors():
    assert resolve_prior(None, 4) == pytest.approx([0.25] * 4)
    assert resolve_prior("uniform", 4) == pytest.approx([0.25] * 4)
    assert resolve_prior([1, 0, 3], 3) == pytest.approx([0.25, 0, 0.75])
    distribution = resolve_prior(("binomial", 0.3), 11)
    assert distribution == pytest.approx(
        [math.comb(10, k) * 0.3**k * 0.7 ** (10 - k) for k in range(11)]
    )
    assert resolve_prior(("binomial", 0.0), 3).tolist() == [1, 0, 0]
    assert resolve_prior(("binomial", 1.0), 3).tolist() == [0, 0, 1]
    assert resolve_prior([1e-320, 1e-320], 2) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    "bad",
    [
        [1, 2], [1, -1, 1], [0, 0, 0], [1, math.nan, 1], "normal", ("binomial", 2),
        ("binomial", "p"), [[1, 2, 3]], ["a", "b", "c"],
    ],
)  # fmt: skip
def test_bad_priors_are_named(bad):
    with pytest.raises(tv.ArgumentError, match="'prior' must"):
        resolve_prior(bad, 3)


def test_side_information():
    assert mark_possible_answers(Q, None).all()
    assert mark_possible_answers(Q, [0, 3, 3]).tolist() == [True, False, False, True, False]
    for bad in ([], [9], [0.5], range(3, 3)):
        with pytest.raises(tv.ArgumentError, match="'side_information' must"):
            mark_possible_answers(Q, bad)


def test_distributions_are_taken_as_they_are():
    assert require_distribution([0.5, 0.5 + 1e-12], 2).sum() == pytest.approx(1, abs=1e-15)
    for bad, rule in [
        ([1, 3], "sum to one"),
        ([1.0], "be a distribution with 2 entries"),
        ([1.5, -0.5], "be finite and non-negative"),
        ("ab", "be numbers"),
        (None, "be a distribution with 2 entries"),
    ]:
        with pytest.raises(tv.ArgumentError, match=f"'target' must {rule}"):
            require_distribution(bad, 2, "target")
