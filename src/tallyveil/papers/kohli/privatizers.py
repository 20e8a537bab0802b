"""Private distributions of counts: the stage one of Kohli and Laskowski (2026).

From a column of counts to its histogram, from the histogram to a private one by six privatizers,
and from noisy numbers to a distribution near them, which is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.errors import ArgumentError, TableError
from tallyveil.estimate.direct import monotone
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon, require_positive
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.noise import discrete_gaussian_noise, geometric_noise

Above: TypeAlias = Literal["refuse", "top_code"]


def check_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Integers:
    """Return `counts` as integers from 0 to `upper`, or raise an error that quotes no count.

    Parameters
    ----------
    counts : array of int or float, shape (N,)
        Whole numbers, at least 0.
    upper : int
        The largest count that may be released, at least 1. It must be public.
    above : {"refuse", "top_code"}
        Refuse larger counts, or set them to `upper`.

    Returns
    -------
    array of int, shape (N,)
        The counts, none above `upper`.

    Examples
    --------
    >>> check_counts([0, 3, 9], upper=4, above="top_code").tolist()
    [0, 3, 4]
    """
    require_positive(upper, "upper")
    if above not in ("refuse", "top_code"):
        raise ArgumentError("above", "be 'refuse' or 'top_code'", above)
    array: NDArray[Any] = np.asarray(counts)
    if array.ndim != 1:
        raise TableError(f"The counts must be one column. Got shape {array.shape}.")
    if len(array) == 0:
        raise TableError("The table has no rows: there is nothing to privatize.")
    if np.issubdtype(array.dtype, np.floating):
        if not np.isfinite(array).all() or (array != np.floor(array)).any():
            raise TableError("The counts must be whole numbers; some rows hold none.")
        array = np.minimum(array, 2.0**62)
    elif not np.issubdtype(array.dtype, np.integer):
        raise TableError(f"The counts must be whole numbers. Got a column of {array.dtype}.")
    if (array < 0).any():
        raise TableError("The counts must be at least 0; some rows are below.")
    if above == "refuse" and (array > upper).any():
        raise TableError(
            f"Some counts are above upper={upper}. Raise upper to a public bound, or pass "
            "above='top_code' to report them as upper."
        )
    limited: Integers = np.minimum(array, upper).astype(np.int64)
    return limited


def histogram_of_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Integers:
    """Count the rows that hold each count from 0 to `upper`.

    The result is confidential when the counts are.

    Parameters
    ----------
    counts, upper, above
        As for `check_counts`.

    Returns
    -------
    array of int, shape (upper + 1,)
        The number of rows with each count.

    References
    ----------
    Kohli and Laskowski (2026), section 1 and Figure 2, step 1.

    Examples
    --------
    >>> histogram_of_counts([0, 0, 2, 5], upper=3, above="top_code").tolist()
    [2, 0, 1, 1]
    """
    return np.bincount(check_counts(counts, upper, above), minlength=upper + 1)


def distribution_of_counts(counts: ArrayLike, upper: int, above: Above = "refuse") -> Floats:
    """Compute the share of rows that hold each count from 0 to `upper`.

    The result is confidential when the counts are, and public when they were released.

    Parameters
    ----------
    counts, upper, above
        As for `check_counts`.

    Returns
    -------
    array of float, shape (upper + 1,)
        The shares, summing to one.

    References
    ----------
    Kohli and Laskowski (2026), Figure 2, steps 1 and 5.

    Examples
    --------
    >>> distribution_of_counts([0, 0, 2, 1], upper=2).tolist()
    [0.5, 0.25, 0.25]
    """
    histogram = histogram_of_counts(counts, upper, above)
    share: Floats = histogram / histogram.sum()
    return share


def to_distribution(histogram: ArrayLike, method: str = "isotonic") -> Floats:
    """Turn a noisy histogram into a distribution near it.

    Parameters
    ----------
    histogram : array of float, shape (n,)
        Noisy counts or shares with a positive sum; entries may be negative. The sum is taken
        as the public number of rows, or as 1 for shares.
    method : {"isotonic", "clip", "simplex"}
        See `fit_isotonic`, `clip_shares` and `project_on_simplex`.

    Returns
    -------
    array of float, shape (n,)
        Non-negative, summing to one.

    Examples
    --------
    >>> to_distribution([3.0, -1.0, 2.0], "clip").tolist()
    [0.6, 0.0, 0.4]
    """
    if method not in POSTPROCESSING:
        raise ArgumentError("method", f"be one of {', '.join(POSTPROCESSING)}", method)
    noisy = np.asarray(histogram, dtype=float)
    if noisy.ndim != 1 or not np.isfinite(noisy).all() or not noisy.sum() > 0:
        raise ArgumentError("histogram", "be finite numbers with a positive sum")
    return POSTPROCESSING[method](noisy / noisy.sum())


def clip_shares(shares: Floats) -> Floats:
    """Set negative shares to 0 and rescale, as Kohli and Laskowski (2026) do in section 6."""
    clipped = np.maximum(shares, 0.0)
    distribution: Floats = clipped / clipped.sum()
    return distribution


def project_on_simplex(shares: Floats) -> Floats:
    """Project on the probability simplex: the nearest distribution in squared distance.

    >>> project_on_simplex(np.array([0.9, 0.3, -0.2])).round(9).tolist()
    [0.8, 0.2, 0.0]
    """
    ranked = np.sort(shares)[::-1]
    excess = (np.cumsum(ranked) - 1) / np.arange(1, len(shares) + 1)
    level = excess[np.flatnonzero(ranked > excess)[-1]]
    return clip_shares(shares - level)


def fit_isotonic(shares: Floats) -> Floats:
    """Find the distribution whose cumulative sums are nearest in squared distance."""
    total = monotone(np.cumsum(shares)[:-1], 1.0)
    return np.diff(total, prepend=0.0, append=1.0)


POSTPROCESSING: dict[str, Callable[[Floats], Floats]] = {
    "isotonic": fit_isotonic,
    "clip": clip_shares,
    "simplex": project_on_simplex,
}
"""Every post-processing by name."""


@dataclass(frozen=True, eq=False)
class PrivateHistogram:
    """A privatizer's release; only `draws` depends on the table.

    Attributes
    ----------
    method : str
        The privatizer's name.
    draws : array of int
        The private integers themselves.
    estimate : array of float, shape (n,)
        The noisy histogram computed from the draws, summing to `records`; entries may be
        negative.
    records : int
        The number of rows, public.
    epsilon, delta : Fraction
        The exact privacy cost.
    """

    method: str
    draws: Integers
    estimate: Floats
    records: int
    epsilon: Fraction
    delta: Fraction

    def distribution(self, method: str = "isotonic") -> Floats:
        """Turn the estimate into a distribution, shape (n,); see `to_distribution`."""
        return to_distribution(self.estimate, method)


def privatize_distribution(
    counts: ArrayLike,
    upper: int,
    epsilon: Epsilon,
    method: str = "cumulative",
    *,
    above: Above = "refuse",
    delta: Epsilon = 0,
    entropy: Entropy | None = None,
) -> PrivateHistogram:
    """Release a private histogram of a column of counts.

    Parameters
    ----------
    counts : array of int, shape (N,)
        The confidential counts. N becomes public.
    upper : int
        The public largest count.
    epsilon : number or str
        The privacy loss.
    method : str
        ``"cumulative"`` (best in every measurement), ``"cyclic_laplace"``,
        ``"cyclic_gaussian"``, ``"classic_laplace"``, ``"wavelet"`` or ``"hierarchical"``.
    above : {"refuse", "top_code"}
        What to do with counts above `upper`.
    delta : number or str
        The slack of the cyclic Gaussian; 0 for all others.
    entropy : Entropy, optional
        The source of random bits; the operating system's if not given.

    Returns
    -------
    PrivateHistogram
        The private draws and the noisy histogram; `distribution()` makes shares of it.

    References
    ----------
    Kohli and Laskowski (2026), Figure 2, steps 1 and 2, and section 3.

    Examples
    --------
    >>> from tallyveil.sampling.entropy import SeededNotPrivate
    >>> found = privatize_distribution([0, 1, 1, 3], 3, 60, entropy=SeededNotPrivate(1))
    >>> found.distribution().tolist()
    [0.25, 0.5, 0.0, 0.25]
    """
    if method not in PRIVATIZERS:
        raise ArgumentError("method", f"be one of {', '.join(PRIVATIZERS)}", method)
    histogram = histogram_of_counts(counts, upper, above)
    return privatize_histogram(histogram, epsilon, method, delta=delta, entropy=entropy)


def privatize_histogram(
    histogram: Integers,
    epsilon: Epsilon,
    method: str,
    *,
    delta: Epsilon = 0,
    entropy: Entropy | None = None,
) -> PrivateHistogram:
    """Release a histogram of counts; see `privatize_distribution`.

    The sum of the estimate is brought to the public number of rows by sharing the difference
    evenly, which is post-processing.
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    is_gaussian, records = method == "cyclic_gaussian", int(histogram.sum())
    if slack and not is_gaussian:
        raise ArgumentError("delta", f"be 0 for {method}, which is purely private", delta)
    variance = gaussian_variance(exact, slack) if is_gaussian else None

    def draw(size: int, rate: Fraction) -> Integers:
        if variance is not None:
            return np.asanyarray(discrete_gaussian_noise(size, variance, entropy=entropy))
        if size == 0:
            return np.empty(0, dtype=np.int64)
        return np.asanyarray(geometric_noise(size, rate, entropy=entropy), dtype=np.int64)

    draws, bins = PRIVATIZERS[method](histogram, exact, draw)
    estimate = bins + (records - bins.sum()) / len(bins)
    return PrivateHistogram(method, freeze(draws), estimate, records, exact, slack)


Draw: TypeAlias = Callable[[int, Fraction], Integers]
"""Independent noise: its size, and its rate."""

Noisy: TypeAlias = tuple[Integers, Integers | Floats]
"""The private draws, and the noisy histogram computed from them."""


def cumulative(histogram: Integers, epsilon: Fraction, draw: Draw) -> Noisy:
    """Add noise to the cumulative histogram C_j = #{rows with count <= j}, j = 0..n-2.

    Sensitivity: a count that goes from i to i+1 lowers C_i by one and leaves every other C_j
    unchanged. So noise with Pr(k) ~ e^(-epsilon |k|) on each entry is epsilon-private. It is
    the cyclic Laplace without its common offset, with half the variance of every prefix sum.

    References
    ----------
    Proof in docs/theory.md, noise on the cumulative histogram. Kuo et al. (2018) use cumulative
    sums for counts of counts.
    """
    totals = np.cumsum(histogram)
    draws = totals[:-1] + draw(len(totals) - 1, epsilon)
    return draws, np.diff(draws, prepend=0, append=totals[-1])


def cyclic(histogram: Integers, epsilon: Fraction, draw: Draw) -> Noisy:
    """Release V_i = eta_i + L_i - L_(i+1) with L_n = L_0, L Laplace or Gaussian in integers.

    Sensitivity: given L_0, the released values say C_j - L_(j+1) for each j, and one person
    moves exactly one C_j by one. So Laplace noise of rate epsilon suffices, and Gaussian noise
    for a single count (`gaussian_variance`).

    References
    ----------
    Kohli and Laskowski (2026), Definition 2 and Theorem 1, with the condition on L_0 (errata,
    Kohli 3), and Definition 13 (errata, Kohli 4).
    """
    noise = draw(len(histogram), epsilon)
    draws = histogram + noise - np.roll(noise, -1)
    return draws, draws


def gaussian_variance(epsilon: Epsilon, delta: Epsilon) -> Fraction:
    """Compute a variance at which a discrete Gaussian on a count is (epsilon, delta)-private.

    Noise of variance s2 is 1/(2 s2)-concentrated, and rho-concentrated privacy implies
    epsilon = rho + 2 sqrt(rho ln(1/delta)); solved for rho, and rounded up to be safe.

    Parameters
    ----------
    epsilon, delta : number or str
        The privacy loss and its slack, both above 0.

    Returns
    -------
    Fraction
        The variance.

    References
    ----------
    Canonne, Kamath and Steinke (2020), Theorem 4.
    Bun and Steinke (2016), Proposition 1.3.

    Examples
    --------
    >>> float(gaussian_variance(1, "1e-6")) > 13
    True
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    if slack == 0:
        hint = "No Gaussian noise is purely private; 1/(rows + 1) is the paper's choice."
        raise ArgumentError("delta", "be greater than 0 for Gaussian noise", delta, hint)
    spread = -float(np.log(float(slack)))
    # sqrt(rho) = sqrt(spread + epsilon) - sqrt(spread), written without cancellation
    root = float(exact) / (np.sqrt(spread + float(exact)) + np.sqrt(spread))
    variance = 1 / (2 * root**2)
    return Fraction(int(np.ceil(variance * (1 + 1e-9) * 2**20)) + 1, 2**20)


def classic_laplace(histogram: Integers, epsilon: Fraction, draw: Draw) -> Noisy:
    """Add independent noise to every bin, at rate epsilon/2.

    Sensitivity: two bins move by one each, 2 in all.
    """
    draws = histogram + draw(len(histogram), epsilon / 2)
    return draws, draws


def wavelet(histogram: Integers, epsilon: Fraction, draw: Draw) -> Noisy:
    """Release Privelet with the Haar wavelet, on whole-number coefficients.

    Each inner node of a binary tree over the bins holds (rows left) - (rows right); the root
    sum is the public number of rows. Sensitivity: a bin lies below one node per level and
    moves each by one; two bins move, so 2 levels in all, with noise of that rate on each.

    References
    ----------
    Xiao, Wang and Gehrke (2010).
    """
    coefficients = transform_haar(histogram)
    rate = epsilon / (2 * max(len(coefficients), 1))
    draws = np.concatenate(coefficients) + draw(sum(map(len, coefficients)), rate)
    return draws, invert_haar(draws, int(histogram.sum()))[: len(histogram)]


def hierarchical(histogram: Integers, epsilon: Fraction, draw: Draw, branching: int = 16) -> Noisy:
    """Release a tree of sums with weighted averaging and mean consistency.

    Sensitivity: on every level below the root, two nodes move by one at most, so 2 levels in
    all (the baseline published with Kohli and Laskowski (2026) adds noise for half of that).
    The root is the public number of rows. Branching 16 is that paper's choice.

    References
    ----------
    Qardaji, Yang and Li (2013).
    """
    levels = sum_levels(histogram, branching)
    draws = np.concatenate(levels) + draw(sum(map(len, levels)), epsilon / (2 * len(levels)))
    bins = make_consistent(draws, len(levels), branching, int(histogram.sum()))
    return draws, bins[: len(histogram)]


PRIVATIZERS: dict[str, Callable[[Integers, Fraction, Draw], Noisy]] = {
    "cumulative": cumulative,
    "cyclic_laplace": cyclic,
    "cyclic_gaussian": cyclic,
    "classic_laplace": classic_laplace,
    "wavelet": wavelet,
    "hierarchical": hierarchical,
}
"""Every distribution privatizer by name."""


def transform_haar(histogram: Integers) -> list[Integers]:
    """Compute (left sum - right sum) of every node of a binary tree over the bins.

    Parameters
    ----------
    histogram : array of int, shape (n,)
        Rows in each bin; padded with empty bins to a power of two.

    Returns
    -------
    list of array of int
        One array per level, root first.

    Examples
    --------
    >>> [level.tolist() for level in transform_haar(np.array([5, 1, 2, 0]))]
    [[4], [4, 2]]
    """
    sums, levels = _pad(histogram, 2), []
    while len(sums) > 1:
        levels.append(sums[0::2] - sums[1::2])
        sums = sums[0::2] + sums[1::2]
    return levels[::-1]


def invert_haar(coefficients: ArrayLike, total: float) -> Floats:
    """Compute the histogram with these (noisy) coefficients and this total.

    Parameters
    ----------
    coefficients : array of float
        The levels of `transform_haar` one after another, root first.
    total : float
        The number of rows.

    Returns
    -------
    array of float
        The bins, padding included.

    Examples
    --------
    >>> invert_haar([4, 4, 2], 8).tolist()
    [5.0, 1.0, 2.0, 0.0]
    """
    rest, sums = np.asarray(coefficients, dtype=float), np.array([float(total)])
    while len(rest):
        difference, rest = rest[: len(sums)], rest[len(sums) :]
        sums = np.column_stack([sums + difference, sums - difference]).ravel() / 2
    return sums


def sum_levels(histogram: Integers, branching: int) -> list[Integers]:
    """Sum the rows below every node but the root of a tree over the bins.

    Parameters
    ----------
    histogram : array of int, shape (n,)
        Rows in each bin; padded with empty bins to a power of `branching`.
    branching : int
        Children of a node, at least 2.

    Returns
    -------
    list of array of int
        One array per level, top level first.

    Examples
    --------
    >>> [level.tolist() for level in sum_levels(np.array([5, 1, 2, 0]), 2)]
    [[6, 2], [5, 1, 2, 0]]
    """
    level, levels = _pad(histogram, branching), []
    while len(level) > 1:
        levels.append(level)
        level = level.reshape(-1, branching).sum(axis=1)
    return levels[::-1]


def make_consistent(noisy: ArrayLike, levels: int, branching: int, total: float) -> Floats:
    """Estimate the leaves of a tree of equally noisy sums by least squares, the root known.

    Weighted averaging from the leaves up, then mean consistency from the root down.

    Parameters
    ----------
    noisy : array of float
        The levels of `sum_levels` one after another, with noise.
    levels : int
        The number of levels below the root.
    branching : int
        Children of a node.
    total : float
        The sum at the root.

    Returns
    -------
    array of float
        The leaves, padding included; the sums of any node's children agree with it.

    References
    ----------
    Hay, Rastogi, Miklau and Suciu (2010), section 4. Qardaji, Yang and Li (2013).

    Examples
    --------
    >>> make_consistent([6.0, 2.0, 5.0, 1.0, 2.0, 0.0], 2, 2, 8.0).tolist()
    [5.0, 1.0, 2.0, 0.0]
    """
    b = branching
    ends = np.cumsum([b**depth for depth in range(1, levels + 1)])
    level = np.split(np.asarray(noisy, dtype=float), ends[:-1])
    for depth in range(levels - 2, -1, -1):
        height = levels - depth  # leaves have height 1
        below = level[depth + 1].reshape(-1, b).sum(axis=1)
        weight = (b**height - b ** (height - 1)) / (b**height - 1)
        level[depth] = weight * level[depth] + (1 - weight) * below
    parents = np.array([float(total)])
    for values in level:
        siblings = values.reshape(-1, b)
        gap = parents - siblings.sum(axis=1)
        parents = (siblings + gap[:, None] / b).ravel()
    return parents


def _pad(histogram: Integers, branching: int) -> Integers:
    size = branching
    while size < len(histogram):
        size *= branching
    return np.pad(histogram, (0, size - len(histogram)))
