"""What a receipt says of one step that spent: its cost, and the files that prove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tallyveil.request.fields import read_amount, read_text

__all__ = ["StageRecord", "amount"]


def amount(value: Fraction) -> dict[str, Any]:
    """Return an exact amount, and the number that people read."""
    return {"epsilon": float(value), "epsilon_exact": str(value)}


@dataclass(frozen=True)
class StageRecord:
    """One step that spent, and the files that prove it."""

    name: str
    epsilon: Fraction
    file: str
    sha256: str
    mechanism: str
    certified_epsilon: Fraction
    certificate_file: str
    digest: str
    achieved_epsilon: float | None
    delta: Fraction = Fraction(0)
    """Certified, and what the stage costs: a unit that has a delta is counted once."""

    @property
    def kind(self) -> str:
        """What the stage was for: the part of its name after the column's."""
        return self.name.rpartition(": ")[2]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"name": self.name, **amount(self.epsilon), **self.files()}

    def files(self) -> dict[str, Any]:
        """The mechanism's file and the certificate's, JSON-ready."""
        return {
            "mechanism": {
                "file": self.file,
                "sha256": self.sha256,
                "name": self.mechanism,
                "epsilon": str(self.certified_epsilon),
                **({"delta": str(self.delta)} if self.delta else {}),
            },
            "certificate": {
                "file": self.certificate_file,
                "digest": self.digest,
                "achieved_epsilon": self.achieved_epsilon,
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StageRecord:
        """The stage that `to_dict` wrote."""
        mechanism, certificate = data["mechanism"], data["certificate"]
        return cls(
            read_text(data["name"]),
            read_amount(data["epsilon_exact"]),
            read_text(mechanism["file"]),
            read_text(mechanism["sha256"]),
            read_text(mechanism["name"]),
            read_amount(mechanism["epsilon"]),
            read_text(certificate["file"]),
            read_text(certificate["digest"]),
            certificate["achieved_epsilon"],
            read_amount(mechanism["delta"]) if "delta" in mechanism else Fraction(0),
        )
