"""The receipt of a release: what was promised, spent and done, from public things only.

A `Receipt` holds the few facts that do not follow from one another; everything else in the
document follows from them and is written by `to_dict`, so a reader who has read a receipt can
write it again and compare. Field names follow the OpenDP deployments registry where it has
them. Nothing here may depend on a confidential value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from tallyveil._version import __version__
from tallyveil.budget.entries import shown_rational
from tallyveil.errors import PackageError
from tallyveil.publish.records import (
    ColumnRecord,
    LedgerRecord,
    LevelRecord,
    StageRecord,
    TableRecord,
    amount,
    read_text,
)
from tallyveil.publish.request import ABOVE, NEIGHBOURS, count_moves

__all__ = ["FLOAT_PROTECTION", "RECEIPT_FORMAT", "WEAK_EPSILON", "Receipt", "promise"]

RECEIPT_FORMAT = "tallyveil-receipt"
VERSION = 2
NOT_PRIVATE = "NOT PRIVATE: drawn from a test seed. Do not publish."

WEAK_EPSILON = 5
"""Above this the promise says itself that it is weak, and the publisher is warned."""

FLOAT_PROTECTION = "privacy is proved and drawn in integers; no float decides it"
MOVES = {
    "add_remove": "adding or removing one person moves one count by one",
    "change_one": "changing one person's record moves two counts by one",
}


def promise(epsilon: Fraction, contributions: int, neighbours: str, version: int = VERSION) -> str:
    """The guarantee as a sentence about a person, in the words of a version of the receipt.

    The factor is e^epsilon, rounded up so that the sentence never promises too much.
    """
    factor = math.exp(float(epsilon))
    cents = f"{math.ceil(factor * 100) / 100:.2f}".rstrip("0").rstrip(".") if factor < 1e6 else ""
    shown = cents or "a very large number"
    cells = f" in up to {contributions} cells" if contributions > 1 else ""
    added = f"Whether or not one person was counted{cells}"
    moved = f"Whether one person was counted{cells} as they were, or in other cells instead"
    what = added if neighbours == "add_remove" else moved
    if version == 1:
        who = f", who may be counted in up to {contributions} cells" if contributions > 1 else ""
        then = "was counted or not" if neighbours == "add_remove" else "were counted elsewhere"
        what = f"Whether one person{who} {then}"
    return (
        f"{what}, every possible outcome of this release stays as likely as "
        f"before, up to a factor of {shown} (epsilon {shown_rational(epsilon)})"
        f"{_judge(epsilon, version)}"
    )


def _judge(epsilon: Fraction, version: int) -> str:
    """What that factor means: the smaller it is, the more can be said."""
    if epsilon <= 1 or version == 1:
        return (
            ": whatever anyone concludes about that person from it, they could have concluded "
            "nearly as well without them."
        )
    if epsilon <= WEAK_EPSILON:
        return ". What anyone concludes about that person can rest on their data to that extent."
    return (
        ". That is weak protection: somebody who knows much already may learn from it, nearly for "
        "certain, whether that person was counted."
    )


@dataclass(frozen=True)
class Receipt:
    """The facts of a release from which its whole document follows.

    >>> import tallyveil as tv
    >>> rel = tv.privatize([0, 3, 0, 7, 1] * 100, upper=9, epsilon=1)
    >>> Receipt.from_dict(rel.receipt.to_dict()) == rel.receipt, rel.receipt.epsilon
    (True, Fraction(1, 1))
    """

    release: str
    created: str
    private: bool
    neighbours: str
    contributions: int
    table: TableRecord
    columns: tuple[ColumnRecord, ...]
    ledger: LedgerRecord | None
    ladder: LevelRecord | None = None
    program: str = __version__
    version: int = VERSION

    @property
    def stages(self) -> tuple[StageRecord, ...]:
        """Every step that spent, column by column."""
        return tuple(stage for column in self.columns for stage in column.stages)

    @property
    def epsilon(self) -> Fraction:
        """What the release costs one person, exactly."""
        return sum((stage.epsilon for stage in self.stages), Fraction(0))

    @property
    def multiplier(self) -> int:
        """How many counts one person can move by one."""
        return count_moves(self.contributions, self.neighbours)

    @property
    def promise(self) -> str:
        """The guarantee as a sentence about a person."""
        return promise(self.epsilon, self.contributions, self.neighbours, self.version)

    @property
    def warning(self) -> str:
        """What must be said of a release that is not private; empty for one that is."""
        return "" if self.private else NOT_PRIVATE

    @property
    def randomness(self) -> str:
        """Where the random bits came from."""
        private = "AES-256 in counter mode, keyed by the operating system"
        return private if self.private else "a test seed"

    @property
    def unit(self) -> tuple[str, str]:
        """The unit of privacy, and what one unit can change, in words."""
        words = MOVES[self.neighbours]
        if self.contributions > 1:
            words += f", and one person may do so in up to {self.contributions} cells"
        counted = self.table.counted_by
        return ("one row of the confidential table" if counted else "one person"), words

    @property
    def composition(self) -> str:
        """How the amounts of the stages add up."""
        if self.ladder is not None:
            return (
                "every level is drawn from the one before, so all together cost what the first does"
            )
        return "sequential over count columns and stages, parallel over the rows of each"

    def to_dict(self) -> dict[str, Any]:
        """The whole document, JSON-ready."""
        epsilon, (unit, moves) = self.epsilon, self.unit
        document = {
            "format": RECEIPT_FORMAT,
            "version": VERSION,
            "release": self.release,
            "created": self.created,
            "program": {"name": "tallyveil", "version": self.program},
            "private": self.private,
            **amount(epsilon),
            "delta": 0.0,
            "promise": self.promise,
            "stages": [stage.to_dict() for stage in self.stages],
            "neighbours": self.neighbours,
            "contributions": self.contributions,
            "multiplier": self.multiplier,
            "dp_flavor": {
                "name": "Pure DP",
                "data_domain": "tables with these rows and columns and any whole counts of at "
                "least 0",
                "unprotected_quantities": "the number of rows and every column published unchanged",
            },
            "privacy_loss": {
                "privacy_unit": unit,
                "privacy_unit_description": moves,
                "privacy_parameters": {"epsilon": float(epsilon), "delta": 0.0},
            },
            "model": {
                "model_type": "Central",
                "release_type": "One-shot",
                "interactivity": "Non-interactive",
            },
            "composition": self.composition,
            "randomness": self.randomness,
            "float_protection": FLOAT_PROTECTION,
            "table": self.table.to_dict(),
            "columns": [column.to_dict() for column in self.columns],
            "ladder": None if self.ladder is None else self.ladder.to_dict(),
            "ledger": None if self.ledger is None else asdict(self.ledger),
        }
        return document if self.private else {**document, "warning": self.warning}

    def to_json(self) -> str:
        """The text of ``receipt.json``."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    @classmethod
    def from_dict(cls, data: Any) -> Receipt:
        """The receipt in a document of this version or of version 1, or a `PackageError`."""
        if not isinstance(data, Mapping) or data.get("format") != RECEIPT_FORMAT:
            raise PackageError("This is not the receipt of a Tallyveil release.")
        version = data.get("version")
        if version not in (1, VERSION) or isinstance(version, bool):
            raise PackageError("The receipt has a version that this program does not read.")
        try:
            return cls._read(data, version)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise PackageError("The receipt lacks a part, or a part has the wrong form.") from None

    @classmethod
    def _read(cls, data: Mapping[str, Any], version: int) -> Receipt:
        ledger, ladder = data["ledger"], data.get("ladder")
        columns = tuple(ColumnRecord.from_dict(column, version) for column in data["columns"])
        contributions = data["contributions"]
        known = data["neighbours"] in NEIGHBOURS and all(c.above in ABOVE for c in columns)
        if not known or type(contributions) is not int or contributions < 1 or not columns:
            raise PackageError("The receipt states a relation or a bound that does not exist.")
        return cls(
            read_text(data["release"]),
            read_text(data["created"]),
            data["private"] is True,
            data["neighbours"],
            contributions,
            TableRecord.from_dict(data["table"]),
            columns,
            None if ledger is None else LedgerRecord.from_dict(ledger),
            None if ladder is None else LevelRecord.from_dict(ladder),
            read_text(data["program"]["version"]),
            version,
        )
