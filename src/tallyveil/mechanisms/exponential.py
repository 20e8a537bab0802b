"""Mechanisms whose rows are powers of e^-epsilon: exponential, fair, uniform, randomised."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import COMPARISON_ROUNDING
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.query import Query, require_query


def exponential(
    query: Query,
    epsilon: Epsilon,
    quality: Callable[[Any, Any], Any] | ArrayLike | None = None,
    sensitivity: float | None = None,
) -> Mechanism:
    """Build the mechanism that weights outputs by exp(epsilon Q(true, released) / (2 s)).

    For one bit it is randomized response at epsilon/2.

    Parameters
    ----------
    query : Query
        Any query.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.
    quality : function, array of float of shape (n, m), or None
        Q, a function of (true, released) or a table; larger is better. By default minus the
        absolute error.
    sensitivity : float or None
        s, the most that Q(., released) differs between neighbours. By default the exact value
        for this query; a smaller one would break the promise and is refused.

    Returns
    -------
    Mechanism
        The matrix, shape (n, m).

    References
    ----------
    McSherry and Talwar (2007). Cormode, Kulkarni and Srivastava (2018), equation 3 and Theorem 4
    (errata, Cormode 13).

    Examples
    --------
    >>> m = exponential(Query.count(1), 2.0)
    >>> round(m.realised_epsilon(), 9)
    1.0
    """
    exact = exact_epsilon(epsilon)
    require_query(query)
    if isinstance(quality, (str, tuple)):  # a loss has a name, and is worse when larger
        rule = "be a function of (true, released) or a table"
        raise ArgumentError("quality", rule, quality)
    table = loss_table(query, quality) if quality is not None else -loss_table(query, "absolute")
    steepest = max(
        float(np.abs(table[high] - table[low]).max()) for low, high in query.neighbours.blocks()
    )
    least = steepest * (1 - COMPARISON_ROUNDING)
    if sensitivity is None:
        sensitivity = steepest
    elif not isinstance(sensitivity, Real) or not least <= sensitivity < math.inf:
        rule = f"be a finite number of at least {steepest:g}, the change one person can make"
        raise ArgumentError("sensitivity", rule, sensitivity)
    scores = table * (float(exact) / (2 * sensitivity)) if sensitivity > 0 else table * 0.0
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    matrix = weights / weights.sum(axis=1, keepdims=True)
    return Mechanism(matrix, query, exact, name="exponential")


LOG_ROUNDING = 1e-12
"""Added, relatively and absolutely, to an epsilon that is the logarithm of a ratio of doubles."""


def fair(query: Query, epsilon: Epsilon) -> Mechanism:
    """Build the best mechanism that reports every truth equally often.

    With a = exp(-epsilon), N = n + 1 answers, d = |i - r| and t = min(i, n - i)::

        Pr(r | i) = y a^d                    if d < t
                    y a^ceil((d + t)/2)      otherwise

    Every row holds the same powers of a, so y = 1 / (their sum): for even n it is
    (1-a)/(1+a-2a^(n/2+1)), for odd n (1-a)/((1+a)(1-a^((n+1)/2))). It has all seven properties
    and the least zero-one loss of any fair mechanism, under every prior. On a band of width w
    the same matrix at epsilon/w is private, though no longer optimal. Costs O(n^2).

    Parameters
    ----------
    query : Query
        With equal inputs and outputs.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.

    Returns
    -------
    Mechanism
        The matrix, shape (n + 1, n + 1).

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), equation 17 (errata, Cormode 7), Theorem 6 and
    Lemma 1.

    Examples
    --------
    >>> q = Query.count(4)
    >>> m = fair(q, "0.0953101798043249")      # a = 10/11
    >>> round(float(m.matrix[2, 2]), 9) == round(121 / 541, 9), all(m.properties().values())
    (True, True)
    """
    exact = exact_epsilon(epsilon)
    require_query(query)
    query.require_square("the fair mechanism")
    rate = float(exact) / query.neighbours.width
    index = np.arange(len(query.inputs))
    distance = np.abs(index[:, None] - index[None, :])
    margin = np.minimum(index, index[::-1])[:, None]
    power = np.where(distance < margin, distance, (distance + margin + 1) // 2)
    decay = np.exp(-rate * index)
    matrix = decay[power] / decay[power[0]].sum()
    return Mechanism(matrix, query, exact, name="fair")


def uniform(query: Query, epsilon: Epsilon | None = None) -> Mechanism:
    """Build the mechanism that guesses: every output with probability 1/m, for every truth.

    It reveals nothing (its realised epsilon is 0) and has every property.

    Parameters
    ----------
    query : Query
        Any query.
    epsilon : int, float, str, Decimal, Fraction or None
        Only labels it.

    Returns
    -------
    Mechanism
        The matrix, shape (n, m).

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), Definition 5.

    Examples
    --------
    >>> uniform(Query.count(3)).realised_epsilon()
    0.0
    """
    require_query(query)
    m = len(query.outputs)
    return Mechanism(np.full(query.shape, 1 / m), query, epsilon, name="uniform")


def randomized_response(
    query: Query, epsilon: Epsilon | None = None, *, truth: float | None = None
) -> Mechanism:
    """Build the mechanism that tells the truth with probability p, else any other answer.

    p = e^epsilon / (e^epsilon + n) for n + 1 answers, and every other answer is equally likely.
    Give epsilon, or p itself as `truth`; then epsilon = ln(n p / (1 - p)).
    Private for every neighbour relation, so it suits local collection; for counts the geometric
    mechanism is far better. For one bit p = 1/(1 + a) with a = exp(-epsilon), and it is the only
    optimum while the prior odds lie in (a, 1/a).

    Parameters
    ----------
    query : Query
        With equal inputs and outputs.
    epsilon : int, float, str, Decimal, Fraction or None
        The privacy loss.
    truth : float or None
        The probability p of the truth, instead of epsilon: above 1/(n + 1), what guessing gets,
        and below 1. Epsilon is then rounded up, so that the mechanism is never less private
        than it says.

    Returns
    -------
    Mechanism
        The matrix, shape (n + 1, n + 1).

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), equation 2, Lemma 2 and Theorem 3 (errata,
    Cormode 12).

    Examples
    --------
    >>> round(float(randomized_response(Query.count(1), "1.0986122886681098").matrix[0, 0]), 12)
    0.75
    >>> round(float(randomized_response(Query.count(1), truth=0.75).epsilon), 9)
    1.098612289
    """
    require_query(query)
    query.require_square("randomized response")
    size = len(query.inputs)
    if (epsilon is None) == (truth is None):
        rule = "be given, or instead the probability of the true answer as 'truth'; not both"
        raise ArgumentError("epsilon", rule, epsilon)
    if epsilon is not None:
        exact = exact_epsilon(epsilon)
        lie = math.exp(-float(exact))
    elif not isinstance(truth, Real) or not 1 / size < truth < 1:
        rule = f"lie between 1/{size} (guessing) and 1, both excluded"
        raise ArgumentError("truth", rule, truth)
    else:
        lie = (1 - float(truth)) / ((size - 1) * float(truth))
        exact = exact_epsilon(-math.log(lie) * (1 + LOG_ROUNDING) + LOG_ROUNDING)
    matrix = np.full((size, size), lie)
    np.fill_diagonal(matrix, 1.0)
    return Mechanism(matrix / (1 + (size - 1) * lie), query, exact, name="randomized response")
