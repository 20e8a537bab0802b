"""Cormode, Kulkarni and Srivastava (2018), Constrained Private Mechanisms for Count Data.

The paper's objectives, the cost of its mechanisms in closed form, the flowchart, and the
mechanisms that a linear program finds: `ucm`, `wm`, `fm` and `am`. GM, EM and UM have closed
forms: `tallyveil.geometric`, `tallyveil.fair` and `tallyveil.uniform`. A cost is the rescaled
zero-one loss L0 of equation 1: (n+1)/n times the chance of a wrong answer under a uniform prior;
guessing costs 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, QueryError
from tallyveil.exact import Epsilon, exact_epsilon, exact_ratio, require_positive
from tallyveil.loss import Loss, loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.exponential import fair
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import Design, design
from tallyveil.properties import SEVEN, check_names
from tallyveil.query import Query, require_query

PAPER_LOSS = re.compile(r"L(?P<power>[012])(?:,(?P<beyond>\d+))?")


def paper_loss(query: Query, name: str) -> Floats:
    """Build the loss table of an objective named L0, L1, L2, L0,d, L1,d or L2,d.

    ``L0`` and ``L0,d`` are rescaled by (n+1)/n so that the uniform mechanism costs 1 under
    L0; ``L1`` and ``L2`` are not (errata, Cormode 3). ``Lt,d`` counts |i - j|^t only where
    |i - j| > d, strictly (errata, Cormode 2). Take the prior mean of the returned table.

    Parameters
    ----------
    query : Query
        The query whose answers are compared.
    name : str
        The paper's name, such as ``"L0"`` or ``"L2,3"``.

    Returns
    -------
    array of float, shape (n, m)
        The loss of releasing each output for each true answer.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), Definition 3 and equation 1.

    Examples
    --------
    >>> round(float(paper_loss(Query.count(2), "L0").mean(axis=1).mean()), 12)
    1.0
    """
    require_query(query)
    match = PAPER_LOSS.fullmatch(str(name).replace(" ", ""))
    if match is None:
        raise ArgumentError("name", "be L0, L1, L2 or one of them with ,d", name)
    power, beyond = int(match["power"]), int(match["beyond"] or 0)
    distance = loss_table(query, "absolute")
    table: Floats = np.where(distance > beyond, distance**power, 0.0)
    size = len(query.inputs)
    return table * (size / (size - 1)) if power == 0 else table


def compute_gm_cost(alpha: float) -> float:
    """Compute the cost of the geometric mechanism GM: 2a/(1+a), the least of any mechanism.

    Parameters
    ----------
    alpha : float
        a = e^-epsilon, strictly between 0 and 1.

    Returns
    -------
    float
        The rescaled zero-one loss; it does not depend on the largest count.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 6.1.

    Examples
    --------
    >>> compute_gm_cost(0.5) == 2 / 3
    True
    """
    exact_ratio(alpha, "alpha")
    return 2 * alpha / (1 + alpha)


def compute_wm_cost(n: int, alpha: float, reading: Literal["weak", "monotone"] = "weak") -> float:
    """Compute the cost of WM in either of its two readings, without solving a program.

    The paper has no closed form for WM.

    Weak honesty alone costs what GM does from n = 2a/(1-a) on. Below, every inner answer is
    released with probability 1/(n+1) when it is true, and the two ends with c when they are:

        (n + 1 - (n-1)/(n+1) - 2c) / n,  c = (1 - s/(n+1)) / (a^j + a^(n-j)),
        j = floor(n/2), s = sum of a^|i-j| over 1 <= i <= n-1.

    Column monotonicity (or column honesty, with or without weak honesty and row properties)
    costs what GM does for a <= 1/2, what weak honesty does for n <= 2, and otherwise
    2a/(1+a) + (2a-1)(1-a) / (n a (1+a)) up to a = 2/3. For larger a no closed form is known: `wm`
    solves the program. These formulas were found from the programs and agree with them to 1e-7
    for n = 1 to 25 at 20 values of a; they are not proved.

    Parameters
    ----------
    n : int
        The largest count, at least 1.
    alpha : float
        a = e^-epsilon, strictly between 0 and 1; at most 2/3 for the reading ``"monotone"``
        unless n is 1 or 2.
    reading : {"weak", "monotone"}
        As for `wm`.

    Returns
    -------
    float
        The rescaled zero-one loss.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), Figures 6, 8 and 9 (errata, Cormode 14).

    Examples
    --------
    >>> round(compute_wm_cost(8, 10 / 11), 9), round(compute_wm_cost(5, 2 / 3, "monotone"), 9)
    (0.966238889, 0.82)
    """
    gm = compute_gm_cost(alpha)
    require_positive(n, "n")
    if reading not in ("weak", "monotone"):
        raise ArgumentError("reading", "be 'weak' or 'monotone'", reading)
    if n == 1 or alpha <= 0.5:
        return gm
    if reading == "weak" or n == 2:
        if n * (1 - alpha) >= 2 * alpha:
            return gm
        middle = n // 2
        inside = sum(alpha ** abs(i - middle) for i in range(1, n))
        ends = (1 - inside / (n + 1)) / (alpha**middle + alpha ** (n - middle))
        return (n + 1 - (n - 1) / (n + 1) - 2 * ends) / n
    if alpha > 2 / 3:
        hint = "No closed form is known there. Use tallyveil.papers.wm."
        raise ArgumentError("alpha", "be at most 2/3 for reading='monotone'", alpha, hint)
    return gm + (2 * alpha - 1) * (1 - alpha) / (n * alpha * (1 + alpha))


def ucm(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """Design the mechanism of least expected loss, no property asked for: UCM, or LP Variant 1.

    Cormode et al. (2018) call it the unconstrained mechanism UCM, Croft et al. (2020) LP
    Mechanism Variant 1.

    Parameters
    ----------
    query : Query
        The query, with its neighbours.
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
    Cormode, Kulkarni and Srivastava (2018), section 7.4.
    Croft, Sack and Shi (2020), section 3.4 and Table 3.

    Examples
    --------
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
    """Design WM, in either of the two readings that the paper gives this name.

    Under the zero-one loss only the reading ``"weak"`` turns into the geometric mechanism as
    n grows (errata, Cormode 14).

    Parameters
    ----------
    query, epsilon, loss, **options
        As for `ucm`.
    reading : {"weak", "monotone"}
        ``"weak"`` asks for weak honesty alone (Figure 6, sections 6.3 and 7.4);
        ``"monotone"`` for weak honesty, row and column monotonicity (section 7.1).

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), sections 6.3, 7.1 and 7.4.

    Examples
    --------
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
    """Design FM, the fair mechanism: fairness is the only property asked for.

    Parameters
    ----------
    query, epsilon, loss, **options
        As for `ucm`.

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 7.4.

    Examples
    --------
    >>> round(fm(Query.count(4), 1.0, "zero_one").objective, 6), fm(Query.count(4), 1.0).method
    (0.501602, 'lp')
    """
    return design(query, epsilon, loss, properties=("fair",), **options)


def am(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """Design AM, the mechanism with all seven properties.

    Parameters
    ----------
    query, epsilon, loss, **options
        As for `ucm`.

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 7.4.

    Examples
    --------
    >>> am(Query.count(4), 1.0).mechanism.properties()["column_monotone"]
    True
    """
    return design(query, epsilon, loss, properties=SEVEN, **options)


@dataclass(frozen=True)
class Choice:
    """The mechanism to use, and why.

    Attributes
    ----------
    method : {"geometric", "fair", "program"}
        A closed form, or a linear program.
    properties : tuple of str
        The properties to require of the program; it has the others without requiring them.
    mechanism : Mechanism or None
        The closed form; None when `method` is "program".
    reason : str
        Why, in one sentence.
    """

    method: Literal["geometric", "fair", "program"]
    properties: tuple[str, ...]
    mechanism: Mechanism | None
    reason: str


def choose(query: Query, epsilon: Epsilon, properties: Iterable[str] = ()) -> Choice:
    """Choose the mechanism of least zero-one loss with the given properties, uniform prior.

    The 128 property sets need four approaches: fair if fairness is required; geometric if it
    has the properties; otherwise a program with weak honesty alone, or with column
    monotonicity. With a = exp(-epsilon), geometric is column monotone iff a <= 1/2 and weakly
    honest iff n >= 2a/(1-a); both always for n = 1 (errata, Cormode 5). `output_private` is
    outside the flowchart and always needs the program.

    Parameters
    ----------
    query : Query
        A count: answers 0..n with neighbours one apart.
    epsilon : number or str
        The privacy loss.
    properties : iterable of str
        Names of properties; see `tallyveil.properties`.

    Returns
    -------
    Choice
        The closed form, or the properties to give to a program.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), Figure 5, Lemmas 3 and 4.

    Examples
    --------
    >>> choose(Query.count(10), 1.0, ["column_monotone"]).method       # a = 0.37
    'geometric'
    >>> choose(Query.count(10), 0.1, ["weakly_honest"]).method
    'program'
    """
    exact = exact_epsilon(epsilon)
    names = check_names(properties)
    require_query(query)
    query.require_square("the flowchart")
    if not query.neighbours.is_path:
        raise QueryError(
            "query", "be a count (neighbours one apart) for the flowchart", repr(query)
        )
    n, a = len(query.inputs) - 1, math.exp(-float(exact))
    if "output_private" in names:
        return Choice("program", names, None, "output_private is outside the flowchart.")
    if "fair" in names:
        why = "Fairness is required: the fair mechanism is optimal and has every property."
        return Choice("fair", (), fair(query, exact), why)
    columns = {"column_honest", "column_monotone"} & set(names)
    if columns and not (n == 1 or a <= 0.5):
        why = f"Column properties fail for the geometric mechanism: exp(-epsilon) = {a:.4g} > 1/2."
        return Choice("program", ("column_monotone",), None, why)
    if "weakly_honest" in names and not (columns or n == 1 or n * (1 - a) >= 2 * a):
        why = f"Weak honesty fails for the geometric mechanism: {n} < {2 * a / (1 - a):.4g}."
        return Choice("program", ("weakly_honest",), None, why)
    why = "The geometric mechanism is optimal and has every property required."
    return Choice("geometric", (), geometric(query, exact), why)
