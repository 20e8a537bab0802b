"""A release: in memory, ready to be written to a folder, and read back from one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import Any

from tallyveil.arrays import Floats
from tallyveil.certified.base import Certified
from tallyveil.certified.load import load
from tallyveil.errors import PackageError
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.query import Query
from tallyveil.reading.posterior import ConfidenceSets
from tallyveil.release.accuracy import (
    WIDEST_PICTURE,
    Figures,
    Outcome,
    matched_mechanism,
    matched_sets,
    matrix_of,
)
from tallyveil.release.column import PublishedColumn
from tallyveil.release.datapackage import DATAPACKAGE, METHODOLOGY, RECEIPT, FileFacts, build_files
from tallyveil.release.folder import CHECKSUMS, Staging, name_level_folder, reserve_folder
from tallyveil.release.methods.base import DISTRIBUTION, Method, require
from tallyveil.release.page import methodology
from tallyveil.release.plan import Rows
from tallyveil.release.ranges import WIDE
from tallyveil.release.receipt import ColumnRecord, Receipt
from tallyveil.release.records import StageRecord
from tallyveil.sampling.marks import mark_table
from tallyveil.tables.published import reopen
from tallyveil.tables.table import Table
from tallyveil.untrusted import parse_json, read_file


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A released table and everything that goes with it; nothing in it is confidential.

    Attributes
    ----------
    data : Table
        The released table.
    receipt : Receipt
        What was promised, spent and done; ``receipt.to_dict()`` is the JSON document.
    published : dict of str to PublishedColumn
        The counts of every count column and their histogram.
    figures : tuple of Figures
        Accuracy, spread and matrix of every count column, in the receipt's order.
    proofs : dict of str to bytes
        The mechanism and certificate files by name.
    sums : dict of str to bytes
        With a hierarchy, the files of its levels by name: the published sums, their estimates
        before rounding, standard deviations and intervals.
    """

    data: Table
    receipt: Receipt
    published: dict[str, PublishedColumn]
    figures: tuple[Figures, ...]
    proofs: dict[str, bytes]
    sums: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def table(self) -> Any:
        """The released table, of the kind that came in (a path gives a pyarrow table)."""
        table = self.data.native()
        return table if self.receipt.private else mark_table(table)

    @property
    def distribution(self) -> Any:
        """The share of rows with each count, shape (upper + 1,); by name for several columns.

        In a wide range, and without an upper bound, up to the largest published count.
        """
        shares: dict[str, Floats] = {
            column.name: column.histogram.spread_out(
                (column.histogram.largest if column.upper > WIDE else column.upper) + 1
            )
            / sum(column.histogram.rows)
            for column in self.receipt.columns
        }
        return shares if len(shares) > 1 else next(iter(shares.values()))

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The content of every file of the release folder but the checksums."""
        content = self.data.to_bytes()
        return {self.receipt.table.file: content, **self.describe(FileFacts.of(content))}

    def describe(self, written: FileFacts) -> dict[str, bytes]:
        """The content of every other file, for data that are `written` already."""
        matrices = [f.mechanism.matrix if f.mechanism else None for f in self.figures]
        return build_files(self.data, written, self.receipt, matrices, self.proofs, sums=self.sums)

    def save(self, folder: str | Path) -> Path:
        """Write the release folder, complete or not at all; `folder` must not exist yet."""
        files = self.files
        room = sum(map(len, files.values())) + 4096 * len(files)
        with reserve_folder(folder, room) as place:
            return place.commit({"": files})

    def __getstate__(self) -> dict[str, Any]:
        """Copy the published table itself, whether or not its file is a long one."""
        return {**self.__dict__, "data": self.data.hold()}

    def __repr__(self) -> str:
        names = ", ".join(self.published)
        mark = "" if self.receipt.private else ", NOT PRIVATE"
        epsilon = float(self.receipt.epsilon)
        return f"<Release of {names}: {self.data.rows:,} rows, epsilon={epsilon:g}{mark}>"

    def _repr_html_(self) -> str:
        """The promise, the cost and a bar chart per column, for notebooks."""
        from tallyveil.release import svg

        receipt = self.receipt
        parts = [f"<p><b>{escape(repr(self)[1:-1])}</b></p>"]
        if receipt.warning:
            parts.append(f"<p><b>{escape(receipt.warning)}</b></p>")
        parts.append(f"<p>{escape(receipt.promise)}</p>")
        for column in receipt.columns:
            parts.append(
                f"<p><b>{escape(column.name)}</b>: {escape(column.method.name)}, counts "
                f"{column.range_words}. Whiskers: twice the standard error of the protection.</p>"
            )
            parts.append(svg.bar_chart(column.histogram, column.spread, column.name))
        return f'<div style="max-width:44rem">{"".join(parts)}</div>'


def write_releases(
    place: Staging, releases: tuple[Release, ...], home: Rows
) -> tuple[Release, ...]:
    """Write the release folder, or a folder for each level inside it: the data first, batch by
    batch, then what describes them. Releases of large tables refer to what was written.
    """
    names = [""]
    if releases[0].receipt.level:
        epsilons = [release.receipt.columns[0].epsilon for release in releases]
        names = [name_level_folder(level, e) for level, e in enumerate(epsilons, start=1)]
    folders = {}
    for inner, release in zip(names, releases, strict=True):
        facts = home.write(place, inner, release.receipt.table.file, release.data)
        folders[inner] = release.describe(facts)
    folder = place.commit(folders)
    return tuple(
        replace(release, data=_reopen(release, folder / inner))
        for inner, release in zip(names, releases, strict=True)
    )


def _reopen(release: Release, folder: Path) -> Table:
    """The table after it was written: the published file, where that is not in memory."""
    return release.data.reopen(partial(reopen, folder / release.receipt.table.file))


def read_receipt(folder: str | Path) -> Receipt:
    """The receipt of the release in `folder`, or a `PackageError`."""
    path = Path(folder) / RECEIPT
    try:
        content = read_file(path)
    except OSError:
        levels = sorted(Path(folder).glob(f"level-*/{RECEIPT}"))
        hint = f" It holds {len(levels)} releases, one for each privacy level: name one of them."
        missing = f"{str(folder)!r} holds no readable {RECEIPT}."
        raise PackageError(missing + (hint if levels else "")) from None
    return Receipt.read(content)


def read_json(path: Path) -> Any:
    """The JSON in a plain file, which has a line for every value and names no key twice."""
    return parse_json(read_file(path), by_line=True)


def plain_name(name: Any) -> str:
    """`name` if it names a file in the folder itself, else a `PackageError`."""
    if not isinstance(name, str) or not name or "/" in name or "\\" in name or name in (".", ".."):
        raise PackageError("A file name in the receipt points outside the folder.")
    return name


def load_stage(folder: str | Path, stage: StageRecord) -> Certified:
    """What a stage drew from, proved again on the way in."""
    return load(Path(folder) / plain_name(stage.file))


def prove_stage(
    root: Path, stage: StageRecord, proved: dict[str, Certified] | None = None
) -> Certified:
    """What a stage drew from, if its files are those of the receipt and hold at its epsilon.

    `proved` keeps what was proved, by file: stages that share a file are proved once.
    """
    digest = hashlib.sha256(read_file(root / plain_name(stage.file))).hexdigest()
    require(digest == stage.sha256, f"{stage.file} is not the file the receipt names")
    proved = {} if proved is None else proved
    certified = proved.get(stage.file) or proved.setdefault(stage.file, load_stage(root, stage))
    beside = read_file(root / plain_name(stage.certificate_file))
    same = beside == certified.certificate_json().encode()
    require(same, f"{stage.certificate_file} is not the certificate of {stage.file}")
    require(certified.exact_delta == stage.delta, f"{stage.file} has another delta")
    holds = certified.exact_epsilon == stage.certified_epsilon
    require(holds, f"{stage.file} is certified at another epsilon than the receipt says")
    return certified


def require_listed_files(root: Path, receipt: Receipt) -> None:
    """Raise a `PackageError` unless the folder holds exactly the files of its receipt."""
    expected = {receipt.table.file, DATAPACKAGE, RECEIPT, METHODOLOGY, CHECKSUMS}
    for stage in receipt.stages:
        expected |= {stage.file, stage.certificate_file}
    expected |= set() if receipt.sums is None else set(receipt.sums.files)
    odd = sorted({path.name for path in root.iterdir()} ^ expected)
    require(not odd, f"{', '.join(odd[:3])}: in the folder or in the receipt, but not in both")


def describe_again(column: ColumnRecord, method: Method, certified: Sequence[Certified]) -> Figures:
    """The figures of a column from what its stages drew from and its published histogram."""
    pairs = zip(column.stages, certified, strict=True)
    distribution = next((noise for stage, noise in pairs if stage.kind == DISTRIBUTION), None)
    outcome = Outcome(
        certified[-1],
        distribution,
        column.histogram,
        column.matching,
        column.upper,
        column.epsilon,
        moved=column.moved,
        signed=column.signed,
    )
    return method.describe(outcome)


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
    if column.method.matches:
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
    mechanisms = [
        None if column.method.matches or column.moved else published_mechanism(folder, column)
        for column in receipt.columns
    ]
    return methodology(receipt, [m.matrix if m else None for m in mechanisms])
