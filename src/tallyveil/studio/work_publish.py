"""Tasks of a publisher, each by the library's own functions: read, preview, simulate, release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tallyveil.budget.entries import shown_rational
from tallyveil.check.package import check_package
from tallyveil.exact import exact_epsilon
from tallyveil.passwords import hide_in_command, hide_passwords
from tallyveil.query import Query
from tallyveil.reading.precision import accuracy, epsilon_for
from tallyveil.release.column import NO_UPPER
from tallyveil.release.demo import demo_csv
from tallyveil.release.methods.design import MechanismFile
from tallyveil.release.methods.preserve import ROWS_PER_COUNT, count_cells
from tallyveil.release.methods.registry import METHODS
from tallyveil.release.options import Budget, ReleaseOptions
from tallyveil.release.plan import ReleasePlan
from tallyveil.release.preview import (
    Preview,
    compare_release,
    preview_labels,
    preview_release,
    simulate_release,
)
from tallyveil.release.request import ColumnRequest
from tallyveil.release.split import split_budget
from tallyveil.release.transaction import publish_table
from tallyveil.release.warnings import list_warnings, warn_of_cost
from tallyveil.studio.choices import Place, list_choices, make_options, write_command, write_python
from tallyveil.studio.wording import RefusedError, name_options
from tallyveil.studio.workers import Say
from tallyveil.tables.read import read_table
from tallyveil.tables.source import Source
from tallyveil.tables.table import Table

WIDEST_EXACT = 2000
"""Up to this bound the accuracy that is promised is worked out from the whole matrix."""

SHOWN_COUNTS = 40
"""The largest count in a picture of a simulated release; few invented ones are larger."""

SHOWN_ROWS, SHOWN_COLUMNS, LONGEST_CELL = 12, 200, 80
Choices = Mapping[str, Any]


def preview(
    say: Say, *, choices: Choices, place: Place, rows: int, confidence: float
) -> dict[str, Any]:
    """Describe what a release would cost, and how accurate it would be."""
    say("checking the choices")
    options = make_options(choices, place)
    say("planning and proving every column")
    if options.method.adds_up:  # public labels decide; no count is read
        plan = preview_labels(Path(place.table), options)
    else:
        plan = preview_release(options, rows)
    say("working out the accuracy")
    rows = len(plan.request.categories) or rows or 1
    return {
        "cost": str(plan.epsilon),
        "choices": [*list_choices(options), *_list_unreleased(options, place)],
        "epsilon": float(plan.epsilon),
        "epsilon_exact": shown_rational(plan.epsilon),
        "stages": [{"name": name, "epsilon": float(e)} for name, e in plan.stages],
        "promise": plan.promise,
        "unit": plan.request.unit.kind,
        "columns": [_describe_column(column) for column in plan.columns],
        "within": _find_within(plan, rows, confidence),
        "warnings": _list_warnings(plan, rows),
    }


def _list_unreleased(options: ReleaseOptions, place: Place) -> list[tuple[str, str]]:
    """List the columns of a table of counts that are not released."""
    named = {*options.method.public_columns, *options.by, *options.count, *(options.keep or ())}
    others = [name for name in place.columns if name not in named]
    return [("Not released", ", ".join(others))] if options.count and others else []


def find_epsilon(
    say: Say, *, choices: Choices, place: Place, rows: int, confidence: float, within: float
) -> str:
    """Find the smallest epsilon with which every column lies within that many of the truth."""
    say("planning and proving every column")
    options = make_options(choices, place)
    plan = preview_release(msgspec.structs.replace(options, epsilon="1", budget=Budget()), rows)
    needed, rows = Fraction(0), len(plan.request.categories) or rows or 1
    say("searching for the epsilon")
    for column, method, mechanism in _list_mechanisms(plan):
        query = _make_query(column.upper)
        epsilon = exact_epsilon(epsilon_for(query, within, confidence, mechanism=mechanism))
        if METHODS[method].keeps_distribution:
            epsilon = _add_share(epsilon, rows, count_cells(column.upper))
        needed = max(needed, epsilon)
    return shown_rational(needed)


def compare_methods(say: Say, *, choices: Choices, place: Place, rows: int) -> list[dict[str, Any]]:
    """Compare every method at the same epsilon: what it does, costs, and how far off it is."""
    options = make_options(choices, place)
    methods = compare_release(
        Path(place.table), options, rows, lambda method: say(f"trying the method {method}")
    )
    for facts in methods:
        method = METHODS[str(facts["method"])]
        facts |= {"words": method.words, "good_for": method.good_for}
        if "refused" in facts:
            facts["refused"] = name_options(facts["refused"])
    return methods


def simulate(say: Say, *, choices: Choices, place: Place, rows: int) -> list[dict[str, Any]]:
    """Release invented counts with the same options: errors, and histograms of single counts.

    The publisher's own counts are not read, and the table is opened for the labels of groups only.
    """
    say("releasing invented counts")
    options = make_options(choices, place)
    columns = simulate_release(Path(place.table), options, rows, range(SHOWN_COUNTS + 1))
    for column in columns:
        cells = column.pop("histogram")
        single = np.equal(cells["from"], cells["to"])
        column["first"] = int(np.array(cells["from"])[single][0])
        for name in ("before", "after"):
            column[name] = np.array(cells[name])[single].tolist()
        column["beyond"] = not single.all()
    return columns


def publish(
    say: Say, *, choices: Choices, place: Place, shown: str, request: str
) -> dict[str, Any]:
    """Release the table, in the library's one transaction, and check the folder."""
    if place.out is None:
        raise RefusedError(400, "A release needs a folder.")
    options = make_options(choices, place)
    remarks: list[str] = []

    def remark(plan: ReleasePlan) -> None:
        remarks.extend(map(name_options, list_warnings(plan)))

    shareable = _rename_files(options)
    command = hide_in_command(write_command(shown, shareable))
    releases = publish_table(
        Path(place.table),
        options,
        command=f"tallyveil studio: {command}",
        progress=say,
        show_plan=remark,
        request=request,
    )
    say("checking the folder")
    findings = check_package(place.out)
    receipt = releases[0].receipt
    entry = receipt.ledger
    return {
        "folder": place.out,
        "levels": [float(release.receipt.epsilon) for release in releases[1:] and releases],
        "findings": [finding.to_dict() for finding in findings],
        "ok": all(finding.ok for finding in findings),
        "remarks": remarks,
        "report": place.report is not None,
        "command": command,
        "python": hide_passwords(write_python(shown, shareable)),
        "promise": receipt.promise,
        "epsilon": float(receipt.epsilon),
        "entry": None if entry is None else f"entry {entry.entry} of {entry.dataset!r}",
    }


def _rename_files(options: ReleaseOptions) -> ReleaseOptions:
    """Name files of the private folder as the publisher would."""
    changes: dict[str, Any] = {}
    if isinstance(options.categories, Path):
        changes["categories"] = f"categories{options.categories.suffix}"
    if isinstance(options.method, MechanismFile):
        changes["method"] = MechanismFile(path="mechanism.json")
    return msgspec.structs.replace(options, **changes)


def _describe_column(column: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a planned column for the page; of totals, the levels instead of single counts."""
    return {
        "name": column["name"],
        "method": column["method"],
        "why": column["why"],
        "upper": None if column["upper"] == NO_UPPER else column["upper"],
        "matched": METHODS[column["method"]].matches,
        "sums": column.get("levels"),
        "accuracy": None if "levels" in column else column["accuracy"],
    }


def _list_mechanisms(plan: Preview) -> Iterator[tuple[ColumnRequest, str, str]]:
    """List every column with its method, and the closed form with the accuracy of its draw."""
    for column, facts in zip(plan.request.columns, plan.columns, strict=True):
        method = str(facts["method"])
        yield column, method, METHODS[method].closed_form


def _make_query(upper: int) -> Query:
    """Return the query of a range that is narrow enough for a promised accuracy."""
    if upper == NO_UPPER:
        raise RefusedError(422, "Give the largest count: an accuracy needs a known range.")
    if upper > WIDEST_EXACT:
        raise RefusedError(422, f"For ranges beyond {WIDEST_EXACT:,} choose epsilon itself.")
    return Query.count(upper)


def _find_within(plan: Preview, rows: int, confidence: float) -> float | None:
    """Return the distance of every count with that confidence; None if there is no guarantee."""
    distances = []
    for column, method, mechanism in _list_mechanisms(plan):
        if column.upper > WIDEST_EXACT or METHODS[method].adds_up:
            return None
        epsilon = column.epsilon
        if METHODS[method].keeps_distribution:
            size = count_cells(column.upper)
            epsilon = split_budget(epsilon, records=rows, size=size).epsilon2
        distances.append(accuracy(Query.count(column.upper), epsilon, confidence, mechanism))
    return max(distances)


def _add_share(counts: Fraction, rows: int, size: int) -> Fraction:
    """Return the smallest epsilon, to six digits, with which the counts get this much or more."""

    def suffices(epsilon: Fraction) -> bool:
        return split_budget(epsilon, records=rows, size=size).epsilon2 >= counts

    low, high = counts, 4 * counts
    if suffices(low):
        return low
    while high - low > counts / 10**6:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    digits = 6 - len(str(int(high)))
    return Fraction(-(-high * 10**digits // 1), 10**digits)


def _list_warnings(plan: Preview, rows: int) -> list[str]:
    """List what the publisher should consider before the release."""
    warnings = [warn_of_cost(plan.epsilon, plan.delta)]
    for column in plan.request.columns:
        size = column.upper + 1
        if column.upper != NO_UPPER and rows < ROWS_PER_COUNT * size:
            warnings.append(
                f"{column.name}: {rows:,} rows for {size:,} possible counts are few. With fewer "
                f"than {ROWS_PER_COUNT} rows for each, the distribution is hard to keep."
            )
        if 1000 < size <= NO_UPPER:
            warnings.append(
                f"{column.name}: a range up to {column.upper:,} is wide. If a smaller largest "
                "count is publicly known, errors at the ends become smaller."
            )
    return list(filter(None, warnings))


def look_at_table(say: Say, *, table: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a table by its columns, their types and how many rows it has; never by a value."""
    source = _read_table(say, table, form)
    columns = [{"name": name, "type": kind} for name, kind in source.list_types().items()]
    return {"kind": source.kind, "rows": source.rows, "columns": columns}


def show_values(say: Say, *, table: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first rows, which are confidential: for the publisher who asked to see them."""
    source = _read_table(say, table, form).slice(0, SHOWN_ROWS)
    names = source.readable_names[:SHOWN_COLUMNS]
    columns = [[text[:LONGEST_CELL] for text in source.labels(name)] for name in names]
    return {"columns": list(names), "rows": [list(row) for row in zip(*columns, strict=True)]}


def _read_table(say: Say, table: str, form: Mapping[str, Any]) -> Table:
    say("reading the table")
    return read_table(Path(table), Source(**form))


def write_demo(say: Say, *, table: str) -> None:
    """Write the demo's invented table."""
    Path(table).write_text(demo_csv(), encoding="utf-8", newline="\n")
