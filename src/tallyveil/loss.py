"""How much an error hurts, and what is believed before anything is released.

A loss is anything that becomes a table ``L[true, released]``; a prior anything that becomes
a law on the true answers. Both are resolved here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.query import Query

__all__ = [
    "Loss",
    "Prior",
    "law",
    "loss_name",
    "loss_table",
    "prior_law",
    "side_mask",
]

Loss: TypeAlias = str | tuple[str, float] | Callable[[Any, Any], Any] | ArrayLike
Prior: TypeAlias = str | tuple[str, float] | ArrayLike | None


NAMED_LOSSES = ("absolute", "squared", "zero_one")
PARAMETER_LOSSES = ("power", "beyond")
KNOWN = 'Known losses: "absolute", "squared", "zero_one", ("power", p), ("beyond", d), '
KNOWN += "a function of (true, released), or a table."


def loss_table(query: Query, loss: Loss) -> Floats:
    """The loss of releasing each output for each true answer, shape (n, m).

    - ``"absolute"`` |t - r|, ``"squared"`` (t - r)^2, ``("power", p)`` |t - r|^p with p > 0
    - ``"zero_one"`` 1 unless the output is the one the true answer belongs to
    - ``("beyond", d)`` 1 where |t - r| > d, strictly: ``("beyond", 0)`` is ``"zero_one"``
      for plain values
    - a function of (true, released), called on whole arrays if it can be
    - a table of shape (n, m)

    >>> loss_table(Query.count(2), "absolute").tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    true: Floats = query.inputs.astype(float)[:, None]
    released: Floats = query.outputs.astype(float)[None, :]
    error: Floats = true - released
    if isinstance(loss, str):
        if loss == "absolute":
            return np.abs(error)
        if loss == "squared":
            return error**2
        if loss == "zero_one":
            wrong = np.ones(query.shape)
            wrong[np.arange(len(query.inputs)), query.home] = 0.0
            return wrong
        raise ArgumentError("loss", "be a known loss", loss, KNOWN)
    if isinstance(loss, tuple) and len(loss) == 2 and isinstance(loss[0], str):
        return _parameter_loss(loss[0], loss[1], np.abs(error))
    if callable(loss):
        return _checked(_called(loss, query), query)
    return _checked(loss, query)


def _parameter_loss(name: str, value: Any, distance: Floats) -> Floats:
    if name not in PARAMETER_LOSSES:
        raise ArgumentError("loss", "be a known loss", name, KNOWN)
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise ArgumentError("loss", f"give {name!r} a finite number", value)
    number = float(value)
    if name == "power":
        if number <= 0:
            raise ArgumentError("loss", "have a power greater than 0", value)
        return distance**number
    if number < 0:
        raise ArgumentError("loss", "have a distance of at least 0", value)
    return (distance > number * (1 + 1e-12)).astype(float)


def _called(loss: Callable[[Any, Any], Any], query: Query) -> Any:
    true, released = query.inputs[:, None], query.outputs[None, :]
    try:
        table = np.asarray(loss(true, released), dtype=float)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape == query.shape:
        return table
    return [[loss(t, r) for r in query.outputs.tolist()] for t in query.inputs.tolist()]


def _checked(table: Any, query: Query) -> Floats:
    try:
        array = np.array(table, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError("loss", "be a known loss", type(table).__name__, KNOWN) from None
    if array.shape != query.shape:
        rule = f"have shape {query.shape}, one row per true answer"
        raise ArgumentError("loss", rule, f"shape {array.shape}", KNOWN)
    if not np.isfinite(array).all():
        raise ArgumentError("loss", "be finite everywhere", "an infinite or missing value")
    return array


def loss_name(loss: Loss) -> str:
    """A short name for a loss, for tables and captions.

    >>> loss_name("absolute"), loss_name(("beyond", 2))
    ('absolute', 'beyond 2')
    """
    if isinstance(loss, str):
        return loss
    if isinstance(loss, tuple) and len(loss) == 2 and isinstance(loss[0], str):
        return f"{loss[0]} {loss[1]:g}"
    return getattr(loss, "__name__", "function") if callable(loss) else "table"


def prior_law(prior: Prior, size: int) -> Floats:
    """A belief about the true answer as a law, shape (size,), summing to one.

    None or ``"uniform"`` is uniform; ``("binomial", p)`` is the number of successes in
    size - 1 trials; an array of weights or counts is normalised.

    >>> prior_law(("binomial", 0.5), 3).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    if prior is None or (isinstance(prior, str) and prior == "uniform"):
        return np.full(size, 1.0 / size)
    if isinstance(prior, str):
        known = 'Known priors: "uniform", ("binomial", p), or an array of weights or counts.'
        raise ArgumentError("prior", "be a known prior", prior, known)
    if isinstance(prior, tuple) and len(prior) == 2 and prior[0] == "binomial":
        return _binomial(prior[1], size - 1)
    try:
        weights = np.array(prior, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError("prior", "be numbers", type(prior).__name__) from None
    if weights.shape != (size,):
        raise ArgumentError(
            "prior", f"have {size} entries, one per true answer", f"shape {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ArgumentError("prior", "be finite and non-negative", "a negative or missing entry")
    if weights.sum() <= 0:
        raise ArgumentError("prior", "have at least one positive entry", "all zeros")
    if not 1e-300 < weights.sum() < np.inf:
        weights = weights / weights.max()
    scaled: Floats = weights / weights.sum()
    return scaled


def law(values: ArrayLike, size: int, argument: str = "law") -> Floats:
    """A law as it is: non-negative, `size` entries, summing to one within 1e-9.

    Unlike a prior it is never rescaled from counts, because a mechanism must preserve exactly
    what was given; only the last rounding of the sum is divided out.

    >>> law([0.25, 0.75], 2).tolist()
    [0.25, 0.75]
    """
    try:
        mass = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(argument, "be numbers", type(values).__name__) from None
    if mass.shape != (size,):
        raise ArgumentError(argument, f"be a law with {size} entries", f"shape {mass.shape}")
    if not np.isfinite(mass).all() or (mass < 0).any():
        raise ArgumentError(argument, "be finite and non-negative", "a negative or missing entry")
    total = float(mass.sum())
    if abs(total - 1) > 1e-9:
        hint = "Divide counts or weights by their sum first."
        raise ArgumentError(argument, "sum to one", f"a sum of {total:.9g}", hint)
    scaled: Floats = mass / total
    return scaled


def _binomial(p: Any, trials: int) -> Floats:
    if not isinstance(p, Real) or isinstance(p, bool) or not 0 <= float(p) <= 1:
        raise ArgumentError("prior", "give the binomial a probability in [0, 1]", p)
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    law: Floats = np.exp(ways + xlogy(k, float(p)) + xlog1py(trials - k, -float(p)))
    scaled: Floats = law / law.sum()
    return scaled


def side_mask(query: Query, side_information: Iterable[float] | None) -> NDArray[np.bool_]:
    """Which true answers are possible, shape (n,): all, or the listed values.

    >>> side_mask(Query.count(3), range(2, 4)).tolist()
    [False, False, True, True]
    """
    if side_information is None:
        return np.ones(len(query.inputs), dtype=bool)
    values = np.asarray(list(side_information), dtype=float)
    if len(values) == 0:
        raise ArgumentError("side_information", "hold at least one true answer", "nothing")
    spacing = float(np.diff(query.inputs).min())
    nearest = np.abs(values[:, None] - query.inputs[None, :].astype(float))
    if (nearest.min(axis=1) > 1e-9 * spacing).any():
        stranger = values[nearest.min(axis=1) > 1e-9 * spacing][0]
        rule = f"list true answers of {query!r}"
        raise ArgumentError("side_information", rule, float(stranger))
    mask = np.zeros(len(query.inputs), dtype=bool)
    mask[nearest.argmin(axis=1)] = True
    return mask
