"""Mechanisms as post-processing of another: the remap, or the obstacle; and what dominates all.

`dominating_remap` gives one response that is at least as good as a given mechanism for everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Fractions
from tallyveil.errors import ArgumentError, InfeasibleError
from tallyveil.exact import Epsilon, exact_epsilon, exact_ratio
from tallyveil.matrix import FrozenArrays
from tallyveil.mechanism import MechanismLike, as_mechanism
from tallyveil.mechanisms.geometric import geometric_rate, remove_geometric

TOLERANCE = 1e-9
"""How far source T may differ from m on any probability."""


@dataclass(frozen=True)
class Obstacle:
    """Entries of one column that no post-processing of a geometric mechanism can produce.

    Three neighbours x1, x2, x3 in a column with (1 + a^2) x2 < a (x1 + x3), or two at an end
    with x0 < a x1: there the mechanism is less private than its source (errata, Gupte 5).

    Attributes
    ----------
    column : int
        Index of the released answer.
    rows : tuple of int
        Indices of the true answers.
    entries, weights : tuple of float or Fraction
        The entries and the factors of the broken inequality.

    References
    ----------
    Gupte and Sundararajan (2010), Theorem 2.
    """

    column: int
    rows: tuple[int, ...]
    entries: tuple[float | Fraction, ...]
    weights: tuple[float | Fraction, ...]

    @property
    def value(self) -> float | Fraction:
        """The sum of weights times entries: below 0, where post-processing has 0 or more."""
        products = (w * x for w, x in zip(self.weights, self.entries, strict=True))
        return sum(products, start=self.entries[0] * 0)

    def __str__(self) -> str:
        terms = " + ".join(
            f"{_format(w)}·{_format(x)}" for w, x in zip(self.weights, self.entries, strict=True)
        )
        places = ", ".join(f"({row}, {self.column})" for row in self.rows)
        return (
            f"entries {places}: {terms} = {_format(self.value)} is below 0 "
            "(Gupte and Sundararajan 2010, Theorem 2)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Separation(FrozenArrays):
    """A decision problem where m is worth more than anything derived from the source.

    By Blackwell's theorem one exists whenever m is not derivable.

    Attributes
    ----------
    losses : array of float, shape (n, m)
        ``losses[true, reported]`` of the decision problem.
    by_m : float
        The expected loss of m, summed over true answers.
    from_source : float
        The loss of the best response to the source, sum_r min_j (source' losses)[r, j];
        larger than `by_m`.
    """

    losses: Floats
    by_m: float
    from_source: float

    def __str__(self) -> str:
        return (
            f"there is a decision problem where it loses {self.by_m:.6g} and no response to "
            f"the source loses less than {self.from_source:.6g}"
        )

    def __repr__(self) -> str:
        return f"<Separation: {self}>"


@dataclass(frozen=True, eq=False, repr=False)
class Derivability(FrozenArrays):
    """The answer to "is m post-processing of source?": a remap, or an obstacle.

    Attributes
    ----------
    remap : array of float, shape (released by source, released by m), or None
        The post-processing.
    obstacle : Obstacle, Separation or None
        The reason that there is none.
    """

    remap: Floats | None
    obstacle: Obstacle | Separation | None

    def __bool__(self) -> bool:
        return self.remap is not None

    def __repr__(self) -> str:
        if self.remap is not None:
            return "<Derivability: derivable, remap {} x {}>".format(*self.remap.shape)
        return f"<Derivability: not derivable, {self.obstacle}>"


def is_derivable(m: MechanismLike, source: MechanismLike, tolerance: float = TOLERANCE) -> bool:
    """Decide whether somebody who sees only `source`'s release can produce `m`'s.

    Parameters
    ----------
    m, source : Mechanism, Design or certified mechanism
        Two mechanisms with the same true answers.
    tolerance : float
        How far source T may differ from m on any probability.

    Returns
    -------
    bool
        True if m is post-processing of source.

    References
    ----------
    Gupte and Sundararajan (2010), Definition 3.

    Examples
    --------
    >>> from tallyveil import Query, geometric
    >>> q = Query.count(3)
    >>> is_derivable(geometric(q, 0.5), source=geometric(q, 1.0))
    True
    >>> is_derivable(geometric(q, 1.0), source=geometric(q, 0.5))
    False
    """
    return bool(derivability(m, source, tolerance))


def derivation(m: MechanismLike, source: MechanismLike, tolerance: float = TOLERANCE) -> Floats:
    """Find the stochastic matrix T with ``m.matrix = source.matrix @ T``.

    For a geometric source it comes from the tridiagonal inverse in O(n^2) and is the only
    one; for any other source a least-squares solve or a linear program finds one.

    Parameters
    ----------
    m, source : Mechanism, Design or certified mechanism
        Two mechanisms with the same true answers.
    tolerance : float
        How far source T may differ from m on any probability.

    Returns
    -------
    array of float, shape (released by source, released by m)
        T, non-negative with rows that sum to one. Row = what `source` released, column =
        what to release instead. `exact_derivation` works in fractions.

    Raises
    ------
    InfeasibleError
        Where there is none. Over a geometric source its message and ``conflict`` name the
        three entries of a column that prevent it; over any other, a decision problem
        where m is worth more than the source.

    References
    ----------
    Gupte and Sundararajan (2010), Theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from tallyveil import Query, geometric
    >>> q = Query.count(1)
    >>> T = derivation(geometric(q, "0.6931471805599453"), geometric(q, "1.3862943611198906"))
    >>> np.round(9 * T, 9).tolist()
    [[7.0, 2.0], [2.0, 7.0]]
    """
    target, origin = as_mechanism(m, "m"), as_mechanism(source, "source")
    answer = derivability(target, origin, tolerance)
    if answer.remap is None:
        raise _refusal(f"{target.name} cannot be derived from {origin.name}", answer.obstacle)
    return answer.remap


def derivability(
    m: MechanismLike, source: MechanismLike, tolerance: float = TOLERANCE
) -> Derivability:
    """Find the remap from `source` to `m`, or the obstacle; see `derivation`."""
    m, source = as_mechanism(m, "m"), as_mechanism(source, "source")
    if not np.array_equal(m.query.inputs, source.query.inputs):
        raise ArgumentError("source", "have the same true answers as m", got=repr(source.query))
    rate = geometric_rate(source)
    if rate is None:
        return _derive_from_any(m.matrix, source.matrix, tolerance)
    ratio = float(np.exp(-rate))
    raw = remove_geometric(m.matrix, ratio)
    remap = _make_stochastic(raw)
    if remap is not None and np.abs(source.matrix @ remap - m.matrix).max() <= tolerance:
        return Derivability(remap, None)
    row, column = (int(index) for index in np.unravel_index(int(raw.argmin()), raw.shape))
    return Derivability(None, _find_obstacle(m.matrix, row, column, ratio))


def exact_derivation(matrix: ArrayLike, ratio: Epsilon) -> Fractions:
    """Find the exact T with ``matrix = G T`` for the geometric G with exp(-epsilon) = `ratio`.

    Rows must sum to exactly one. Where there is no T, the `InfeasibleError` names the entries
    that break Theorem 2 of Gupte and Sundararajan (2010). Costs O(n m) fraction operations.

    >>> exact_derivation([["2/3", "1/3"], ["1/3", "2/3"]], "1/4").tolist()
    [[Fraction(7, 9), Fraction(2, 9)], [Fraction(2, 9), Fraction(7, 9)]]
    """
    a = exact_ratio(ratio)
    try:
        rows = [[Fraction(cell) for cell in row] for row in np.asarray(matrix, dtype=object)]
    except (TypeError, ValueError, ZeroDivisionError):
        got = "something else"
        raise ArgumentError("matrix", "be a table of exact numbers", got=got) from None
    if len(rows) < 2 or any(sum(row) != 1 for row in rows):
        raise ArgumentError("matrix", "have at least two rows, each summing to exactly 1")
    table = np.array(rows, dtype=object)
    T = remove_geometric(table, a)
    row, column = divmod(int(T.argmin()), T.shape[1])
    if T[row, column] < 0:
        raise _refusal("The matrix cannot be derived", _find_obstacle(table, row, column, a))
    return T


def _find_obstacle(
    table: Floats | Fractions, row: int, column: int, a: float | Fraction
) -> Obstacle:
    """Return the entries whose combination makes T[row, column] negative."""
    last = len(table) - 1
    if row in (0, last):
        rows: tuple[int, ...] = (0, 1) if row == 0 else (last, last - 1)
        weights: tuple[float | Fraction, ...] = (a * 0 + 1, -a)
    else:
        rows, weights = (row - 1, row, row + 1), (-a, 1 + a * a, -a)
    return Obstacle(column, rows, tuple(table[list(rows), column].tolist()), weights)


def _make_stochastic(raw: Floats) -> Floats | None:
    """Return `raw` without its negative round-off and with rows summing to one."""
    clipped = np.maximum(raw, 0.0)
    sums = clipped.sum(axis=1, keepdims=True)
    return None if (sums <= 0).any() else clipped / sums


def _refusal(what: str, obstacle: Obstacle | Separation | None) -> InfeasibleError:
    """Return the error that explains why there is no derivation."""
    places: tuple[str, ...] = ()
    if isinstance(obstacle, Obstacle):
        places = tuple(f"({row}, {obstacle.column})" for row in obstacle.rows)
    return InfeasibleError(f"{what}: {obstacle}.", places)


def _format(number: float | Fraction) -> str:
    """Write a fraction exactly, and a float to six digits."""
    return str(number) if isinstance(number, Fraction) else f"{number:.6g}"


def _derive_from_any(target: Floats, source: Floats, tolerance: float) -> Derivability:
    """Derive from any source: by its inverse where it has one, else by a program."""
    inverse = np.linalg.pinv(source)
    raw = inverse @ target
    remap = _make_stochastic(raw)
    if remap is not None and np.abs(source @ remap - target).max() <= tolerance:
        return Derivability(remap, None)
    if source.shape[0] == source.shape[1] == np.linalg.matrix_rank(source):
        row, column = (int(index) for index in np.unravel_index(int(raw.argmin()), raw.shape))
        losses = np.zeros_like(target)
        losses[:, column] = inverse[row]  # any post-processing has T[row, column] >= 0 here
        return Derivability(None, _make_separation(losses, target, source))
    return _derive_by_program(target, source, tolerance)


def _derive_by_program(target: Floats, source: Floats, tolerance: float) -> Derivability:
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
    solution = solve(Program(cost, sums, np.ones(m), above, right), backend="highs")
    remap = _make_stochastic(solution.x[:-1].reshape(m, k))
    if remap is not None and np.abs(source @ remap - target).max() <= tolerance:
        return Derivability(remap, None)
    losses = (solution.y_ub[: n * k] - solution.y_ub[n * k :]).reshape(n, k)
    return Derivability(None, _make_separation(losses, target, source))


def _make_separation(losses: Floats, target: Floats, source: Floats) -> Separation:
    """Build the separation by a decision problem's losses."""
    by_m, best = float((losses * target).sum()), float((source.T @ losses).min(axis=1).sum())
    return Separation(losses, by_m, best)


def dominating_remap(m: MechanismLike, epsilon: Epsilon | None = None) -> Floats:
    """Find a remap T of the geometric mechanism G with loss(G T) <= loss(m) for every truth.

    For any epsilon-private mechanism of a count and T as returned, the expected loss of G T
    is at most that of m **for every true answer and every unimodal loss at the same time**
    (unimodal: it grows as the guess moves away from the truth, each side as it likes). So
    every Bayesian and every minimax consumer, with any side information, prefers G to m.

    With F_i(k) = Pr(m <= k | i): take p_k = F_k(k), cut G's outputs at the (randomised)
    threshold t_k where its chance at true answer k is p_k, and report the k between whose
    thresholds the output falls. Proof in docs/theory.md. Cuts are found from whichever of
    p_k and 1 - p_k is smaller, so no loss exceeds that of m by more than rounding, relatively,
    at any epsilon. Costs O(n^2).

    Parameters
    ----------
    m : Mechanism, Design or certified mechanism
        An epsilon-private mechanism whose neighbours are adjacent answers, as for a count.
    epsilon : exact number, optional
        The privacy loss of G; None takes the one that `m` states.

    Returns
    -------
    array of float, shape (n, n)
        Row = what G released, column = what to report instead; rows sum to one.

    References
    ----------
    Gupte and Sundararajan (2010), Theorem 1, without its condition that losses be symmetric.

    Examples
    --------
    >>> from tallyveil import Query, fair, geometric
    >>> m = fair(Query.count(6), epsilon=1.0)
    >>> better = geometric(m.query, 1.0).matrix @ dominating_remap(m)
    >>> bool((np.diag(better) >= np.diag(m.matrix) - 1e-12).all())
    True
    """
    m = as_mechanism(m, "m")
    exact = m.exact_epsilon if epsilon is None else exact_epsilon(epsilon)
    if exact is None:
        raise ArgumentError("epsilon", "be given, because the mechanism states none")
    m.query.require_square("a dominating response")
    if not m.query.neighbours.is_path:
        rule = "answer a count, whose neighbours are one apart"
        raise ArgumentError("m", rule, got=repr(m.query))
    if m.realised_epsilon() > float(exact) * (1 + 1e-6) + 1e-9:
        got = f"a realised epsilon of {m.realised_epsilon():.6g}"
        raise ArgumentError("m", f"be private at epsilon {float(exact):g}", got=got)
    below, above = _keep_at_most(*_measure_tails(m.matrix), float(exact))
    from_below = np.diff(below, axis=1, prepend=0.0)
    from_above = -np.diff(above, axis=1, prepend=1.0)
    before = np.hstack([np.ones((len(above), 1)), above[:, :-1]])
    return np.where(below <= before, from_below, from_above)


def _measure_tails(matrix: Floats) -> tuple[Floats, Floats]:
    """Return Pr(report <= k | k) and Pr(report > k | k) for every k, each summed by itself."""
    return np.tril(matrix).sum(axis=1), np.triu(matrix, 1).sum(axis=1)


def _keep_at_most(low: Floats, high: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return Pr(guess <= k | output r) and Pr(guess > k | output r), by cutting G.

    Both have shape (r, k). At true answer k, the outputs of G up to r <= k have probability
    a^(k-r)/(1+a) together, those from r >= k on a^(r-k)/(1+a). So the cut that leaves `low` below
    it is found from the lower end where `low` is the smaller of the two, and otherwise from the
    upper end with `high`.
    """
    by_low = _cut_from_below(low, epsilon)
    by_high = _cut_from_below(high[::-1], epsilon)[::-1, ::-1]
    at_low = low <= high
    below = np.where(at_low, by_low, 1 - by_high)
    above = np.where(at_low, 1 - by_low, by_high)
    above[:, -1], below[:, -1] = 0.0, 1.0
    return np.maximum.accumulate(below, axis=1), np.minimum.accumulate(above, axis=1)


def _cut_from_below(low: Floats, epsilon: float) -> Floats:
    """Return the share of output r that belongs to the `low` least outputs at truth k, (r, k).

    It is (low - Pr(G < r | k)) / Pr(G = r | k), between 0 and 1, with a^(k-r) divided out.
    `low` is raised by the possible rounding error: a cut one rounding too high changes
    no chance at truths above it by more than that, one too low could multiply those below by 1/a.
    """
    a, place = math.exp(-epsilon), np.arange(len(low))
    steps = np.maximum(place[None, :] - place[:, None], 0)
    rounding = (8 + len(low) + 2 * epsilon * steps) * 2.0**-53
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(low > 0, low * np.exp(epsilon * steps), 0.0) * (1 + a) * (1 + rounding)
    scaled[1:] -= a
    scaled[1:-1] /= -math.expm1(-epsilon)
    return np.triu(np.clip(scaled, 0.0, 1.0))
