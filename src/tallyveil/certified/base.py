"""What everything certified has in common: a proved epsilon, exact draws, one document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tallyveil._version import __version__
from tallyveil.proof import certificate as document
from tallyveil.proof.exponent import Growth
from tallyveil.proof.ratios import Verdict
from tallyveil.proof.rounding import TOTAL_BITS
from tallyveil.proof.verify import describe_findings, verify
from tallyveil.sampling.entropy import Entropy

__all__ = ["Certified", "seal_claim"]


@dataclass(frozen=True, eq=False, repr=False)
class Certified(ABC):
    """Something that may release, because its certificate proves it private.

    Attributes
    ----------
    certificate : mapping
        The JSON-ready certificate; `docs/certificate.md` lists its fields.
    """

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

    @abstractmethod
    def release(self, values: Any, entropy: Entropy | None = None) -> Any:
        """Released values for true ones, drawn exactly; all are checked before any is drawn."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """What the certificate is about: the part of the document that is hashed."""

    def to_dict(self) -> dict[str, Any]:
        """The whole document, JSON-ready; `tv.load` reads its file back."""
        return {
            "format": document.MECHANISM_FORMAT,
            "version": document.VERSION,
            "certificate": dict(self.certificate),
            **self.body(),
        }

    def to_json(self) -> str:
        """The canonical text of the document."""
        return document.canonical(self.to_dict())

    def certificate_json(self) -> str:
        """The canonical text of the certificate alone."""
        return document.canonical(self.certificate)

    def save(self, path: str | Path) -> Path:
        """Write the document, by convention ``mechanism.json``, and return the path."""
        file = Path(path)
        file.write_text(self.to_json(), encoding="utf-8", newline="\n")
        return file

    def save_certificate(self, path: str | Path) -> Path:
        """Write the certificate alone, to lie beside its ``mechanism.json``."""
        file = Path(path)
        file.write_text(self.certificate_json(), encoding="utf-8", newline="\n")
        return file

    def verify(self) -> Verdict:
        """`tv.verify` on this object, from scratch."""
        return verify(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certified) and self.certificate == other.certificate

    def __hash__(self) -> int:
        return hash(self.certificate["digest"])


def seal_claim(
    name: str,
    verdict: Verdict,
    *,
    query: Mapping[str, Any],
    neighbours: Mapping[str, Any],
    shape: tuple[int, ...],
    kind: str,
    sha256: str,
    loss: Mapping[str, Any] | None = None,
    **further: Any,
) -> dict[str, Any]:
    """A sealed certificate of what `verdict` found; `further` fields belong to some kinds."""
    epsilon, delta = verdict.epsilon or Fraction(0), verdict.delta or Fraction(0)
    growth = Growth.of(epsilon)
    return document.seal(
        {
            "format": document.CERTIFICATE_FORMAT,
            "version": document.VERSION,
            "program": f"tallyveil {__version__}",
            "name": name,
            "query": dict(query),
            "neighbours": dict(neighbours),
            "epsilon": str(epsilon),
            "delta": str(delta),
            "growth": {"numerator": str(growth.numerator), "shift": growth.shift},
            "law": kind,
            "shape": list(shape),
            "total_bits": TOTAL_BITS,
            "weights_sha256": sha256,
            "loss": None if loss is None else dict(loss),
            **further,
            **describe_findings(verdict),
        }
    )
