"""Substitutions that shrink the program: symmetry, a shared diagonal, geometric tails.

Each says every cell of the matrix as a multiple of one variable::

    M[i, j] = scale[i, j] * v[variable[i, j]]

`Substitution.apply` carries linear forms on M over to v, `Substitution.invert` brings v back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tallyveil.arrays import Floats, Integers
from tallyveil.optimize.problem import Problem
from tallyveil.properties import Rows

__all__ = ["Substitution", "erase", "fair", "mirror", "nothing", "outside", "tails"]


@dataclass(frozen=True, eq=False)
class Substitution:
    """``M = scale * v[variable]``, with variables numbered 0..size-1."""

    variable: Integers
    scale: Floats
    size: int

    def invert(self, values: Floats) -> Floats:
        """The matrix, shape (n, m), that the variables stand for."""
        matrix: Floats = self.scale * values[self.variable]
        return matrix

    def apply_form(self, weights: Floats) -> Floats:
        """The linear form ``(weights * M).sum()`` as coefficients of v, shape (size,)."""
        form = np.bincount(
            self.variable.ravel(), (weights * self.scale).ravel(), minlength=self.size
        )
        return form.astype(float)

    def apply_rows(self, rows: Rows) -> sparse.csr_array:
        """``factor * M[larger] - M[smaller]`` as a sparse matrix on v, one row each."""
        count = len(rows)
        at = [np.arange(count)]
        where = [self.variable[rows.larger]]
        value = [rows.factor * self.scale[rows.larger]]
        if rows.smaller is not None:
            at.append(np.arange(count))
            where.append(self.variable[rows.smaller])
            value.append(-self.scale[rows.smaller])
        entries = (np.concatenate(value), (np.concatenate(at), np.concatenate(where)))
        return sparse.csr_array(entries, shape=(count, self.size))

    def apply_row_sums(self, chosen: Integers, weights: Floats) -> sparse.csr_array:
        """``(weights * M)[i].sum()`` for each chosen row i as a sparse matrix on v."""
        at = np.repeat(np.arange(len(chosen)), self.variable.shape[1])
        value = (weights * self.scale)[chosen].ravel()
        entries = (value, (at, self.variable[chosen].ravel()))
        return sparse.csr_array(entries, shape=(len(chosen), self.size))

    def apply_column_sums(self, source: Floats, chosen: Integers) -> sparse.csr_array:
        """``(source @ M)[j]`` for each chosen column j as a sparse matrix on v."""
        at = np.tile(np.arange(len(chosen)), len(source))
        value = (source[:, None] * self.scale)[:, chosen].ravel()
        entries = (value, (at, self.variable[:, chosen].ravel()))
        return sparse.csr_array(entries, shape=(len(chosen), self.size))

    def then(self, variable: Integers, scale: Floats) -> Substitution:
        """This substitution with its variables identified further, and renumbered."""
        merged = variable[self.variable]
        used, dense = np.unique(merged, return_inverse=True)
        factor = scale[self.variable]
        return Substitution(dense.reshape(merged.shape), self.scale * factor, len(used))


def nothing(shape: tuple[int, int]) -> Substitution:
    """Every cell its own variable."""
    cells = np.arange(shape[0] * shape[1]).reshape(shape)
    return Substitution(cells, np.ones(shape), cells.size)


def mirror(before: Substitution) -> Substitution:
    """M[i, j] = M[n-1-i, m-1-j]: a cell and its mirror image share a variable."""
    pair = np.minimum(before.variable, before.variable[::-1, ::-1])
    variable = np.arange(before.size)
    variable[before.variable] = pair
    return before.then(variable, np.ones(before.size))


def fair(before: Substitution, home: Integers) -> Substitution:
    """One variable for the probability of the truth, whatever the truth is.

    Apply it after `mirror`; the cells it joins must still have scale one.
    """
    own = before.variable[np.arange(len(home)), home]
    variable = np.arange(before.size)
    variable[own] = own.min()
    return before.then(variable, np.ones(before.size))


def erase(before: Substitution, columns: NDArray[np.bool_]) -> Substitution:
    """Zero for the given outputs; their variables disappear."""
    scale = np.where(columns[None, :], 0.0, before.scale)
    kept = np.unique(before.variable[:, ~columns])
    number = np.zeros(before.size, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    return Substitution(number[before.variable], scale, len(kept))


def outside(problem: Problem, width: int) -> NDArray[np.bool_]:
    """The cells more than `width` inputs away from those nearest to their output."""
    first, last = _nearest_range(problem)
    i = np.arange(len(problem.query.inputs))[:, None]
    far: NDArray[np.bool_] = (i < first - width) | (i > last + width)
    return far


def tails(problem: Problem, width: int) -> Substitution:
    """Geometric tails on a path: beyond `width`, each step away costs a factor e^-epsilon.

    That is as small as privacy allows, so it is what an optimum does far from the truth. It
    restricts the program: the objective can only be too high, and the lower bound, which is
    for the whole program, shows by how much.
    """
    n, m = problem.query.shape
    first, last = _nearest_range(problem)
    i = np.arange(n)[:, None]
    edge = np.clip(i, np.maximum(first - width, 0), np.minimum(last + width, n - 1))
    scale = np.exp(-float(problem.epsilon) * np.abs(i - edge))
    cells = edge * m + np.arange(m)[None, :]
    used, variable = np.unique(cells, return_inverse=True)
    return Substitution(variable.reshape(n, m), scale, len(used))


def _nearest_range(problem: Problem) -> tuple[Integers, Integers]:
    """First and last input whose own output is nearest to each output, shapes (m,)."""
    home, m = problem.query.home, len(problem.query.outputs)
    n = len(home)
    first = np.clip(np.searchsorted(home, np.arange(m), side="left"), 0, n - 1)
    last = np.clip(np.searchsorted(home, np.arange(m), side="right") - 1, 0, n - 1)
    return np.minimum(first, last), np.maximum(first, last)
