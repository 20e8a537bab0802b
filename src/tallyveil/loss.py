"""Losses as tables ``L[true, released]``."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.answers import read_floats
from tallyveil.arrays import COMPARISON_ROUNDING, Floats
from tallyveil.errors import ArgumentError, describe_kind
from tallyveil.query import Query, require_query

Loss: TypeAlias = str | tuple[str, float] | Callable[[Any, Any], Any] | ArrayLike

NAMED_LOSSES = ("absolute", "squared", "zero_one")
KNOWN_LOSSES = (
    'Known losses: "absolute", "squared", "zero_one", ("power", p), ("beyond", d), '
    "a function of (true, released), or a table."
)


def loss_table(query: Query, loss: Loss) -> Floats:
    """Return the loss of releasing each output r for each true answer t, shape (n, m).

    - ``"absolute"`` |t - r|, ``"squared"`` (t - r)^2, ``("power", p)`` |t - r|^p with p > 0
    - ``"zero_one"`` 1 unless the output is the one the true answer belongs to
    - ``("beyond", d)`` 1 where |t - r| > d, strictly
    - a function of (true, released), called on whole arrays if it can be, or a table

    >>> loss_table(Query.count(2), "absolute").tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    require_query(query)
    error: Floats = query.inputs.astype(float)[:, None] - query.outputs.astype(float)[None, :]
    if isinstance(loss, str):
        if loss == "absolute":
            return np.abs(error)
        if loss == "squared":
            return error**2
        if loss != "zero_one":
            raise ArgumentError("loss", "be a known loss", loss, KNOWN_LOSSES)
        wrong = np.ones(query.shape)
        wrong[np.arange(len(query.inputs)), query.home] = 0.0
        return wrong
    if isinstance(loss, tuple) and len(loss) == 2 and isinstance(loss[0], str):
        number = _require_parameter(*loss)
        if loss[0] == "power":
            return np.abs(error) ** number
        return (np.abs(error) > number * (1 + COMPARISON_ROUNDING)).astype(float)
    return _require_table(_call(loss, query) if callable(loss) else loss, query)


def weigh_loss(query: Query, loss: Loss, weights: ArrayLike) -> Floats:
    """Multiply a loss by a weight for each true answer: some errors matter more than others.

    The result is a loss like any other. Given to `tallyveil.design` with ``worst_case=True``, or
    to `Mechanism.worst_loss`, it gives the weighted worst case max_i w_i sum_j M_ij L_ij.

    Parameters
    ----------
    query : Query
        The query whose answers are compared.
    loss : any loss of `tallyveil.loss`
        What an error costs before it is weighed.
    weights : array of float, shape (n,)
        One weight of at least 0 per true answer, not all 0; they need not sum to one.

    Returns
    -------
    array of float, shape (n, m)
        The table of weighted losses.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), Definition 3, the objective with a maximum.

    Examples
    --------
    >>> weigh_loss(Query.count(2), "absolute", [1, 1, 3])[2].tolist()
    [6.0, 3.0, 0.0]
    """
    table = loss_table(query, loss)
    factors = read_floats(weights, "weights")
    if factors.shape != (len(table),):
        rule = f"have {len(table)} entries, one per true answer"
        raise ArgumentError("weights", rule, got=f"shape {factors.shape}")
    if not np.isfinite(factors).all() or (factors < 0).any() or not factors.any():
        raise ArgumentError("weights", "be finite, at least 0 and not all 0")
    return factors[:, None] * table


def _require_parameter(name: str, value: Any) -> float:
    """Return the parameter of a "power" or "beyond" loss; refuse one out of range."""
    if name not in ("power", "beyond"):
        raise ArgumentError("loss", "be a known loss", name, KNOWN_LOSSES)
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise ArgumentError("loss", f"give {name!r} a finite number", value)
    number = float(value)
    if name == "power" and number <= 0:
        raise ArgumentError("loss", "have a power greater than 0", value)
    if name == "beyond" and number < 0:
        raise ArgumentError("loss", "have a distance of at least 0", value)
    return number


def _call(loss: Callable[[Any, Any], Any], query: Query) -> Any:
    true, released = query.inputs[:, None], query.outputs[None, :]
    try:
        table = np.asarray(loss(true, released), dtype=float)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape == query.shape:
        return table
    return [[loss(t, r) for r in query.outputs.tolist()] for t in query.inputs.tolist()]


def _require_table(table: Any, query: Query) -> Floats:
    try:
        array = np.array(table, dtype=float)
    except (TypeError, ValueError):
        got = describe_kind(table)
        raise ArgumentError("loss", "be a known loss", hint=KNOWN_LOSSES, got=got) from None
    if array.shape != query.shape:
        rule = f"have shape {query.shape}, one row per true answer"
        raise ArgumentError("loss", rule, hint=KNOWN_LOSSES, got=f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise ArgumentError("loss", "be finite everywhere", got="an infinite or missing value")
    return array


def is_monge(costs: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Return True if c(i,j) + c(i+1,j+1) <= c(i,j+1) + c(i+1,j), as for convex c(i - j).

    Straight pairs then never cost more than crossed ones, and monotone transport is optimal.
    Violations up to `tolerance`, relative to the largest cost, count as none.

    >>> is_monge([[0, 1], [1, 0]]), is_monge([[1, 0], [0, 1]])
    (True, False)
    """
    table = np.asarray(costs, dtype=float)
    return bool((measure_crossing(table) >= -tolerance * np.abs(table).max()).all())


def measure_crossing(table: Floats) -> Floats:
    """Return c(i,j+1) + c(i+1,j) - c(i,j) - c(i+1,j+1), shape (n - 1, m - 1)."""
    return table[:-1, 1:] + table[1:, :-1] - table[:-1, :-1] - table[1:, 1:]


def parse_loss(text: str) -> Loss:
    """Read a loss written as text: a name of `NAMED_LOSSES`, ``power:P`` or ``beyond:D``.

    >>> parse_loss("squared"), parse_loss("beyond:2")
    ('squared', ('beyond', 2.0))
    """
    name, colon, value = text.partition(":") if isinstance(text, str) else ("", "", "")
    if name in NAMED_LOSSES and not colon:
        return name
    if name not in ("power", "beyond"):
        hint = f"Known losses: {', '.join(NAMED_LOSSES)}, power:P and beyond:D, such as beyond:2."
        raise ArgumentError("loss", "be a known loss", text, hint)
    try:
        number = float(value)
    except ValueError:
        rule = f"have a number after {name + ':'!r}"
        raise ArgumentError("loss", rule, text, f"For example {name}:2.") from None
    return name, _require_parameter(name, number)


def loss_name(loss: Loss) -> str:
    """Return a short name for a loss, for tables and captions.

    >>> loss_name("absolute"), loss_name(("beyond", 2))
    ('absolute', 'beyond 2')
    """
    if isinstance(loss, str):
        return loss
    if isinstance(loss, tuple) and len(loss) == 2 and isinstance(loss[0], str):
        return f"{loss[0]} {loss[1]:g}" if isinstance(loss[1], Real) else loss[0]
    return getattr(loss, "__name__", "function") if callable(loss) else "table"
