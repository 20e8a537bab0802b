"""Validate true answers, map them to input indices, and map output indices to released values.

Errors name the rule that is broken and never the count that broke it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ArgumentError
from tallyveil.query import GRID_TOLERANCE, Query, require_query

__all__ = ["find_position", "find_released_kind", "input_positions", "released_values"]


def input_positions(counts: Any, query: Query) -> tuple[NDArray[Any], bool, np.dtype[Any]]:
    """Return the input index of every true answer, whether one number was given, and the type.

    The type is that of `counts` if it was an array, else the query's own. Refuses, before
    anything is drawn, what is not one number or a one-dimensional array of true answers:
    strings, None, booleans, fractions, missing values, numbers out of range.

    >>> input_positions([3, 0], Query.count(3))[0].tolist()
    [3, 0]
    """
    require_query(query)
    try:
        array = np.asarray(counts)
    except ValueError:  # lists of unequal length
        raise _refusal("be one number or a one-dimensional array of numbers") from None
    if array.ndim > 1:
        raise _refusal("be one number or a one-dimensional array of numbers")
    if array.size == 0 and array.ndim == 1 and array.dtype.kind in "fiu":
        kind = _choose_dtype(query) if array.dtype.kind == "f" else array.dtype
        return np.empty(0, np.int64), False, kind
    if array.dtype.kind not in "fiu":
        raise _refusal("be numbers: not strings, None, booleans, dates or mixed objects")
    values = array.reshape(-1)
    low, high = query.inputs[0], query.inputs[-1]
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise _refusal("hold no missing or infinite value")
    if not _lie_between(values, low, high):
        raise _refusal(f"lie between {low} and {high}, the public range of the query")
    kind = array.dtype if isinstance(counts, (np.ndarray, np.generic)) else _choose_dtype(query)
    if _is_consecutive(query):
        if values.dtype.kind == "f" and (values != np.floor(values)).any():
            raise _refusal("be whole numbers")
        is_small = values.dtype.kind in "iu" and values.dtype != np.uint64
        whole = values if is_small and not low else values.astype(np.int64)
        return (whole - low if low else whole), array.ndim == 0, kind
    at = np.searchsorted((query.inputs[:-1] + query.inputs[1:]) / 2, values)
    spacing = float(np.diff(query.inputs).min())
    if np.abs(query.inputs[at] - values).max() > GRID_TOLERANCE * spacing:
        raise _refusal("be true answers of the query")
    return at, array.ndim == 0, kind


def find_position(count: int, query: Query) -> int | None:
    """Find the input index of one true answer; None where `input_positions` is to decide.

    >>> find_position(3, Query.count(3)), find_position(4, Query.count(3))
    (3, None)
    """
    low = query.inputs[0].item()
    fits = low <= count < low + len(query.inputs) and _is_consecutive(query)
    return count - low if fits else None


def find_released_kind(query: Query, kind: np.dtype[Any]) -> np.dtype[Any]:
    """The type of released answers: the one that came in if it holds all of them."""
    values = query.outputs
    if values.dtype.kind == "f":
        return values.dtype
    return _widen(kind, int(values[0]), int(values[-1]))


@lru_cache(maxsize=64)
def _widen(kind: np.dtype[Any], low: int, high: int) -> np.dtype[Any]:
    """`kind` if it holds low..high exactly, else a type of 64 bits."""
    if kind.kind not in "iu" or low < np.iinfo(kind).min or high > np.iinfo(kind).max:
        is_exact = kind.kind == "f" and max(-low, high) <= 2 ** (np.finfo(kind).nmant + 1)
        return kind if is_exact else np.dtype(np.float64 if kind.kind == "f" else np.int64)
    return kind


def released_values(outputs: NDArray[Any], query: Query, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the released answers at output indices, in the type that came in if it fits."""
    values, kind = query.outputs, find_released_kind(query, kind)
    if values.dtype.kind == "f":
        return np.take(values, outputs)
    low, high = int(values[0]), int(values[-1])
    if high - low == len(values) - 1:
        shifted = outputs.astype(kind, copy=False)
        return np.add(shifted, low, dtype=kind) if low else shifted
    return np.take(values.astype(kind), outputs)


def _lie_between(values: NDArray[Any], low: Any, high: Any) -> bool:
    """Whether all values lie in low..high; read as unsigned, what is too small is too large.

    In b bits a negative value v is read as v + 2^b, which is at least 2^(b-1) and so above every
    value that is not negative: none passes a limit of at most 2^(b-1) - 1.
    """
    if low == 0 and values.dtype.kind == "i" and values.dtype.isnative:
        limit = min(high, np.iinfo(values.dtype).max)
        return bool(values.view(f"u{values.dtype.itemsize}").max() <= limit)
    return bool(values.min() >= low and values.max() <= high)


def _is_consecutive(query: Query) -> bool:
    whole = query.inputs.dtype.kind in "iu"
    return whole and int(query.inputs[-1]) - int(query.inputs[0]) == len(query.inputs) - 1


def _choose_dtype(query: Query) -> np.dtype[Any]:
    return np.dtype(np.int64) if query.outputs.dtype.kind in "iu" else np.dtype(np.float64)


def _refusal(rule: str) -> ArgumentError:
    return ArgumentError("counts", rule, hint="Nothing was drawn.")
