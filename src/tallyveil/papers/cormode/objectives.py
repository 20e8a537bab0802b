"""The objectives of Cormode, Kulkarni and Srivastava (2018) under the paper's own names."""

from __future__ import annotations

import re

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.loss import loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.prior import Prior
from tallyveil.query import Query, require_query

__all__ = ["paper_loss", "rescaled_loss"]

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


def rescaled_loss(mechanism: Mechanism, beyond: float = 0, prior: Prior = None) -> float:
    """Compute L0,d: (n+1)/n times the probability of an error of more than d.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism for a count from 0 to n.
    beyond : float
        The distance d, at least 0. Errors of exactly d do not count (errata, Cormode 2).
    prior : any prior of `tallyveil.loss`
        The distribution of the true count; uniform if not given.

    Returns
    -------
    float
        The loss; guessing uniformly costs 1 at d = 0.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), equation 1.

    Examples
    --------
    >>> from tallyveil.mechanisms.exponential import uniform
    >>> round(rescaled_loss(uniform(Query.count(4))), 12)
    1.0
    """
    n = len(mechanism.query.inputs) - 1
    return (n + 1) / n * mechanism.expected_loss(("beyond", beyond), prior)
