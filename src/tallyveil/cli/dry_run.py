"""`tallyveil privatize --dry-run`: what a release would cost and how accurate it would be."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from tallyveil.cli.common import one_line, out, print_json
from tallyveil.cli.summary import accuracy_text

if TYPE_CHECKING:
    from tallyveil.request.options import ReleaseOptions

__all__ = ["show_plan"]

INDENTED: Any = {"initial_indent": "  ", "subsequent_indent": "  "}


def show_plan(options: ReleaseOptions, rows: int | None, as_json: bool) -> None:
    """Plan from the public arguments alone: neither the table nor a ledger is opened."""
    from tallyveil.budget.entries import shown_rational
    from tallyveil.documents.stages import amount
    from tallyveil.publish.preview import preview_release

    preview = preview_release(options, rows)
    total, delta, stages = preview.epsilon, preview.delta, preview.stages
    if as_json:
        listed = [{"name": name, **amount(epsilon)} for name, epsilon in stages]
        spare = {"delta": float(delta), "delta_exact": str(delta)} if delta else {}
        known = list(preview.columns)
        print_json({"dry_run": True, **amount(total), **spare, "stages": listed, "columns": known})
        return
    lines = ["Dry run: neither the data nor a budget was touched.", ""]
    lines += [*textwrap.wrap(preview.promise, 88), ""]
    slack = f", delta {shown_rational(delta)}," if delta else ""
    unit = preview.request.unit.kind
    lines.append(f"cost  epsilon {shown_rational(total)}{slack} for one {unit}")
    lines += [f"      {one_line(name)} {shown_rational(epsilon)}" for name, epsilon in stages]
    for column in preview.columns:
        lines += ["", *_column_lines(column)]
    out.print("\n".join(lines), markup=False)


def _column_lines(column: dict[str, Any]) -> list[str]:
    from tallyveil.request.kinds import KINDS

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
