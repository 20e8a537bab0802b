"""One response that is at least as good as a given mechanism, for everybody at once."""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import MechanismLike, as_mechanism
from tallyveil.mechanisms.geometric import geometric

__all__ = ["dominating_remap"]


def dominating_remap(m: MechanismLike, epsilon: Epsilon | None = None) -> Floats:
    """Find a remap T of the geometric mechanism G with loss(G T) <= loss(m) for every truth.

    For any epsilon-private mechanism of a count and T as returned, the expected loss of G T
    is at most that of m **for every true answer and every unimodal loss at the same time**
    (unimodal: it grows as the guess moves away from the truth, each side as it likes). So
    every Bayesian and every minimax consumer, whatever they know, prefers G to m.

    With F_i(k) = Pr(m <= k | i): take p_k = F_k(k), cut G's outputs at the (randomised)
    threshold t_k where its chance at true answer k is p_k, and report the k between whose
    thresholds the output falls. Proof in docs/consumers.md. Costs O(n^2), in floats.

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
    >>> from tallyveil import Query, fair
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
    G = geometric(m.query, exact).matrix
    below = np.hstack([np.zeros((len(G), 1)), np.cumsum(G, axis=1)])
    wanted = np.diagonal(np.cumsum(m.matrix, axis=1))
    width = np.maximum(np.diff(below), np.finfo(float).tiny)
    # Pr(guess <= k | output r), shape (r, k)
    reported = np.clip((wanted[:, None] - below[:, :-1]) / width, 0.0, 1.0).T
    reported[:, -1] = 1.0
    rising = np.maximum.accumulate(reported, axis=1)
    return np.diff(rising, axis=1, prepend=0.0)
