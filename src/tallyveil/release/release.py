"""A release: in memory, ready to be written to a folder, and read back from one."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence, Set
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
from tallyveil.release.column import WIDE, PublishedColumn
from tallyveil.release.folder import (
    CHECKSUMS,
    DATAPACKAGE,
    METHODOLOGY,
    RECEIPT,
    FileFacts,
    Staging,
    name_level_folder,
    reserve_folder,
)
from tallyveil.release.methods.base import DISTRIBUTION, Method, require
from tallyveil.release.methods.preserve import BEST_USE
from tallyveil.release.page import methodology
from tallyveil.release.plan import Rows
from tallyveil.release.receipt import ColumnRecord, Receipt
from tallyveil.release.records import StageRecord
from tallyveil.sampling.marks import mark_table
from tallyveil.tables.published import read_released, reopen
from tallyveil.tables.table import Table
from tallyveil.untrusted import parse_json, read_file

MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A released table and everything that goes with it; nothing in it is confidential.

    Attributes
    ----------
    data : Table
        The released table.
    receipt : Receipt
        Guarantee, cost and method; ``receipt.to_dict()`` is the JSON document.
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
        """Return the content of every other file, for data that are `written` already."""
        matrices = [f.mechanism.matrix if f.mechanism else None for f in self.figures]
        return {
            DATAPACKAGE: describe_data(self.data, written, self.receipt, sums=self.sums),
            RECEIPT: self.receipt.to_json().encode(),
            METHODOLOGY: methodology(self.receipt, matrices).encode(),
            **self.proofs,
            **self.sums,
        }

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
        """Show the guarantee, the cost and a bar chart per column, for notebooks."""
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


def describe_data(
    data: Table,
    written: FileFacts,
    receipt: Receipt,
    types: Mapping[str, str] | None = None,
    sums: Mapping[str, bytes] | None = None,
) -> bytes:
    """Describe the data file, whose facts are `written`, and `sums` as a Frictionless package.

    `types` are those stated for other columns, where they are known: a text file does not say
    of itself whether its codes are numbers.
    """
    fields = [
        _describe_field(name, data, receipt, types or {})
        for name in (*data.index_names, *data.names)
    ]
    resource = _describe_file("data", receipt.table.file, data.format, written, fields)
    package = {
        "profile": "data-package",
        "name": f"private-release-{receipt.release}",
        "title": "Privatized counts",
        "description": receipt.promise,
        "created": receipt.created,
        **receipt.about.describe_package(),
        **({"title": receipt.warning} if receipt.warning else {}),
        "resources": [resource, *(_describe_sums(*item) for item in (sums or {}).items())],
    }
    return (json.dumps(package, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _describe_field(
    name: str, data: Table, receipt: Receipt, types: Mapping[str, str]
) -> dict[str, Any]:
    """Describe one column: a released count, draws before the clamp, or a public column."""
    column = next((column for column in receipt.columns if name in column.columns), None)
    if column is None:
        kind = "string" if name in data.index_names else data.type_of(name)
        field: dict[str, Any] = {"name": name, "type": types.get(name, kind)}
        if name in receipt.table.bins:
            begin = ", ".join(f"{limit:.15g}" for limit in receipt.table.ranges[name].limits)
            field["description"] = f"ranges that begin at {begin}; each ends where the next begins"
            field["constraints"] = {"enum": list(receipt.table.list_ranges(name))}
        return field
    if name == column.drawn_column:
        words = "an unbiased estimate of the count, with noise; see METHODOLOGY.html"
        limits: dict[str, Any] = {"required": True}
    else:
        use = BEST_USE if column.method.tradeoff == 0 else "a privatized count"
        words = f"{use}; see METHODOLOGY.html"
        limits = {"required": True, "minimum": 0, "maximum": column.upper}
    return {"name": name, "type": "integer", "description": words, "constraints": limits}


def _describe_sums(file: str, content: bytes) -> dict[str, Any]:
    """Describe the file of one level of a hierarchy."""
    header = next(csv.reader(io.StringIO(content.decode("utf-8"))))
    fields = [{"name": column, "type": "any"} for column in header]
    return _describe_file(file.removesuffix(".csv"), file, "csv", FileFacts.of(content), fields)


def _describe_file(
    name: str, file: str, kind: str, facts: FileFacts, fields: list[dict[str, Any]]
) -> dict[str, Any]:
    """Describe one file, with its columns."""
    is_text = kind == "csv"
    return {
        "profile": "tabular-data-resource" if is_text else "data-resource",
        "name": name,
        "path": file,
        "format": kind,
        "mediatype": MEDIA_TYPES[kind],
        "encoding": "utf-8",
        "bytes": facts.size,
        "hash": f"sha256:{facts.sha256}",
        "schema": {"fields": fields},
        **({"dialect": {"delimiter": ",", "header": True}} if is_text else {}),
    }


def write_releases(
    place: Staging, releases: tuple[Release, ...], home: Rows
) -> tuple[Release, ...]:
    """Write the release folder, or one for each level inside it: the data first.

    What describes the data follows. Releases of large tables refer to what was written.
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
    written = []
    for inner, release in zip(names, releases, strict=True):
        open_again = partial(reopen, folder / inner / release.receipt.table.file)
        written.append(replace(release, data=release.data.reopen(open_again)))
    return tuple(written)


def read_receipt(folder: str | Path) -> Receipt:
    """Read the receipt of the release in `folder`, or raise a `PackageError`."""
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
    """Read JSON from a plain file with a line for every value and no key twice."""
    return parse_json(read_file(path), by_line=True)


def plain_name(name: Any) -> str:
    """Return a name of a file in the folder itself; refuse any other."""
    if not isinstance(name, str) or not name or "/" in name or "\\" in name or name in (".", ".."):
        raise PackageError("A file name in the receipt points outside the folder.")
    return name


def load_stage(folder: str | Path, stage: StageRecord) -> Certified:
    """Load what a stage drew from, and prove it again."""
    return load(Path(folder) / plain_name(stage.file))


def prove_stage(
    root: Path, stage: StageRecord, proved: dict[str, Certified] | None = None
) -> Certified:
    """Prove what a stage drew from: its files are the receipt's and hold at its epsilon.

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
    require_names({path.name for path in root.iterdir()}, expected)


def require_names(present: Set[str], expected: Set[str]) -> None:
    """Raise a `PackageError` that names a file which is missing or should not be there."""
    for name in sorted(expected - present):
        raise PackageError(f"{name} is missing.")
    for name in sorted(present - expected):
        raise PackageError(f"Unexpected file {name}: remove it.")


def describe_again(column: ColumnRecord, method: Method, certified: Sequence[Certified]) -> Figures:
    """Work out the figures of a column from its certified stages and published histogram."""
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
    """Build the probabilities of published counts given true ones, for one column.

    They are the certified mechanism's, unless ranks were matched afterwards: then they are of
    the draw followed by the matching that the receipt states. None where the range is too wide.
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
    """Find the confidence sets of a matched column's counts; None for any other column."""
    if column.matching is None:
        return None
    drawn = geometric(Query.count(column.upper), column.counts_stage.certified_epsilon)
    return matched_sets(mechanism, drawn, column.matching, confidence)


def rebuild_methodology(folder: str | Path) -> str:
    """Write METHODOLOGY.html again; byte for byte the one in the folder."""
    receipt = read_receipt(folder)
    mechanisms = [
        None if column.method.matches or column.moved else published_mechanism(folder, column)
        for column in receipt.columns
    ]
    return methodology(receipt, [m.matrix if m else None for m in mechanisms])


def require_described(table: Table, receipt: Receipt) -> None:
    """Raise a `PackageError` unless a table has the rows and columns that a receipt states."""
    if table.rows != receipt.table.rows or tuple(table.names) != receipt.table.columns:
        raise PackageError("The data are not the table that the receipt describes.")


def export(folder: str | Path, file: str | Path, *, delimiter: str = ",") -> Path:
    """Write the table of a release as .xlsx, .dta, .sav, .tsv, .feather or another .csv.

    Parameters
    ----------
    folder : path
        The release. It must hold the files and the table that its receipt names; whether all of
        it holds, `check_package` says.
    file : path
        The copy, which must not exist yet; its ending says what it is.
    delimiter : str
        What separates the cells of a .csv file, such as ";".

    Returns
    -------
    Path
        The file.
    """
    from tallyveil.tables.export import write_copy

    root, target = Path(folder), Path(file)
    receipt = read_receipt(root)
    require_listed_files(root, receipt)
    counts = [name for column in receipt.columns for name in column.columns]
    data = root / plain_name(receipt.table.file)
    table = read_released(data, rows=receipt.table.rows, counts=counts)
    require_described(table, receipt)
    about = {"about": [*_describe_copy(receipt), [], *_list_intervals(receipt)]}
    write_copy(table, target, about, delimiter)
    return target


def _describe_copy(receipt: Receipt) -> list[list[Any]]:
    """List the second sheet of a workbook: the release and its guarantee."""
    title = receipt.about.describe_package().get("title", "Privatized counts")
    rows = [["title", title], ["promise", receipt.promise], ["release", receipt.release]]
    rows += [["created", receipt.created], ["epsilon", float(receipt.epsilon)]]
    return rows + ([["warning", receipt.warning]] if receipt.warning else [])


def _list_intervals(receipt: Receipt) -> list[list[Any]]:
    """List the interval of a published count, by column and true count."""
    header = ["column", "true count", "published from", "published to", "in at least"]
    rows: list[list[Any]] = [header]
    for column in receipt.columns:
        stated = column.accuracy
        parts = zip(stated.true_count, stated.interval_low, stated.interval_high, strict=True)
        rows += [[column.name, *numbers, stated.confidence] for numbers in parts]
    return rows
