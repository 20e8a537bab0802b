"""Checked numbers and arrays from callers and files.

Every function returns the checked value or raises an error that names the argument.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, QueryError, describe_kind
from tallyveil.exact import is_whole

MOST_ANSWERS = 4 * 10**6
"""More true or released answers than this are refused before any array is made."""

LARGEST_ANSWER = 2**53
"""Bounds of answers beyond this are refused: doubles no longer hold every whole number."""


def read_whole(
    value: Any, argument: str, least: int | None = None, error: type[ArgumentError] = QueryError
) -> int:
    """Return `value` as an int; refuse fractions and numbers below `least`."""
    if not is_whole(value) and not (isinstance(value, float) and value.is_integer()):
        raise error(argument, "be a whole number", value)
    if least is not None and value < least:
        raise error(argument, f"be at least {least}", value)
    return int(value)


def read_bounds(lower: Any, upper: Any) -> tuple[int, int]:
    """Return two rising whole numbers that doubles hold exactly."""
    low, high = read_whole(lower, "lower"), read_whole(upper, "upper")
    for argument, value in (("lower", low), ("upper", high)):
        if abs(value) > LARGEST_ANSWER:
            raise QueryError(argument, f"lie within {LARGEST_ANSWER:,} of 0", value)
    if high <= low:
        raise QueryError("upper", f"be greater than lower ({low})", high)
    return low, high


def read_real(value: Any, argument: str, least: float, *, included: bool) -> float:
    """Return `value` as a finite number above `least`, or equal to it if that is `included`."""
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    met = number >= least if included else number > least
    if isinstance(value, bool) or not math.isfinite(number) or not met:
        limit = "of at least" if included else "greater than"
        raise QueryError(argument, f"be a finite number {limit} {least:g}", value)
    return number


def require_few(answers: Any, argument: str) -> Any:
    """Return `answers`, a number of answers; refuse one that is too large."""
    if answers > MOST_ANSWERS:
        raise QueryError(argument, f"give at most {MOST_ANSWERS:,} answers", got=f"{answers:,}")
    return answers


def read_floats(values: Any, argument: str) -> Floats:
    """Return `values` as a new array of doubles; errors name their kind, never their content."""
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(argument, "be numbers", got=describe_kind(values)) from None


def read_numbers(values: ArrayLike, argument: str) -> NDArray[Any]:
    """Return `values` as a new array of finite numbers."""
    try:
        array = np.asarray(list(values) if isinstance(values, range) else values)
    except ValueError:
        raise QueryError(argument, "be numbers in rows of one length") from None
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise QueryError(argument, "be numbers", got=f"type {array.dtype}")
    if not np.isfinite(array).all():
        raise QueryError(argument, "be finite", got="an infinite or missing value")
    return array.copy()


def read_increasing(values: ArrayLike, argument: str) -> NDArray[Any]:
    """Return `values` as a new one-dimensional array of strictly increasing numbers."""
    array = read_numbers(values, argument)
    if array.ndim != 1 or len(array) == 0:
        raise QueryError(argument, "be a non-empty list of numbers", got=f"shape {array.shape}")
    if not (array[1:] > array[:-1]).all():
        raise QueryError(argument, "be strictly increasing")
    return array


def read_categories(intervals: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the lower and upper edges of disjoint intervals, given with shape (m, 2)."""
    lower, upper = intervals[:, 0].astype(float), intervals[:, 1].astype(float)
    if not (lower < upper).all():
        raise QueryError("outputs", "be intervals with lower edge below upper edge")
    if not (lower[1:] >= upper[:-1]).all():
        raise QueryError("outputs", "be disjoint intervals in increasing order")
    return lower, upper
