"""`tallyveil privatize --dry-run`: what a release would cost and give, and what others would."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tallyveil as tv
from tallyveil.cli.common import answer, one_line, text_table
from tallyveil.errors import numbered

if TYPE_CHECKING:
    from tallyveil.release.preview import Preview

WIDTH = 88
INDENTED: Any = {"width": WIDTH - 2, "initial_indent": "  ", "subsequent_indent": "  "}
OPENED = (
    "Dry run: no budget was touched. Of the table, names, types and the labels of public columns "
    "were read, and no count."
)
NOT_OPENED = "Dry run: neither the data nor a budget was touched."


def show_plan(source: str | None, options: tv.ReleaseOptions, *, as_json: bool) -> None:
    """Plan, try the plan on counts that are not confidential, and show both."""
    from tallyveil.release.preview import preview_table

    rows = options.dry_run.rows
    like = None if options.dry_run.like is None else Path(options.dry_run.like)
    is_opened = source is not None and rows is None
    preview = preview_table(source if is_opened else None, options, rows=rows, like=like)
    delta = preview.delta
    data = {
        "dry_run": True,
        **_amount(preview.epsilon),
        **({"delta": float(delta), "delta_exact": str(delta)} if delta else {}),
        "stages": [{"name": name, **_amount(epsilon)} for name, epsilon in preview.stages],
        "columns": list(preview.columns),
        "simulated": list(preview.simulated),
        "methods": list(preview.methods),
    }
    lines = textwrap.wrap(OPENED if is_opened else NOT_OPENED, WIDTH)
    lines += ["", *_cost_lines(preview)]
    for column in preview.columns:
        lines += ["", *_column_lines(column)]
    if preview.simulated:
        lines += ["", *_simulation_lines(preview, like)]
    answer(data, "\n".join(lines), as_json=as_json)


def _cost_lines(preview: Preview) -> list[str]:
    from tallyveil.budget.entries import shown_rational

    delta, unit = preview.delta, preview.request.unit.kind
    slack = f", delta {shown_rational(delta)}," if delta else ""
    return [
        *textwrap.wrap(preview.promise, WIDTH),
        "",
        f"cost  epsilon {shown_rational(preview.epsilon)}{slack} for one {unit}",
        *(f"      {one_line(name)} {shown_rational(cost)}" for name, cost in preview.stages),
    ]


def _column_lines(column: Mapping[str, Any]) -> list[str]:
    from tallyveil.release.column import NO_UPPER
    from tallyveil.release.methods.registry import METHODS
    from tallyveil.release.receipt import OPEN_RANGE, SIGNED_RANGE

    counts = f"0 to {column['upper']:,}"
    if column["upper"] == NO_UPPER:
        counts = SIGNED_RANGE if column["signed"] else OPEN_RANGE
    name = one_line(column["name"])
    lines = [f"{name}: {column['method']} ({column['why']}), counts {counts}"]
    for level in column.get("levels", ()):
        lines.append(
            f"  {one_line(level['level'])}: {numbered(level['sums'], 'total')}, standard "
            f"deviation {level['deviation']:.4g}, 95% within {level['half_width']:.4g}"
        )
    if METHODS[column["method"]].matches:
        lines += textwrap.wrap(_describe_prediction(column.get("prediction")), **INDENTED)
        lines.append("  Accuracy before post-processing:")
    return [*lines, textwrap.indent(accuracy_table(column["accuracy"]), "  ")]


def _describe_prediction(prediction: Mapping[str, float] | None) -> str:
    """Say what can be predicted of a release that keeps the distribution."""
    if prediction is None:
        return ""
    return (
        f"Predicted, within a factor of two: counts off by {prediction['error']:g} on average, and "
        f"their distribution by {prediction['distance']:g}. On the worst table it is off by at "
        f"least {prediction['bound_of_distance']:g} in any private release."
    )


def accuracy_table(accuracy: Mapping[str, Any]) -> str:
    """Write bias, error and interval for a handful of true counts."""
    true = accuracy["true_count"]
    shown = {0, 1, 2, 5, 10, true[len(true) // 2], *true[-2:]}
    names = ("true_count", "bias", "rmse", "interval_low", "interval_high")
    rows = [
        (str(count), f"{bias:+.2f}", f"{error:.2f}", f"{low} to {high}")
        for count, bias, error, low, high in zip(*(accuracy[n] for n in names), strict=True)
        if count in shown
    ]
    return text_table(
        ("true count", "bias", "rmse", f"{accuracy['confidence']:.0%} interval"), rows
    )


def _simulation_lines(preview: Preview, like: Path | None) -> list[str]:
    """Show counts before and after, and the methods next to each other."""
    first = preview.simulated[0]
    counts = "invented counts" if like is None else f"the public counts of {like.name}"
    lines = [
        f"Tried {numbered(first['runs'], 'time')} on {counts}, {numbered(first['rows'], 'row')}."
    ]
    for column in preview.simulated:
        name = one_line(column["name"])
        lines += [
            "",
            f"Rows of {name} with each count (± standard deviation of one run):",
            textwrap.indent(_histogram_table(column["histogram"]), "  "),
            "",
            f"Average errors of {name} (± standard error), and of others at the same epsilon:",
            textwrap.indent(_method_table(preview, column), "  "),
        ]
    for method in preview.methods:
        if "refused" in method:
            lines += textwrap.wrap(f"{method['method']}: {method['refused']}", **INDENTED)
    return lines


def _histogram_table(histogram: Mapping[str, Any]) -> str:
    rows = []
    for low, high, before, after, spread in zip(*histogram.values(), strict=True):
        cell = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        rows.append((cell, f"{before:,}", f"{after:,.0f} ± {_shorten(spread, 2)}"))
    return text_table(("count", "before", "after"), rows)


def _method_table(preview: Preview, column: Mapping[str, Any]) -> str:
    (planned,) = (plan for plan in preview.columns if plan["name"] == column["name"])
    signed = "signed " if planned.get("signed") else ""
    tried = [(f"{signed}{planned['method']}, as planned", preview.epsilon, column)]
    for method in preview.methods:
        for other in method.get("columns", ()):
            if other["name"] == column["name"]:
                tried.append((method["method"], method["epsilon"], other))
    rows = []
    for name, epsilon, figures in tried:
        errors = [figures["error"], figures["distance"], *(p["error"] for p in figures["sums"])]
        rows.append((name, f"{float(epsilon):.4g}", *map(_describe_error, errors)))
    groups = (f"sums: {part['name']}" for part in column["sums"])
    return text_table(("method", "epsilon", "one count", "distribution", *groups), rows)


def _describe_error(error: Mapping[str, float]) -> str:
    return f"{_shorten(error['mean'], 3)} ± {_shorten(error['standard_error'], 2)}"


def _shorten(value: float, digits: int) -> str:
    """Write a number with this many digits, without a power of ten."""
    return f"{value:,.0f}" if value >= 10**digits else f"{value:.{digits}g}"


def _amount(epsilon: Fraction) -> dict[str, Any]:
    """Return an exact amount, and the number that people read."""
    return {"epsilon": float(epsilon), "epsilon_exact": str(epsilon)}
