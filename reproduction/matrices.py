"""Matrices in experiments: read as printed, shown as heatmaps, written cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reproduction.experiment import Finding, Result, Table
from tallyveil.figures import heatmaps

__all__ = ["parse_fractions", "show_matrices", "tabulate_cells"]

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
    (('A', 0, 0, 1.0), ('A', 0, 1, 2.0))
    """
    rows = [
        (name, i, j, float(value))
        for name, matrix in matrices.items()
        for (i, j), value in np.ndenumerate(np.asarray(matrix, dtype=float))
    ]
    return Table.of(columns, rows)


def show_matrices(
    matrices: Mapping[str, ArrayLike],
    findings: Sequence[Finding],
    columns: Sequence[str] = MECHANISM_CELLS,
) -> Result:
    """Build a result that shows every matrix as a heatmap and lists its cells."""
    arrays = [np.asarray(matrix, dtype=float) for matrix in matrices.values()]
    draw = partial(heatmaps, arrays, list(matrices))
    return Result({"data": tabulate_cells(columns, matrices)}, draw, tuple(findings))
