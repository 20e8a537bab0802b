"""The receipt of a release: what was promised, spent and done, from public things only.

A `Receipt` holds the few facts that do not follow from one another; everything else in the
document follows from them and is written by `to_dict`, so a reader who has read a receipt can
write it again and compare. Field names follow the OpenDP deployments registry where it has
them. Nothing here may depend on a confidential value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tallyveil._version import __version__
from tallyveil.budget.accounting import SMALLEST_DELTA, compose
from tallyveil.documents.promise import VERSION, promise
from tallyveil.documents.records import (
    ColumnRecord,
    LedgerRecord,
    LevelRecord,
)
from tallyveil.documents.stages import StageRecord, amount
from tallyveil.documents.table_record import TableRecord
from tallyveil.errors import PackageError
from tallyveil.fingerprint import fingerprint, fingerprint_page
from tallyveil.release.layout import ROW_ORDERS
from tallyveil.release.methods.records import StrataRecord, SumsRecord
from tallyveil.release.options import About
from tallyveil.release.zeros import ZerosRecord
from tallyveil.request.fields import read_amount, read_text, read_texts, read_whole
from tallyveil.request.request import MOST_COUNTS
from tallyveil.request.unit import (
    BOUNDS,
    MOST_SEPARATE,
    NEIGHBOURS,
    UNITS,
    PrivacyUnit,
    charge_columns,
    charge_delta,
)
from tallyveil.sampling.marks import NOT_PRIVATE

__all__ = ["FLOAT_PROTECTION", "RECEIPT_FORMAT", "Receipt"]

RECEIPT_FORMAT = "tallyveil-receipt"
MOST_COMPOSED = 100
"""More charges than this are added up: composing them would take a reader too long."""

FLOAT_PROTECTION = "privacy is proved and drawn in integers; no float decides it"


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
    unit: PrivacyUnit
    disjoint: tuple[tuple[str, ...], ...]
    table: TableRecord
    columns: tuple[ColumnRecord, ...]
    ledger: LedgerRecord | None
    ladder: LevelRecord | None = None
    program: str = __version__
    sums: SumsRecord | None = None
    zeros: ZerosRecord | None = None
    about: About = field(default_factory=About)
    strata: StrataRecord | None = None
    fingerprint: str = field(default_factory=fingerprint)
    page: str = field(default_factory=fingerprint_page)
    """Which program's page this release has: see `fingerprint_page`."""

    @property
    def protected_rows(self) -> int:
        """How many rows are not structural zeros."""
        return self.table.rows - (0 if self.zeros is None else self.zeros.rows)

    @property
    def stages(self) -> tuple[StageRecord, ...]:
        """Every step that spent, column by column."""
        return tuple(stage for column in self.columns for stage in column.stages)

    @property
    def epsilon(self) -> Fraction:
        """What the release costs one unit, exactly; disjoint columns cost the largest of them."""
        return sum(self._charges, Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The delta of the release; 0 for pure privacy."""
        composed = self.unit.delta
        deltas = {column.name: column.counts_stage.delta + composed for column in self.columns}
        return charge_delta(deltas, self.disjoint)

    @property
    def _charges(self) -> tuple[Fraction, ...]:
        """What a ledger is charged, stage by stage."""
        stages = [(c.name, stage.name, stage.epsilon) for c in self.columns for stage in c.stages]
        return tuple(cost for _, cost in charge_columns(stages, self.disjoint))

    @property
    def composed(self) -> Fraction | None:
        """The epsilon that the release keeps at its account's delta, where one is spent."""
        account = self.ledger
        if account is None or not account.total_delta:
            return None
        if len(self._charges) > MOST_COMPOSED:
            return self.epsilon
        left = account.total_delta - self.delta
        return compose(self._charges).epsilon(left) if left >= SMALLEST_DELTA else self.epsilon

    @property
    def multiplier(self) -> int:
        """By how much one unit can move counts."""
        return self.unit.multiplier

    @property
    def unit_name(self) -> str:
        """The unit in words, with what the publisher states of disjoint columns."""
        only = (f", and in only one of {', '.join(group)}" for group in self.disjoint)
        return self.unit.name + "".join(only)

    @property
    def unit_moves(self) -> str:
        """What one unit can change, in words."""
        together = set(self.disjoint)
        alone = [c for c in self.columns if not any(c.name in group for group in together)]
        if len(alone) + len(together) == 1:
            return self.unit.moves
        return f"{self.unit.moves} in each column" + (
            ", disjoint columns taken together" if together else ""
        )

    @property
    def unit_limits(self) -> tuple[str, ...]:
        """What a reader must know of the unit before relying on the promise."""
        return (
            *self.unit.limits,
            *(
                f"The promise covers a {self.unit.kind} that is counted in only one of "
                f"{', '.join(group)}, as the publisher states. One that is counted in several of "
                "them is protected less: their epsilons add up."
                for group in self.disjoint
            ),
        )

    @property
    def promise(self) -> str:
        """The guarantee as a sentence about one unit."""
        outside = "" if self.sums is None else self.sums.outside
        words = promise(self.epsilon, self.unit, self.delta, outside)
        return words if self.private else f"{NOT_PRIVATE} With private draws: {words}"

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
    def composition(self) -> str:
        """How the amounts of the stages add up."""
        if self.ladder is not None:
            return (
                "every level is drawn from the one before, so all together cost what the first does"
            )
        apart = "".join(f"; parallel over {', '.join(group)}" for group in self.disjoint)
        if self.sums is not None:
            return (
                "sequential over count columns, levels and stages, parallel over the sums of each "
                f"level, since a person is in one of them{apart}"
            )
        return f"sequential over count columns and stages, parallel over the rows of each{apart}"

    def to_dict(self) -> dict[str, Any]:
        """The whole document, JSON-ready."""
        epsilon, unit = self.epsilon, self.unit
        document = {
            "format": RECEIPT_FORMAT,
            "version": VERSION,
            "release": self.release,
            "created": self.created,
            "program": {
                "name": "tallyveil",
                "version": self.program,
                "fingerprint": self.fingerprint,
                "page": self.page,
            },
            "private": self.private,
            **amount(epsilon),
            "delta": float(self.delta),
            **({"delta_exact": str(self.delta)} if self.delta else {}),
            "promise": self.promise,
            "stages": [stage.to_dict() for stage in self.stages],
            "unit": unit.kind,
            "neighbours": unit.neighbours,
            "contributions": unit.contributions,
            **({"one_row": True} if unit.one_row else {}),
            **({"separate_rows": {"delta": str(unit.delta)}} if unit.separate else {}),
            "bound": unit.bound,
            "multiplier": self.multiplier,
            "dp_flavor": {
                "name": "Approximate DP" if self.delta else "Pure DP",
                "data_domain": "tables with these rows and columns and any whole counts of at "
                "least 0",
                "unprotected_quantities": "the number of rows and every column published unchanged"
                + (f"; {self.sums.outside}" if self.sums and self.sums.outside else "")
                + ("; which rows had no count" if self.table.missing else ""),
            },
            "privacy_loss": {
                "privacy_unit": self.unit_name,
                "privacy_unit_description": self.unit_moves,
                "privacy_parameters": {"epsilon": float(epsilon), "delta": float(self.delta)},
            },
            "model": {
                "model_type": "Central",
                "release_type": "One-shot",
                "interactivity": "Non-interactive",
            },
            "composition": self.composition,
            "disjoint": [list(group) for group in self.disjoint],
            "randomness": self.randomness,
            "float_protection": FLOAT_PROTECTION,
            "table": self.table.to_dict(),
            "columns": [column.to_dict() for column in self.columns],
            "ladder": None if self.ladder is None else self.ladder.to_dict(),
            "ledger": None if self.ledger is None else self.ledger.to_dict(),
        }
        if self.sums is not None:
            document["hierarchy"] = self.sums.to_dict()
        if self.zeros is not None:
            document["structural_zeros"] = self.zeros.to_dict()
        if self.about != About():
            document["about"] = self.about.to_dict()
        if self.strata is not None:
            document["strata"] = self.strata.to_dict()
        return document if self.private else {**document, "warning": self.warning}

    def to_json(self) -> str:
        """The text of ``receipt.json``."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    @classmethod
    def from_dict(cls, data: Any) -> Receipt:
        """The receipt in a document, or a `PackageError`."""
        if not isinstance(data, Mapping) or data.get("format") != RECEIPT_FORMAT:
            raise PackageError("This is not the receipt of a Tallyveil release.")
        version = data.get("version")
        if type(version) is not int or version != VERSION:
            raise PackageError("The receipt has a version that this program does not read.")
        try:
            return cls._read(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise PackageError("The receipt lacks a part, or a part has the wrong form.") from None

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Receipt:
        ledger, ladder = data["ledger"], data.get("ladder")
        if len(data["columns"]) > MOST_COUNTS:
            raise PackageError(f"The receipt has more than {MOST_COUNTS:,} columns of counts.")
        columns = tuple(ColumnRecord.from_dict(column) for column in data["columns"])
        if len({column.name for column in columns}) != len(columns):
            raise PackageError("The receipt lists a column twice.")
        table = TableRecord.from_dict(data["table"])
        if table.other and not table.counted_by and table.row_order != ROW_ORDERS["categories"]:
            raise PackageError("The receipt names a cell for other categories without any.")
        _require_order(table)
        if not columns:
            raise PackageError("The receipt has no columns.")
        sums = SumsRecord.from_dict(data["hierarchy"]) if "hierarchy" in data else None
        named = data.get("structural_zeros")
        zeros = None if named is None else ZerosRecord.from_dict(named)
        groups = data.get("strata")
        strata = None if groups is None else StrataRecord.from_dict(groups)
        _require_public(table, sums, zeros, strata)
        groups = tuple(read_texts(group) for group in data["disjoint"])
        _require_groups(groups, [column.name for column in columns])
        return cls(
            read_text(data["release"]),
            read_text(data["created"]),
            data["private"] is True,
            _read_unit(data, of_rows=bool(table.counted_by)),
            groups,
            table,
            columns,
            None if ledger is None else LedgerRecord.from_dict(ledger),
            None if ladder is None else LevelRecord.from_dict(ladder),
            read_text(data["program"]["version"]),
            sums,
            zeros,
            About.from_dict(data["about"]) if "about" in data else About(),
            strata,
            _read_fingerprint(data["program"]["fingerprint"]),
            _read_fingerprint(data["program"]["page"]),
        )


def _require_order(table: TableRecord) -> None:
    """Raise a `PackageError` unless rows stand in a known order, counted ones by what is there."""
    known = table.row_order in ROW_ORDERS.values()
    if table.counted_by:
        known = table.row_order == ROW_ORDERS["categories"]
        known = known and table.counted_by == table.published_unchanged
    if not known:
        raise PackageError("The receipt counts rows by other columns than it publishes.")


def _require_public(
    table: TableRecord,
    sums: SumsRecord | None,
    zeros: ZerosRecord | None,
    strata: StrataRecord | None,
) -> None:
    """Raise a `PackageError` if a hierarchy or a structural zero rests on what was drawn."""
    levels = () if sums is None else sums.public
    parts = () if strata is None else strata.columns
    rules = () if zeros is None else zeros.columns
    if not {*levels, *rules, *parts} <= {*table.published_unchanged}:
        raise PackageError("The receipt sorts rows by a column that is not published unchanged.")
    if sums is not None and sums.method.exact_level >= len(sums.names):
        raise PackageError("The receipt calls the rows themselves exact.")


def _read_fingerprint(value: Any) -> str:
    if not re.fullmatch("[0-9a-f]{64}", read_text(value)):
        raise PackageError("The receipt does not say which program made it.")
    return str(value)


def _read_unit(data: Mapping[str, Any], *, of_rows: bool) -> PrivacyUnit:
    """The unit that a receipt states."""
    kind, bound = data["unit"], data["bound"]
    known = data["neighbours"] in NEIGHBOURS and kind in UNITS and bound in BOUNDS
    if not known or (bound == "enforced" and not (of_rows and kind == "person")):
        raise PackageError("The receipt states a unit or a relation that does not exist.")
    often = read_whole(data["contributions"], 1)
    one_row = data.get("one_row", False) is True
    if one_row and (often == 1 or bound != "stated" or data["neighbours"] != "add_remove"):
        raise PackageError("The receipt states a unit or a relation that does not exist.")
    unit = PrivacyUnit(kind, data["neighbours"], often, bound, of_rows, one_row)
    if "separate_rows" not in data:
        return unit
    stated = data["separate_rows"]["delta"]
    none = stated == "0"  # composing would have gained too little
    delta = Fraction(0) if none else read_amount(stated)
    if one_row or not (none or 0 < delta < 1) or not 1 < unit.multiplier <= MOST_SEPARATE:
        raise PackageError("The receipt states a unit or a relation that does not exist.")
    return replace(unit, delta=delta, separate=True)


def _require_groups(groups: tuple[tuple[str, ...], ...], names: list[str]) -> None:
    """Raise a `PackageError` unless every group holds columns, in order, and none stands in two."""
    named = [name for group in groups for name in group]
    ordered = all(list(group) == [name for name in names if name in group] for group in groups)
    firsts = [names.index(group[0]) for group in groups if group and group[0] in names]
    apart = len(set(named)) == len(named) and firsts == sorted(firsts)
    if not (ordered and apart and all(len(group) > 1 for group in groups)):
        raise PackageError("The receipt calls columns disjoint that are not its own.")
