"""What a receipt says of the parts of a release: stages, columns, the table, the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from tallyveil.budget.ledger import Entry

__all__ = ["ColumnRecord", "LedgerRecord", "LevelRecord", "StageRecord", "TableRecord", "amount"]

PRESERVE_STEPS = (
    "Noise was added to every count, and the result kept inside the range.",
    "From what was drawn, and nothing else, the distribution of counts was estimated.",
    "Rows were ranked by their noisy counts, ties in random order, and counts with exactly that "
    "distribution were handed out in this order. This step looks at no confidential value.",
)
DISTRIBUTION_STEP = (
    "Noise was added to the table's cumulative histogram (how many rows have at most j)."
)
LADDER_STEP = (
    "Counts of the least private level were drawn from the true ones, and those of every further "
    "level from the level before, never from the true ones again."
)


def amount(value: Fraction) -> dict[str, Any]:
    """An exact amount with the number people read beside it."""
    return {"epsilon": float(value), "epsilon_exact": str(value)}


@dataclass(frozen=True)
class StageRecord:
    """One step that spent, and the files that prove it; old receipts name files for counts only."""

    name: str
    epsilon: Fraction
    file: str
    sha256: str
    mechanism: str
    certified_epsilon: Fraction
    certificate_file: str
    digest: str
    achieved_epsilon: float | None

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
            },
            "certificate": {
                "file": self.certificate_file,
                "digest": self.digest,
                "achieved_epsilon": self.achieved_epsilon,
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], files: Mapping[str, Any]) -> StageRecord:
        """The stage in `data` with the files in `files`, which is `data` in new receipts."""
        mechanism, certificate = files["mechanism"], files["certificate"]
        return cls(
            data["name"],
            Fraction(data["epsilon_exact"]),
            mechanism["file"],
            mechanism["sha256"],
            mechanism["name"],
            Fraction(mechanism["epsilon"]),
            certificate["file"],
            certificate["digest"],
            certificate["achieved_epsilon"],
        )


@dataclass(frozen=True)
class ColumnRecord:
    """What the receipt says of one column; `accuracy` is that of `Accuracy.to_dict`."""

    name: str
    upper: int
    upper_source: str
    above: str
    method: str
    why: str
    epsilon: Fraction
    stages: tuple[StageRecord, ...]
    loss: str
    properties: tuple[str, ...]
    solver: str
    accuracy: Mapping[str, Any]
    histogram: tuple[int, ...]
    spread: tuple[float, ...] | None

    @property
    def counts_stage(self) -> StageRecord:
        """The stage that drew the counts."""
        return self.stages[-1]

    @property
    def steps(self) -> tuple[str, ...]:
        """What was done to the column, in sentences."""
        if self.method == "ladder":
            return (LADDER_STEP,)
        if self.method != "preserve":
            return ()
        first = any(stage.name.endswith(": distribution") for stage in self.stages)
        return (DISTRIBUTION_STEP, *PRESERVE_STEPS) if first else PRESERVE_STEPS

    @property
    def prior(self) -> str:
        """The prior that a design minimised the loss under."""
        return "uniform" if self.method == "design" else "not used"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name,
            "upper": self.upper,
            "upper_source": self.upper_source,
            "above": self.above,
            "method": self.method,
            "why": self.why,
            **amount(self.epsilon),
            "stages": [stage.to_dict() for stage in self.stages],
            **self.counts_stage.files(),
            "loss": self.loss,
            "prior": self.prior,
            "properties": list(self.properties),
            "solver": self.solver,
            "accuracy": dict(self.accuracy),
            "distribution": {
                "histogram": list(self.histogram),
                "spread": None if self.spread is None else list(self.spread),
            },
            "post_processing": list(self.steps),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], version: int) -> ColumnRecord:
        """The record that `to_dict` wrote, in this version or in version 1."""
        spread = data["distribution"]["spread"]
        return cls(
            data["name"],
            data["upper"],
            data["upper_source"],
            data["above"],
            data["method"],
            data["why"],
            Fraction(data["epsilon_exact"]),
            tuple(StageRecord.from_dict(s, data if version == 1 else s) for s in data["stages"]),
            data["loss"],
            tuple(data["properties"]),
            data["solver"],
            data["accuracy"],
            tuple(data["distribution"]["histogram"]),
            None if spread is None else tuple(spread),
        )


@dataclass(frozen=True)
class TableRecord:
    """What the receipt says of the released table as a whole."""

    rows: int
    kind: str
    file: str
    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    published_unchanged: tuple[str, ...]
    row_order: str
    counted_by: tuple[str, ...]
    where: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableRecord:
        """The record that `to_dict` wrote."""
        return cls(**{name: _frozen(value) for name, value in data.items()})


@dataclass(frozen=True)
class LevelRecord:
    """Which level of a ladder this is, and what the levels are, least private first."""

    level: int
    epsilons: tuple[Fraction, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"level": self.level, "epsilons": [str(epsilon) for epsilon in self.epsilons]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LevelRecord:
        """The record that `to_dict` wrote."""
        return cls(data["level"], tuple(Fraction(text) for text in data["epsilons"]))


@dataclass(frozen=True)
class LedgerRecord:
    """The ledger's entry that paid for the release."""

    dataset: str
    entry: int
    digest: str

    @classmethod
    def of(cls, entry: Entry) -> LedgerRecord:
        """What a receipt says of a ledger's entry."""
        return cls(entry.dataset, entry.sequence, entry.digest)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
