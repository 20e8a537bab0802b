"""The receipt of a release: what was promised, spent and done, from public things only.

Field names follow the OpenDP deployments registry where it has them. Nothing here may depend
on a confidential value: a test publishes two different tables whose released data agree and
compares the bytes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil._version import __version__
from tallyveil.budget.ledger import Entry, Stage, shown_rational
from tallyveil.publish.options import Request
from tallyveil.publish.plan import ColumnPlan, Drawn
from tallyveil.tables.base import Table

__all__ = ["RECEIPT_FORMAT", "column_record", "make_receipt", "promise", "table_record"]

RECEIPT_FORMAT = "tallyveil-receipt"
NOT_PRIVATE = "NOT PRIVATE: drawn from a test seed. Do not publish."


def amount(value: Fraction) -> dict[str, Any]:
    """An exact amount with the number people read beside it."""
    return {"epsilon": float(value), "epsilon_exact": str(value)}


def stages_dict(stages: tuple[Stage, ...]) -> list[dict[str, Any]]:
    """Stages as they stand in a receipt."""
    return [{"name": stage.name, **amount(stage.epsilon)} for stage in stages]


def promise(epsilon: Fraction, contributions: int, neighbours: str) -> str:
    """The guarantee as a sentence about a person.

    The factor is e^epsilon, rounded up so that the sentence never promises too much.
    """
    factor = np.exp(float(epsilon))
    cents = f"{np.ceil(factor * 100) / 100:.2f}".rstrip("0").rstrip(".")
    shown = cents if factor < 1e6 else "a very large number"
    who = "one person" if contributions == 1 else (
        f"one person, who may be counted in up to {contributions} cells")  # fmt: skip
    what = "was counted or not" if neighbours == "add_remove" else "were counted elsewhere"
    return (
        f"Whether {who} {what}, every possible outcome of this release stays as likely as "
        f"before, up to a factor of {shown} (epsilon {shown_rational(epsilon)}): whatever "
        "anyone concludes about that person from it, they could have concluded nearly as well "
        "without them."
    )


def column_record(
    plan: ColumnPlan, drawn: Drawn, stages: tuple[Stage, ...], number: str, above: str
) -> dict[str, Any]:
    """What the receipt says of one column; `number` tells its files from those of others."""
    held = {} if plan.mechanism is None else plan.mechanism.properties()
    certificate = plan.certified.certificate
    return {
        "name": plan.name,
        "upper": plan.upper,
        "upper_source": plan.upper_source,
        "above": above,
        "method": plan.method,
        "why": plan.why,
        **amount(plan.epsilon),
        "stages": stages_dict(stages),
        "mechanism": {
            "file": f"mechanism{number}.json",
            "sha256": plan.mechanism_hash,
            "name": plan.certified.name,
            "epsilon": str(plan.certified.exact_epsilon),
        },
        "certificate": {
            "file": f"certificate{number}.json",
            "digest": certificate["digest"],
            "achieved_epsilon": certificate["achieved_epsilon"],
        },
        "loss": plan.loss,
        "prior": "uniform" if plan.method == "design" else "not used",
        "properties": sorted(name for name, holds in held.items() if holds),
        "solver": plan.solver,
        "accuracy": drawn.accuracy.to_dict(),
        "distribution": {
            "histogram": drawn.histogram.tolist(),
            "spread": None if drawn.spread is None else np.round(2 * drawn.spread, 3).tolist(),
        },
        "post_processing": list(plan.steps),
    }


def table_record(data: Table, request: Request, row_order: str) -> dict[str, Any]:
    """What the receipt says of the released table as a whole."""
    columns = [*data.index_names, *data.names]
    counted = {column.name for column in request.columns}
    return {
        "rows": data.rows,
        "kind": data.kind,
        "file": f"data.{data.extension}",
        "delimiter": getattr(data, "delimiter", ","),
        "encoding": getattr(data, "encoding", "utf-8"),
        "columns": columns,
        "published_unchanged": [name for name in columns if name not in counted],
        "row_order": row_order,
        "counted_by": list(request.by) if request.microdata else [],
        "where": [str(condition) for condition in request.where],
    }


def make_receipt(
    *,
    release: str,
    created: str,
    request: Request,
    columns: list[dict[str, Any]],
    table: dict[str, Any],
    private: bool,
    ledger: Entry | None,
) -> dict[str, Any]:
    """The whole receipt, JSON-ready."""
    stages = [stage for column in columns for stage in column["stages"]]
    epsilon = sum((Fraction(stage["epsilon_exact"]) for stage in stages), Fraction(0))
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
        "promise": promise(epsilon, request.contributions, request.neighbours),
        "stages": stages,
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
        "randomness": "AES-256 in counter mode, keyed by the operating system"
        if private
        else "a test seed",
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
