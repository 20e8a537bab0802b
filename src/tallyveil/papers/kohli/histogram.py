"""The histogram of counts: how many rows of a table hold each count.

Kohli and Laskowski (2026), section 1.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError, TableError

__all__ = ["Above", "check_counts", "distribution_of_counts", "histogram_of_counts"]

Above: TypeAlias = Literal["refuse", "top_code"]


def check_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Integers:
    """Return `counts` as integers from 0 to `upper`, or raise an error that quotes no count.

    Parameters
    ----------
    counts : array of int or float, shape (N,)
        Whole numbers, at least 0.
    upper : int
        The largest count that may be released, at least 1. It must be public.
    above : {"refuse", "top_code"}
        Refuse larger counts, or set them to `upper`.

    Returns
    -------
    array of int, shape (N,)
        The counts, none above `upper`.

    Examples
    --------
    >>> check_counts([0, 3, 9], upper=4, above="top_code").tolist()
    [0, 3, 4]
    """
    if isinstance(upper, bool) or not isinstance(upper, Integral) or upper < 1:
        raise ArgumentError("upper", "be a whole number of at least 1", upper)
    if above not in ("refuse", "top_code"):
        raise ArgumentError("above", "be 'refuse' or 'top_code'", above)
    array: NDArray[Any] = np.asarray(counts)
    if array.ndim != 1:
        raise TableError(f"The counts must be one column. Got shape {array.shape}.")
    if len(array) == 0:
        raise TableError("The table has no rows: there is nothing to privatize.")
    if np.issubdtype(array.dtype, np.floating):
        if not np.isfinite(array).all() or (array != np.floor(array)).any():
            raise TableError("The counts must be whole numbers; some rows hold none.")
        array = np.minimum(array, 2.0**62)
    elif not np.issubdtype(array.dtype, np.integer):
        raise TableError(f"The counts must be whole numbers. Got a column of {array.dtype}.")
    if (array < 0).any():
        raise TableError("The counts must be at least 0; some rows are below.")
    if above == "refuse" and (array > upper).any():
        raise TableError(
            f"Some counts are above upper={upper}. Raise upper to a public bound, or pass "
            "above='top_code' to report them as upper."
        )
    kept: Integers = np.minimum(array, upper).astype(np.int64)
    return kept


def histogram_of_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Integers:
    """Count the rows that hold each count from 0 to `upper`.

    The result is confidential when the counts are.

    Parameters
    ----------
    counts, upper, above
        As for `check_counts`.

    Returns
    -------
    array of int, shape (upper + 1,)
        The number of rows with each count.

    References
    ----------
    Kohli and Laskowski (2026), section 1 and Figure 2, step 1.

    Examples
    --------
    >>> histogram_of_counts([0, 0, 2, 5], upper=3, above="top_code").tolist()
    [2, 0, 1, 1]
    """
    return np.bincount(check_counts(counts, upper, above), minlength=upper + 1)


def distribution_of_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Floats:
    """Compute the share of rows that hold each count from 0 to `upper`.

    The result is confidential when the counts are, and public when they were released.

    Parameters
    ----------
    counts, upper, above
        As for `check_counts`.

    Returns
    -------
    array of float, shape (upper + 1,)
        The shares, summing to one.

    References
    ----------
    Kohli and Laskowski (2026), Figure 2, steps 1 and 5.

    Examples
    --------
    >>> distribution_of_counts([0, 0, 2, 1], upper=2).tolist()
    [0.5, 0.25, 0.25]
    """
    histogram = histogram_of_counts(counts, upper, above)
    share: Floats = histogram / histogram.sum()
    return share
