"""The two-stage pipeline of Kohli and Laskowski (2026), Figure 2.

Stage one releases a private distribution of the counts. Stage two builds a mechanism that keeps
it and draws every row independently. The product's own method, `tallyveil.privatize`, releases
the same kind of table with less error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify
from tallyveil.certified.transport import implicit_transport
from tallyveil.errors import ArgumentError, MechanismError
from tallyveil.exact import Epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.papers.kohli.greedy import greedy_fixed_point, unfixed_optimum
from tallyveil.papers.kohli.privatizers import (
    POSTPROCESSING,
    PRIVATIZERS,
    Above,
    check_counts,
    privatize_distribution,
)
from tallyveil.prior import require_distribution
from tallyveil.release import split as budget_split
from tallyveil.release.split import Split
from tallyveil.sampling.entropy import Entropy


def split_budget(epsilon: Epsilon, split: Epsilon = "paper") -> Split:
    """Divide `epsilon` between the distribution (epsilon1) and the counts (epsilon2).

    Parameters
    ----------
    epsilon : number or str
        The whole privacy loss.
    split : "paper", number or str
        The distribution's share. ``"paper"`` is the rule of thumb
        0.106 + 0.533 exp(-2.87 epsilon), rounded to six decimals; or a number above 0 and
        below 1.

    Returns
    -------
    Split
        Two exact rationals, `epsilon1` and `epsilon2`, that add up to `epsilon`.

    References
    ----------
    Kohli and Laskowski (2026), section 6 and appendix F.

    Examples
    --------
    >>> parts = split_budget(1, "1/4")
    >>> parts.epsilon1, parts.epsilon2
    (Fraction(1, 4), Fraction(3, 4))
    """
    if isinstance(split, str) and split != "paper" and not any(map(str.isdigit, split)):
        raise ArgumentError("split", "be 'paper' or a number above 0 and below 1", split)
    # neither rule looks at the size of the table, which the product's own rules do
    parts = budget_split.split_budget(epsilon, split, records=1, size=1)
    if parts.epsilon1 == 0:
        hint = "The pipeline draws counts from the private distribution."
        raise ArgumentError("split", "be greater than 0", split, hint)
    return parts


Constructor: TypeAlias = str | Callable[[Floats, Fraction], Mechanism]

CONSTRUCTORS = ("transport", "max", "min", "sandwich", "unfixed")
"""The mechanisms of stage two by name: four that keep the distribution, and one that does not."""


@dataclass(frozen=True, eq=False)
class PrivatizedCounts:
    """A released column of counts and what it cost.

    Attributes
    ----------
    counts : array of int, shape (N,)
        The released counts, in 0..upper, rows in their old order.
    distribution : array of float, shape (upper + 1,)
        The share of released rows with each count.
    target : array of float, shape (upper + 1,)
        The private distribution of stage one, which stage two keeps in expectation.
    epsilon1, epsilon2 : Fraction
        The exact privacy loss of stage one and of stage two; their sum is the whole loss.
    delta : Fraction
        The slack of stage one: 0 but for the cyclic Gaussian.
    """

    counts: Integers
    distribution: Floats
    target: Floats
    epsilon1: Fraction
    epsilon2: Fraction
    delta: Fraction


def privatize_counts(
    counts: ArrayLike,
    upper: int,
    epsilon: Epsilon,
    *,
    split: Epsilon = "paper",
    above: Above = "refuse",
    privatizer: str = "cyclic_laplace",
    postprocess: str = "clip",
    constructor: Constructor = "sandwich",
    delta: Epsilon = 0,
    entropy: Entropy | None = None,
) -> PrivatizedCounts:
    """Release a column of counts with the paper's pipeline, for `epsilon` in all.

    Exactly (epsilon1 + epsilon2)-private for ideal random words, with
    epsilon1 + epsilon2 = epsilon as rationals. Costs O(N) and the cost of the constructor.

    Parameters
    ----------
    counts : array of int, shape (N,)
        The confidential counts, at least 0. N becomes public.
    upper : int
        The public largest count.
    epsilon : number or str
        The whole privacy loss. One person changes one row's count by one.
    split : "paper", number or str
        The share of epsilon for the distribution; see `split_budget`.
    above : {"refuse", "top_code"}
        What to do with counts above `upper`.
    privatizer : str
        The mechanism of stage one; see `privatize_distribution`.
    postprocess : {"clip", "isotonic", "simplex"}
        How the noisy histogram becomes a distribution; see `to_distribution`.
    constructor : str or callable
        The mechanism of stage two: ``"transport"``, Algorithm 1 with the selector ``"max"``,
        ``"min"`` or ``"sandwich"``, ``"unfixed"`` for Algorithm 2, or a function of
        (distribution, epsilon).
    delta : number or str
        The slack of the cyclic Gaussian; 0 for all others.
    entropy : Entropy, optional
        The source of random bits; the operating system's if not given.

    Returns
    -------
    PrivatizedCounts
        The released counts, their distribution, and the exact cost of each stage.

    References
    ----------
    Kohli and Laskowski (2026), Figure 2 and section 6. The defaults are the choices of its
    experiments.

    Examples
    --------
    >>> from tallyveil.sampling.entropy import SeededNotPrivate
    >>> done = privatize_counts([0, 1, 1, 5], upper=5, epsilon=90, entropy=SeededNotPrivate(1))
    >>> done.counts.tolist(), done.epsilon1 + done.epsilon2
    ([0, 1, 1, 5], Fraction(90, 1))
    """
    table = check_counts(counts, upper, above)
    budget = split_budget(epsilon, split)
    for argument, value, names in (
        ("privatizer", privatizer, PRIVATIZERS),
        ("postprocess", postprocess, POSTPROCESSING),
        ("constructor", constructor, CONSTRUCTORS),
    ):
        if value not in names and not (argument == "constructor" and callable(value)):
            raise ArgumentError(argument, f"be one of {', '.join(names)}", value)
    source = Entropy() if entropy is None else entropy
    stage = privatize_distribution(
        table, upper, budget.epsilon1, privatizer, delta=delta, entropy=source
    )
    target = stage.distribution(postprocess)
    released = _draw_rows(table, target, budget.epsilon2, constructor, source)
    share = np.bincount(released, minlength=len(target)) / len(released)
    return PrivatizedCounts(released, share, target, budget.epsilon1, budget.epsilon2, stage.delta)


def _draw_rows(
    table: Integers, target: Floats, epsilon: Fraction, constructor: Constructor, entropy: Entropy
) -> Integers:
    """Build the mechanism of stage two from `target`, certify it and draw every row."""
    if constructor == "transport":
        implicit = implicit_transport(len(target) - 1, epsilon, target)
        return np.asanyarray(implicit.release(table, entropy), dtype=np.int64)
    if callable(constructor):
        mechanism = constructor(target, epsilon)
    elif constructor == "unfixed":
        mechanism = unfixed_optimum(target, epsilon)
    else:
        mechanism = greedy_fixed_point(target, epsilon, constructor)
    certified = certify(mechanism, target=target, prior=target)
    if certified.exact_epsilon != epsilon or certified.exact_delta != 0:
        rule = f"build a mechanism with epsilon {epsilon} and delta 0, as the budget says"
        raise ArgumentError("constructor", rule, got=f"epsilon {certified.exact_epsilon}")
    return np.asanyarray(certified.release(table, entropy), dtype=np.int64)


def released_share_variance(mechanism: Mechanism, source: ArrayLike, records: int) -> Floats:
    """Compute the variance of each released share when rows are drawn independently.

    Var(z_j) = ((source T)_j - sum_l source_l T[l, j]^2) / records; where the mechanism keeps
    the distribution, source T = source.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism T that draws every row.
    source : array of float, shape (n,)
        The distribution of the true counts, summing to one.
    records : int
        The number of rows, at least 1.

    Returns
    -------
    array of float, shape (m,)
        The variance of the released share of each output.

    References
    ----------
    Kohli and Laskowski (2026), footnote 1.

    Examples
    --------
    >>> from tallyveil.query import Query
    >>> half = Mechanism([[0.5, 0.5], [0.5, 0.5]], Query.count(1))
    >>> released_share_variance(half, [0.5, 0.5], records=1).tolist()
    [0.25, 0.25]
    """
    if not isinstance(mechanism, Mechanism):
        raise MechanismError("mechanism", "be a Mechanism", got=type(mechanism).__name__)
    if records < 1:
        raise ArgumentError("records", "be at least 1", records)
    share = require_distribution(source, len(mechanism.matrix), "source")
    variance: Floats = (share @ mechanism.matrix - share @ mechanism.matrix**2) / records
    return np.maximum(variance, 0.0)
