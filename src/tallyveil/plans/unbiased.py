"""A column beside the counts: the noisy counts before they were cut to the range or ranked.

Every row's draw is its true count (cut at the upper bound) plus geometric noise. The certificate
of the counts proves that noise private on all the whole numbers; the published count is made from
the draw. So the draw itself costs nothing more. It is signed, it is not clamped, its expectation
is the true count and its variance that of the noise, whatever the count is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, freeze
from tallyveil.certified.base import Certified
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedNoise
from tallyveil.errors import UsageError
from tallyveil.plans.methods import (
    Counts,
    Independent,
    Method,
    Preserve,
    PublishedCounts,
    name_unbiased,
)
from tallyveil.plans.stratified import Stratified
from tallyveil.plans.sums import SumDraws
from tallyveil.plans.zeros import WithEmptyGroups
from tallyveil.sampling.entropy import Entropy

__all__ = ["KeptDraws", "describe_unbiased", "keep_draws"]


@dataclass(frozen=True, eq=False, repr=False)
class _Keeping(CertifiedGeometric):
    """Draws as its base does, and keeps the draws as they were before the clamp."""

    kept: list[Integers] = field(default_factory=list)

    def draw_positions(
        self, positions: NDArray[Any], entropy: Entropy, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Clamped draws."""
        noisy = freeze(self.draw_unbounded(positions, entropy))
        self.kept.append(noisy)
        return self.clamp(noisy)


@dataclass(frozen=True, eq=False, repr=False)
class _KeepingNoise(CertifiedNoise):
    """Adds noise as its base does, and keeps what came out."""

    kept: list[Integers] = field(default_factory=list)

    def release(self, values: Any, entropy: Entropy | None = None) -> Any:
        """Noisy values of any sign."""
        noisy = super().release(values, entropy)
        self.kept.append(freeze(np.asarray(noisy, np.int64)))
        return noisy


@dataclass(frozen=True, eq=False)
class KeptDraws:
    """A method whose draws are published beside its counts, or (`signed`) in place of them."""

    inner: Independent | Preserve | Stratified
    certified: CertifiedGeometric | CertifiedNoise
    signed: bool = False

    def draw(self, counts: Counts, entropy: Entropy) -> tuple[Any, Integers]:
        """The draws of the method, and every row's draw before the clamp."""
        own = self.certified
        keeping: _Keeping | _KeepingNoise
        if isinstance(own, CertifiedNoise):
            keeping = _KeepingNoise(own.certificate, own.noise)
        else:
            keeping = _Keeping(own.certificate, own.query, own.noise)
        if isinstance(self.inner, Stratified):
            rows = replace(self.inner.method, certified=keeping)
            draws: Any = replace(self.inner, method=rows).draw(counts, entropy)
            return draws, self.inner.join(keeping.kept)
        draws = replace(self.inner, certified=keeping).draw(counts, entropy)
        (noisy,) = keeping.kept
        return draws, noisy

    def publish(self, draws: tuple[Any, Integers], entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """What the method publishes, and the kept draws beside it."""
        inner, noisy = draws
        published = self.inner.publish(inner, entropy)
        return tuple(replace(column, unbiased=noisy, signed=self.signed) for column in published)


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Counts that add up, with every row's draw beside them."""

    inner: WithEmptyGroups

    def draw(self, counts: Counts, entropy: Entropy) -> SumDraws:
        """The draws of every level and row."""
        return self.inner.draw(counts, entropy)

    def publish(self, draws: SumDraws, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """What adds up, and the rows' own draws."""
        rows: Any = draws.levels[-1]
        published = self.inner.publish(draws, entropy)
        return tuple(replace(column, unbiased=rows) for column in published)


def keep_draws(method: Method, signed: bool = False) -> KeptDraws | KeptRows:
    """The method with its draws beside its counts, or a `UsageError` if it has no such draws."""
    if isinstance(method, WithEmptyGroups) and not signed:
        return KeptRows(method)
    if isinstance(method, (Independent, Preserve, Stratified)):
        certified = method.method.certified if isinstance(method, Stratified) else method.certified
        if signed and not (
            isinstance(certified, CertifiedNoise) and isinstance(method, Independent)
        ):
            raise UsageError(
                "Signed counts are drawn without an upper bound, row by row: leave 'upper' out, "
                "and use the method geometric."
            )
        if isinstance(certified, (CertifiedGeometric, CertifiedNoise)):
            return KeptDraws(method, certified, signed)
    raise UsageError(
        "An unbiased column is made from geometric noise: use the method geometric or preserve, "
        "with one level, strata, or a hierarchy."
    )


def describe_unbiased(
    column: str, certified: Certified, signed: bool = False
) -> dict[str, Any] | None:
    """What the receipt says of it: its name and the exact variance of its noise, as a double."""
    if not isinstance(certified, (CertifiedGeometric, CertifiedNoise)):
        return None
    name = column if signed else name_unbiased(column)
    return {"column": name, "variance": float(certified.noise.variance)}
