"""A column beside the counts: the noisy counts before they were cut to the range or ranked.

Every row's draw is its true count (cut at the upper bound) plus geometric noise. The certificate
of the counts proves that noise private on all the whole numbers; the published count is made from
the draw. So the draw itself costs nothing more. It is signed, it is not clamped, its expectation
is the true count and its variance that of the noise, whatever the count is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from tallyveil.arrays import Integers, freeze
from tallyveil.certified.base import Certified
from tallyveil.certified.mechanism import CertifiedGeometric
from tallyveil.errors import UsageError
from tallyveil.publish.methods import Counts, Independent, Method, Preserve, PublishedCounts
from tallyveil.sampling.entropy import Entropy

__all__ = ["UNBIASED", "KeptDraws", "describe_unbiased", "keep_draws", "name_unbiased"]

UNBIASED = "unbiased"


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


@dataclass(frozen=True, eq=False)
class KeptDraws:
    """A method whose draws are published beside its counts."""

    inner: Independent | Preserve
    certified: CertifiedGeometric

    def draw(self, counts: Counts, entropy: Entropy) -> tuple[Any, Integers]:
        """The draws of the method, and every row's draw before the clamp."""
        own = self.certified
        keeping = _Keeping(own.certificate, own.query, own.noise)
        draws = replace(self.inner, certified=keeping).draw(counts, entropy)
        (noisy,) = keeping.kept
        return draws, noisy

    def publish(self, draws: tuple[Any, Integers], entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """What the method publishes, and the kept draws beside it."""
        inner, noisy = draws
        published = self.inner.publish(inner, entropy)
        return tuple(replace(c, beside={UNBIASED: noisy, **c.beside}) for c in published)


def keep_draws(method: Method) -> KeptDraws:
    """The method with its draws beside its counts, or a `UsageError` if it has no such draws."""
    if isinstance(method, (Independent, Preserve)):
        certified = method.certified
        if isinstance(certified, CertifiedGeometric):
            return KeptDraws(method, certified)
    raise UsageError(
        "An unbiased column is made from geometric noise: use the method geometric or preserve, "
        "with an upper bound and one level."
    )


def name_unbiased(column: str) -> str:
    """The name of the column beside a column of counts."""
    return f"{column}_{UNBIASED}"


def describe_unbiased(column: str, certified: Certified) -> dict[str, Any] | None:
    """What the receipt says of it: its name and the exact variance of its noise, as a double."""
    if not isinstance(certified, CertifiedGeometric):
        return None
    return {"column": name_unbiased(column), "variance": float(certified.noise.variance)}
