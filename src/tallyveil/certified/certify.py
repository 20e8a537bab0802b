"""A certified mechanism: integer weights, the certificate that proves them, exact draws.

Only what is certified can release. `certify` makes one from a matrix, `certify_geometric`
one for ranges too wide for a matrix, `load` reads one back and verifies it on the way in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil._version import __version__
from tallyveil.errors import ArgumentError, CertificationError, QueryError, VerificationError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, loss_name
from tallyveil.mechanism import Mechanism, require_mechanism
from tallyveil.prior import Prior
from tallyveil.proof import certificate as document
from tallyveil.proof.exponent import Growth
from tallyveil.proof.noise_law import GeometricLaw
from tallyveil.proof.repair import Repair, mass_moved, repair
from tallyveil.proof.rounding import TOTAL, TOTAL_BITS
from tallyveil.proof.verify import Verdict, check_weights, found_by, read_document, verify
from tallyveil.proof.weights import approximate_weights, pure_weights
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.noise import draw_noise
from tallyveil.sampling.positions import input_positions, released_values
from tallyveil.sampling.sampler import Sampler

__all__ = [
    "Certified",
    "CertifiedGeometric",
    "CertifiedMechanism",
    "certify",
    "certify_geometric",
    "load",
]

LARGEST_REPAIR = 5e-3
"""How much of a row's probability `certify` moves at the very most before it refuses."""

SOLVER_NOISE = 2e-6
"""The error of single entries that `certify` takes for a solver's round-off."""

WIDEST_MATRIX = 4001  # a geometric law is shown as a matrix up to this many answers


@dataclass(frozen=True, eq=False, repr=False)
class Certified(ABC):
    """What every certified mechanism has: a query, a proved epsilon, exact releases.

    Attributes
    ----------
    query : what is asked
    certificate : the JSON-ready certificate; `docs/certificate.md` lists its fields
    """

    query: Query
    certificate: Mapping[str, Any]

    @property
    def exact_epsilon(self) -> Fraction:
        """The certified privacy loss as an exact rational."""
        return Fraction(self.certificate["epsilon"])

    @property
    def epsilon(self) -> float:
        """The certified privacy loss as a double, for display."""
        return float(self.exact_epsilon)

    @property
    def exact_delta(self) -> Fraction:
        """The certified slack, 0 for pure privacy."""
        return Fraction(self.certificate["delta"])

    @property
    def delta(self) -> float:
        """The certified slack as a double, for display."""
        return float(self.exact_delta)

    @property
    def name(self) -> str:
        """The mechanism's name, for captions."""
        return str(self.certificate["name"])

    @property
    def total(self) -> int:
        """What every row of weights sums to: 2^62."""
        return TOTAL

    def release(self, counts: Any, entropy: Entropy | None = None) -> Any:
        """Released answers for true answers: exact draws from the certified weights.

        Parameters
        ----------
        counts : one true answer, or a one-dimensional array of them in any integer type.
            All of them are checked before anything is drawn; the error says which rule is
            broken, never which count broke it.
        entropy : None takes a fresh key from the operating system, as every release should;
            `SeededNotPrivate` is for tests

        Returns an array of the same length and integer type, wider if the outputs need it;
        one number for one number. Each answer costs epsilon; draws are independent.
        """
        positions, one, kind = input_positions(counts, self.query)
        source = Entropy.fresh(entropy)
        values = released_values(self._draw(positions, source), self.query, kind)
        return values[0].item() if one else values

    @abstractmethod
    def _draw(self, positions: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Output positions for input positions."""

    def to_dict(self) -> dict[str, Any]:
        """The whole document, JSON-ready; `load` reads its file back."""
        return {
            "format": document.MECHANISM_FORMAT,
            "version": document.VERSION,
            "certificate": dict(self.certificate),
        }

    def to_json(self) -> str:
        """The canonical text of the document."""
        return document.canonical(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write the document, by convention ``mechanism.json``; returns the path."""
        file = Path(path)
        file.write_text(self.to_json(), encoding="utf-8", newline="\n")
        return file

    def save_certificate(self, path: str | Path) -> Path:
        """Write the certificate alone, to lie beside its ``mechanism.json``."""
        file = Path(path)
        file.write_text(document.canonical(self.certificate), encoding="utf-8", newline="\n")
        return file

    def verify(self) -> Verdict:
        """`tallyveil.verify` on this mechanism, from scratch."""
        return verify(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certified) and self.certificate == other.certificate

    def __hash__(self) -> int:
        return hash(self.certificate["digest"])

    def __repr__(self) -> str:
        n, m = self.query.shape
        slack = f", delta={self.exact_delta}" if self.exact_delta else ""
        return f"<certified {self.name}: {n} x {m}, epsilon={self.exact_epsilon}{slack}>"


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedMechanism(Certified):
    """A certified matrix: integer `weights`, shape (n, m), every row totalling 2^62.

    >>> import tallyveil as tv
    >>> c = tv.certify(tv.geometric(tv.Query.count(3), epsilon=1.0))
    >>> c.weights.sum(axis=1).tolist() == [2**62] * 4, 0 <= c.release(2) <= 3
    (True, True)
    """

    weights: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.weights.setflags(write=False)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The law that is drawn from, as doubles weights / 2^62, for accuracy statements."""
        return Mechanism(self.weights / TOTAL, self.query, self.exact_epsilon,
                         delta=self.exact_delta, name=self.name)  # fmt: skip

    @cached_property
    def sampler(self) -> Sampler:
        """The exact sampler of the weights, on input and output indices."""
        return Sampler(self.weights)

    def _draw(self, positions: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        return self.sampler.draw(positions, entropy)

    def to_dict(self) -> dict[str, Any]:
        """The whole document, JSON-ready; `load` reads its file back."""
        return {**super().to_dict(), "weights": document.rows_text(self.weights)}


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedGeometric(Certified):
    """Geometric noise and a clamp, certified without a matrix: any range, no weights table.

    >>> import tallyveil as tv
    >>> c = tv.certify_geometric(tv.Query.count(1_000_000), epsilon="0.1")
    >>> bool(c.verify()), 0 <= c.release(999_999) <= 1_000_000
    (True, True)
    """

    law: GeometricLaw

    @cached_property
    def mechanism(self) -> Mechanism:
        """The law as a matrix of doubles, for accuracy statements on ranges up to 4001."""
        if max(self.query.shape) > WIDEST_MATRIX:
            raise ArgumentError("query", f"have at most {WIDEST_MATRIX} answers for a matrix",
                                max(self.query.shape))  # fmt: skip
        from tallyveil.mechanisms.geometric import geometric

        return geometric(self.query, self.exact_epsilon)

    def _draw(self, positions: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        noisy = draw_noise(self.law, len(positions), entropy)
        noisy += positions
        noisy += self.query.home[0]
        return np.clip(noisy, 0, self.query.shape[1] - 1, out=noisy)

    def to_dict(self) -> dict[str, Any]:
        """The whole document, JSON-ready; `load` reads its file back."""
        return {**super().to_dict(), "noise": self.law.to_dict()}


def certify(
    mechanism: Mechanism,
    epsilon: Epsilon | None = None,
    *,
    target: ArrayLike | None = None,
    loss: Loss = "absolute",
    prior: Prior = None,
) -> CertifiedMechanism:
    """Integer weights for a matrix, proved private in exact arithmetic, with a certificate.

    The matrix is repaired (`tallyveil.repair`), rounded to integers that total 2^62 per row,
    and checked by the same code that `tallyveil.verify` runs. Outputs that no row reports
    stay unreported; every other output gets at least weight 1 in every row, which also mends
    the tails that underflow in doubles.

    **What is mended and what is refused.** Errors of up to 2e-6 in every entry are taken for a
    solver's round-off: they may move 2e-6 m (1 + 1/epsilon) of a row's probability, and at
    most 0.005. A matrix further from private than that is a mistake, not round-off, and
    raises a `CertificationError` that names its worst cell. Use `tallyveil.repair` first to
    mend it on purpose.

    Parameters
    ----------
    mechanism : a matrix with the epsilon (and delta) it was made for
    epsilon : certify at this exact epsilon instead
    target : where moved mass goes if an output law is to be kept, shape (m,)
    loss, prior : what the certificate's loss before and after is measured in

    Guaranteed exactly: w[i, j] <= e^epsilon w[k, j] for all neighbours i, k and outputs j;
    or, with delta > 0, every hockey-stick sum is at most delta. Costs O(w n m) for a band of
    width w: about a second for 2001 answers.

    >>> import tallyveil as tv
    >>> c = tv.certify(tv.geometric(tv.Query.count(1), epsilon=1.0))
    >>> c.exact_epsilon, round(c.certificate["achieved_epsilon"], 12)
    (Fraction(1, 1), 1.0)
    """
    require_mechanism(mechanism)
    exact = mechanism.exact_epsilon if epsilon is None else exact_epsilon(epsilon)
    if exact is None:
        raise ArgumentError("epsilon", "be given, because the mechanism states none")
    query, delta = mechanism.query, mechanism.exact_delta
    if delta:
        weights = approximate_weights(mechanism.matrix, query, exact, delta)
    else:
        mended = repair(mechanism, exact, target=target, loss=loss, prior=prior)
        _refuse_large(mended, mechanism, exact, _allowed(query, exact))
        weights = pure_weights(mended.mechanism.matrix, query, exact)
    verdict = check_weights(weights, query.neighbours, exact, delta)
    if not verdict.ok:
        raise CertificationError(verdict.reason)
    law = Mechanism(weights / TOTAL, query, exact, delta=delta, name=mechanism.name)
    moved = mass_moved(mechanism.matrix, law.matrix)
    if moved > LARGEST_REPAIR:
        raise CertificationError(
            f"Certifying at epsilon {exact}, delta {delta} would move {moved:.3g} of a row's "
            f"probability; at most {LARGEST_REPAIR:g} is allowed. {_worst(mechanism)}"
        )
    before, after = mechanism.expected_loss(loss, prior), law.expected_loss(loss, prior)
    losses = Repair(law, moved, loss_name(loss), before, after)
    sha256 = document.weights_sha256(weights)
    claim = _claim(mechanism.name, query, verdict, law="weights", sha256=sha256, losses=losses)
    return CertifiedMechanism(query, claim, weights)


def certify_geometric(query: Query, epsilon: Epsilon) -> CertifiedGeometric:
    """The truncated geometric mechanism for any range, certified without a matrix.

    Two-sided geometric noise on all the whole numbers, whose integer law is proved by
    finitely many comparisons (`tallyveil.proof.noise_law`), then a clamp to the range,
    which is post-processing. Memory is O(1/epsilon), at most a few megabytes, whatever
    the range.

    Needs inputs that are consecutive outputs (a count, mean, maximum ... with
    ``categories=1``); where neighbours lie up to w steps apart the noise is made for
    epsilon / w.

    >>> c = certify_geometric(Query.count(1_000_000), epsilon=1.0)
    >>> c.verify().ok, c.exact_epsilon
    (True, Fraction(1, 1))
    """
    exact = exact_epsilon(epsilon)
    n = query.shape[0]
    if query.step is None or not np.array_equal(query.home, query.home[0] + np.arange(n)):
        raise QueryError("query", "have consecutive outputs as inputs for geometric noise",
                         repr(query), "Use certify on a matrix.")  # fmt: skip
    law = GeometricLaw.of(exact / query.neighbours.width)
    verdict = Verdict(True, exact, Fraction(0), float(exact), None, None, "")
    sha256 = document.digest(law.to_dict())
    claim = _claim("geometric", query, verdict, law="geometric", sha256=sha256)
    made = CertifiedGeometric(query, claim, law)
    checked = verify(made)
    if not checked.ok:
        raise CertificationError(checked.reason)
    return made


def load(path: str | Path) -> CertifiedMechanism | CertifiedGeometric:
    """The certified mechanism in a file, verified from scratch before it is returned.

    A file that does not hold raises a `VerificationError` that says why.
    """
    try:
        data = read_document(path)
    except ValueError as problem:
        raise VerificationError(f"{Path(path).name} is not JSON: {problem}") from None
    verdict = verify(data)  # the very document that is returned: the file is read once
    if not verdict.ok:
        raise VerificationError(f"{Path(path).name}: {verdict.reason}")
    query = Query.from_dict(data["certificate"]["query"])
    if "noise" in data:
        law = GeometricLaw.from_dict(data["noise"])
        return CertifiedGeometric(query, data["certificate"], law)
    return CertifiedMechanism(query, data["certificate"], document.read_rows(data["weights"]))


def _claim(
    name: str,
    query: Query,
    verdict: Verdict,
    *,
    law: str,
    sha256: str,
    losses: Repair | None = None,
) -> dict[str, Any]:
    """A sealed certificate of what `verdict` found."""
    epsilon, delta = verdict.epsilon or Fraction(0), verdict.delta or Fraction(0)
    growth = Growth.of(epsilon)
    return document.sealed(
        {
            "format": document.CERTIFICATE_FORMAT,
            "version": document.VERSION,
            "program": f"tallyveil {__version__}",
            "name": name,
            "query": query.to_dict(),
            "neighbours": query.neighbours.to_dict(),
            "epsilon": str(epsilon),
            "delta": str(delta),
            "growth": {"numerator": str(growth.numerator), "shift": growth.shift},
            "law": law,
            "shape": list(query.shape),
            "total_bits": TOTAL_BITS,
            "weights_sha256": sha256,
            "loss": None if losses is None else _cost(losses),
            **found_by(verdict),
        }
    )


def _cost(losses: Repair) -> dict[str, Any]:
    return {
        "name": losses.loss,
        "before": losses.loss_before,
        "after": losses.loss_after,
        "mass_moved": losses.mass_moved,
    }


def _allowed(query: Query, epsilon: Fraction) -> float:
    """What round-off in every one of m entries can make it necessary to move.

    Rows must be brought level, and at a small epsilon level rows need 1/epsilon as much.
    """
    return min(LARGEST_REPAIR, SOLVER_NOISE * query.shape[1] * float(1 + 1 / epsilon))


def _refuse_large(mended: Repair, mechanism: Mechanism, epsilon: Fraction, allowed: float) -> None:
    if mended.mass_moved > allowed:
        raise CertificationError(
            f"Not private at epsilon {epsilon}: repairing it would move {mended.mass_moved:.3g} "
            f"of a row's probability; at most {allowed:.2g} is taken for round-off. "
            f"{_worst(mechanism)} Use tv.repair to mend it on purpose."
        )


def _worst(mechanism: Mechanism) -> str:
    worst = mechanism.worst_pair()
    first = mechanism.matrix[worst.likelier, worst.output]
    second = mechanism.matrix[worst.rarer, worst.output]
    return (
        f"Worst cell: output {worst.output}, inputs {worst.likelier} and {worst.rarer}, "
        f"probabilities {first:.6g} and {second:.6g} (epsilon {worst.epsilon:.6g})."
    )
