"""The two linear programs of Croft, Sack and Shi (2020), for any query and neighbours."""

from __future__ import annotations

from typing import Any

from tallyveil.exact import Epsilon
from tallyveil.loss import Loss
from tallyveil.optimize.design import Design, design
from tallyveil.papers.cormode.mechanisms import ucm
from tallyveil.query import Query

__all__ = ["variant1", "variant2"]

VARIANT_2 = ("row_monotone", "column_monotone", "symmetric", "fair")

variant1 = ucm
"""LP Mechanism Variant 1: the program that Cormode et al. (2018) call UCM, least expected loss."""


def variant2(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """Design LP Mechanism Variant 2: row and column monotone, symmetric and fair.

    Parameters
    ----------
    query : Query
        What is asked, with its neighbours.
    epsilon : number or str
        The privacy loss.
    loss : any loss of `tallyveil.loss`
        What an error costs.
    **options
        Further options of `tallyveil.design`, such as ``prior`` or ``method``.

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Croft, Sack and Shi (2020), section 3.4 and Table 4.

    Examples
    --------
    >>> round(variant2(Query.count(5), 0.5).objective, 9)
    1.138103348
    """
    return design(query, epsilon, loss, properties=VARIANT_2, **options)
