"""The histogram of counts: how many rows of a table hold each count (paper 002, section 1)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError, TableError

__all__ = ["Above", "checked_counts", "distribution_of_counts", "histogram_of_counts"]

Above: TypeAlias = Literal["refuse", "top_code"]


def checked_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Integers:
    """`counts` as integers between 0 and `upper`, shape (N,), or an error without any count.

    Parameters
    ----------
    counts : whole numbers, at least 0; floats are taken if they are whole
    upper : the largest count that may be released, at least 1. It must be public
    above : what to do with larger counts: ``"refuse"``, or ``"top_code"`` to set them to upper

    >>> checked_counts([0, 3, 9], upper=4, above="top_code").tolist()
    [0, 3, 4]
    """
    if isinstance(upper, bool) or int(upper) != upper or upper < 1:
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
    """How many rows hold each count 0..upper, shape (upper + 1,); confidential.

    >>> histogram_of_counts([0, 0, 2, 5], upper=3, above="top_code").tolist()
    [2, 0, 1, 1]
    """
    return np.bincount(checked_counts(counts, upper, above), minlength=upper + 1)


def distribution_of_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Floats:
    """The share of rows that hold each count, shape (upper + 1,); steps 1 and 5 of Figure 2.

    Confidential when the counts are; public when they were released.

    >>> distribution_of_counts([0, 0, 2, 1], upper=2).tolist()
    [0.5, 0.25, 0.25]
    """
    histogram = histogram_of_counts(counts, upper, above)
    share: Floats = histogram / histogram.sum()
    return share
