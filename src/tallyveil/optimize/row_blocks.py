"""A program in blocks, one per true answer, and its block tridiagonal Newton systems."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from tallyveil.arrays import Floats, Integers
from tallyveil.optimize.program import Assembly
from tallyveil.optimize.solver import Matrix

__all__ = ["Blocks", "Factor"]

REFINEMENTS, REFINED = 3, 1e-10
"""Most corrections of a solution of the Newton system, and the relative error that needs none."""


# -- the program in blocks ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Blocks:
    """Minimise ``cost @ x`` with ``G x <= right`` and an equation ``E x = sums`` per block.

    `order` sorts the variables by block, `starts` are the blocks' first places in that order.
    ``products @ d`` holds the entries of ``G' diag(d) G``: for block i those at ``diagonal[i]``
    (which of them, and where in the block), and those that tie it to block i - 1 at
    ``beside[i]`` (which of them, row, column).
    """

    cost: Floats
    G: Matrix
    right: Floats
    E: Matrix
    sums: Floats
    order: Integers
    starts: Integers
    products: Matrix
    diagonal: list[tuple[Integers, Integers]]
    beside: list[tuple[Integers, Integers, Integers]]
    equation: list[Floats]

    @classmethod
    def of(cls, assembly: Assembly) -> Blocks | None:
        """The blocks of a program; None where rows further apart are coupled."""
        program = assembly.program
        G, E = (sparse.csr_array(side[0]) for side in (program.inequalities(), program.equations()))
        variable = assembly.steps[1].variable
        block = np.full(program.size, len(variable))
        row = np.repeat(np.arange(len(variable)), variable.shape[1])
        np.minimum.at(block, variable.ravel(), row)  # a mirrored entry belongs to the first row
        count = int(block.max()) + 1
        order = np.argsort(block, kind="stable")
        starts = np.searchsorted(block[order], np.arange(count + 1))
        local = np.empty(program.size, dtype=np.int64)
        local[order] = np.arange(program.size) - starts[block[order]]
        first, second, products = _multiply_rows(G)
        ahead = block[second] - block[first]
        if E.shape[0] != count or np.abs(ahead).max(initial=0) > 1:
            return None
        place = local[first] + local[second] * np.diff(starts)[block[first]]
        inside = np.flatnonzero((ahead == 0) & (local[first] >= local[second]))
        across = np.flatnonzero(ahead == 1)
        diagonal = [(at, place[at]) for at in _split(inside, block[first], count)]
        beside = [
            (at, local[first[at]], local[second[at]]) for at in _split(across, block[second], count)
        ]
        equation = [
            E[[i]].toarray().ravel()[order[starts[i] : starts[i + 1]]] for i in range(count)
        ]
        return cls(
            program.cost, G, program.inequalities()[1], E, program.equations()[1],
            order, starts, products, diagonal, beside, equation,
        )  # fmt: skip

    def split(self, values: Floats) -> list[Floats]:
        """The values of each block's variables."""
        ordered, ends = values[self.order], self.starts.tolist()
        return [ordered[first:last] for first, last in itertools.pairwise(ends)]

    def join(self, parts: list[Floats]) -> Floats:
        """The inverse of `split`."""
        values = np.empty(len(self.order))
        values[self.order] = np.concatenate(parts)
        return values


def _multiply_rows(G: Matrix) -> tuple[Integers, Integers, Matrix]:
    """The pairs of variables that share a row, and what turns d into the entries of G' d G."""
    length = np.diff(G.indptr)
    parts = []
    for size in np.unique(length):
        rows = np.flatnonzero(length == size)
        at = G.indptr[rows][:, None] + np.arange(size)
        one, other = np.repeat(at, size, axis=1).ravel(), np.tile(at, size).ravel()
        parts.append((np.repeat(rows, size * size), one, other))
    row, one, other = (np.concatenate(part) for part in zip(*parts, strict=True))
    code = G.indices[one].astype(np.int64) * G.shape[1] + G.indices[other]
    pairs, number = np.unique(code, return_inverse=True)
    products = sparse.csr_array(
        (G.data[one] * G.data[other], (number, row)), shape=(len(pairs), G.shape[0])
    )
    return pairs // G.shape[1], pairs % G.shape[1], products


def _split(which: Integers, block: Integers, count: int) -> list[Integers]:
    """The numbers in `which` by the block that each belongs to."""
    by_block = which[np.argsort(block[which], kind="stable")]
    return np.split(by_block, np.searchsorted(block[by_block], np.arange(1, count)))


# -- the Newton system ----------------------------------------------------------------------------


class Factor:
    """A factor of ``[G' D G, E'; E, 0]``, one block after the other.

    With T the block after elimination of those before it and a its equation, it keeps
    u = T^-1 a, a'u, and P = T^-1 - u u' / a'u, which solves under a'x = 0.
    """

    def __init__(self, blocks: Blocks, scaling: Floats) -> None:
        from scipy.linalg.blas import dsymv, dsyr
        from scipy.linalg.lapack import dpotrf, dpotri

        self.blocks, self.scaling = blocks, scaling
        self.P: list[Floats] = []
        self.u: list[Floats] = []
        self.mass: list[float] = []
        self.beside: list[Floats] = []
        values = blocks.products @ scaling
        for i, (at, place) in enumerate(blocks.diagonal):
            size = len(blocks.equation[i])
            T = np.zeros((size, size), order="F")
            flat = T.ravel(order="K")
            flat[place] = values[at]
            self.beside.append(_shape_beside(blocks, i, values))
            if i:
                T -= _carry(self.P[-1], self.beside[i])
            flat[:: size + 1] *= 1 + 1e-14
            factor, failed = dpotrf(T, lower=1, overwrite_a=1, clean=0)
            if failed:
                raise np.linalg.LinAlgError
            P, _ = dpotri(factor, lower=1, overwrite_c=1)
            u = dsymv(1.0, P, blocks.equation[i], lower=1)
            mass = float(u @ blocks.equation[i])
            self.P.append(dsyr(-1 / mass, u, a=P, lower=1, overwrite_a=1))
            self.u.append(u)
            self.mass.append(mass)

    def solve(self, right: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Solve once, forwards and backwards over the blocks."""
        from scipy.linalg.blas import dsymv

        parts = self.blocks.split(right)
        found: list[Floats] = []
        for i, (P, u) in enumerate(zip(self.P, self.u, strict=True)):
            if i:
                parts[i] -= _apply_beside(self.beside[i], found[-1], forwards=True)
            found.append(dsymv(1.0, P, parts[i], lower=1) + u * (sums[i] / self.mass[i]))
        y = np.empty(len(parts))
        for i in range(len(parts) - 1, -1, -1):
            if i + 1 < len(parts):
                back = _apply_beside(self.beside[i + 1], found[i + 1], forwards=False)
                found[i] -= dsymv(1.0, self.P[i], back, lower=1)
                parts[i] -= back
            y[i] = (self.u[i] @ parts[i] - sums[i]) / self.mass[i]
        return self.blocks.join(found), y

    def refine(self, right: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Solve, and solve again for what is left, while that is worth it."""
        G, E = self.blocks.G, self.blocks.E
        x, y = self.solve(right, sums)
        enough, before = REFINED * np.abs(right).max(), np.inf
        for _ in range(REFINEMENTS):
            left = right - G.T @ (self.scaling * (G @ x)) - E.T @ y
            worst = np.abs(left).max()
            if not enough < worst < before / 2:
                break
            before = worst
            more, change = self.solve(left, sums - E @ x)
            x, y = x + more, y + change
        return x, y


def _shape_beside(blocks: Blocks, i: int, values: Floats) -> Floats:
    """What ties block i to the one before: a diagonal as a vector, anything else as a matrix."""
    at, row, column = blocks.beside[i]
    size, before = len(blocks.equation[i]), len(blocks.equation[i - 1])
    if size == before == len(at) and np.array_equal(row, column):
        diagonal = np.empty(size)
        diagonal[row] = values[at]
        return diagonal
    matrix = np.zeros((before, size))
    matrix[row, column] = values[at]
    return matrix


def _carry(P: Floats, beside: Floats) -> Floats:
    """``beside' P beside`` for a P whose lower half is set; that half of it counts."""
    if beside.ndim == 1:
        carried = np.multiply.outer(beside, beside)
        carried *= P.T  # both are symmetric, and so the order in memory is the same
        return carried.T
    whole = np.tril(P) + np.tril(P, -1).T
    return beside.T @ whole @ beside


def _apply_beside(beside: Floats, values: Floats, *, forwards: bool) -> Floats:
    if beside.ndim == 1:
        return beside * values
    return values @ beside if forwards else beside @ values
