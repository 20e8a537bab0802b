"""`tallyveil privatize --dry-run`: what a release would cost and give, and what others would."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallyveil.cli.common import one_line, out, print_json, text_table
from tallyveil.cli.summary import accuracy_text

if TYPE_CHECKING:
    from tallyveil.release.options import ReleaseOptions
    from tallyveil.release.preview import Preview

__all__ = ["show_plan"]

INDENTED: Any = {"initial_indent": "  ", "subsequent_indent": "  "}
OPENED = (
    "Dry run: no budget was touched. Of the table, names, types and the labels of public columns "
    "were read, and no count."
)
NOT_OPENED = "Dry run: neither the data nor a budget was touched."


def show_plan(
    source: str | None,
    options: ReleaseOptions,
    rows: int | None,
    like: Path | None,
    *,
    as_json: bool,
) -> None:
    """Plan, try the plan on counts that are not confidential, and show both."""
    from tallyveil.documents.stages import amount
    from tallyveil.release.preview import preview_table

    opened = source is not None and rows is None
    preview = preview_table(source if opened else None, options, rows=rows, like=like)
    if as_json:
        listed = [{"name": name, **amount(epsilon)} for name, epsilon in preview.stages]
        delta = preview.delta
        spare = {"delta": float(delta), "delta_exact": str(delta)} if delta else {}
        print_json(
            {
                "dry_run": True,
                **amount(preview.epsilon),
                **spare,
                "stages": listed,
                "columns": list(preview.columns),
                "simulated": list(preview.simulated),
                "methods": list(preview.methods),
            }
        )
        return
    lines = [*textwrap.wrap(OPENED if opened else NOT_OPENED, 88), "", *_cost_lines(preview)]
    for column in preview.columns:
        lines += ["", *_column_lines(column)]
    if preview.simulated:
        lines += ["", *_simulation_lines(preview, like)]
    out.print("\n".join(lines), markup=False)


def _cost_lines(preview: Preview) -> list[str]:
    from tallyveil.budget.entries import shown_rational

    delta, unit = preview.delta, preview.request.unit.kind
    slack = f", delta {shown_rational(delta)}," if delta else ""
    return [
        *textwrap.wrap(preview.promise, 88),
        "",
        f"cost  epsilon {shown_rational(preview.epsilon)}{slack} for one {unit}",
        *(f"      {one_line(name)} {shown_rational(cost)}" for name, cost in preview.stages),
    ]


def _column_lines(column: Mapping[str, Any]) -> list[str]:
    from tallyveil.release.methods.registry import METHODS

    name = one_line(column["name"])
    if column["upper"] == "auto":
        return [f"{name}: the range, and so the accuracy, is known after the release."]
    lines = [f"{name}: {column['method']} ({column['why']}), {_range(column)}"]
    for level in column.get("levels", ()):
        sums = "1 sum" if level["sums"] == 1 else f"{level['sums']:,} sums"
        lines.append(
            f"  {one_line(level['level'])}: {sums}, standard deviation {level['deviation']:.4g}, "
            f"95% within {level['half_width']:.4g}"
        )
    if METHODS[column["method"]].matches:
        lines += textwrap.wrap(_predict(column.get("prediction")), 86, **INDENTED)
        lines.append("  Accuracy before post-processing:")
    return [*lines, textwrap.indent(accuracy_text(column["accuracy"]), "  ")]


def _range(column: Mapping[str, Any]) -> str:
    from tallyveil.request.ranges import NO_UPPER, OPEN_RANGE, SIGNED_RANGE

    if column["upper"] == NO_UPPER:
        return f"counts {SIGNED_RANGE if column['signed'] else OPEN_RANGE}"
    return f"counts 0 to {column['upper']:,}"


def _predict(known: Mapping[str, float] | None) -> str:
    """What can be predicted of a release that keeps the distribution, in words."""
    if known is None:
        return ""
    return (
        f"Predicted, within a factor of two: counts off by {known['error']:g} on average, and "
        f"their distribution by {known['distance']:g}. On the worst table it is off by at least "
        f"{known['bound_of_distance']:g} in any private release."
    )


def _simulation_lines(preview: Preview, like: Path | None) -> list[str]:
    """Before and after, and the methods beside each other."""
    first = preview.simulated[0]
    counts = "invented counts" if like is None else f"the public counts of {like.name}"
    lines = [f"Tried {first['runs']} times on {counts}, {first['rows']:,} rows."]
    for column in preview.simulated:
        name = one_line(column["name"])
        lines += [
            "",
            f"Rows of {name} with each count (± standard deviation of one run):",
            textwrap.indent(_histogram_text(column["histogram"]), "  "),
            "",
            f"Average errors of {name} (± standard error), and of others at the same epsilon:",
            textwrap.indent(_methods_text(preview, column), "  "),
        ]
    for known in preview.methods:
        if "refused" in known:
            lines += textwrap.wrap(f"{known['method']}: {known['refused']}", 86, **INDENTED)
    return lines


def _histogram_text(histogram: Mapping[str, Any]) -> str:
    rows = []
    for low, high, before, after, spread in zip(*histogram.values(), strict=True):
        cell = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        rows.append((cell, f"{before:,}", f"{after:,.0f} ± {_short(spread, 2)}"))
    return text_table(("count", "before", "after"), rows)


def _methods_text(preview: Preview, column: Mapping[str, Any]) -> str:
    groups = [known["name"] for known in column["sums"]]
    (asked,) = (known for known in preview.columns if known["name"] == column["name"])
    words = ("signed " if asked.get("signed") else "") + str(asked["method"])
    found = [(f"{words}, as asked", preview.epsilon, column)]
    for known in preview.methods:
        for other in known.get("columns", ()):
            if other["name"] == column["name"]:
                found.append((known["method"], known["epsilon"], other))
    rows = [
        (
            method,
            f"{float(epsilon):.4g}",
            _error(seen["error"]),
            _error(seen["distance"]),
            *(_error(part["error"]) for part in seen["sums"]),
        )
        for method, epsilon, seen in found
    ]
    header = ("method", "epsilon", "one count", "distribution", *(f"sums: {g}" for g in groups))
    return text_table(header, rows)


def _error(known: Mapping[str, float]) -> str:
    return f"{_short(known['mean'], 3)} ± {_short(known['standard_error'], 2)}"


def _short(value: float, digits: int) -> str:
    """A number with so many digits, none of them behind a power of ten."""
    return f"{value:,.0f}" if value >= 10**digits else f"{value:.{digits}g}"
