"""What a release would cost and how accurate it would be, from its public options alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.documents.promise import WEAK_EPSILON, promise
from tallyveil.plans.accuracy import expected_accuracy
from tallyveil.plans.methods import count_cells
from tallyveil.plans.optimality import predict_release
from tallyveil.plans.plan import ColumnPlan, plan_column, plan_search
from tallyveil.plans.prepare import Prepared
from tallyveil.plans.sum_files import SumsRecord, describe_levels
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.request import ColumnRequest, Request, check_options
from tallyveil.request.slack import charge_delta
from tallyveil.request.unit import charge_columns

__all__ = ["Preview", "preview_prepared", "preview_release", "remark_on_cost"]


@dataclass(frozen=True)
class Preview:
    """What is known before the table is opened.

    Attributes
    ----------
    request : Request
        The options, checked.
    stages : tuple of (str, Fraction)
        What one unit is charged for.
    columns : tuple of dict
        JSON-ready: name, method, why, upper and, unless the bound is found privately, accuracy.
    """

    request: Request
    stages: tuple[tuple[str, Fraction], ...]
    columns: tuple[dict[str, Any], ...]

    @property
    def epsilon(self) -> Fraction:
        """The whole cost for one unit."""
        return sum((epsilon for _, epsilon in self.stages), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The whole slack for one unit."""
        asked = self.request
        return charge_delta({c.name: asked.delta for c in asked.columns}, asked.disjoint)

    @property
    def promise(self) -> str:
        """What is promised, in words."""
        return promise(self.epsilon, self.request.unit, delta=self.delta)


def preview_release(options: ReleaseOptions, rows: int | None = None) -> Preview:
    """Plan from the public arguments alone: neither the table nor a ledger is opened."""
    request = check_options(options)
    size = len(request.categories) or rows
    planned: list[tuple[str, str, Fraction]] = []
    known = tuple(_plan(request, column, size, planned) for column in request.columns)
    return Preview(request, charge_columns(planned, request.disjoint), known)


def preview_prepared(prepared: Prepared) -> Preview:
    """What is known once the table was read, of its public columns: how a hierarchy is measured."""
    asked = prepared.request
    known = tuple(
        {"name": plan.name, "method": plan.method_name, "why": plan.why, "upper": plan.upper}
        | {"sums": _describe_sums(asked, plan)}
        for plan in prepared.plans
    )
    return Preview(asked, prepared.stages, known)


def _describe_sums(asked: Request, plan: ColumnPlan) -> list[dict[str, Any]]:
    """How far off the sums of every level are before they are rounded."""
    if asked.hierarchy is None or asked.grouping is None:
        return []
    record = SumsRecord.of(asked.hierarchy, asked.grouping)
    found = describe_levels(asked.hierarchy, asked.grouping, plan.epsilon, plan.upper)
    return [
        {
            "level": name,
            "sums": len(deviations),
            "deviation": float(np.mean(deviations)),
            "half_width": float(np.max(halves)),
        }
        for name, deviations, halves in zip(
            record.names, found.deviations, found.halves, strict=False
        )
    ]


def remark_on_cost(cost: Fraction) -> str | None:
    """A remark for the publisher where a cost protects little, else None."""
    if cost <= WEAK_EPSILON:
        return None
    return f"Epsilon {float(cost):g} protects little: most releases use 1 or less in total."


def _plan(
    request: Request,
    column: ColumnRequest,
    rows: int | None,
    stages: list[tuple[str, str, Fraction]],
) -> dict[str, Any]:
    """What is known of one column; adds its stages to `stages`."""
    if column.upper is None:
        search = plan_search(request, column)
        cost = column.epsilon * request.multiplier
        stages.append((column.name, search.name, search.epsilon))
        stages.append((column.name, f"{column.name}: counts", cost))
        return {"name": column.name, "method": request.method, "upper": "auto"}
    plan = plan_column(request, column, rows)
    stages += [(column.name, stage.name, stage.epsilon) for stage in plan.stages]
    known = {
        "name": column.name,
        "method": plan.method_name,
        "why": plan.why,
        "upper": column.upper,
        "accuracy": expected_accuracy(plan.counts_stage.certified, plan.upper).to_dict(),
    }
    if plan.method_name != "preserve" or rows is None:
        return known
    rate = plan.counts_stage.certified.exact_epsilon
    predicted = predict_release(plan.epsilon, rate, rows, count_cells(plan.upper))
    return {**known, "prediction": predicted}
