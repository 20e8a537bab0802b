"""The receipt of a release: what was promised, spent and done, from public things only.

Field names follow the OpenDP deployments registry where it has them. Nothing here may depend
on a confidential value: a test publishes two different tables whose released data agree and
compares the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil._version import __version__
from tallyveil.mechanism import Mechanism
from tallyveil.release.ledger import Entry, Stage, shown_rational
from tallyveil.table.request import Request

__all__ = ["CONFIDENCE", "RECEIPT_FORMAT", "Accuracy", "make_receipt", "promise"]

RECEIPT_FORMAT = "tallyveil-receipt"
CONFIDENCE = 0.95
NOT_PRIVATE = "NOT PRIVATE: drawn from a test seed. Do not publish."


@dataclass(frozen=True)
class Accuracy:
    """How far released counts lie from true ones, for every true count 0..upper.

    `exact` says whether the figures are those of the certified mechanism itself, or of the
    whole procedure with the released distribution standing in for the true one.
    """

    bias: NDArray[np.float64]
    rmse: NDArray[np.float64]
    interval: NDArray[np.float64]
    exact: bool

    @classmethod
    def of(cls, mechanism: Mechanism, exact: bool = True) -> Accuracy:
        """The figures of one mechanism."""
        return cls(mechanism.bias(), mechanism.rmse(), mechanism.interval(CONFIDENCE), exact)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, rounded to six decimals."""
        return {
            "confidence": CONFIDENCE,
            "exact": self.exact,
            "bias": np.round(self.bias, 6).tolist(),
            "rmse": np.round(self.rmse, 6).tolist(),
            "interval_low": self.interval[:, 0].astype(int).tolist(),
            "interval_high": self.interval[:, 1].astype(int).tolist(),
        }


def amount(value: Fraction) -> dict[str, Any]:
    """An exact amount with the number people read beside it."""
    return {"epsilon": float(value), "epsilon_exact": str(value)}


def stages_dict(stages: tuple[Stage, ...]) -> list[dict[str, Any]]:
    """Stages as they stand in a receipt."""
    return [{"name": stage.name, **amount(stage.epsilon)} for stage in stages]


def promise(epsilon: Fraction, request: Request) -> str:
    """The guarantee as a sentence about a person.

    The factor is e^epsilon, rounded up so that the sentence never promises too much.
    """
    factor = np.exp(float(epsilon))
    shown = f"{np.ceil(factor * 100) / 100:g}" if factor < 1e6 else "a very large number"
    who = "one person" if request.contributions == 1 else (
        f"one person, who may be counted in up to {request.contributions} cells")  # fmt: skip
    what = "was counted or not" if request.neighbours == "add_remove" else "were counted elsewhere"
    return (
        f"Whether {who} {what}, every possible outcome of this release stays as likely as "
        f"before, up to a factor of {shown} (epsilon {shown_rational(epsilon)}): whatever "
        "anyone concludes about that person from it, they could have concluded nearly as well "
        "without them."
    )


def make_receipt(
    *,
    release: str,
    created: str,
    request: Request,
    epsilon: Fraction,
    columns: list[dict[str, Any]],
    stages: tuple[Stage, ...],
    table: dict[str, Any],
    randomness: str,
    private: bool,
    ledger: Entry | None,
) -> dict[str, Any]:
    """The whole receipt, JSON-ready."""
    unit = "one person" if not request.microdata else "one row of the confidential table"
    neighbours = {
        "add_remove": "adding or removing one person moves one count by one",
        "change_one": "changing one person's record moves two counts by one",
    }[request.neighbours]
    if request.contributions > 1:
        neighbours += f", and one person may do so in up to {request.contributions} cells"
    receipt: dict[str, Any] = {
        "format": RECEIPT_FORMAT,
        "version": 1,
        "release": release,
        "created": created,
        "program": {"name": "tallyveil", "version": __version__},
        "private": private,
        **amount(epsilon),
        "delta": 0.0,
        "promise": promise(epsilon, request),
        "stages": stages_dict(stages),
        "neighbours": request.neighbours,
        "contributions": request.contributions,
        "multiplier": request.multiplier,
        "dp_flavor": {
            "name": "Pure DP",
            "data_domain": "tables with these rows and columns and any whole counts of at least 0",
            "unprotected_quantities": "the number of rows and every column published unchanged",
        },
        "privacy_loss": {
            "privacy_unit": unit,
            "privacy_unit_description": neighbours,
            "privacy_parameters": {"epsilon": float(epsilon), "delta": 0.0},
        },
        "model": {
            "model_type": "Central",
            "release_type": "One-shot",
            "interactivity": "Non-interactive",
        },
        "composition": "sequential over count columns and stages, parallel over the rows of each",
        "randomness": randomness,
        "float_protection": "privacy is proved and drawn in integers; no float decides it",
        "table": table,
        "columns": columns,
        "ledger": None
        if ledger is None
        else {"dataset": ledger.dataset, "entry": ledger.sequence, "digest": ledger.digest},
    }
    if not private:
        receipt["warning"] = NOT_PRIVATE
    return receipt
