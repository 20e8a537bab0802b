"""Certified answers to a query, and certified noise: exact draws from proved integers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.certified.base import Certified
from tallyveil.errors import ArgumentError
from tallyveil.mechanism import Mechanism
from tallyveil.proof import certificate as document
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.proof.rounding import TOTAL, TOTAL_BITS
from tallyveil.query import Query
from tallyveil.sampling.cores import CHUNK, share_rows
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.marks import mark_draws
from tallyveil.sampling.noise import draw_noise
from tallyveil.sampling.positions import (
    find_position,
    find_released_kind,
    input_positions,
    released_values,
)
from tallyveil.sampling.sampler import Sampler

__all__ = ["CertifiedAnswers", "CertifiedGeometric", "CertifiedMechanism", "CertifiedNoise"]

LARGEST_VALUE = 2**62  # so that no value and its noise together pass 64 bits
FEW_ROWS = 4096
WIDEST_MATRIX = 4001  # geometric noise is shown as a matrix up to this many answers


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAnswers(Certified):
    """A certified mechanism that answers a query.

    Attributes
    ----------
    certificate : mapping
        The JSON-ready certificate.
    query : Query
        What is asked.
    """

    query: Query

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The probabilities as a matrix of doubles, for accuracy statements."""

    def to_ptable(self, path: str | Path | None = None) -> str:
        """The matrix as a ptable; see `tv.Mechanism.to_ptable`."""
        return self.mechanism.to_ptable(path)

    @property
    def total(self) -> int:
        """What every row of weights sums to: 2^62."""
        return TOTAL

    def release(self, counts: Any, entropy: Entropy | None = None) -> Any:
        """Released answers for true answers: exact draws from the certified weights.

        Parameters
        ----------
        counts : int or array of int
            One true answer, or a one-dimensional array of them in any integer type. All of
            them are checked before anything is drawn; the error says which rule is broken,
            never which count broke it.
        entropy : Entropy, optional
            None takes fresh bits from the operating system, as every release should;
            `SeededNotPrivate` is for tests.

        Returns
        -------
        int or array of int
            Of the same length and integer type, wider if the outputs need it; one number for
            one number. Each answer costs epsilon; draws are independent.
        """
        at = find_position(counts, self.query) if type(counts) is int else None
        if at is not None:
            source = Entropy.for_one_call(entropy)
            (drawn,) = self.draw_positions(np.array([at]), source).tolist()
            return mark_draws(self.query.outputs[drawn].item(), source)
        positions, one, kind = input_positions(counts, self.query)
        source = Entropy.for_one_call(entropy)
        wanted = find_released_kind(self.query, kind)
        out = np.empty(len(positions), wanted if wanted.kind in "iu" else np.int64)
        values = released_values(self.draw_positions(positions, source, out), self.query, kind)
        return mark_draws(values[0].item() if one else values, source)

    @abstractmethod
    def draw_positions(
        self, positions: NDArray[Any], entropy: Entropy, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Output positions for input positions, which the caller has checked.

        They are drawn into `out`, or into a new array of the narrowest type that holds them.
        """

    def _repr_html_(self) -> str:
        """The mechanism as a heatmap, with what its certificate proves, for notebooks."""
        from tallyveil.notebook import show_table

        facts = [
            ("query", repr(self.query)),
            ("certified ε", str(self.exact_epsilon)),
            ("certified δ", str(self.exact_delta)),
            ("weights per row", f"2^{TOTAL_BITS}"),
            ("certificate", str(self.certificate["digest"])[:16]),
        ]
        narrow = max(self.query.shape) <= WIDEST_MATRIX
        picture = self.mechanism._repr_html_() if narrow else ""
        return picture + show_table((f"certified {self.name}", ""), facts)

    def __repr__(self) -> str:
        n, m = self.query.shape
        slack = f", delta={self.exact_delta}" if self.exact_delta else ""
        return f"<certified {self.name}: {n} x {m}, epsilon={self.exact_epsilon}{slack}>"


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedMechanism(CertifiedAnswers):
    """A certified matrix: integer `weights`, shape (n, m), every row totalling 2^62.

    >>> import tallyveil as tv
    >>> c = tv.certify(tv.geometric(tv.Query.count(3), epsilon=1.0))
    >>> c.weights.sum(axis=1).tolist() == [2**62] * 4, 0 <= c.release(2) <= 3
    (True, True)
    """

    weights: Integers

    def __post_init__(self) -> None:
        self.weights.setflags(write=False)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The probabilities weights / 2^62 as doubles, for accuracy statements."""
        return Mechanism(
            self.weights / TOTAL,
            self.query,
            self.exact_epsilon,
            delta=self.exact_delta,
            name=self.name,
        )

    @cached_property
    def sampler(self) -> Sampler:
        """The exact sampler of the weights, on input and output indices."""
        return Sampler(self.weights)

    def draw_positions(
        self, positions: NDArray[Any], entropy: Entropy, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Output positions for input positions, which the caller has checked."""
        return self.sampler.draw(positions, entropy, out)

    def body(self) -> dict[str, Any]:
        """The weights, one line of decimals per row."""
        return {"weights": document.rows_text(self.weights)}


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedGeometric(CertifiedAnswers):
    """Geometric noise and a clamp, certified without a matrix: any range, no weights table.

    >>> import tallyveil as tv
    >>> c = tv.certify_geometric(tv.Query.count(1_000_000), epsilon="0.1")
    >>> bool(c.verify()), 0 <= c.release(999_999) <= 1_000_000
    (True, True)
    """

    noise: GeometricNoise

    @cached_property
    def mechanism(self) -> Mechanism:
        """The probabilities as a matrix of doubles, for ranges of up to 4001 answers."""
        if max(self.query.shape) > WIDEST_MATRIX:
            rule = f"have at most {WIDEST_MATRIX} answers for a matrix"
            raise ArgumentError("query", rule, max(self.query.shape))
        from tallyveil.mechanisms.geometric import geometric

        return geometric(self.query, self.exact_epsilon)

    def draw_positions(
        self, positions: NDArray[Any], entropy: Entropy, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Output positions for input positions, which the caller has checked."""
        last = self.query.shape[1] - 1
        drawn = np.empty(len(positions), np.min_scalar_type(last)) if out is None else out

        def work(start: int, stop: int) -> None:
            for at in range(start, stop, CHUNK):
                part = slice(at, min(at + CHUNK, stop))
                noisy = self.draw_unbounded(positions[part], entropy)
                if len(noisy) < FEW_ROWS:  # two short passes start sooner than one clip
                    np.maximum(noisy, 0, out=noisy)
                    np.minimum(noisy, last, out=drawn[part], casting="unsafe")
                else:
                    np.clip(noisy, 0, last, out=drawn[part], casting="unsafe")

        share_rows(len(positions), entropy, work)
        return drawn

    def draw_unbounded(self, positions: NDArray[Any], entropy: Entropy) -> Integers:
        """The same draws before they are clamped.

        They are as private: the certificate proves the noise on all the whole numbers, and
        clamping is post-processing.
        """
        noisy = draw_noise(self.noise, len(positions), entropy)
        noisy += positions
        noisy += self.query.home[0]
        return noisy

    def clamp(self, noisy: Integers) -> Integers:
        """Draws kept inside the range."""
        return np.clip(noisy, 0, self.query.shape[1] - 1)

    def body(self) -> dict[str, Any]:
        """The integers of the noise."""
        return {"noise": self.noise.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedNoise(Certified):
    """Geometric noise for whole numbers without bounds, one of which a person moves by one.

    >>> import tallyveil as tv
    >>> c = tv.certify_noise(epsilon=50)
    >>> bool(c.verify()), c.release([3, 14]).tolist()
    (True, [3, 14])
    """

    noise: GeometricNoise

    def release(self, values: Any, entropy: Entropy | None = None) -> Any:
        """`values` with independent noise added to each: epsilon-private as a whole.

        Parameters
        ----------
        values : int or array of int
            Whole numbers. Adding or removing one person may move one of them by one.
        entropy : Entropy, optional
            None takes fresh bits from the operating system, as every release should.

        Returns
        -------
        int or array of int
            Whole numbers of any sign, of the same shape.
        """
        array = np.asarray(values)
        if array.dtype.kind not in "iu" or array.ndim > 1:
            raise ArgumentError(
                "values",
                "be a whole number or a one-dimensional array of them",
                got=array.dtype.name,
            )
        if array.size and max(abs(int(array.min())), abs(int(array.max()))) > LARGEST_VALUE:
            raise ArgumentError("values", "lie between -2^62 and 2^62", hint="Nothing was drawn.")
        source = Entropy.for_one_call(entropy)
        noisy = draw_noise(self.noise, array.size, source)
        noisy += array.reshape(-1).astype(np.int64, copy=False)
        return mark_draws(int(noisy[0]) if array.ndim == 0 else noisy, source)

    def body(self) -> dict[str, Any]:
        """The integers of the noise."""
        return {"noise": self.noise.to_dict()}

    def __repr__(self) -> str:
        return f"<certified noise on whole numbers: epsilon={self.exact_epsilon}>"
