"""The best private mechanism that turns one given distribution of counts into another.

The answer is a geometric draw followed by a monotone remap. Only the draw touches the true
count, so privacy rests on the geometric mechanism alone; the remap is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import canonical_cells, geometric, geometric_output_distribution
from tallyveil.prior import require_distribution
from tallyveil.query import Query, require_query

SMALLEST_CUMULATIVE = 2.0**-60
"""A cumulative probability below this counts as zero when a remap is built."""


def transport(
    query: Query,
    epsilon: Epsilon,
    source: ArrayLike,
    target: ArrayLike | None = None,
    *,
    delta: Epsilon = 0,
) -> Mechanism:
    """Build the epsilon-private mechanism of least error that turns `source` into `target`.

    With G the truncated geometric mechanism at epsilon and R the monotone (quantile) remap of
    its output distribution source·G onto `target`, T = G R satisfies source·T = target and
    minimises::

        sum_i source_i sum_j c(i, j) T[i, j]

    among ALL epsilon-private mechanisms with source·T = target, for every Monge cost c at
    once: |i - j|, (i - j)^2, any convex function of the error, asymmetric ones too. It is not
    optimal for the zero-one loss, concave losses, or weights other than `source`; there use
    ``tv.design(..., fixed_point=z)``. The proof is in docs/theory.md, the transport theorem.
    For (epsilon, delta)-privacy the same holds with canonical noise instead of G.

    In floating point, source·T is `target` to about 1e-15 and every ratio between neighbours
    is at most e^epsilon to 1e-13 relative. Beyond epsilon * n of about 700 far entries
    underflow, as they do for `geometric`; `tv.implicit_transport` draws without the matrix.
    Costs O(n (n + m)).

    Parameters
    ----------
    query : Query
        Inputs whose neighbours are adjacent (every count); any increasing outputs.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.
    source : array of float, shape (n,)
        The distribution of the true answers, summing to one; zeros are allowed.
    target : array of float, shape (m,), or None
        The distribution of the released answers; `source` if None.
    delta : int, float, str, Decimal or Fraction
        For (epsilon, delta)-privacy.

    Returns
    -------
    Mechanism
        The matrix T, shape (n, m).

    References
    ----------
    Kohli and Laskowski (2026), section 7, ask the question that this answers; with source =
    target it is the count-error-minimising fixed-point mechanism of their section 5.1.

    Examples
    --------
    >>> third = [1 / 3, 1 / 3, 1 / 3]
    >>> m = transport(Query.count(2), "0.6931471805599453", source=third, target=third)
    >>> np.round(m.matrix * 7, 9).tolist()
    [[4.0, 2.0, 1.0], [2.0, 3.0, 2.0], [1.0, 2.0, 4.0]]
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    require_query(query)
    query.require_path("The transport optimum is proved for counts; use design for other queries.")
    n, m = query.shape
    before = require_distribution(source, n, "source")
    if target is None:
        query.require_square("a fixed point; give a target distribution over the outputs")
    after = before if target is None else require_distribution(target, m, "target")
    if slack:
        drawn = canonical_cells(n, float(exact), float(slack))
        noisy = before @ drawn
    else:
        drawn = geometric(Query.count(n - 1), exact).matrix
        noisy = geometric_output_distribution(before, float(exact))
    matrix = monotone_remap(noisy, after).after(drawn)
    return Mechanism(matrix, query, exact, delta=slack, name="transport")


@dataclass(frozen=True, eq=False)
class Remap:
    """A monotone stochastic matrix kept as its entries, at most rows + columns - 1 of them.

    Entry e sends `row[e]` to `column[e]` with probability `share[e]`; both never decrease.
    `size` is (rows, columns); `start`, shape (rows + 1,), is the first entry of each row.
    """

    size: tuple[int, int]
    row: Integers
    column: Integers
    share: Floats
    start: Integers

    def after(self, matrix: ArrayLike) -> Floats:
        """Return the product of `matrix` and the remap, in O(rows of matrix * entries)."""
        from scipy import sparse

        first = np.ascontiguousarray(np.asarray(matrix, dtype=float).T)
        # Entries are in order of columns as well as of rows: sparse columns need no sorting.
        column_starts = np.searchsorted(self.column, np.arange(self.size[1] + 1))
        entries = sparse.csc_array((self.share, self.row, column_starts), shape=self.size)
        result: Floats = (entries.T @ first).T
        return result


def monotone_remap(before: ArrayLike, after: ArrayLike) -> Remap:
    """Build the order-preserving random map that turns the distribution `before` into `after`.

    The north-west-corner (quantile) coupling, divided by `before`: each value gets the columns
    its stretch of the cumulative sum covers. One whose probability is lost in rounding goes to
    the column at its place, so every row is a distribution. Costs O((n + m) log(n + m)).

    >>> monotone_remap([0.5, 0.5], [0.25, 0.75]).after(np.eye(2)).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    rows, columns = _accumulate(before), _accumulate(after)
    cuts = np.concatenate([rows, columns])
    cuts.sort(kind="stable")  # two sorted runs: one merge
    piece = np.diff(cuts, prepend=0.0)
    cuts, piece = cuts[piece > 0], piece[piece > 0]
    row, column = np.searchsorted(rows, cuts), np.searchsorted(columns, cuts)
    unreached = np.flatnonzero(np.bincount(row, minlength=len(rows)) == 0)
    if len(unreached):
        place = np.searchsorted(columns, np.maximum(rows[unreached], np.nextafter(0.0, 1.0)))
        order = np.argsort(np.concatenate([row, unreached]), kind="stable")
        row = np.concatenate([row, unreached])[order]
        column = np.concatenate([column, place])[order]
        piece = np.concatenate([piece, np.ones(len(unreached))])[order]
    start = np.searchsorted(row, np.arange(len(rows) + 1))
    share = piece / np.add.reduceat(piece, start[:-1])[row]
    size = (len(rows), len(columns))
    return Remap(size, freeze(row), freeze(column), freeze(share), freeze(start))


def _accumulate(distribution: ArrayLike) -> Floats:
    """Return cumulative sums that end at exactly one, from the last positive entry on.

    A start below 2^-60 counts as zero: no word of the sampler resolves it, at the other end
    doubles lose it anyway, and its products with far tails would underflow.
    """
    mass = np.asarray(distribution, dtype=float)
    total: Floats = np.minimum(np.cumsum(mass), 1.0)
    total[total < SMALLEST_CUMULATIVE] = 0.0
    total[np.flatnonzero(mass)[-1] :] = 1.0
    return total
