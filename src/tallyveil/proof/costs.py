"""What proving a file may cost, by its size: a small file cannot ask for much work.

Everything `certify` makes of a dense matrix stays inside; what is refused are files of few
bytes that state a relation of very many pairs, or a ladder of very many levels.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import VerificationError
from tallyveil.neighbours import Neighbours

__all__ = ["count_characters", "require_few_comparisons", "require_few_products"]

SMALL = 10**7
"""Characters of weights up to which the same work is allowed."""

MOST_COMPARISONS = 4 * 10**8
MOST_PRODUCT_CELLS = 4 * 10**6
"""Neighbour pairs times outputs, and cells of products times level, for a small file."""

COMPARISONS_EACH, PRODUCT_CELLS_EACH = 110, 1
"""How many more for every further character."""


def count_characters(weights: Integers) -> int:
    """How many characters a table of weights, shape (n, m), has as lines of decimals.

    >>> count_characters(np.array([[10, 7, 100]]))
    8
    """
    further = sum(int(np.count_nonzero(weights >= 10**power)) for power in range(1, 19))
    return 2 * weights.size - len(weights) + further


def require_few_comparisons(
    neighbours: Neighbours, outputs: int, delta: Fraction, written: int
) -> None:
    """Raise a `VerificationError` if a table of `written` characters asks for too much work."""
    pairs = neighbours.count
    if neighbours.kind == "complete" and not delta:
        pairs = neighbours.size  # the largest of each column against the smallest
    if neighbours.kind == "explicit":
        pairs *= 2  # rows are gathered one by one
    if pairs * outputs > MOST_COMPARISONS + COMPARISONS_EACH * max(0, written - SMALL):
        raise VerificationError(
            f"It is not checked: {neighbours.count:,} neighbour pairs with {outputs:,} outputs "
            "are too many for a table of so few digits."
        )


def require_few_products(size: int, levels: int, written: int) -> None:
    """Raise a `VerificationError` if a ladder of `written` characters asks for too much work."""
    cells = size * size * levels * (levels + 1) // 2
    if cells > MOST_PRODUCT_CELLS + PRODUCT_CELLS_EACH * max(0, written - SMALL):
        raise VerificationError(
            f"It is not checked: {levels:,} levels of {size:,} answers are too many for tables of "
            "so few digits."
        )
