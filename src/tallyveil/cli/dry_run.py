"""`tallyveil privatize --dry-run`: what a release would cost and how accurate it would be."""

from __future__ import annotations

import textwrap
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tallyveil.cli.common import one_line, out, print_json
from tallyveil.cli.summary import accuracy_text

if TYPE_CHECKING:
    from tallyveil.publish.options import ReleaseOptions
    from tallyveil.publish.request import ColumnRequest, Request

__all__ = ["show_plan"]

INDENTED: Any = {"initial_indent": "  ", "subsequent_indent": "  "}


def show_plan(options: ReleaseOptions, rows: int | None, as_json: bool) -> None:
    """Plan from the public arguments alone: neither the table nor a ledger is opened."""
    from tallyveil.budget.entries import shown_rational
    from tallyveil.publish.promise import promise
    from tallyveil.publish.request import check_options
    from tallyveil.publish.slack import charge_delta
    from tallyveil.publish.stages import amount
    from tallyveil.publish.unit import charge_columns

    request = check_options(options)
    size = len(request.categories) or rows
    planned: list[tuple[str, str, Fraction]] = []
    known = [_plan(request, column, size, planned) for column in request.columns]
    stages = charge_columns(planned, request.disjoint)
    total = sum((epsilon for _, epsilon in stages), Fraction(0))
    delta = charge_delta({c.name: request.delta for c in request.columns}, request.disjoint)
    if as_json:
        listed = [{"name": name, **amount(epsilon)} for name, epsilon in stages]
        spare = {"delta": float(delta), "delta_exact": str(delta)} if delta else {}
        print_json({"dry_run": True, **amount(total), **spare, "stages": listed, "columns": known})
        return
    lines = ["Dry run: neither the data nor a budget was touched.", ""]
    words = promise(total, request.unit, delta=delta)
    lines += [*textwrap.wrap(words, 88), ""]
    slack = f", delta {shown_rational(delta)}," if delta else ""
    lines.append(f"cost  epsilon {shown_rational(total)}{slack} for one {request.unit.kind}")
    lines += [f"      {one_line(name)} {shown_rational(epsilon)}" for name, epsilon in stages]
    for column in known:
        lines += ["", *_column_lines(column)]
    out.print("\n".join(lines), markup=False)


def _plan(
    request: Request,
    column: ColumnRequest,
    rows: int | None,
    stages: list[tuple[str, str, Fraction]],
) -> dict[str, Any]:
    """What is known of one column; adds its stages to `stages`."""
    from tallyveil.publish.accuracy import expected_accuracy
    from tallyveil.publish.methods import count_cells
    from tallyveil.publish.optimality import predict_release
    from tallyveil.publish.plan import plan_column, plan_search

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


def _column_lines(column: dict[str, Any]) -> list[str]:
    from tallyveil.publish.kinds import KINDS

    if column["upper"] == "auto":
        name = one_line(column["name"])
        return [f"{name}: the range, and so the accuracy, is known after the release."]
    lines = [
        f"{one_line(column['name'])}: {column['method']} ({column['why']}), 0 to {column['upper']}"
    ]
    if KINDS[column["method"]].keeps_distribution:
        lines += textwrap.wrap(_predict(column.get("prediction")), 86, **INDENTED)
        lines.append("  Of the noisy counts, before they are matched to the distribution:")
    return [*lines, textwrap.indent(accuracy_text(column["accuracy"]), "  ")]


def _predict(known: dict[str, float] | None) -> str:
    """What can be predicted of a release that keeps the distribution, in words."""
    if known is None:
        return ""
    return (
        f"Predicted, within a factor of two: counts off by {known['error']:g} on average, and "
        f"their distribution by {known['distance']:g}. No private release of a distribution is "
        f"below {known['bound_of_distance']:g} on every table."
    )
