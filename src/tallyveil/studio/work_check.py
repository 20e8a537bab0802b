"""Checks and readings of what somebody else released; every file is hostile here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tallyveil.budget.ledger import Ledger
from tallyveil.certified.files import read_mechanism
from tallyveil.check.findings import judge
from tallyveil.check.ledger import check_ledger
from tallyveil.check.package import check_package
from tallyveil.check.words import NOT_SHOWN, PROMISED, describe_checked
from tallyveil.errors import TallyveilError
from tallyveil.evaluate import audit_mechanism
from tallyveil.mechanism import Mechanism, as_mechanism, is_matrix_file
from tallyveil.proof.verify import read_document, verify
from tallyveil.proof.words import NOT_PROVED, PROVED, describe_question
from tallyveil.reading.interpret import describe_release
from tallyveil.reading.posterior import posterior
from tallyveil.release.datapackage import RECEIPT
from tallyveil.release.groups import estimate_total
from tallyveil.release.release import published_mechanism, published_sets, read_receipt
from tallyveil.studio.errors import RefusedError, describe_problem
from tallyveil.studio.uploads import unpack_zip
from tallyveil.studio.workers import Say

__all__ = ["check", "describe_matrix", "open_release", "read_count", "read_release", "read_totals"]

WIDEST_MAP = 400
"""Up to this many answers a matrix is drawn."""


def open_release(folder: Path, room: int) -> Path:
    """The release in a folder that was handed over: unpacked, and without a folder around it.

    What is unpacked has at most `room` bytes.
    """
    files = [path for path in folder.iterdir() if path.is_file()]
    if len(files) == 1 and files[0].suffix.lower() == ".zip":
        unpacked = folder / "unpacked"
        if unpacked.is_dir():
            inner = list(unpacked.iterdir())
            return inner[0] if len(inner) == 1 and inner[0].is_dir() else unpacked
        return unpack_zip(files[0], unpacked, room)
    inner = list(folder.iterdir())
    return inner[0] if len(inner) == 1 and inner[0].is_dir() else folder


def check(
    say: Say, *, folder: str, room: int, ledger: str | None = None, dataset: str | None = None
) -> dict[str, Any]:
    """The verdict on a release folder, a zip of one, or a single mechanism's file."""
    say("opening")
    place = open_release(Path(folder), room)
    is_release = (place / RECEIPT).exists() or any(place.glob("level-*"))
    files = [path for path in place.iterdir() if path.is_file()]
    if not is_release and 0 < len(files) <= 2:
        chosen = next((p for p in files if p.name.startswith("mechanism")), files[0])
        say("proving")
        return _check_file(chosen)
    say("checking the release")
    return _check_release(place, ledger, dataset)


def _check_release(place: Path, ledger: str | None, dataset: str | None) -> dict[str, Any]:
    findings = check_package(place)
    if ledger is not None and dataset:
        findings.append(check_ledger(place, Ledger(ledger), dataset))
    verdict = judge(findings)
    found: dict[str, Any] = {
        "kind": "release",
        "ok": verdict.ok,
        "verdict": verdict.sentence,
        "findings": [finding.to_dict() for finding in findings],
    }
    if verdict.code == 1:
        return found
    columns = _read_columns(place)
    return found | {
        "facts": describe_checked(place),
        "shown": PROMISED,
        "not_shown": NOT_SHOWN,
        "matrices": columns,
    }


def _read_columns(place: Path) -> list[dict[str, Any]]:
    """The matrix of every column that has a small one."""
    levels = [place] if (place / RECEIPT).exists() else sorted(place.glob("level-*"))
    found = []
    for level in levels:
        for column in read_receipt(level).columns:
            small = column.bounded and column.upper < WIDEST_MAP and not column.method.adds_up
            made = published_mechanism(level, column) if small else None
            if made is not None:
                name = column.name if level == place else f"{level.name}: {column.name}"
                shown = {"name": name, "properties": made.properties()}
                found.append({**shown, **describe_matrix(made)})
    return found[:4]


def _check_file(file: Path) -> dict[str, Any]:
    """The verdict on one file: proved in integers if it is certified, audited if it is not."""
    if is_matrix_file(file):
        made = as_mechanism(read_mechanism(file))
        audit = audit_mechanism(made)
        realised = audit.realised_epsilon
        return {
            "kind": "matrix",
            "ok": audit.private,
            "verdict": "This matrix is private, as far as floating point tells."
            if audit.private
            else "This matrix is NOT private.",
            "findings": [
                {
                    "check": "realised epsilon",
                    "ok": audit.private,
                    "detail": f"{realised:.12g}"
                    if math.isfinite(realised)
                    else "infinite: a zero stands beside a positive",
                },
                {"check": "worst cell", "ok": audit.private, "detail": audit.worst},
            ],
            "facts": {"how": "Audited in floating point; certify it to prove it."},
            "properties": audit.properties,
            "matrices": [{"name": file.stem, **describe_matrix(made)}],
        }
    verdict = verify(file)
    found: dict[str, Any] = {
        "kind": "certificate",
        "ok": verdict.ok,
        "verdict": "Private, proved in integers." if verdict.ok else "NOT proved private.",
        "findings": [{"check": "proof", "ok": verdict.ok, "detail": verdict.reason}],
    }
    if not verdict.ok:
        return found
    facts = describe_question(read_document(file))
    facts |= {"claimed epsilon": str(verdict.epsilon), "promise": PROVED}
    if verdict.achieved_epsilon is not None:
        facts["realised epsilon"] = f"{verdict.achieved_epsilon:.12g}"
    if verdict.worst is not None:
        facts["worst cell"] = str(verdict.worst)
    found |= {"facts": facts, "not_shown": (NOT_PROVED,)}
    try:
        made = as_mechanism(read_mechanism(file))
        found["properties"] = made.properties()
        found["matrices"] = [{"name": made.name, **describe_matrix(made)}]
    except TallyveilError as problem:
        found["facts"]["picture"] = describe_problem(problem)
    return found


def describe_matrix(made: Mechanism) -> dict[str, Any]:
    """A matrix for the heatmap, with the cell that tells two neighbours apart best."""
    if max(made.matrix.shape) > WIDEST_MAP:
        raise RefusedError(422, f"Pictures are drawn of up to {WIDEST_MAP} answers.")
    worst = made.worst_pair()
    return {
        "matrix": made.matrix.round(9).tolist(),
        "inputs": [float(x) for x in made.query.inputs],
        "outputs": [float(x) for x in made.query.outputs],
        "worst": {"likelier": worst.likelier, "rarer": worst.rarer, "output": worst.output},
        "realised": worst.epsilon if math.isfinite(worst.epsilon) else None,
    }


MOST_GROUPS = 300


def read_release(say: Say, *, folder: str, room: int, level: str = "") -> dict[str, Any]:
    """What a release, or one of its levels, holds: its promise, its columns, what can be asked."""
    say("opening the release")
    place = open_release(Path(folder), room)
    levels = sorted(p.name for p in place.glob("level-*") if (p / RECEIPT).is_file())
    if levels and not (place / RECEIPT).is_file():
        place /= level if level in levels else levels[0]
    receipt = read_receipt(place)
    return {
        "folder": str(place),
        "levels": levels,
        "promise": receipt.promise,
        "rows": receipt.table.rows,
        "public": list(receipt.table.published_unchanged),
        "columns": [
            {
                "name": column.name,
                "method": column.method.name,
                "words": column.method.words,
                "upper": column.upper if column.bounded else None,
                "largest": column.histogram.largest,
                "total": column.total,
                "cut": column.bounded,
            }
            for column in receipt.columns
        ],
    }


def read_count(
    say: Say, *, folder: str, column: str, released: float, confidence: float
) -> dict[str, Any]:
    """What one released count says about the true one, all true counts equally likely before."""
    say("working out which true counts fit")
    place, record = _find(folder, column)
    made = published_mechanism(place, record) if record.bounded else None
    if made is None:
        raise RefusedError(422, "Single counts can be read where the range is not too wide.")
    sets = published_sets(record, made, confidence)
    known = describe_release(made, released, None, confidence, sets=sets, open_end=True)
    belief = posterior(made, released, None)
    return {
        "words": known["words"],
        "low": known["confidence_set"][0],
        "high": known["confidence_set"][1],
        "answers": [int(x) for x in belief.answers],
        "chances": belief.distribution.tolist(),
    }


def read_totals(
    say: Say, *, folder: str, column: str, by: list[str], confidence: float
) -> dict[str, Any]:
    """Sums of the true counts, with intervals, for the whole table or for public groups."""
    say("adding up the groups")
    place, _ = _find(folder, column)
    found = estimate_total(place, column=column, by=by or None, confidence=confidence)
    groups = found if by else {"all rows": found}
    lines = [
        {
            "group": key if isinstance(key, str) else ", ".join(map(str, key)),
            "value": value.value,
            "error": value.standard_error if math.isfinite(value.standard_error) else None,
            "low": value.low,
            "high": value.high,
            "rows": value.groups,
        }
        for key, value in groups.items()
    ]
    return {"groups": lines[:MOST_GROUPS], "all": len(lines)}


def _find(folder: str, column: str) -> tuple[Path, Any]:
    place = Path(folder)
    receipt = read_receipt(place)
    record = next((one for one in receipt.columns if one.name == column), None)
    if record is None:
        raise RefusedError(404, "The release has no such column.")
    return place, record
