"""Checks and readings of what somebody else released; every file is hostile here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tallyveil.budget.ledger import Ledger
from tallyveil.certified.files import read_mechanism
from tallyveil.check.findings import judge
from tallyveil.check.ledger import check_ledger
from tallyveil.check.package import NOT_SHOWN, check_package, describe_checked, list_shown
from tallyveil.errors import TallyveilError
from tallyveil.evaluate import audit_mechanism
from tallyveil.mechanism import Mechanism, as_mechanism, is_matrix_file
from tallyveil.proof.verify import read_document, verify
from tallyveil.proof.words import NOT_PROVED, PROVED, describe_question
from tallyveil.reading.interpret import describe_release
from tallyveil.reading.posterior import posterior
from tallyveil.release.folder import RECEIPT
from tallyveil.release.groups import estimate_total
from tallyveil.release.receipt import ColumnRecord
from tallyveil.release.release import published_mechanism, published_sets, read_receipt
from tallyveil.studio.uploads import unpack_zip
from tallyveil.studio.wording import RefusedError, describe_problem
from tallyveil.studio.workers import Say

WIDEST_MAP, MOST_MAPS = 400, 4
"""Up to this many answers a matrix is drawn, and up to this many matrices."""

MOST_GROUPS = 300


def open_release(folder: Path, room: int) -> Path:
    """Return the release in a folder that was dropped: unpacked, and without a folder around it.

    What is unpacked has at most `room` bytes.
    """
    files = [path for path in folder.iterdir() if path.is_file()]
    unpacked = folder / "unpacked"
    if len(files) == 1 and files[0].suffix.lower() == ".zip":
        if not unpacked.is_dir():
            unpack_zip(files[0], unpacked, room)
        folder = unpacked
    inner = list(folder.iterdir())
    return inner[0] if len(inner) == 1 and inner[0].is_dir() else folder


def check(
    say: Say, *, folder: str, room: int, ledger: str | None = None, dataset: str | None = None
) -> dict[str, Any]:
    """Judge a release folder, a zip of one, or a single mechanism's file."""
    say("opening")
    place = open_release(Path(folder), room)
    files = [path for path in place.iterdir() if path.is_file()]
    if not _list_levels(place) and 0 < len(files) <= 2:
        file = next((path for path in files if path.name.startswith("mechanism")), files[0])
        say("proving")
        return _audit_matrix(file) if is_matrix_file(file) else _prove_file(file)
    say("checking the release")
    return _check_release(place, ledger, dataset)


def _list_levels(place: Path) -> list[Path]:
    """List the folders with a receipt: the release itself, or those of its privacy levels."""
    return [place] if (place / RECEIPT).exists() else sorted(place.glob("level-*"))


def _check_release(place: Path, ledger: str | None, dataset: str | None) -> dict[str, Any]:
    findings = check_package(place)
    if ledger is not None and dataset:
        findings.append(check_ledger(place, Ledger(ledger), dataset))
    verdict = judge(findings)
    result: dict[str, Any] = {
        "kind": "release",
        "ok": verdict.ok,
        "verdict": verdict.sentence,
        "findings": [finding.to_dict() for finding in findings],
    }
    if verdict.code == 1:
        return result
    return result | {
        "facts": describe_checked(place),
        "shown": list_shown(findings),
        "not_shown": NOT_SHOWN,
        "matrices": _describe_columns(place),
    }


def _describe_columns(place: Path) -> list[dict[str, Any]]:
    """Describe the matrix of every column that has a small one."""
    matrices = []
    for level in _list_levels(place):
        for column in read_receipt(level).columns:
            small = column.bounded and column.upper < WIDEST_MAP and not column.method.adds_up
            mechanism = published_mechanism(level, column) if small else None
            if mechanism is not None:
                name = column.name if level == place else f"{level.name}: {column.name}"
                matrices.append({**describe_matrix(mechanism), "name": name})
    return matrices[:MOST_MAPS]


def _audit_matrix(file: Path) -> dict[str, Any]:
    """Audit a matrix that is not certified, in floating point."""
    mechanism = as_mechanism(read_mechanism(file))
    audit = audit_mechanism(mechanism)
    infinite = "infinite: a zero next to a positive probability"
    realised = audit.realised_epsilon
    findings = {
        "realised epsilon": f"{realised:.12g}" if math.isfinite(realised) else infinite,
        "worst cell": audit.worst,
    }
    verdict = "This matrix is private, as far as floating point tells."
    return {
        "kind": "matrix",
        "ok": audit.private,
        "verdict": verdict if audit.private else "This matrix is NOT private.",
        "findings": [
            {"check": name, "ok": audit.private, "detail": detail}
            for name, detail in findings.items()
        ],
        "facts": {"how": "Audited in floating point; certify it to prove it."},
        "matrices": [{**describe_matrix(mechanism), "name": file.stem}],
    }


def _prove_file(file: Path) -> dict[str, Any]:
    """Prove a certified mechanism in integers."""
    verdict = verify(file)
    result: dict[str, Any] = {
        "kind": "certificate",
        "ok": verdict.ok,
        "verdict": "Private, proved in integers." if verdict.ok else "NOT proved private.",
        "findings": [{"check": "proof", "ok": verdict.ok, "detail": verdict.reason}],
    }
    if not verdict.ok:
        return result
    facts = describe_question(read_document(file))
    facts |= {"claimed epsilon": str(verdict.epsilon), "promise": PROVED}
    if verdict.achieved_epsilon is not None:
        facts["realised epsilon"] = f"{verdict.achieved_epsilon:.12g}"
    if verdict.worst is not None:
        facts["worst cell"] = str(verdict.worst)
    result |= {"facts": facts, "not_shown": (NOT_PROVED,)}
    try:
        result["matrices"] = [describe_matrix(as_mechanism(read_mechanism(file)))]
    except (TallyveilError, RefusedError) as problem:
        facts["picture"] = describe_problem(problem)
    return result


def describe_matrix(mechanism: Mechanism) -> dict[str, Any]:
    """Describe a matrix for the heatmap, with the cell that tells two neighbours apart best."""
    if max(mechanism.matrix.shape) > WIDEST_MAP:
        raise RefusedError(422, f"Pictures are drawn of up to {WIDEST_MAP} answers.")
    worst = mechanism.worst_pair()
    return {
        "name": mechanism.name,
        "matrix": mechanism.matrix.round(9).tolist(),
        "inputs": [float(x) for x in mechanism.query.inputs],
        "outputs": [float(x) for x in mechanism.query.outputs],
        "worst": {"likelier": worst.likelier, "rarer": worst.rarer, "output": worst.output},
        "realised": worst.epsilon if math.isfinite(worst.epsilon) else None,
        "properties": mechanism.properties(),
    }


def read_release(say: Say, *, folder: str, room: int, level: str = "") -> dict[str, Any]:
    """Describe what a release, or one of its levels, holds, and what can be asked of it."""
    say("opening the release")
    place = open_release(Path(folder), room)
    levels = [] if (place / RECEIPT).is_file() else [path.name for path in _list_levels(place)]
    if levels:
        place /= level if level in levels else levels[0]
    receipt = read_receipt(place)
    return {
        "folder": str(place),
        "levels": levels,
        "promise": receipt.promise,
        "public": list(receipt.table.published_unchanged),
        "columns": [
            {
                "name": column.name,
                "words": column.method.words,
                "upper": column.upper if column.bounded else None,
                "largest": column.histogram.largest,
                "cut": column.bounded,
            }
            for column in receipt.columns
        ],
    }


def read_count(
    say: Say, *, folder: str, column: str, released: float, confidence: float
) -> dict[str, Any]:
    """Say what one released count tells of the true one, all being equally likely before."""
    say("working out which true counts fit")
    record = _find_column(folder, column)
    mechanism = published_mechanism(folder, record) if record.bounded else None
    if mechanism is None:
        raise RefusedError(422, "The range is too wide to interpret single counts.")
    sets = published_sets(record, mechanism, confidence)
    facts = describe_release(mechanism, released, None, confidence, sets=sets, open_end=True)
    belief = posterior(mechanism, released, None)
    return {
        "words": facts["words"],
        "low": facts["confidence_set"][0],
        "high": facts["confidence_set"][1],
        "chances": belief.distribution.tolist(),
    }


def read_totals(
    say: Say, *, folder: str, column: str, by: list[str], confidence: float
) -> dict[str, Any]:
    """Estimate true totals, with intervals, for the whole table or for public groups."""
    say("adding up the groups")
    name = _find_column(folder, column).name
    totals = estimate_total(folder, column=name, by=by or None, confidence=confidence)
    groups = [
        {
            "group": group if isinstance(group, str) else ", ".join(map(str, group)),
            "value": total.value,
            "error": total.standard_error if math.isfinite(total.standard_error) else None,
            "low": total.low,
            "high": total.high,
            "rows": total.groups,
        }
        for group, total in (totals if by else {"all rows": totals}).items()
    ]
    return {"groups": groups[:MOST_GROUPS], "all": len(groups)}


def _find_column(folder: str, name: str) -> ColumnRecord:
    columns = {column.name: column for column in read_receipt(folder).columns}
    if name not in columns:
        raise RefusedError(404, "The release has no such column.")
    return columns[name]
