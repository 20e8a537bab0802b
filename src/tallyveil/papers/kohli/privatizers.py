"""Distribution privatizers: a confidential histogram in, private integers out.

All share one argument. One person moves one row's count by one, so one unit of the histogram
moves between two adjacent bins, and the number of rows stays as it is. Integer noise from a
certified distribution is added to integers; everything after that is post-processing.

Kohli and Laskowski (2026), section 3, compare them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.papers.kohli import tree
from tallyveil.papers.kohli.histogram import Above, histogram_of_counts
from tallyveil.papers.kohli.postprocess import to_distribution
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.noise import discrete_gaussian_noise, geometric_noise

__all__ = [
    "PRIVATIZERS",
    "PrivateHistogram",
    "classic_laplace",
    "cumulative",
    "cyclic_gaussian",
    "cyclic_laplace",
    "gaussian_variance",
    "hierarchical",
    "privatize_distribution",
    "wavelet",
]

NO_SLACK = Fraction(0)


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
    if method == "cyclic_gaussian":
        return cyclic_gaussian(histogram, epsilon, delta, entropy)
    if exact_delta(delta) != 0:
        raise ArgumentError("delta", f"be 0 for {method}, which is purely private", delta)
    return PRIVATIZERS[method](histogram, epsilon, entropy)


def cumulative(
    histogram: Integers, epsilon: Epsilon, entropy: Entropy | None = None
) -> PrivateHistogram:
    """Add noise to the cumulative histogram C_j = #{rows with count <= j}, j = 0..n-2.

    Sensitivity: a count that goes from i to i+1 lowers C_i by one and leaves every other C_j
    as it was. So noise with Pr(k) ~ e^(-epsilon |k|) on each entry is epsilon-private. It is
    the cyclic Laplace without its common offset, with half the variance of every prefix sum.

    References
    ----------
    Proof in docs/theory.md, noise on the cumulative histogram. Kuo et al. (2018) use cumulative
    sums for counts of counts.
    """
    exact = exact_epsilon(epsilon)
    totals = np.cumsum(histogram)
    draws = totals[:-1] + _draw_geometric(len(totals) - 1, exact, entropy)
    bins = np.diff(draws, prepend=0, append=totals[-1]).astype(float)
    return _build("cumulative", draws, bins, histogram, exact)


def cyclic_laplace(
    histogram: Integers, epsilon: Epsilon, entropy: Entropy | None = None
) -> PrivateHistogram:
    """Release V_i = eta_i + L_i - L_(i+1) with L_n = L_0, L of Laplace noise in integers.

    Sensitivity: given L_0, the released values say C_j - L_(j+1) for each j, and one person
    moves exactly one C_j by one. So noise of rate epsilon suffices.

    References
    ----------
    Kohli and Laskowski (2026), Definition 2 and Theorem 1, with the condition on L_0 (errata,
    Kohli 3).
    """
    exact = exact_epsilon(epsilon)
    noise = _draw_geometric(len(histogram), exact, entropy)
    draws = histogram + noise - np.roll(noise, -1)
    return _build("cyclic_laplace", draws, draws.astype(float), histogram, exact)


def cyclic_gaussian(
    histogram: Integers, epsilon: Epsilon, delta: Epsilon, entropy: Entropy | None = None
) -> PrivateHistogram:
    """Release the cyclic mechanism with discrete Gaussian noise, (epsilon, delta)-private.

    Sensitivity: as for the cyclic Laplace one person shifts one Gaussian by one, so the cost
    is that of a single count. The variance is `gaussian_variance`.

    References
    ----------
    Kohli and Laskowski (2026), Definition 13 (errata, Kohli 4).
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    variance = gaussian_variance(exact, slack)
    noise = np.asanyarray(discrete_gaussian_noise(len(histogram), variance, entropy=entropy))
    draws = histogram + noise - np.roll(noise, -1)
    return _build("cyclic_gaussian", draws, draws.astype(float), histogram, exact, delta=slack)


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


def classic_laplace(
    histogram: Integers, epsilon: Epsilon, entropy: Entropy | None = None
) -> PrivateHistogram:
    """Add independent noise to every bin, at rate epsilon/2.

    Sensitivity: two bins move by one each, 2 in all. The sum is brought back to the public
    number of rows by sharing the difference evenly, which is post-processing.
    """
    exact = exact_epsilon(epsilon)
    draws = histogram + _draw_geometric(len(histogram), exact / 2, entropy)
    bins = _spread_to_total(draws.astype(float), histogram)
    return _build("classic_laplace", draws, bins, histogram, exact)


def wavelet(
    histogram: Integers, epsilon: Epsilon, entropy: Entropy | None = None
) -> PrivateHistogram:
    """Release Privelet with the Haar wavelet, on whole-number coefficients.

    Each inner node of a binary tree over the bins holds (rows left) - (rows right); the root
    sum is the public number of rows. Sensitivity: a bin lies below one node per level and
    moves each by one; two bins move, so 2 levels in all, with noise of that rate on each.

    References
    ----------
    Xiao, Wang and Gehrke (2010).
    """
    exact = exact_epsilon(epsilon)
    coefficients = tree.transform_haar(histogram)
    rate = exact / (2 * max(len(coefficients), 1))
    noise = _draw_geometric(sum(map(len, coefficients)), rate, entropy)
    draws = np.concatenate(coefficients) + noise
    bins = tree.invert_haar(draws, int(histogram.sum()))[: len(histogram)]
    return _build("wavelet", draws, _spread_to_total(bins, histogram), histogram, exact)


def hierarchical(
    histogram: Integers, epsilon: Epsilon, entropy: Entropy | None = None, branching: int = 16
) -> PrivateHistogram:
    """Release a tree of sums with weighted averaging and mean consistency.

    Sensitivity: on every level below the root, two nodes move by one at most, so 2 levels in
    all (the baseline published with Kohli and Laskowski (2026) adds noise for half of that).
    The root is the public number of rows. Branching 16 is that paper's choice.

    References
    ----------
    Qardaji, Yang and Li (2013).
    """
    exact = exact_epsilon(epsilon)
    levels = tree.sum_levels(histogram, branching)
    rate = exact / (2 * len(levels))
    noise = _draw_geometric(sum(map(len, levels)), rate, entropy)
    draws = np.concatenate(levels) + noise
    bins = tree.make_consistent(draws, len(levels), branching, int(histogram.sum()))
    bins = _spread_to_total(bins[: len(histogram)], histogram)
    return _build("hierarchical", draws, bins, histogram, exact)


def _draw_geometric(size: int, epsilon: Fraction, entropy: Entropy | None) -> Integers:
    if size == 0:
        return np.empty(0, dtype=np.int64)
    return np.asanyarray(geometric_noise(size, epsilon, entropy=entropy), dtype=np.int64)


def _spread_to_total(bins: Floats, histogram: Integers) -> Floats:
    """Shift all bins by the same amount so that they sum to the public number of rows."""
    shifted: Floats = bins + (int(histogram.sum()) - bins.sum()) / len(bins)
    return shifted


def _build(
    method: str,
    draws: Integers,
    bins: Floats,
    histogram: Integers,
    epsilon: Fraction,
    *,
    delta: Fraction = NO_SLACK,
) -> PrivateHistogram:
    records = int(histogram.sum())
    return PrivateHistogram(method, freeze(draws), bins, records, epsilon, delta)


PRIVATIZERS: dict[str, Callable[..., PrivateHistogram]] = {
    "cumulative": cumulative,
    "cyclic_laplace": cyclic_laplace,
    "cyclic_gaussian": cyclic_gaussian,
    "classic_laplace": classic_laplace,
    "wavelet": wavelet,
    "hierarchical": hierarchical,
}
"""Every distribution privatizer by name."""
