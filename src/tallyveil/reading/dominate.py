"""One response that is at least as good as a given mechanism, for everybody at once."""

from __future__ import annotations

import math

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import MechanismLike, as_mechanism

__all__ = ["dominating_remap"]


def dominating_remap(m: MechanismLike, epsilon: Epsilon | None = None) -> Floats:
    """Find a remap T of the geometric mechanism G with loss(G T) <= loss(m) for every truth.

    For any epsilon-private mechanism of a count and T as returned, the expected loss of G T
    is at most that of m **for every true answer and every unimodal loss at the same time**
    (unimodal: it grows as the guess moves away from the truth, each side as it likes). So
    every Bayesian and every minimax consumer, whatever they know, prefers G to m.

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
    """Pr(report <= k | k) and Pr(report > k | k) for every k, each summed by itself."""
    return np.tril(matrix).sum(axis=1), np.triu(matrix, 1).sum(axis=1)


def _keep_at_most(low: Floats, high: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Pr(guess <= k | output r) and Pr(guess > k | output r), shapes (r, k), by cutting G.

    At true answer k, the outputs of G up to r <= k have probability a^(k-r)/(1+a) together, those
    from r >= k on a^(r-k)/(1+a). So the cut that leaves `low` below it is found from the lower
    end where `low` is the smaller of the two, and otherwise from the upper end with `high`.
    """
    by_low = _cut_from_below(low, epsilon)
    by_high = _cut_from_below(high[::-1], epsilon)[::-1, ::-1]
    at_low = low <= high
    below = np.where(at_low, by_low, 1 - by_high)
    above = np.where(at_low, 1 - by_low, by_high)
    above[:, -1], below[:, -1] = 0.0, 1.0
    return np.maximum.accumulate(below, axis=1), np.minimum.accumulate(above, axis=1)


def _cut_from_below(low: Floats, epsilon: float) -> Floats:
    """The share of output r that belongs to the `low` least outputs at true answer k, (r, k).

    It is (low - Pr(G < r | k)) / Pr(G = r | k), between 0 and 1, with a^(k-r) divided out.
    `low` is taken larger by what rounding may have cost it: a cut one rounding too high changes
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
