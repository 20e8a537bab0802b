"""`tallyveil privatize --dry-run`: what a release would cost and how accurate it would be."""

from __future__ import annotations

import textwrap
from fractions import Fraction
from typing import Any

from tallyveil.cli.common import out, print_json
from tallyveil.cli.summary import accuracy_text

__all__ = ["show_plan"]


def show_plan(options: dict[str, Any], rows: int | None, as_json: bool) -> None:
    """Plan from the public arguments alone: neither the table nor a ledger is opened."""
    from tallyveil.budget.ledger import Stage, shown_rational
    from tallyveil.publish.options import make_request
    from tallyveil.publish.plan import plan_column
    from tallyveil.publish.receipt import promise

    request = make_request(**options)
    size = len(request.categories) or rows
    known: list[dict[str, Any]] = []
    stages: list[Stage] = []
    for column in request.columns:
        if column.upper is None:
            search = (request.upper_epsilon or Fraction(0)) * request.multiplier
            stages.append(Stage(f"{column.name}: upper bound", search))
            stages.append(Stage(f"{column.name}: counts", column.epsilon * request.multiplier))
            known.append({"name": column.name, "method": request.method, "upper": "auto"})
            continue
        plan = plan_column(
            request, column.name, upper=column.upper, epsilon=column.epsilon, rows=size
        )
        stages += plan.stages
        accuracy = plan.expected_accuracy().to_dict()
        known.append(
            {"name": column.name, "method": plan.method, "why": plan.why, "upper": column.upper,
             "accuracy": accuracy}
        )  # fmt: skip
    total = sum((stage.epsilon for stage in stages), Fraction(0))
    if as_json:
        listed = [{"name": s.name, "epsilon": float(s.epsilon), "epsilon_exact": str(s.epsilon)}
                  for s in stages]  # fmt: skip
        print_json({"dry_run": True, "epsilon": float(total), "epsilon_exact": str(total),
                    "stages": listed, "columns": known})  # fmt: skip
        return
    lines = ["Dry run: neither the data nor a budget was touched.", ""]
    words = promise(total, request.contributions, request.neighbours)
    lines += [*textwrap.wrap(words, 88), ""]
    lines.append(f"cost  epsilon {shown_rational(total)} for one person")
    lines += [f"      {stage.name} {shown_rational(stage.epsilon)}" for stage in stages]
    for column_ in known:
        lines += ["", *_column_lines(column_)]
    out.print("\n".join(lines), markup=False)


def _column_lines(column: dict[str, Any]) -> list[str]:
    if column["upper"] == "auto":
        return [f"{column['name']}: the range, and so the accuracy, is known after the release."]
    lines = [f"{column['name']}: {column['method']} ({column['why']}), 0 to {column['upper']}"]
    if column["method"] == "preserve":
        lines.append("  Before the distribution is matched, which usually lowers the error:")
    return [*lines, textwrap.indent(accuracy_text(column["accuracy"]), "  ")]
