"""The best private mechanism that turns one given law of counts into another.

The answer is a geometric draw followed by a monotone remap. Only the draw touches the true
count, so privacy rests on the geometric mechanism alone; the remap is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import QueryError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import law
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.query import Query

__all__ = ["Remap", "geometric_output_law", "monotone_remap", "transport"]


REMAP_BITS = 62
"""Row totals of a remap's integer weights are 2**62, the word size of the exact sampler."""


def transport(
    query: Query, epsilon: Epsilon, source: ArrayLike, target: ArrayLike | None = None
) -> Mechanism:
    """The epsilon-private mechanism of least error that turns `source` into `target`.

    With G the truncated geometric mechanism at epsilon and R the monotone (quantile) remap of
    its output law source·G onto `target`, T = G R satisfies source·T = target and minimises::

        sum_i source_i sum_j c(i, j) T[i, j]

    among ALL epsilon-private mechanisms with source·T = target, for every Monge cost c at
    once: |i - j|, (i - j)^2, any convex function of the error, asymmetric ones too. It is not
    optimal for the zero-one loss, concave losses, or weights other than `source`; there use
    ``tv.design(..., fixed_point=z)``. Proof: docs/theory.md, the transport theorem. It answers
    the open question of paper 002, section 7; with source = target it is the
    count-error-minimising fixed-point mechanism of section 5.1 in closed form.

    Parameters
    ----------
    query : inputs whose neighbours are adjacent (every count); any increasing outputs
    epsilon : the privacy loss
    source : the law of the true answers, shape (n,), summing to one; zeros are allowed
    target : the wanted law of the released answers, shape (m,); `source` if not given

    Guarantees: in floating point, source·T is `target` to about 1e-15 and every ratio between
    neighbours is at most e^epsilon to 1e-13 relative. Beyond epsilon * n of about 700 far
    entries underflow, as they do for `geometric`; `tv.implicit_transport` draws without the
    matrix. Costs O(n (n + m)).

    >>> import numpy as np
    >>> third = [1 / 3, 1 / 3, 1 / 3]
    >>> m = transport(Query.count(2), "0.6931471805599453", source=third, target=third)
    >>> np.round(m.matrix * 7, 9).tolist()
    [[4.0, 2.0, 1.0], [2.0, 3.0, 2.0], [1.0, 2.0, 4.0]]
    """
    exact = exact_epsilon(epsilon)
    _require_path(query)
    n, m = query.shape
    before = law(source, n, "source")
    if target is None:
        query.require_square("a fixed point; give a target law over the outputs")
    after = before if target is None else law(target, m, "target")
    remap = monotone_remap(geometric_output_law(before, float(exact)), after)
    drawn = geometric(Query.count(n - 1), exact).matrix
    return Mechanism(remap.after(drawn), query, exact, name="transport")


def geometric_output_law(source: ArrayLike, epsilon: float) -> Floats:
    """The law of a clamped geometric draw when the true count has law `source`, shape (n,).

    Two exponential running sums instead of a matrix product: O(n), sums of positive terms
    only, so every entry is right to about 1e-13 relative until it underflows.

    >>> import numpy as np
    >>> np.round(geometric_output_law([0.0, 1.0, 0.0], np.log(2)), 12).tolist()
    [0.333333333333, 0.333333333333, 0.333333333333]
    """
    weights = np.asarray(source, dtype=float)
    a = math.exp(-epsilon)
    below = _running(weights, a)
    above = _running(weights[::-1], a)[::-1]
    inside = below + a * np.append(above[1:], 0.0)
    drawn: Floats = inside * (-math.expm1(-epsilon) / (1 + a))
    drawn[0], drawn[-1] = above[0] / (1 + a), below[-1] / (1 + a)
    drawn /= drawn.sum()
    return drawn


def _running(weights: Floats, a: float) -> Floats:
    """s_i = weights_i + a s_(i-1)."""
    return np.fromiter(accumulate(weights.tolist(), lambda s, x: a * s + x), float, len(weights))


@dataclass(frozen=True, eq=False)
class Remap:
    """A monotone stochastic matrix kept as its entries, at most rows + columns - 1 of them.

    Entry e sends `row[e]` to `column[e]` with probability `share[e]`; rows and columns are
    both non-decreasing in e. `start[k]` is the first entry of row k, and
    ``start[size[0]]`` the number of entries.
    """

    size: tuple[int, int]
    row: Integers
    column: Integers
    share: Floats
    start: Integers

    @cached_property
    def weights(self) -> Integers:
        """The shares as integers that sum to exactly 2**62 in every row, shape of `share`.

        What the exact sampler draws from; within one unit per entry of the shares.
        """
        scaled = np.floor(self.share * 2.0**REMAP_BITS).astype(np.int64)
        lost = 2**REMAP_BITS - np.add.reduceat(scaled, self.start[:-1])
        # shares carry a rounding, up or down; the largest entry of the row can bear it
        largest = np.maximum.reduceat(self.share, self.start[:-1])[self.row] == self.share
        at = np.flatnonzero(largest)
        first = at[np.searchsorted(self.row[at], np.arange(self.size[0]))]
        scaled[first] += lost
        scaled.setflags(write=False)
        return scaled

    def dense(self) -> Floats:
        """The remap as an ordinary matrix, shape `size`."""
        matrix = np.zeros(self.size)
        matrix[self.row, self.column] = self.share
        return matrix

    def after(self, matrix: ArrayLike) -> Floats:
        """``matrix @ self.dense()`` from the entries alone, in O(rows of matrix * entries)."""
        from scipy import sparse

        first = np.ascontiguousarray(np.asarray(matrix, dtype=float).T)
        flipped = sparse.csc_array((self.share, self.row, self._column_starts()), shape=self.size)
        result: Floats = (flipped.T @ first).T
        return result

    def _column_starts(self) -> Integers:
        """First entry of every column: entries are in order of columns as well as of rows."""
        return np.searchsorted(self.column, np.arange(self.size[1] + 1))

    def apply(self, law: ArrayLike) -> Floats:
        """The law after the remap when it was `law` before, shape (columns,)."""
        mass = np.asarray(law, dtype=float)[self.row] * self.share
        result = np.zeros(self.size[1])
        np.add.at(result, self.column, mass)
        return result


def monotone_remap(before: ArrayLike, after: ArrayLike) -> Remap:
    """The order-preserving random map that turns the law `before` into the law `after`.

    The north-west-corner (quantile) coupling, divided by `before`: walk both cumulative sums
    together and give each value the columns its probability covers. A value whose probability
    is lost in rounding goes to the column at its place, so every row is a law. Costs
    O((n + m) log(n + m)).

    >>> monotone_remap([0.5, 0.5], [0.25, 0.75]).dense().tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    rows, columns = _cumulative(before), _cumulative(after)
    cuts = np.concatenate([rows, columns])
    cuts.sort(kind="stable")  # two sorted runs: one merge
    piece = np.diff(cuts, prepend=0.0)
    cuts, piece = cuts[piece > 0], piece[piece > 0]
    row, column = np.searchsorted(rows, cuts), np.searchsorted(columns, cuts)
    idle = np.flatnonzero(np.bincount(row, minlength=len(rows)) == 0)
    if len(idle):
        place = np.searchsorted(columns, np.maximum(rows[idle], np.nextafter(0.0, 1.0)))
        order = np.argsort(np.concatenate([row, idle]), kind="stable")
        row = np.concatenate([row, idle])[order]
        column = np.concatenate([column, place])[order]
        piece = np.concatenate([piece, np.ones(len(idle))])[order]
    start = np.searchsorted(row, np.arange(len(rows) + 1))
    share = piece / np.add.reduceat(piece, start[:-1])[row]
    for array in (row, column, share, start):
        array.setflags(write=False)
    return Remap((len(rows), len(columns)), row, column, share, start)


def _cumulative(law: ArrayLike) -> Floats:
    """Cumulative sums that end at exactly one, from the last positive entry on.

    A start below 2^-60 counts as zero: no word of the sampler resolves it, at the other end
    doubles lose it anyway, and its products with far tails would underflow.
    """
    mass = np.asarray(law, dtype=float)
    total: Floats = np.minimum(np.cumsum(mass), 1.0)
    total[total < 2.0**-60] = 0.0
    total[np.flatnonzero(mass)[-1] :] = 1.0
    return total


def _require_path(query: Query) -> None:
    if not query.neighbours.is_path:
        raise QueryError(
            "query",
            "have adjacent true answers as neighbours, as a count does",
            repr(query),
            "The transport optimum is proved for counts; use design for other queries.",
        )
