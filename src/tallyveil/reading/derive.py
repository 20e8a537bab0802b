"""Which mechanisms are post-processing of another, and why one is not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Fractions
from tallyveil.errors import ArgumentError, InfeasibleError
from tallyveil.exact import Epsilon, exact_ratio
from tallyveil.mechanism import Mechanism, require_mechanism
from tallyveil.mechanisms.geometric import geometric_rate, remove_geometric

__all__ = ["Derivability", "Obstacle", "Separation", "derivability", "derivation",
           "exact_derivation", "is_derivable"]  # fmt: skip

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Obstacle:
    """Entries of one column that no post-processing of a geometric mechanism can produce.

    Three neighbours x1, x2, x3 in a column with (1 + a^2) x2 < a (x1 + x3) (003, Theorem 2),
    or two at an end with x0 < a x1: there the mechanism is less private than its source
    (errata 003.5). `value` is the sum of `weights` times `entries`: below 0, where every
    post-processing has 0 or more.
    """

    column: int
    rows: tuple[int, ...]
    entries: tuple[float | Fraction, ...]
    weights: tuple[float | Fraction, ...]

    @property
    def value(self) -> float | Fraction:
        """The weighted sum of the entries."""
        products = (w * x for w, x in zip(self.weights, self.entries, strict=True))
        return sum(products, start=self.entries[0] * 0)

    def __str__(self) -> str:
        terms = " + ".join(
            f"{_shown(w)}·{_shown(x)}" for w, x in zip(self.weights, self.entries, strict=True)
        )
        places = ", ".join(f"({row}, {self.column})" for row in self.rows)
        return f"entries {places}: {terms} = {_shown(self.value)} is below 0 (003, Theorem 2)"


@dataclass(frozen=True, eq=False)
class Separation:
    """A decision problem in which m is worth more than anything derived from the source.

    With `losses[true, reported]`, m's expected loss (summed over true answers) is `by_m`; the
    best response to the source cannot get below `from_source` = sum_r min_j (source' losses)
    [r, j], which is larger. By Blackwell's theorem one exists whenever m is not derivable.
    """

    losses: Floats
    by_m: float
    from_source: float

    def __str__(self) -> str:
        return (
            f"there is a decision problem in which it loses {self.by_m:.6g} and no response to "
            f"the source loses less than {self.from_source:.6g}"
        )


@dataclass(frozen=True, eq=False)
class Derivability:
    """The answer to "is m post-processing of source?": a remap, or what stands in the way."""

    remap: Floats | None
    obstacle: Obstacle | Separation | None

    def __bool__(self) -> bool:
        return self.remap is not None


def is_derivable(m: Mechanism, source: Mechanism, tolerance: float = TOLERANCE) -> bool:
    """Whether somebody who sees only `source`'s release can produce `m`'s (003, Definition 3).

    >>> from tallyveil import Query, geometric
    >>> q = Query.count(3)
    >>> is_derivable(geometric(q, 0.5), source=geometric(q, 1.0))
    True
    >>> is_derivable(geometric(q, 1.0), source=geometric(q, 0.5))
    False
    """
    return bool(derivability(m, source, tolerance))


def derivation(m: Mechanism, source: Mechanism, tolerance: float = TOLERANCE) -> Floats:
    """The stochastic matrix T with ``m.matrix = source.matrix @ T``.

    Row = what `source` released, column = what to release instead. For a geometric source
    it comes from the tridiagonal inverse in O(n^2) and is the only one (003, Theorem 2);
    for any other source a least-squares solve or a linear program finds one.

    Guaranteed in floats: T is non-negative, its rows sum to one, and source T equals m to
    within `tolerance` on every probability. `exact_derivation` works in fractions.

    Raises `InfeasibleError` where there is none. Over a geometric source its message and
    ``conflict`` name the three entries of a column that stand in the way; over any other, a
    decision problem in which m is worth more than the source.

    >>> import numpy as np
    >>> from tallyveil import Query, geometric
    >>> q = Query.count(1)
    >>> T = derivation(geometric(q, "0.6931471805599453"), geometric(q, "1.3862943611198906"))
    >>> np.round(9 * T, 9).tolist()
    [[7.0, 2.0], [2.0, 7.0]]
    """
    answer = derivability(m, source, tolerance)
    if answer.remap is None:
        raise _refusal(f"{m.name} cannot be derived from {source.name}", answer.obstacle)
    return answer.remap


def derivability(m: Mechanism, source: Mechanism, tolerance: float = TOLERANCE) -> Derivability:
    """The remap from `source` to `m`, or the obstacle; see `derivation`."""
    require_mechanism(m, "m")
    require_mechanism(source, "source")
    if len(m.matrix) != len(source.matrix) or not np.array_equal(
        m.query.inputs, source.query.inputs
    ):
        raise ArgumentError("source", "have the same true answers as m", repr(source.query))
    rate = geometric_rate(source)
    if rate is None:
        return _from_any(m.matrix, source.matrix, tolerance)
    ratio = float(np.exp(-rate))
    raw = remove_geometric(m.matrix, ratio)
    remap = _stochastic(raw)
    if remap is not None and np.abs(source.matrix @ remap - m.matrix).max() <= tolerance:
        return Derivability(remap, None)
    row, column = (int(at) for at in np.unravel_index(int(raw.argmin()), raw.shape))
    return Derivability(None, _three_entries(m.matrix, row, column, ratio))


def exact_derivation(matrix: ArrayLike, ratio: Epsilon) -> Fractions:
    """The exact T with ``matrix = G T`` for the geometric G with exp(-epsilon) = `ratio`.

    Parameters
    ----------
    matrix : fractions (or strings such as "1/9"), shape (n, m), rows summing to one
    ratio : a rational strictly between 0 and 1, the papers' alpha

    Exact throughout. Raises `InfeasibleError` with the three entries that break Theorem 2
    of paper 003 where there is no such T. Costs O(n m) fraction operations.

    >>> T = exact_derivation([["2/3", "1/3"], ["1/3", "2/3"]], "1/4")
    >>> T.tolist()
    [[Fraction(7, 9), Fraction(2, 9)], [Fraction(2, 9), Fraction(7, 9)]]
    """
    a = exact_ratio(ratio)
    rows = [[Fraction(cell) for cell in row] for row in np.asarray(matrix, dtype=object)]
    if len(rows) < 2 or any(sum(row) != 1 for row in rows):
        raise ArgumentError("matrix", "have at least two rows, each summing to exactly 1")
    table = np.array(rows, dtype=object)
    T = remove_geometric(table, a)
    row, column = divmod(int(T.argmin()), T.shape[1])
    if T[row, column] < 0:
        raise _refusal("The matrix cannot be derived", _three_entries(table, row, column, a))
    return T


def _three_entries(
    table: NDArray[np.float64] | Fractions, row: int, column: int, a: float | Fraction
) -> Obstacle:
    """The entries whose combination makes T[row, column] negative."""
    last = len(table) - 1
    if row in (0, last):
        rows: tuple[int, ...] = (0, 1) if row == 0 else (last, last - 1)
        weights: tuple[float | Fraction, ...] = (a * 0 + 1, -a)
    else:
        rows, weights = (row - 1, row, row + 1), (-a, 1 + a * a, -a)
    entries = tuple(table[i, column] for i in rows)
    if not isinstance(a, Fraction):
        entries = tuple(float(x) for x in entries)
    return Obstacle(column, rows, entries, weights)


def _stochastic(raw: Floats) -> Floats | None:
    """`raw` without its negative round-off and with rows summing to one."""
    clipped = np.maximum(raw, 0.0)
    sums = clipped.sum(axis=1, keepdims=True)
    return None if (sums <= 0).any() else clipped / sums


def _refusal(what: str, obstacle: Obstacle | Separation | None) -> InfeasibleError:
    places: tuple[str, ...] = ()
    if isinstance(obstacle, Obstacle):
        places = tuple(f"({row}, {obstacle.column})" for row in obstacle.rows)
    return InfeasibleError(f"{what}: {obstacle}.", places)


def _shown(number: float | Fraction) -> str:
    return str(number) if isinstance(number, Fraction) else f"{number:.6g}"


def _from_any(target: Floats, source: Floats, tolerance: float) -> Derivability:
    """Any source: the only candidate where the source is invertible, else a program."""
    inverse = np.linalg.pinv(source)
    raw = inverse @ target
    remap = _stochastic(raw)
    if remap is not None and np.abs(source @ remap - target).max() <= tolerance:
        return Derivability(remap, None)
    if source.shape[0] == source.shape[1] == np.linalg.matrix_rank(source):
        row, column = (int(at) for at in np.unravel_index(int(raw.argmin()), raw.shape))
        losses = np.zeros_like(target)
        losses[:, column] = inverse[row]  # any post-processing has T[row, column] >= 0 here
        return Derivability(None, _separation(losses, target, source))
    return _by_program(target, source, tolerance)


def _by_program(target: Floats, source: Floats, tolerance: float) -> Derivability:
    """Minimise the largest |source T - target|; its multipliers are the decision problem."""
    from scipy import sparse

    from tallyveil.optimize.solver import Program, solve

    n, m = source.shape
    k = target.shape[1]
    product = sparse.kron(sparse.csc_array(source), sparse.eye_array(k), format="csc")
    worst = sparse.csc_array(np.ones((n * k, 1)))
    above = sparse.vstack(
        [sparse.hstack([product, -worst]), sparse.hstack([-product, -worst])], format="csc"
    )
    right = np.concatenate([target.ravel(), -target.ravel()])
    sums = sparse.kron(sparse.eye_array(m), sparse.csc_array(np.ones((1, k))))
    sums = sparse.hstack([sums, sparse.csc_array((m, 1))], format="csc")
    cost = np.zeros(m * k + 1)
    cost[-1] = 1.0
    found = solve(Program(cost, sums, np.ones(m), above, right), backend="highs")
    remap = _stochastic(found.x[:-1].reshape(m, k))
    if remap is not None and np.abs(source @ remap - target).max() <= tolerance:
        return Derivability(remap, None)
    losses = (found.y_ub[: n * k] - found.y_ub[n * k :]).reshape(n, k)
    return Derivability(None, _separation(losses, target, source))


def _separation(losses: Floats, target: Floats, source: Floats) -> Separation:
    by_m, best = float((losses * target).sum()), float((source.T @ losses).min(axis=1).sum())
    return Separation(losses, by_m, best)
