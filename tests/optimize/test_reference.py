"""Values recomputed independently from the papers' programs, typed in; none is fitted.

The tables and figures that the papers print are held by `reproduction`, whose experiments run too.
"""

# The tables of numbers keep their layout.
# fmt: off
import math
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.papers.cormode import paper_loss
from tallyveil.properties import SEVEN

CLOSE = 1e-6


def epsilon(alpha: float | Fraction) -> float:
    return -math.log(alpha)


def optimum(n: int, alpha: float, loss: str, properties=(), method="auto") -> tv.Design:
    query = tv.Query.count(n)
    found = tv.design(query, epsilon(alpha), paper_loss(query, loss), properties=properties,
                      method=method)
    assert found.lower_bound <= found.objective
    assert found.gap < 1e-6
    return found


# Cormode, Kulkarni and Srivastava (2018), section 4: all 128 property sets. Subset number b has
# property p iff bit p of b is set, in the order RH RM CH CM F WH S; its character is the index of
# its optimum.
ALL_128 = [
    (4, 0.62, "L0", [0.7654320988, 0.7881322182, 0.8345519809],
     "0000111111111111222222222222222200001111111111112222222222222222"
     "0000111111111111222222222222222200001111111111112222222222222222"),
    (4, 0.62, "L2", [1.5600495802, 1.746424792, 1.9208667025, 1.9829517651, 2.0224779038,
     1.9653007604, 2.0242255145, 1.7999842618, 1.8931396199],
     "0122344434443444566666666666666678223444344434445666666666666666"
     "0122344434443444566666666666666678223444344434445666666666666666"),
    (4, 0.9, "L1", [1.2, 1.4557754416, 1.4591945701, 1.4597972516, 1.4459808949, 1.4609140271,
     1.4174471111, 1.429128, 1.430648],
     "0000123312331233425522552255225567881233123312334255225522552255"
     "0000123312331233425522552255225567881233123312334255225522552255"),
]


@pytest.mark.parametrize(("n", "alpha", "loss", "values", "which"), ALL_128)
def test_all_property_sets(n, alpha, loss, values, which):
    for subset in range(128):
        names = [name for bit, name in enumerate(SEVEN) if subset >> bit & 1]
        for method in ("lp", "auto") if loss == "L0" else ("lp",):
            found = optimum(n, alpha, loss, names, method)
            assert found.objective == pytest.approx(values[int(which[subset])], rel=CLOSE), names
            assert all(found.mechanism.has(name) for name in names)
            assert found.mechanism.realised_epsilon() <= epsilon(alpha) + 1e-10


# Kohli and Laskowski (2026), section 5: (distribution z, epsilon, then least absolute and squared
# count error without and with the fixed point).
FIXED_POINTS = [
    ([0.3333333333333333, 0.3333333333333333, 0.3333333333333333],
     1.5, 0.2703704559698574, 0.3246433044259554, 0.2858706205476322, 0.3380207182418821),
    ([0.5, 0.25, 0.125, 0.0625, 0.0625],
     0.6931471805599453, 0.6640624999999999, 1.0338541666666665, 0.6987037037037037,
     1.2662962962962965),
    ([0.5, 0.0, 0.2, 0.0, 0.3],
     0.1, 1.453173419061173, 3.023100292121185, 1.6028312134049614, 5.153336161519453),
    ([0.001953125, 0.017578125, 0.0703125, 0.1640625, 0.24609375, 0.24609375, 0.1640625,
     0.0703125, 0.017578125, 0.001953125],
     0.6931471805599453, 0.86651611328125, 1.40252685546875, 0.9461881032098063,
     1.7771381946266187),
    ([0.10636090920983897, 0.030574528788570296, 0.5328246851844209, 0.03632103133213047,
     0.011434929592893122, 0.17839969816166668, 0.04942616323685534, 0.05465805449362419],
     1.5, 0.3300621442769199, 0.5765273363546095, 0.3629229207181289, 0.6413890397791912),
    ([1.1211113262603302e-06, 0.022478005325201073, 0.08596669734895207, 0.012706194814485722,
     0.008580657620956613, 0.002048798286886219, 0.002558997460492758, 0.7217925673161314,
     0.060949399745284794, 0.002453551293041994, 0.00013446620492291574, 0.08032954347231812],
     1.5, 0.19239209546079813, 0.38792719744881055, 0.22072869089118655, 0.44502782524914564),
]


@pytest.mark.parametrize("method", ["auto", "lp"])
@pytest.mark.parametrize("case", FIXED_POINTS)
def test_count_error_with_and_without_the_fixed_point(case, method):
    z, level, *wanted = case
    query = tv.Query.count(len(z) - 1)
    for loss, free, fixed in zip(("absolute", "squared"), wanted[:2], wanted[2:], strict=True):
        without = tv.design(query, level, loss, prior=z, method=method)
        assert without.objective == pytest.approx(free, rel=CLOSE)
        held = tv.design(query, level, loss, fixed_point=z, method=method)
        assert held.objective == pytest.approx(fixed, rel=CLOSE)
        assert np.abs(np.asarray(z) @ held.mechanism.matrix - z).max() < 1e-8
        assert held.method == ("transport" if method == "auto" else "lp")


# Gupte and Sundararajan (2010), section 2.5: minimax optima (n, alpha, side information,
# least worst absolute loss).
MINIMAX = [
    (1, "1/4", [0, 1], 0.2), (1, "1/2", [1], 0.0), (2, "1/4", [0, 1, 2], 0.34782608695652173),
    (2, "1/2", [0, 1, 2], 0.5714285714285714), (2, "4/5", [1, 2], 0.4444444444444444),
    (3, "1/4", [0, 1, 2, 3], 0.40481927710843374), (3, "1/2", [0, 1, 2, 3], 0.7179487179487181),
    (4, "1/4", [0, 1, 2, 3, 4], 0.45558086560364464), (4, "1/2", [1, 2, 3, 4], 0.7179487179487181),
    (4, "4/5", [0, 4], 1.2800000000000002), (5, "1/2", [0, 1, 2, 3, 4, 5], 0.9177489177489178),
    (5, "4/5", [1, 2, 3, 4, 5], 1.3911550021468444),
]  # fmt: skip


@pytest.mark.parametrize(("n", "alpha", "side", "wanted"), MINIMAX)
def test_minimax(n, alpha, side, wanted):
    found = tv.design(tv.Query.count(n), epsilon(Fraction(alpha)), worst_case=True,
                      side_information=side)
    assert found.objective == pytest.approx(wanted, rel=CLOSE, abs=1e-8)
    assert found.mechanism.worst_loss("absolute", side) == pytest.approx(found.objective)
    assert found.lower_bound <= found.objective
    assert found.gap < 1e-6
