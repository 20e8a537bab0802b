"""Distribution privatizers: a confidential histogram in, private integers out.

All share one argument. One person moves one row's count by one, so one unit of the histogram
moves between two adjacent bins, and the number of rows stays as it is. Integer noise from the
certified law is added to integers; everything after that is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.papers.kohli import tree
from tallyveil.papers.kohli.histogram import Above, histogram_of_counts
from tallyveil.papers.kohli.postprocess import to_law
from tallyveil.proof.certificate import digest
from tallyveil.proof.noise_law import GeometricLaw
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
    "noise_certificate",
    "privatize_distribution",
    "wavelet",
]


@dataclass(frozen=True, eq=False)
class PrivateHistogram:
    """What a privatizer releases; nothing in it depends on the table but `draws`.

    Attributes
    ----------
    method : the privatizer's name
    draws : the private integers themselves
    estimate : the noisy histogram read off the draws, shape (n,), summing to `records`;
        entries may be negative
    records : the number of rows, public
    epsilon, delta : the exact privacy cost
    variance : of the noise on each draw, for the ideal law
    certificate : the digest of the noise's certified integer law, or the exact law's name
    """

    method: str
    draws: Integers
    estimate: Floats
    records: int
    epsilon: Fraction
    delta: Fraction
    variance: float
    certificate: str

    def law(self, method: str = "isotonic") -> Floats:
        """The estimate as a law, shape (n,): see `postprocess.to_law`."""
        return to_law(self.estimate, method)


def privatize_distribution(
    counts: ArrayLike,
    upper: int,
    epsilon: Epsilon,
    method: str = "cumulative",
    *,
    above: Above = "refuse",
    delta: Epsilon = 0,
    entropy: Any = None,
) -> PrivateHistogram:
    """A private histogram of a column of counts: steps 1 and 2 of paper 002's Figure 2.

    Parameters
    ----------
    counts : whole numbers, shape (N,). N becomes public
    upper : the public largest count
    epsilon : the privacy loss
    method : ``"cumulative"`` (best in every measurement), ``"cyclic_laplace"``,
        ``"cyclic_gaussian"``, ``"classic_laplace"``, ``"wavelet"`` or ``"hierarchical"``
    above : refuse or top-code counts above `upper`
    delta : the slack of the cyclic Gaussian; 0 for all others
    entropy : a source from `tallyveil.sampling.entropy`; the operating system's if not given
    """
    if method not in PRIVATIZERS:
        raise ArgumentError("method", f"be one of {', '.join(PRIVATIZERS)}", method)
    histogram = histogram_of_counts(counts, upper, above)
    if method == "cyclic_gaussian":
        return cyclic_gaussian(histogram, epsilon, delta, entropy)
    if exact_delta(delta) != 0:
        raise ArgumentError("delta", f"be 0 for {method}, which is purely private", delta)
    return PRIVATIZERS[method](histogram, epsilon, entropy)


def cumulative(histogram: Integers, epsilon: Epsilon, entropy: Any = None) -> PrivateHistogram:
    """Noise on the cumulative histogram C_j = #{rows with count <= j}, j = 0..n-2.

    Sensitivity: a count that goes from i to i+1 lowers C_i by one and leaves every other C_j
    as it was. So noise with Pr(k) ~ e^(-epsilon |k|) on each entry is epsilon-private. It is
    the cyclic Laplace without its common offset, with half the variance of every prefix sum
    (docs/theory.md; cumulative methods for counts of counts: Kuo et al. 2018).
    """
    exact = exact_epsilon(epsilon)
    totals = np.cumsum(histogram)
    draws = totals[:-1] + _geometric(len(totals) - 1, exact, entropy)
    bins = np.diff(draws, prepend=0, append=totals[-1]).astype(float)
    return _private("cumulative", draws, bins, histogram, epsilon=exact, rate=exact)


def cyclic_laplace(histogram: Integers, epsilon: Epsilon, entropy: Any = None) -> PrivateHistogram:
    """V_i = eta_i + L_i - L_(i+1) with L_n = L_0 (002, Definition 2, in integers).

    Sensitivity: given L_0, the released values say C_j - L_(j+1) for each j, and one person
    moves exactly one C_j by one. So noise of rate epsilon suffices (002, Theorem 1, with the
    condition on L_0: errata 002.3).
    """
    exact = exact_epsilon(epsilon)
    noise = _geometric(len(histogram), exact, entropy)
    draws = histogram + noise - np.roll(noise, -1)
    return _private(
        "cyclic_laplace", draws, draws.astype(float), histogram, epsilon=exact, rate=exact
    )


def cyclic_gaussian(
    histogram: Integers, epsilon: Epsilon, delta: Epsilon, entropy: Any = None
) -> PrivateHistogram:
    """The cyclic mechanism with discrete Gaussian noise (002, Definition 13; errata 002.4).

    Sensitivity: as for the cyclic Laplace one person shifts one Gaussian by one, so the cost
    is that of a single count. The variance is `gaussian_variance`: (epsilon, delta)-private.
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    variance = gaussian_variance(exact, slack)
    noise = np.asarray(discrete_gaussian_noise(len(histogram), variance, entropy=entropy))
    draws = histogram + noise - np.roll(noise, -1)
    estimate, records = draws.astype(float), int(histogram.sum())
    return PrivateHistogram("cyclic_gaussian", draws, estimate, records, exact, slack,
                            float(variance), f"exact discrete Gaussian, {variance}")  # fmt: skip


def gaussian_variance(epsilon: Epsilon, delta: Epsilon) -> Fraction:
    """A variance at which one discrete Gaussian on a count is (epsilon, delta)-private.

    Noise of variance s2 is 1/(2 s2)-concentrated, and rho-concentrated privacy implies
    epsilon = rho + 2 sqrt(rho ln(1/delta)) (Canonne, Kamath and Steinke 2020, Theorem 4 and
    Bun and Steinke 2016, Proposition 1.3); solved for rho and rounded up to be safe.

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


def classic_laplace(histogram: Integers, epsilon: Epsilon, entropy: Any = None) -> PrivateHistogram:
    """Independent noise on every bin, at rate epsilon/2.

    Sensitivity: two bins move by one each, 2 in all. The sum is brought back to the public
    number of rows by sharing the difference evenly, which is post-processing.
    """
    exact = exact_epsilon(epsilon)
    draws = histogram + _geometric(len(histogram), exact / 2, entropy)
    drift = (int(draws.sum()) - int(histogram.sum())) / len(draws)
    return _private(
        "classic_laplace", draws, draws - drift, histogram, epsilon=exact, rate=exact / 2
    )


def wavelet(histogram: Integers, epsilon: Epsilon, entropy: Any = None) -> PrivateHistogram:
    """Privelet with the Haar wavelet (Xiao et al. 2010), on whole-number coefficients.

    Each inner node of a binary tree over the bins holds (rows left) - (rows right); the root
    sum is the public number of rows. Sensitivity: a bin lies below one node per level and
    moves each by one; two bins move, so 2 levels in all, with noise of that rate on each.
    """
    exact = exact_epsilon(epsilon)
    coefficients = tree.haar(histogram)
    rate = exact / (2 * max(len(coefficients), 1))
    noise = _geometric(sum(map(len, coefficients)), rate, entropy)
    draws = np.concatenate(coefficients) + noise
    bins = tree.inverse_haar(draws, int(histogram.sum()))[: len(histogram)]
    return _private(
        "wavelet", draws, _at_total(bins, histogram), histogram, epsilon=exact, rate=rate
    )


def hierarchical(
    histogram: Integers, epsilon: Epsilon, entropy: Any = None, branching: int = 16
) -> PrivateHistogram:
    """A tree of sums with weighted averaging and mean consistency (Qardaji et al. 2013).

    Sensitivity: on every level below the root, two nodes move by one at most, so 2 levels in
    all (the baseline published with paper 002 adds noise for half of that). The root is the
    public number of rows. Branching 16 is the paper's choice.
    """
    exact = exact_epsilon(epsilon)
    levels = tree.sums(histogram, branching)
    rate = exact / (2 * len(levels))
    noise = _geometric(sum(map(len, levels)), rate, entropy)
    draws = np.concatenate(levels) + noise
    bins = tree.consistent(draws, len(levels), branching, int(histogram.sum()))
    bins = _at_total(bins[: len(histogram)], histogram)
    return _private("hierarchical", draws, bins, histogram, epsilon=exact, rate=rate)


def noise_certificate(rate: Fraction) -> str:
    """The digest of the certified integer law that geometric noise of this rate is drawn from."""
    return digest(GeometricLaw.of(rate).to_dict())


def _geometric(size: int, epsilon: Fraction, entropy: Any) -> Integers:
    if size == 0:
        return np.empty(0, dtype=np.int64)
    return np.asarray(geometric_noise(size, epsilon, entropy=entropy), dtype=np.int64)


def _at_total(bins: Floats, histogram: Integers) -> Floats:
    """Padding bins are known to be empty: give their noisy sum back evenly."""
    shifted: Floats = bins + (int(histogram.sum()) - bins.sum()) / len(bins)
    return shifted


def _private(
    method: str,
    draws: Integers,
    bins: NDArray[Any],
    histogram: Integers,
    *,
    epsilon: Fraction,
    rate: Fraction,
) -> PrivateHistogram:
    a = float(np.exp(-float(rate)))
    draws.setflags(write=False)
    return PrivateHistogram(method, draws, bins, int(histogram.sum()), epsilon, Fraction(0),
                            2 * a / (1 - a) ** 2, noise_certificate(rate))  # fmt: skip


PRIVATIZERS: dict[str, Callable[..., PrivateHistogram]] = {
    "cumulative": cumulative,
    "cyclic_laplace": cyclic_laplace,
    "cyclic_gaussian": cyclic_gaussian,
    "classic_laplace": classic_laplace,
    "wavelet": wavelet,
    "hierarchical": hierarchical,
}
"""Every distribution privatizer by name."""
