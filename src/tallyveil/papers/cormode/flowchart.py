"""The flowchart of Cormode et al. (2018): which mechanism has a set of properties at least cost.

Cormode, Kulkarni and Srivastava (2018), Figure 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tallyveil.errors import QueryError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.exponential import fair
from tallyveil.mechanisms.geometric import geometric
from tallyveil.properties import check_names
from tallyveil.query import Query, require_query

__all__ = ["Choice", "choose"]


@dataclass(frozen=True)
class Choice:
    """The mechanism to use, and why.

    Attributes
    ----------
    method : {"geometric", "fair", "program"}
        A closed form, or a linear program.
    properties : tuple of str
        The properties to ask of the program; every other property asked for comes free.
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

    The 128 property sets need four approaches: fair if fairness is asked for; geometric if it
    has what is asked; otherwise a program with weak honesty alone, or with column
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
    wanted = check_names(properties)
    require_query(query)
    query.require_square("the flowchart")
    if not query.neighbours.is_path:
        raise QueryError(
            "query", "be a count (neighbours one apart) for the flowchart", repr(query)
        )
    n, a = len(query.inputs) - 1, math.exp(-float(exact))
    if "output_private" in wanted:
        return Choice("program", wanted, None, "output_private is outside the flowchart.")
    if "fair" in wanted:
        why = "Fairness is asked for: the fair mechanism is optimal and has every property."
        return Choice("fair", (), fair(query, exact), why)
    columns = {"column_honest", "column_monotone"} & set(wanted)
    if columns and not (n == 1 or a <= 0.5):
        why = f"Column properties fail for the geometric mechanism: exp(-epsilon) = {a:.4g} > 1/2."
        return Choice("program", ("column_monotone",), None, why)
    if "weakly_honest" in wanted and not (columns or n == 1 or n * (1 - a) >= 2 * a):
        why = f"Weak honesty fails for the geometric mechanism: {n} < {2 * a / (1 - a):.4g}."
        return Choice("program", ("weakly_honest",), None, why)
    why = "The geometric mechanism is optimal and has every property asked for."
    return Choice("geometric", (), geometric(query, exact), why)
