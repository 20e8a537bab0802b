"""The transport optimum without its matrix: a certified geometric draw, then a sparse remap."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify_geometric
from tallyveil.certified.mechanism import CertifiedGeometric
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon
from tallyveil.loss import law
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.transport import (
    REMAP_BITS,
    Remap,
    geometric_output_law,
    monotone_remap,
    transport,
)
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy

__all__ = ["ImplicitTransport", "draw_remap", "implicit_transport"]


@dataclass(frozen=True, eq=False, repr=False)
class ImplicitTransport:
    """What `implicit_transport` builds: releases counts without ever holding a matrix.

    Attributes
    ----------
    certified : the certified geometric mechanism; privacy rests on it alone
    remap : where each draw goes, at most 2n - 1 entries, with integer weights of 2^62
    source, target : the laws it was built for, shape (n,)
    """

    certified: CertifiedGeometric
    remap: Remap
    source: Floats
    target: Floats

    @property
    def exact_epsilon(self) -> Fraction:
        """The certified privacy loss."""
        return self.certified.exact_epsilon

    def release(self, counts: ArrayLike, entropy: Entropy | None = None) -> Integers:
        """Released counts, shape (N,): exact draws, epsilon-private each.

        Parameters
        ----------
        counts : true counts in 0..n-1, all checked before anything is drawn
        entropy : None takes a fresh key from the operating system
        """
        drawn = np.atleast_1d(self.certified.release(np.atleast_1d(counts), entropy))
        return draw_remap(self.remap, drawn.astype(np.int64), entropy)

    def mechanism(self) -> Mechanism:
        """The same law as a dense matrix, O(n^2)."""
        return transport(self.certified.query, self.exact_epsilon, self.source, self.target)

    def __repr__(self) -> str:
        return (
            f"<ImplicitTransport: {len(self.source)} answers, epsilon={self.exact_epsilon}, "
            f"{len(self.remap.share)} remap entries>"
        )


def implicit_transport(
    upper: int, epsilon: Epsilon, source: ArrayLike, target: ArrayLike | None = None
) -> ImplicitTransport:
    """`transport` for any range: O(n) numbers instead of n^2, about a second at n = 1,000,000.

    Parameters
    ----------
    upper : the largest count, so n = upper + 1
    epsilon : the privacy loss
    source, target : laws of the true and the released counts, shape (n,); see `transport`

    >>> t = implicit_transport(2, 1.0, [0.5, 0.25, 0.25])
    >>> len(t.remap.share) <= 5, t.release([0, 2, 2]).shape
    (True, (3,))
    """
    query = Query.count(upper)
    certified = certify_geometric(query, epsilon)
    before = law(source, len(query.inputs), "source")
    after = before if target is None else law(target, len(query.inputs), "target")
    drawn = geometric_output_law(before, float(certified.exact_epsilon))
    return ImplicitTransport(certified, monotone_remap(drawn, after), before, after)


def draw_remap(remap: Remap, values: Integers, entropy: Entropy | None = None) -> Integers:
    """A column for every row index in `values`, drawn from the remap's integer weights.

    Exact for uniform words: 62 bits are compared with the row's integer cumulative weights.
    Rows with one entry use no randomness. Costs O(log(longest row)) per value.
    """
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) < remap.size[0]:
        raise ArgumentError("values", f"lie in 0..{remap.size[0] - 1}")
    source = Entropy() if entropy is None else entropy
    source.rekey()
    low, high = remap.start[values], remap.start[values + 1] - 1
    open_rows = np.flatnonzero(high > low)
    if len(open_rows):
        words = source.words(len(open_rows)) >> np.uint64(64 - REMAP_BITS)
        low[open_rows] = _entry(remap, low[open_rows], high[open_rows], words)
    return remap.column[low]


def _entry(remap: Remap, low: Integers, high: Integers, words: NDArray[np.uint64]) -> Integers:
    """The first entry of each row whose cumulative weight exceeds the word, by bisection."""
    # sums over all rows wrap around 2^64; differences within a row are exact all the same
    running = np.cumsum(remap.weights.view(np.uint64))
    base = running[low] - remap.weights.view(np.uint64)[low]
    while True:
        undecided = low < high
        if not undecided.any():
            return low
        middle = (low + high) // 2
        beyond = words >= running[middle] - base
        low = np.where(undecided & beyond, middle + 1, low)
        high = np.where(undecided & ~beyond, middle, high)
