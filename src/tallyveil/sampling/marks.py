"""Draws from a test seed carry a mark: whoever knows the seed can undo the noise.

The mark shows when a value is printed, stays in slices, sums, copies and pickles, and costs
nothing where draws are private. `numpy.asarray` and `numpy.concatenate` take it off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.sampling.entropy import Entropy

__all__ = ["NOT_PRIVATE", "NotPrivateArray", "NotPrivateInt", "mark_draws", "mark_table"]

NOT_PRIVATE = "NOT PRIVATE: drawn from a test seed. Do not publish."
MARK = "NOT PRIVATE"


class NotPrivateArray(np.ndarray):
    """An array of numbers that were drawn from a test seed."""

    def __array_wrap__(
        self, array: NDArray[Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        """Numbers stay numbers; arrays made from this one keep the mark."""
        return array[()] if return_scalar else array.view(type(self))

    def __repr__(self) -> str:
        return f"<{MARK}: {np.asarray(self)!r}>"

    def __str__(self) -> str:
        return f"{MARK} {np.asarray(self)}"


class NotPrivateInt(int):
    """A whole number that was drawn from a test seed."""

    def __repr__(self) -> str:
        return f"<{MARK}: {int(self)}>"


def mark_draws(values: Any, entropy: Entropy) -> Any:
    """`values` as they are if they were drawn privately, else with the mark.

    >>> from tallyveil.sampling.entropy import SeededNotPrivate
    >>> mark_draws(3, Entropy()), mark_draws(3, SeededNotPrivate(1))
    (3, <NOT PRIVATE: 3>)
    """
    if entropy.private:
        return values
    return NotPrivateInt(values) if isinstance(values, int) else values.view(NotPrivateArray)


def mark_table(table: Any) -> Any:
    """A released table that says of itself that it is not private, where its kind can.

    Arrays and lists are printed with the mark, Arrow tables hold it in their schema and pandas
    objects in ``attrs``. A Polars frame has no place for it.
    """
    if isinstance(table, (list, tuple)):
        return type(table)(map(NotPrivateInt, table))
    if isinstance(table, np.ndarray):
        return table.view(NotPrivateArray)
    if hasattr(table, "replace_schema_metadata"):
        return table.replace_schema_metadata({**(table.schema.metadata or {}), MARK: NOT_PRIVATE})
    if isinstance(getattr(table, "attrs", None), dict):
        table.attrs[MARK] = NOT_PRIVATE
    return table
