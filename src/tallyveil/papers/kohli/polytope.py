"""Epsilon-scales, and the vertices of all private mechanisms, exactly, for small n.

A scale is a distribution on 0..n-1 whose every step goes up or down by exactly e^epsilon. A
column of a private mechanism is a non-negative combination of scales (Lemma 1).

U is the set of all epsilon-private n x n mechanisms, F those with z T = z. Their
representations R_U and R_F write each column as a combination of scales, T = Psi B.

Vertices are in Fractions. Since e^epsilon is rational for no rational epsilon but 0,
functions on them take ``growth``, the value of e^epsilon itself: growth=2 is epsilon = ln 2.

Kohli and Laskowski (2026), sections 4.2 to 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, starmap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.papers.kohli.greedy import Residual

MOST_ROWS_LISTED = 20
"""The largest n for which all 2^(n-1) scales are listed."""


def patterns(n: int) -> Integers:
    """List all 2^(n-1) patterns of ups (+1) and downs (-1).

    Parameters
    ----------
    n : int
        The number of counts, from 2 to 20.

    Returns
    -------
    array of int, shape (2^(n-1), n-1)
        One pattern in each row.

    References
    ----------
    Kohli and Laskowski (2026), Definition 9.

    Examples
    --------
    >>> patterns(3).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    if not 2 <= n <= MOST_ROWS_LISTED:
        rule = f"lie between 2 and {MOST_ROWS_LISTED}, as there are 2^(n-1) scales"
        raise ArgumentError("n", rule, n)
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 2, -1, -1)[None, :]
    return 2 * (bits & 1).astype(np.int64) - 1


def scale(pattern: ArrayLike, epsilon: Epsilon) -> Floats:
    """Build the scale that goes up where `pattern` is +1 and down where it is -1.

    Parameters
    ----------
    pattern : array of int, shape (n-1,)
        Entries -1 and +1.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n,)
        A distribution.

    References
    ----------
    Kohli and Laskowski (2026), Definition 6.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(7 * scale([1, 1], np.log(2)), 9).tolist()
    [1.0, 2.0, 4.0]
    """
    steps = np.asarray(pattern)
    if steps.ndim != 1 or len(steps) == 0 or not np.isin(steps, (-1, 1)).all():
        raise ArgumentError("pattern", "be a list of -1 and +1")
    height = np.concatenate([[0], np.cumsum(steps)])
    values = np.exp(float(exact_epsilon(epsilon)) * (height - height.max()))
    distribution: Floats = values / values.sum()
    return distribution


def scale_matrix(n: int, epsilon: Epsilon) -> Floats:
    """Build Psi: every scale as a column, in the order of `patterns`.

    Parameters
    ----------
    n : int
        The number of counts, from 2 to 20.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n, 2^(n-1))
        The scales.

    Examples
    --------
    >>> scale_matrix(3, 1.0).shape
    (3, 4)
    """
    return np.column_stack([scale(pattern, epsilon) for pattern in patterns(n)])


def single_peaked_scales(n: int, epsilon: Epsilon) -> Floats:
    """Build Sigma: column j rises to a peak at row j and falls after it.

    Entries underflow where epsilon * n is above about 700.

    Parameters
    ----------
    n : int
        The number of counts, at least 2.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n, n)
        The single-peaked scales.

    References
    ----------
    Kohli and Laskowski (2026), Definition 10.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(4 * single_peaked_scales(3, np.log(2))[:, 1], 9).tolist()
    [1.0, 2.0, 1.0]
    """
    rows = np.arange(_check_size(n))
    peaked = np.exp(-float(exact_epsilon(epsilon)) * np.abs(rows[:, None] - rows[None, :]))
    sigma: Floats = peaked / peaked.sum(axis=0)
    return sigma


def peak_weights(n: int, epsilon: Epsilon) -> Floats:
    """Compute omega: how much of each single-peaked scale makes all rows sum to one.

    With a = e^-epsilon and S_l = sum_i a^|i-l|: (1-a)/(1+a) S_l inside, S_l/(1+a) at the ends.
    Column l of the geometric mechanism is omega_l times scale l.

    Parameters
    ----------
    n : int
        The number of counts, at least 2.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n,)
        The weights, all positive.

    References
    ----------
    Kohli and Laskowski (2026), Observation 3, with e^epsilon read as e^-epsilon (errata,
    Kohli 1).

    Examples
    --------
    >>> import numpy as np
    >>> np.round(6 * peak_weights(3, np.log(2)), 9).tolist()
    [7.0, 4.0, 7.0]
    """
    rate, rows = float(exact_epsilon(epsilon)), np.arange(_check_size(n))
    a = np.exp(-rate)
    sums = np.exp(-rate * np.abs(rows[:, None] - rows[None, :])).sum(axis=0)
    omega: Floats = sums * (-np.expm1(-rate) / (1 + a))
    omega[[0, -1]] = sums[[0, -1]] / (1 + a)
    return omega


def privacy_rows(n: int, epsilon: Epsilon) -> Floats:
    """Build Pi: a non-negative column v is private exactly when Pi v <= 0.

    Row 2i says e^-epsilon v[i+1] <= v[i]; row 2i+1 says v[i] <= e^epsilon v[i+1].

    Parameters
    ----------
    n : int
        The number of counts, at least 2.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (2n-2, n)
        The constraints.

    References
    ----------
    Kohli and Laskowski (2026), section 4.1.
    """
    rate = float(exact_epsilon(epsilon))
    rows = np.zeros((2 * _check_size(n) - 2, n))
    steps = np.arange(n - 1)
    rows[2 * steps, steps], rows[2 * steps, steps + 1] = -1.0, np.exp(-rate)
    rows[2 * steps + 1, steps], rows[2 * steps + 1, steps + 1] = 1.0, -np.exp(rate)
    return rows


def is_indistinguishable(column: ArrayLike, epsilon: Epsilon, tolerance: float = 1e-9) -> bool:
    """Decide whether neighbours in `column` differ by a factor of at most e^epsilon.

    Parameters
    ----------
    column : array of float, shape (n,)
        A column of a mechanism.
    epsilon : number or str
        The privacy loss.
    tolerance : float
        Relative to the compared entries.

    Returns
    -------
    bool
        True if it is non-negative and every factor is small enough.

    References
    ----------
    Kohli and Laskowski (2026), Definition 3.

    Examples
    --------
    >>> is_indistinguishable([1.0, 2.0], 0.7), is_indistinguishable([1.0, 2.0], 0.6)
    (True, False)
    """
    values = np.asarray(column, dtype=float)
    rows = privacy_rows(len(values), epsilon)
    return bool((values >= 0).all() and (rows @ values <= tolerance * (abs(rows) @ values)).all())


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A private column as a non-negative sum of scales.

    Attributes
    ----------
    patterns : array of int, shape (k, n-1)
        The patterns of the scales, at most n of them.
    coefficients : array of float, shape (k,)
        How much of each scale.
    epsilon : float
        The privacy loss.
    """

    patterns: Integers
    coefficients: Floats
    epsilon: float

    def column(self) -> Floats:
        """Compute the column that was decomposed, shape (n,)."""
        pairs = zip(self.patterns, self.coefficients, strict=True)
        parts = [amount * scale(steps, self.epsilon) for steps, amount in pairs]
        total: Floats = np.sum(parts, axis=0)
        return total


def decompose(column: ArrayLike, epsilon: Epsilon) -> Decomposition:
    """Write any private column as a non-negative sum of at most n scales.

    Subtracts as much of one scale as keeps the residual private, which makes one more privacy
    bound tight each time; when all are tight the residual is a scale. Accurate to about 1e-12
    relative to the largest entry. Costs O(n^2).

    Parameters
    ----------
    column : array of float, shape (n,)
        A private column, not all zero.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    Decomposition
        The scales and their coefficients.

    References
    ----------
    Kohli and Laskowski (2026), Lemma 1.

    Examples
    --------
    >>> found = decompose([1.0, 1.5, 1.0], "0.6931471805599453")
    >>> len(found.coefficients) <= 3, found.column().round(9).tolist()
    (True, [1.0, 1.5, 1.0])
    """
    values, rate = np.asarray(column, dtype=float), float(exact_epsilon(epsilon))
    if values.ndim != 1 or len(values) < 2 or not values.max(initial=0) > 0:
        raise ArgumentError("column", "be a list of at least two numbers, not all zero")
    if not is_indistinguishable(values, epsilon):
        raise ArgumentError("column", "be private: neighbours within a factor e^epsilon")
    rest = Residual.of(values, rate)
    steps: list[Integers] = []
    amounts: list[float] = []
    while rest.free.any():
        pattern = rest.match_pattern(np.where(np.diff(rest.log) >= 0, 1, -1))
        taken, _ = rest.take(pattern)
        steps.append(pattern)
        amounts.append(float(taken.sum()))
    steps.append(rest.tight.copy())
    amounts.append(float(np.exp(rest.log).sum()))
    keep = np.array(amounts) > 0
    return Decomposition(np.array(steps)[keep], np.array(amounts)[keep], rate)


def _check_size(n: int) -> int:
    if n < 2:
        raise ArgumentError("n", "be at least 2", n)
    return n


Matrix: TypeAlias = NDArray[Any]
"""An array of Fractions (dtype object)."""

MOST_ROWS = 4


def exact_scales(n: int, growth: Fraction | int) -> Matrix:
    """Build Psi, every scale as a column in the order of `patterns`, in exact Fractions.

    Parameters
    ----------
    n : int
        The number of counts, from 2 to 20.
    growth : Fraction or int
        e^epsilon, above 1.

    Returns
    -------
    array of Fraction, shape (n, 2^(n-1))
        The scales.

    Examples
    --------
    >>> [str(x) for x in exact_scales(2, 2)[:, 1]]
    ['1/3', '2/3']
    """
    factor = _check_growth(growth)
    columns = []
    for pattern in patterns(n):
        height = np.concatenate([[0], np.cumsum(pattern)])
        values = [factor ** int(h) for h in height]
        columns.append([value / sum(values) for value in values])
    return np.array(columns, dtype=object).T


def extreme_representations(
    n: int, growth: Fraction | int, z: Sequence[Fraction] | None = None
) -> list[Matrix]:
    """List every vertex of R_U, or of R_F when `z` is given.

    R_U holds the B >= 0 with Psi B 1 = 1; R_F adds z Psi B = z. Goes from vertex to vertex by
    exact pivots; n = 4 takes minutes.

    Parameters
    ----------
    n : int
        The number of counts, from 2 to 4.
    growth : Fraction or int
        e^epsilon, above 1.
    z : sequence of Fraction, optional
        The distribution to keep, of n positive Fractions that sum to exactly one.

    Returns
    -------
    list of array of Fraction, each of shape (2^(n-1), n)
        The vertices.

    References
    ----------
    Kohli and Laskowski (2026), Definitions 7 and 18.

    Examples
    --------
    >>> len(extreme_representations(2, 2))
    4
    """
    if not 2 <= n <= MOST_ROWS:
        raise ArgumentError("n", f"lie between 2 and {MOST_ROWS} for exact vertices", n)
    scales = exact_scales(n, growth)
    k = scales.shape[1]
    rows, right = [np.repeat(row, n) for row in scales], [Fraction(1)] * n
    shares = () if z is None else _check_distribution(z, n)
    for j, share in enumerate(shares[:-1]):  # the last one follows from the others
        column = np.full((k, n), Fraction(0), dtype=object)
        column[:, j] = shares @ scales
        rows.append(column.ravel())
        right.append(share)
    points = _list_vertices(np.array(rows, dtype=object), np.array(right, dtype=object))
    return [point.reshape(k, n) for point in points]


def extreme_mechanisms(
    n: int, growth: Fraction | int, z: Sequence[Fraction] | None = None
) -> list[Matrix]:
    """List every vertex of U, or of F when `z` is given.

    Every one is Psi B for a vertex B of the representation (Propositions 1 and 3), so those
    images that are vertices are all of them.

    Parameters
    ----------
    n, growth, z
        As for `extreme_representations`.

    Returns
    -------
    list of array of Fraction, each of shape (n, n)
        The vertices.

    References
    ----------
    Kohli and Laskowski (2026), Propositions 1 and 3, Examples 1 and 2.

    Examples
    --------
    >>> len(extreme_mechanisms(2, 2))
    4
    """
    scales = exact_scales(n, growth)
    images = {tuple((scales @ B).ravel()) for B in extreme_representations(n, growth, z)}
    candidates = [np.array(image, dtype=object).reshape(n, n) for image in sorted(images)]
    return [T for T in candidates if is_extreme(T, growth, z)]


def is_extreme(T: Matrix, growth: Fraction | int, z: Sequence[Fraction] | None = None) -> bool:
    """Decide whether a private T is a vertex of U, or of F when `z` is given.

    Rows joined by tight bounds can only move together, so T can move in one direction per
    block of each non-zero column; it is a vertex exactly when no such move keeps every row
    sum (and z T).

    Parameters
    ----------
    T : array of Fraction, shape (n, n)
        An epsilon-private mechanism.
    growth, z
        As for `extreme_representations`.

    Returns
    -------
    bool
        True if T is a vertex.

    References
    ----------
    Kohli and Laskowski (2026), Theorem 2, is the special case of all-positive T in U.
    """
    factor, n = _check_growth(growth), len(T)
    shares = None if z is None else _check_distribution(z, n)
    moves = []
    for j in range(T.shape[1]):
        column = T[:, j]
        steps = zip(column[1:], column[:-1], strict=True)
        free = [i for i, (x, y) in enumerate(steps, 1) if x not in (factor * y, y / factor)]
        edges = [0, *free, n] if column.any() else []
        for block in starmap(slice, pairwise(edges)):  # rows joined by tight bounds
            effect = np.full(n + T.shape[1], Fraction(0), dtype=object)
            effect[block] = T[block, j]
            if shares is not None:
                effect[n + j] = shares[block] @ T[block, j]
            moves.append(effect)
    return rank(np.array(moves, dtype=object)) == len(moves)


def is_linearly_simplified(B: Matrix, scales: Matrix) -> bool:
    """Decide whether the scales that B uses, counted per column, are linearly independent.

    Exactly the vertices of R_U have this property (Theorem 11).

    Parameters
    ----------
    B : array of Fraction, shape (2^(n-1), n)
        A representation.
    scales : array of Fraction, shape (n, 2^(n-1))
        Psi; see `exact_scales`.

    Returns
    -------
    bool
        True if they are independent.

    References
    ----------
    Kohli and Laskowski (2026), Definition 19 and Theorem 11.
    """
    used = [scales[:, u] for j in range(B.shape[1]) for u in np.flatnonzero(B[:, j] > 0)]
    return rank(np.array(used, dtype=object)) == len(used)


def is_affinely_simplified(B: Matrix, scales: Matrix, z: Sequence[Fraction]) -> bool:
    """Decide whether the weighted differences of the scales in each column are independent.

    Exactly the vertices of R_F have this property (Theorem 4).

    Parameters
    ----------
    B, scales
        As for `is_linearly_simplified`.
    z : sequence of Fraction
        The distribution to keep.

    Returns
    -------
    bool
        True if they are independent.

    References
    ----------
    Kohli and Laskowski (2026), Definition 8 and Theorem 4.
    """
    shares = _check_distribution(z, len(scales))
    differences = []
    for j in range(B.shape[1]):
        used = np.flatnonzero(B[:, j] > 0)
        scaled = [scales[:, u] / (shares @ scales[:, u]) for u in used]
        differences += [vector - scaled[0] for vector in scaled[1:]]
    return not differences or rank(np.array(differences, dtype=object)) == len(differences)


def rank(vectors: Matrix) -> int:
    """Compute the rank of a matrix of Fractions, by exact elimination.

    Parameters
    ----------
    vectors : array of Fraction
        The matrix.

    Returns
    -------
    int
        Its rank.

    Examples
    --------
    >>> rank(np.array([[Fraction(1), Fraction(2)], [Fraction(2), Fraction(4)]], dtype=object))
    1
    """
    rows, pivots = vectors.copy(), 0
    for j in range(rows.shape[1] if rows.ndim == 2 else 0):
        pivot = next((i for i in range(pivots, len(rows)) if rows[i, j] != 0), None)
        if pivot is None:
            continue
        rows[[pivots, pivot]] = rows[[pivot, pivots]]
        for i in range(pivots + 1, len(rows)):
            if rows[i, j] != 0:
                rows[i] = rows[i] - rows[pivots] * (rows[i, j] / rows[pivots, j])
        pivots += 1
    return pivots


def _list_vertices(A: Matrix, b: Matrix) -> list[Matrix]:
    """List every vertex of {x >= 0, A x = b}, b > 0, by going over all feasible bases."""
    tableau, start = _find_basis(np.column_stack([A, b]))
    seen, todo = {frozenset(start)}, [(tableau, start)]
    points: dict[tuple[Any, ...], Matrix] = {}
    while todo:
        current, basis = todo.pop()
        point = np.full(A.shape[1], Fraction(0), dtype=object)
        point[basis] = current[:, -1]
        points[tuple(point)] = point
        for entering in sorted(set(range(A.shape[1])) - set(basis)):
            for row in _list_leaving(current, entering):
                after = [*basis[:row], entering, *basis[row + 1 :]]
                if frozenset(after) not in seen:
                    seen.add(frozenset(after))
                    todo.append((_pivot(current, row, entering), after))
    return list(points.values())


def _find_basis(tableau: Matrix) -> tuple[Matrix, list[int]]:
    """Find a feasible basis by phase one of the simplex method with Bland's rule."""
    m, width = tableau.shape
    artificial = np.array([[Fraction(int(i == j)) for j in range(m)] for i in range(m)], object)
    full = np.column_stack([tableau[:, :-1], artificial, tableau[:, -1]])
    basis = list(range(width - 1, width - 1 + m))
    while any(j >= width - 1 for j in basis):
        cost = sum(full[i] for i in range(m) if basis[i] >= width - 1)
        entering = next((j for j in range(width - 1) if cost[j] > 0), None)
        if entering is None:
            raise ArgumentError("z", "be a distribution of positive entries, as exact Fractions")
        ties = _list_leaving(full, entering)
        row = min(ties, key=lambda i: basis[i])
        full, basis[row] = _pivot(full, row, entering), entering
    return np.column_stack([full[:, : width - 1], full[:, -1]]), basis


def _list_leaving(tableau: Matrix, entering: int) -> list[int]:
    """List the rows that may leave the basis when `entering` enters it: all that tie."""
    ratios = {i: row[-1] / row[entering] for i, row in enumerate(tableau) if row[entering] > 0}
    least = min(ratios.values(), default=None)
    return [i for i, ratio in ratios.items() if ratio == least]


def _pivot(tableau: Matrix, row: int, column: int) -> Matrix:
    after = tableau.copy()
    after[row] = after[row] / after[row, column]
    for i in range(len(after)):
        if i != row and after[i, column] != 0:
            after[i] = after[i] - after[row] * after[i, column]
    return after


def _check_growth(growth: Fraction | int) -> Fraction:
    factor = Fraction(growth)
    if factor <= 1:
        raise ArgumentError("growth", "be greater than 1, as e^epsilon is", growth)
    return factor


def _check_distribution(z: Sequence[Fraction] | None, n: int) -> Matrix:
    shares = np.array([Fraction(value) for value in z or ()], dtype=object)
    if len(shares) != n or min(shares) < 0 or sum(shares) != 1:
        raise ArgumentError("z", f"be {n} non-negative Fractions that sum to exactly one")
    return shares
