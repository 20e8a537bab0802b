"""Tasks of a publisher, each by the library's own functions: read, preview, simulate, release."""

from __future__ import annotations

from collections.abc import Mapping
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
from tallyveil.release.demo import demo_csv
from tallyveil.release.methods.design import MechanismFile
from tallyveil.release.methods.preserve import ROWS_PER_COUNT, count_cells
from tallyveil.release.methods.registry import METHODS
from tallyveil.release.options import Budget, ReleaseOptions, Source
from tallyveil.release.plan import ReleasePlan
from tallyveil.release.preview import (
    Preview,
    compare_release,
    preview_labels,
    preview_release,
    remark_on_cost,
    simulate_release,
)
from tallyveil.release.receipt import Receipt
from tallyveil.release.transaction import publish_table
from tallyveil.release.warnings import list_notes
from tallyveil.request.budget_split import split_budget
from tallyveil.request.ranges import NO_UPPER
from tallyveil.studio.choices import Place, list_choices, make_options, write_command, write_python
from tallyveil.studio.errors import RefusedError, name_options
from tallyveil.studio.workers import Say
from tallyveil.tables.form import Form
from tallyveil.tables.read import read_table

__all__ = [
    "compare_methods",
    "find_epsilon",
    "look_at_table",
    "preview",
    "publish",
    "show_values",
    "simulate",
    "write_demo",
]

WIDEST_EXACT = 2000
"""Up to this bound the accuracy that is promised is worked out from the whole matrix."""

SHOWN_COUNTS = 40
"""The largest count in a picture of a simulated release; few invented ones are larger."""

Choices = Mapping[str, Any]


def preview(
    say: Say, *, choices: Choices, place: Place, rows: int | None, confidence: float
) -> dict[str, Any]:
    """What a release would cost, how accurate it would be, and what to think of it."""
    say("checking the choices")
    options = make_options(choices, place)
    say("planning and proving every column")
    found = _look_ahead(options, place, rows)
    say("working out the accuracy")
    return {
        "cost": str(found.epsilon),
        "choices": [*list_choices(options), *_list_unreleased(options, place)],
        "epsilon": float(found.epsilon),
        "epsilon_exact": shown_rational(found.epsilon),
        "stages": [{"name": name, "epsilon": float(e)} for name, e in found.stages],
        "promise": found.promise,
        "unit": found.request.unit.kind,
        "columns": [_describe_column(column) for column in found.columns],
        "within": _find_within(found, rows, confidence),
        "warnings": _warn(found, rows),
    }


def _list_unreleased(options: ReleaseOptions, place: Place) -> list[tuple[str, str]]:
    """The columns of a table of counts that stay at home, for people to read once more."""
    named = {*options.method.public_columns, *options.by, *options.count, *(options.keep or ())}
    others = [name for name in place.columns if name not in named]
    return [("Not released", ", ".join(others))] if options.count and others else []


def _look_ahead(options: ReleaseOptions, place: Place, rows: int | None) -> Preview:
    """The plan, from the options alone; where public labels decide, they are read, and no count."""
    if options.method.name not in ("hierarchy", "margins"):
        return preview_release(options, rows)
    return preview_labels(Path(place.table), options)


def find_epsilon(
    say: Say,
    *,
    choices: Choices,
    place: Place,
    rows: int | None,
    confidence: float,
    within: float,
) -> dict[str, Any]:
    """The smallest epsilon with which every column lies within that many of the truth."""
    say("planning and proving every column")
    asked = msgspec.structs.replace(make_options(choices, place), epsilon="1", budget=Budget())
    found = preview_release(asked, rows)
    needed = Fraction(0)
    say("searching for the epsilon")
    for column, known in zip(found.request.columns, found.columns, strict=True):
        method = _promising(known["method"])
        query = _query(column.upper)
        wanted = exact_epsilon(epsilon_for(query, within, confidence, mechanism=method))
        if METHODS[known["method"]].keeps_distribution and rows:
            wanted = _whole_for(wanted, rows, count_cells(len(query.inputs) - 1))
        needed = max(needed, wanted)
    return {"epsilon": shown_rational(needed)}


def compare_methods(
    say: Say, *, choices: Choices, place: Place, rows: int | None
) -> list[dict[str, Any]]:
    """Every method at the same epsilon: what it does, what it costs, how far off it is."""
    options = make_options(choices, place)
    found = compare_release(
        Path(place.table), options, rows, say=lambda method: say(f"trying the method {method}")
    )
    for known in found:
        method = str(known["method"])
        known |= {"words": METHODS[method].words, "good_for": GOOD_FOR[method]}
        if "refused" in known:
            known["refused"] = name_options(known["refused"])
    return found


GOOD_FOR = {
    "preserve": "Maps, histograms and models of the whole table: the table keeps its shape.",
    "geometric": "Looking at single counts, and an accuracy that is promised beforehand.",
    "fair": "Treating every true count alike: none is reported truthfully more often.",
    "design": "The least expected error, with the properties you ask for.",
}


def simulate(say: Say, *, choices: Choices, place: Place, rows: int | None) -> list[dict[str, Any]]:
    """Releases of invented counts with the same options: errors, and histograms of single counts.

    The publisher's own counts are not read, and the table is opened for the labels of groups only.
    """
    say("releasing invented counts")
    options = make_options(choices, place)
    found = simulate_release(Path(place.table), options, rows, range(SHOWN_COUNTS + 1))
    for column in found:
        cells = column.pop("histogram")
        single = np.equal(cells["from"], cells["to"])
        column["first"] = int(np.array(cells["from"])[single][0])
        for rows_of in ("before", "after"):
            column[rows_of] = np.array(cells[rows_of])[single].tolist()
        column["beyond"] = not single.all()
    return found


def publish(
    say: Say, *, choices: Choices, place: Place, shown: str, request: str
) -> dict[str, Any]:
    """Release the table, in the library's one transaction, and check the folder."""
    options = make_options(choices, place)
    remarks: list[str] = []

    def remark(plan: ReleasePlan) -> None:
        remarks.extend(list_notes(plan))

    said = _name_files(options)
    words = hide_in_command(write_command(shown, said))
    releases = publish_table(
        Path(place.table),
        options,
        command=f"tallyveil studio: {words}",
        say=say,
        remark=remark,
        request=request,
    )
    say("checking the folder")
    if place.out is None:
        raise RefusedError(400, "A release needs a folder.")
    findings = check_package(place.out)
    return {
        "folder": place.out,
        "files": sorted(path.name for path in Path(place.out).iterdir()),
        "levels": [float(release.receipt.epsilon) for release in releases[1:] and releases],
        "findings": [finding.to_dict() for finding in findings],
        "ok": all(finding.ok for finding in findings),
        "remarks": [name_options(remark) for remark in remarks],
        "report": place.report is not None,
        "command": words,
        "python": hide_passwords(write_python(shown, said)),
        **_describe_receipt(releases[0].receipt),
    }


def _name_files(options: ReleaseOptions) -> ReleaseOptions:
    """The options with files of the private folder as a publisher would call them."""
    changes: dict[str, Any] = {}
    if isinstance(options.categories, Path):
        changes["categories"] = f"categories{options.categories.suffix}"
    if isinstance(options.method, MechanismFile):
        changes["method"] = MechanismFile(path="mechanism.json")
    return msgspec.structs.replace(options, **changes)


def _describe_receipt(receipt: Receipt) -> dict[str, Any]:
    entry = receipt.ledger
    return {
        "release": receipt.release,
        "promise": receipt.promise,
        "epsilon": float(receipt.epsilon),
        "rows": receipt.table.rows,
        "entry": None if entry is None else f"entry {entry.entry} of {entry.dataset!r}",
        "columns": [column.name for column in receipt.columns],
    }


def _describe_column(column: Mapping[str, Any]) -> dict[str, Any]:
    kind = METHODS.get(str(column["method"]))
    matched = kind is not None and kind.matches
    shown = {**column, "matched": matched}
    if "levels" in column:  # sums are planned, and single counts are said less of
        shown |= {"sums": column["levels"], "accuracy": None}
    if column["upper"] == NO_UPPER:
        shown["upper"] = None
    return shown


def _query(upper: int) -> Query:
    if upper == NO_UPPER:
        raise RefusedError(
            422, "An accuracy is promised for a known range: give the largest count."
        )
    if upper > WIDEST_EXACT:
        raise RefusedError(422, f"For ranges beyond {WIDEST_EXACT:,} choose epsilon itself.")
    return Query.count(upper)


def _promising(method: str) -> str:
    """The closed form whose accuracy stands for a method's draw."""
    return "fair" if method == "fair" else "geometric"


def _find_within(found: Preview, rows: int | None, confidence: float) -> float | None:
    """How near every count lies with that confidence, or None where nothing can be promised."""
    distances = []
    for column, known in zip(found.request.columns, found.columns, strict=True):
        if column.upper > WIDEST_EXACT:
            return None
        if METHODS[known["method"]].adds_up:
            return None
        query, epsilon = Query.count(column.upper), column.epsilon
        if METHODS[known["method"]].keeps_distribution and rows:
            size = count_cells(column.upper)
            epsilon = split_budget(epsilon, records=rows, size=size).epsilon2
        distances.append(accuracy(query, epsilon, confidence, _promising(known["method"])))
    return max(distances)


def _whole_for(counts: Fraction, rows: int, size: int) -> Fraction:
    """The smallest whole budget, to six digits, of which the counts get this much or more."""

    def reaches(whole: Fraction) -> bool:
        return split_budget(whole, records=rows, size=size).epsilon2 >= counts

    low, high = counts, 4 * counts
    if reaches(low):
        return low
    while high - low > counts / 10**6:
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    digits = 6 - len(str(int(high)))
    return Fraction(-(-high * 10**digits // 1), 10**digits)


def _warn(found: Preview, rows: int | None) -> list[str]:
    """What the publisher should think about before pressing a button, in plain words."""
    said = [remark_on_cost(found.epsilon, found.delta)]
    for column in found.request.columns:
        if column.upper == NO_UPPER or rows is None:
            continue
        size = column.upper + 1
        if rows < ROWS_PER_COUNT * size:
            said.append(
                f"{column.name}: {rows:,} rows for {size:,} possible counts are few. With fewer "
                f"than {ROWS_PER_COUNT} rows for each, the distribution is hard to keep."
            )
        if size > 1000:
            said.append(
                f"{column.name}: a range up to {column.upper:,} is wide. If a smaller largest "
                "count is publicly known, errors at the ends become smaller."
            )
    return [sentence for sentence in said if sentence]


SHOWN_ROWS, SHOWN_COLUMNS = 12, 200
LONGEST_CELL = 80


def look_at_table(say: Say, *, table: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a table and their types, and how many rows it has; never a value."""
    say("reading the table")
    found = read_table(Path(table), _read_form(form))
    columns = [{"name": name, "type": found.type_of(name)} for name in found.names]
    return {"kind": found.kind, "rows": found.rows, "columns": columns}


def show_values(say: Say, *, table: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The first rows, which are confidential: for the publisher who asked to see them."""
    say("reading the table")
    found = read_table(Path(table), _read_form(form)).slice(0, SHOWN_ROWS)
    names = found.names[:SHOWN_COLUMNS]
    columns = [[text[:LONGEST_CELL] for text in found.labels(name)] for name in names]
    return {"columns": list(names), "rows": [list(row) for row in zip(*columns, strict=True)]}


def write_demo(say: Say, *, table: str) -> None:
    """Write the demo's invented table."""
    Path(table).write_text(demo_csv(), encoding="utf-8", newline="\n")


def _read_form(form: Mapping[str, Any]) -> Form:
    return Source(**form).form
