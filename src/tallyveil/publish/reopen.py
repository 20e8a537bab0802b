"""A release folder read back: its receipt, its certified objects, its pages made again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallyveil.certified.base import Certified
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.load import load
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedNoise
from tallyveil.documents.files import DATAPACKAGE, METHODOLOGY, RECEIPT
from tallyveil.documents.page.methodology import methodology
from tallyveil.documents.receipt import Receipt
from tallyveil.documents.records import ColumnRecord
from tallyveil.documents.stages import StageRecord
from tallyveil.errors import PackageError
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.additive import count_moved_by
from tallyveil.mechanisms.geometric import geometric
from tallyveil.plans.accuracy import (
    WIDEST_PICTURE,
    Figures,
    describe_published,
    matched_mechanism,
    matched_sets,
    matrix_of,
)
from tallyveil.publish.folder import CHECKSUMS
from tallyveil.query import Query
from tallyveil.reading.posterior import ConfidenceSets
from tallyveil.request.kinds import DISTRIBUTION
from tallyveil.request.ranges import OPEN_METHODS, WIDE
from tallyveil.untrusted import parse_json, read_file

__all__ = [
    "describe_again",
    "load_stage",
    "plain_name",
    "prove_stage",
    "published_mechanism",
    "published_sets",
    "read_json",
    "read_receipt",
    "rebuild_methodology",
    "require",
    "require_listed_files",
    "require_range",
]


def read_receipt(folder: str | Path) -> Receipt:
    """The receipt of the release in `folder`, or a `PackageError`."""
    path = Path(folder) / RECEIPT
    try:
        data = read_json(path)
    except (OSError, ValueError, RecursionError):
        levels = sorted(Path(folder).glob(f"level-*/{RECEIPT}"))
        hint = f" It holds {len(levels)} releases, one for each privacy level: name one of them."
        missing = f"{str(folder)!r} holds no readable {RECEIPT}."
        raise PackageError(missing + (hint if levels else "")) from None
    return Receipt.from_dict(data)


def read_json(path: Path) -> Any:
    """The JSON in a plain file, which has a line for every value and names no key twice."""
    return parse_json(read_file(path), by_line=True)


def plain_name(name: Any) -> str:
    """`name` if it names a file in the folder itself, else a `PackageError`."""
    if not isinstance(name, str) or not name or "/" in name or "\\" in name or name in (".", ".."):
        raise PackageError("A file name in the receipt points outside the folder.")
    return name


def require(holds: bool, problem: str) -> None:
    """Raise a `PackageError` unless something holds."""
    if not holds:
        raise PackageError(problem)


def load_stage(folder: str | Path, stage: StageRecord) -> Certified:
    """What a stage drew from, proved again on the way in."""
    return load(Path(folder) / plain_name(stage.file))


def prove_stage(
    root: Path, stage: StageRecord, proved: dict[str, Certified] | None = None
) -> Certified:
    """What a stage drew from, if its files are those of the receipt and hold at its epsilon.

    `proved` keeps what was proved, by file: stages that share a file are proved once.
    """
    found = hashlib.sha256(read_file(root / plain_name(stage.file))).hexdigest()
    require(found == stage.sha256, f"{stage.file} is not the file the receipt names")
    proved = {} if proved is None else proved
    made = proved.get(stage.file) or proved.setdefault(stage.file, load_stage(root, stage))
    beside = read_file(root / plain_name(stage.certificate_file))
    same = beside == made.certificate_json().encode()
    require(same, f"{stage.certificate_file} is not the certificate of {stage.file}")
    require(made.exact_delta == stage.delta, f"{stage.file} has another delta")
    holds = made.exact_epsilon == stage.certified_epsilon
    require(holds, f"{stage.file} is certified at another epsilon than the receipt says")
    return made


def require_listed_files(root: Path, receipt: Receipt) -> None:
    """Raise a `PackageError` unless the folder holds exactly the files of its receipt."""
    expected = {receipt.table.file, DATAPACKAGE, RECEIPT, METHODOLOGY, CHECKSUMS}
    for stage in receipt.stages:
        expected |= {stage.file, stage.certificate_file}
    expected |= set() if receipt.sums is None else set(receipt.sums.files)
    odd = sorted({path.name for path in root.iterdir()} ^ expected)
    require(not odd, f"{', '.join(odd[:3])}: in the folder or in the receipt, but not in both")


def require_range(column: ColumnRecord, drawn_from: Certified, moves: int = 1) -> None:
    """Raise a `PackageError` unless counts were drawn for the range that the column states.

    Noise that is made for all `moves` of one unit together must be certified for them.
    """
    name = column.name
    if column.upper > WIDE:
        fits = isinstance(drawn_from, CertifiedNoise) and column.method in OPEN_METHODS
        require(fits, f"{name} was not drawn with noise on all whole numbers")
        return
    fits = isinstance(drawn_from, (CertifiedAnswers, Ladder))
    require(fits, f"{name} was not drawn as counts")
    together = column.kind.together
    asked = count_moved_by(column.upper, moves) if together else Query.count(column.upper)
    same = getattr(drawn_from, "query", None) == asked
    require(same, f"the mechanism of {name} is not for counts from 0 to {column.upper}")


def describe_again(column: ColumnRecord, certified: Sequence[Certified]) -> Figures:
    """The figures of a column from what its stages drew from and its published histogram."""
    pairs = zip(column.stages, certified, strict=True)
    distribution = next((found for stage, found in pairs if stage.kind == DISTRIBUTION), None)
    return describe_published(
        column.kind,
        certified[-1],
        distribution,
        column.histogram,
        column.matching,
        upper=column.upper,
        epsilon=column.epsilon,
        moved=column.moved,
        signed=column.signed,
    )


def published_mechanism(folder: str | Path, column: ColumnRecord) -> Mechanism | None:
    """Probabilities of published counts given true ones, for one column of a receipt.

    Those of the certified mechanism itself, unless ranks were matched afterwards: then those
    of the draw followed by the matching that the receipt states. None where the range is too wide.
    """
    if column.upper + 1 > WIDEST_PICTURE:
        return None
    stage = column.counts_stage
    if column.matching is not None:
        return matched_mechanism(column.upper, stage.certified_epsilon, column.matching)
    if column.kind.matches:
        raise PackageError(f"The receipt does not state the matching of {column.name}.")
    return matrix_of(load_stage(folder, stage))


def published_sets(
    column: ColumnRecord, mechanism: Mechanism, confidence: float
) -> ConfidenceSets | None:
    """The confidence sets of a matched column's published counts; None for any other column."""
    if column.matching is None:
        return None
    drawn = geometric(Query.count(column.upper), column.counts_stage.certified_epsilon)
    return matched_sets(mechanism, drawn, column.matching, confidence)


def rebuild_methodology(folder: str | Path) -> str:
    """The text of METHODOLOGY.html; byte for byte the one in the folder."""
    receipt = read_receipt(folder)
    made = [
        None if column.kind.matches or column.moved else published_mechanism(folder, column)
        for column in receipt.columns
    ]
    return methodology(receipt, [None if found is None else found.matrix for found in made])
