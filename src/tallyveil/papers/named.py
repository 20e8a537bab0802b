"""Mechanisms that the papers call by name and that are found by a program."""

from __future__ import annotations

from typing import Any, Literal

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss
from tallyveil.optimize.design import Design, design
from tallyveil.properties import SEVEN
from tallyveil.query import Query

__all__ = ["am", "fm", "ucm", "variant1", "variant2", "wm"]

VARIANT_2 = ("row_monotone", "column_monotone", "symmetric", "fair")


def variant1(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """LP Mechanism Variant 1 of paper 001: the least expected error, nothing else asked.

    >>> round(variant1(Query.count(5), 0.5).objective, 9)       # Table 3
    1.060537197
    """
    return design(query, epsilon, loss, **options)


def variant2(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """LP Mechanism Variant 2 of paper 001: row and column monotone, symmetric and fair.

    >>> round(variant2(Query.count(5), 0.5).objective, 9)       # Table 4
    1.138103348
    """
    return design(query, epsilon, loss, properties=VARIANT_2, **options)


def ucm(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """UCM, the unconstrained mechanism of paper 000, section 7.4.

    >>> round(ucm(Query.count(5), 0.5).objective, 9)
    1.060537197
    """
    return design(query, epsilon, loss, **options)


def wm(
    query: Query,
    epsilon: Epsilon,
    loss: Loss = "absolute",
    *,
    reading: Literal["weak", "monotone"] = "weak",
    **options: Any,
) -> Design:
    """WM of paper 000, which uses the name for two mechanisms (errata 000.14).

    ``reading="weak"`` asks for weak honesty alone (Figure 6, sections 6.3 and 7.4);
    ``reading="monotone"`` for weak honesty, row and column monotonicity (section 7.1). Under
    the zero-one loss only the first turns into the geometric mechanism as n grows.

    >>> q = Query.count(20)                                     # e^-epsilon = 10/11
    >>> epsilon = "0.09531017980432487"
    >>> [round(21 / 20 * wm(q, epsilon, "zero_one", reading=r).objective, 5)
    ...  for r in ("weak", "monotone")]
    [0.95238, 0.96414]
    """
    readings = {
        "weak": ("weakly_honest",),
        "monotone": ("weakly_honest", "row_monotone", "column_monotone"),
    }
    if reading not in readings:
        raise ArgumentError("reading", "be 'weak' or 'monotone'", reading)
    return design(query, epsilon, loss, properties=readings[reading], **options)


def fm(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """FM, the fair mechanism of paper 000, section 7.4: fairness alone.

    >>> round(fm(Query.count(4), 1.0, "zero_one").objective, 6), fm(Query.count(4), 1.0).method
    (0.501602, 'lp')
    """
    return design(query, epsilon, loss, properties=("fair",), **options)


def am(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """AM, the all-properties mechanism of paper 000, section 7.4: all seven.

    >>> am(Query.count(4), 1.0).mechanism.properties()["column_monotone"]
    True
    """
    return design(query, epsilon, loss, properties=SEVEN, **options)
