"""What released numbers mean: of one count, and of sums over public groups."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tallyveil.documents.files import RECEIPT
from tallyveil.publish.reopen import published_mechanism, published_sets, read_receipt
from tallyveil.publish.totals import estimate_total
from tallyveil.reading.interpret import describe_release
from tallyveil.reading.posterior import posterior
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.work_check import open_release
from tallyveil.studio.workers import Say

__all__ = ["read_count", "read_release", "read_totals"]

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
                "method": column.method,
                "words": column.kind.words,
                "upper": column.upper if column.bounded else None,
                "largest": column.histogram.largest,
                "total": column.total,
                "cut": column.bounded and column.above == "top_code",
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
    known = describe_release(
        made, released, None, confidence, sets=sets, open_end=record.above == "top_code"
    )
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
