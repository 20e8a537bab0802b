"""Matrices in experiments: read as printed, shown as heatmaps, and how far optima lie apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reproduction.check import Finding
from reproduction.experiment import Result, Table
from tallyveil.arrays import Floats
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss, loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.notebook import heatmaps
from tallyveil.optimize.design import design
from tallyveil.query import Query

MECHANISM_CELLS = ("mechanism", "true", "released", "probability")
"""The columns of a table of mechanisms."""


def parse_fractions(text: str) -> NDArray[Any]:
    """Read a matrix of exact fractions; semicolons end rows, blanks separate cells.

    >>> parse_fractions("1/2 1/2; 0 1").tolist()[0]
    [Fraction(1, 2), Fraction(1, 2)]
    """
    rows = [[Fraction(cell) for cell in row.split()] for row in text.split(";")]
    return np.array(rows, dtype=object)


def tabulate_cells(columns: Sequence[str], matrices: Mapping[str, ArrayLike]) -> Table:
    """Build a table with one row per cell: name, row, column and value.

    >>> tabulate_cells(("matrix", "row", "column", "value"), {"A": [[1, 2]]}).rows
    [('A', 0, 0, 1.0), ('A', 0, 1, 2.0)]
    """
    rows = [
        (name, i, j, float(value))
        for name, matrix in matrices.items()
        for (i, j), value in np.ndenumerate(np.asarray(matrix, dtype=float))
    ]
    return Table(columns, rows)


def show_matrices(
    matrices: Mapping[str, ArrayLike | Mechanism],
    findings: Iterable[Finding],
    columns: Sequence[str] = MECHANISM_CELLS,
    rows: Sequence[Sequence[Any]] | None = None,
) -> Result:
    """Build a result that shows every matrix as a heatmap and lists its cells, or other `rows`."""
    arrays = {
        name: np.asarray(matrix.matrix if isinstance(matrix, Mechanism) else matrix, dtype=float)
        for name, matrix in matrices.items()
    }
    table = tabulate_cells(columns, arrays) if rows is None else Table(columns, rows)
    draw = partial(heatmaps, list(arrays.values()), list(arrays))
    return Result({"data": table}, draw, tuple(findings))


STEP = 1e-3
"""How far the loss is bent. Any step gives a bound, a small one a sharp bound."""


def bound_over_optima(
    query: Query, epsilon: Epsilon, loss: Loss, weights: Floats, properties: tuple[str, ...] = ()
) -> float:
    """Bound sum_ij weights_ij M_ij from above, over every optimal mechanism M.

    Let c(L) be the least expected loss under a uniform prior. If M is optimal for L, then
    c(L - d w) <= c(L) - d <w, M>, so that <w, M> <= (c(L) - c(L - d w)) / d. The second c is
    replaced by the lower bound of `tallyveil.design`, so this holds for any error of the solver.
    """
    table = loss_table(query, loss)
    bent = table - STEP * len(table) * weights
    lift = max(0.0, -float(bent.min()))  # a constant changes no optimum; losses stay positive
    best = design(query, epsilon, table, properties=properties).objective
    lowest = design(query, epsilon, bent + lift, properties=properties).lower_bound - lift
    return (best - lowest) / STEP


def bound_spread(
    query: Query, epsilon: Epsilon, loss: Loss, properties: tuple[str, ...] = ()
) -> float:
    """Bound how far two optimal mechanisms differ in any entry; near 0 the optimum is unique.

    True up to the accuracy of the solver over `STEP` (about 1e-5).
    """
    widest = 0.0
    for entry in np.ndindex(query.shape):
        weights = np.zeros(query.shape)
        weights[entry] = 1.0
        high = bound_over_optima(query, epsilon, loss, weights, properties)
        low = -bound_over_optima(query, epsilon, loss, -weights, properties)
        widest = max(widest, high - low)
    return widest
