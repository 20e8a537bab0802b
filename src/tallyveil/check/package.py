"""Check a release folder offline, trusting nothing that it says about itself.

The receipt's few facts are read, everything that follows from them is worked out again, and
whole documents are compared. What no check can show is that the draws were honest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Mask
from tallyveil.certified.base import Certified
from tallyveil.check.findings import (
    Finding,
    NotComparedError,
    agrees,
    remember,
    try_check,
)
from tallyveil.errors import PackageError, numbered
from tallyveil.fingerprint import fingerprint, fingerprint_page
from tallyveil.release.column import Histogram
from tallyveil.release.folder import (
    CHECKSUMS,
    DATAPACKAGE,
    METHODOLOGY,
    RECEIPT,
    FileFacts,
    list_checksums,
    name_level_folder,
)
from tallyveil.release.groups import read_sums, restate_groups
from tallyveil.release.methods.base import Task, require
from tallyveil.release.methods.sums import FARTHEST
from tallyveil.release.page import methodology
from tallyveil.release.receipt import ColumnRecord, Receipt
from tallyveil.release.records import DrawnRecord, GroupRecord, to_plain
from tallyveil.release.release import (
    describe_again,
    describe_data,
    plain_name,
    prove_stage,
    read_json,
    read_receipt,
    require_listed_files,
    require_names,
)
from tallyveil.tables.counts import LARGEST, read_counts, read_plain_counts
from tallyveil.tables.labels import find_formulas, require_own_names
from tallyveil.tables.published import read_released
from tallyveil.tables.table import Table, read_signed
from tallyveil.untrusted import hash_file, read_file

TOTAL_SLACK = 1e-10
"""Relative slack of a stated total: sums of doubles differ in their last digits."""

FIGURES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "properties": ("{} has other properties", ()),
    "accuracy": ("the stated accuracy of {} is not that of its mechanism", ()),
    "total": ("the stated total of {} is not that of its published counts", (TOTAL_SLACK,)),
    "optimality": ("{} misstates how far it is from the best there is", ()),
    "spread": ("the stated spread of {} is not that of its distribution", (1e-9, 1e-3)),
}
"""Problem of a column with other figures, and their slack."""

UNPROVED = "the certificates do not hold, and without them there is nothing to work out again"

FIELD_TYPES = ("string", "integer", "number", "boolean", "date", "datetime", "time", "any")


Hashed: TypeAlias = Callable[[Path], tuple[int, str]]
"""Function that returns the size of a file and its SHA-256."""

MOST_FILES = 10_000
"""Files a release folder may have."""

NOT_SHOWN = (
    "that the counts were really drawn from the certified mechanisms, once, from the true table",
    "how often a person was counted, in what columns, and that a given upper bound did not "
    "come from the data",
    "names, times, remarks, rows left out for a missing count, and which program it was; what else "
    "was released from the same data",
)

Column = TypeVar("Column", bound=NDArray[Any])


def check_package(folder: str | Path, *, large: bool = False) -> list[Finding]:
    """Check the release in `folder`, or every level of the ladder in it.

    Parameters
    ----------
    folder : str or Path
        A release folder, or the folder of a ladder with a release folder for each level.
    large : bool
        Whether the data may take longer to read than a file of their size should: text, a
        workbook or a table of a statistics program that is packed very tightly.

    Returns
    -------
    list of Finding
        Files and checksums; the receipt, worked out again from its facts; every certificate,
        proved again in integers; the amount of every stage; published counts and figures; the
        data description and the methodology page, built again and compared byte for byte.
    """
    root = Path(folder)
    if not root.is_dir():
        raise PackageError(f"There is no release folder {str(folder)!r}.")
    levels = sorted(
        (path for path in root.iterdir() if path.name.startswith("level-")),
        key=lambda path: (len(path.name.split("-")[1]), path.name),
    )
    if levels and not (root / RECEIPT).exists():
        return _check_levels(root, levels, large)
    return _check_release(root, large)


def _check_release(root: Path, large: bool) -> list[Finding]:
    hashed = cache(hash_file)  # the data are hashed once
    findings = [try_check("files and checksums", lambda: _check_files(root, hashed))]
    try:
        receipt = read_receipt(root)
    except PackageError as problem:
        return [*findings, Finding("receipt", False, str(problem))]
    certified: list[list[Certified]] = []
    matrices: list[Floats | None] = []
    read = remember(partial(_read_data, root, receipt))
    checks: list[tuple[str, Callable[[], str]]] = [
        ("receipt", partial(_check_receipt, root, receipt)),
        ("certificates", partial(_check_certificates, root, receipt, certified)),
        ("budget", partial(_check_budget, receipt)),
        ("published counts", lambda: _check_counts(read(), receipt)),
        ("figures", partial(_check_figures, receipt, certified, matrices)),
        ("page", partial(_check_page, root, receipt, matrices)),
        *receipt.method.list_checks(root, read, receipt),
        ("groups", lambda: _check_groups(root, read(), receipt, certified)),
        ("data description", lambda: _check_description(root, read(), receipt, hashed)),
    ]
    return findings + [try_check(name, check) for name, check in checks]


def _check_files(root: Path, hashed: Hashed) -> str:
    """Check that the files are exactly the listed ones, none changed."""
    present = {path.name for path in islice(root.iterdir(), MOST_FILES + 1)}
    require(len(present) <= MOST_FILES, f"the folder has more than {MOST_FILES:,} files")
    require(CHECKSUMS in present, f"{CHECKSUMS} is missing")
    for name in present:
        regular = stat.S_ISREG(os.lstat(root / name).st_mode)
        require(regular, f"{name} is not a plain file")
    listed: dict[str, str] = {}
    for line in read_file(root / CHECKSUMS).decode("utf-8").splitlines():
        value, _, name = line.partition("  ")
        plain = "/" not in name and "\\" not in name and name not in listed
        require(plain, f"{CHECKSUMS} has a line that is not a plain file name")
        listed[name] = value
    is_one_form = read_file(root / CHECKSUMS) == list_checksums(listed).encode()
    require(is_one_form, f"{CHECKSUMS} has another form")
    require_names(present, {*listed, CHECKSUMS})
    for name, value in listed.items():
        _, digest = hashed(root / name)
        require(digest == value, f"{name} was changed: its checksum does not match")
    return f"{len(listed)} files, none missing, none changed, none added"


def _check_receipt(root: Path, receipt: Receipt) -> str:
    """Check that the receipt follows from its facts, and names all files."""
    require(receipt.private is True, "the release says of itself that it is NOT PRIVATE")
    require(
        read_file(root / RECEIPT) == receipt.to_json().encode(),
        "the receipt contradicts itself, or is not written in its one form",
    )
    require_listed_files(root, receipt)
    return f"release {receipt.release} of {receipt.created}"


def _check_certificates(root: Path, receipt: Receipt, certified: list[list[Certified]]) -> str:
    """Prove that every stage's file is the one the receipt names, at the epsilon it states."""
    proved: list[str] = []
    by_file: dict[str, Certified] = {}
    for column in receipt.columns:
        proved_stages = []
        for stage in column.stages:
            loaded = prove_stage(root, stage, by_file)
            written = read_file(root / stage.file) == loaded.to_json().encode()
            require(written, f"{stage.file} is not written in its one form")
            claim = loaded.certificate
            stated = (stage.digest, stage.mechanism, stage.achieved_epsilon)
            certified_claim = (claim["digest"], loaded.name, claim["achieved_epsilon"])
            require(
                stated == certified_claim, f"the receipt misstates the certificate of {stage.file}"
            )
            proved_stages.append(loaded)
            proved.append(f"{stage.name} {stage.certified_epsilon}")
        column.method.check_proofs(column, proved_stages, receipt)
        certified.append(proved_stages)
    return "proved again in integers: " + ", ".join(proved)


def _check_budget(receipt: Receipt) -> str:
    """Check that every stage of the method is there, and costs what its certificate says."""
    for column in receipt.columns:
        method, separate = column.method, receipt.unit.separate
        alone = method.name == "geometric" and len(column.stages) == 1 and not receipt.disjoint
        require(alone or not separate, f"{column.name} is not drawn row by row")
        sizes = () if receipt.sums is None else receipt.sums.measured or receipt.sums.sizes
        rows = receipt.protected_rows
        task = Task(column.name, column.upper, column.epsilon, rows, sizes=sizes)
        expected = [(f"{column.name}: {kind}", epsilon) for kind, epsilon in method.stages(task)]
        stated = [
            (s.name, s.certified_epsilon if separate else s.epsilon / receipt.unit.multiplier)
            for s in column.stages
        ]
        require(stated == expected, f"the stages of {column.name} are not those of its method")
        delta = any(stage.delta for stage in column.stages)
        fits = not delta or (method.with_delta and receipt.unit.multiplier == 1)
        require(fits, f"{column.name} has a delta that its method or unit cannot have")
        for stage in column.stages:
            cost = method.charge(receipt.unit, stage.certified_epsilon)
            require(stage.epsilon == cost, f"{stage.name} costs another amount than it says")
    slack = f" and delta {receipt.delta}" if receipt.delta else ""
    return f"stages and columns add up to epsilon {receipt.epsilon}{slack}"


def _read_data(root: Path, receipt: Receipt) -> Table:
    facts, counts = receipt.table, [name for column in receipt.columns for name in column.columns]
    return read_released(root / plain_name(facts.file), rows=facts.rows, counts=counts)


def _check_counts(table: Table, receipt: Receipt) -> str:
    """Compare rows, columns, ranges, zeros, order and distributions with the receipt."""
    facts = receipt.table
    require(table.rows == facts.rows, "the data have another number of rows than stated")
    # a file keeps the labels of a pandas index as its first columns
    require(tuple(table.names) == facts.columns, "the data have other columns than stated")
    require_own_names(facts.columns)
    drawn = [name for column in receipt.columns for name in column.columns]
    rest = tuple(name for name in facts.columns if name not in drawn)
    require(facts.published_unchanged == rest, "the columns published unchanged are others")
    require(len(set(drawn)) == len(drawn), "a column is listed twice")
    free = None if receipt.zeros is None else receipt.zeros.find_free(table)
    protected = table.rows if free is None else int(free.sum())
    stated = receipt.protected_rows == protected
    require(stated, "the structural zeros of the data are not the stated ones")
    for column in receipt.columns:
        counts, fixed = _part(_read_column(table, column), free)
        require(not fixed.any(), f"a structural zero of {column.name} is not 0")
        if column.unbiased is not None:
            draws, fixed = _part(read_signed(table, column.drawn_column), free)
            same = column.is_made_from(draws, counts.astype(np.int64)) and not fixed.any()
            require(same, f"{column.drawn_column} does not hold the draws behind {column.name}")
            far = FARTHEST * (1 + column.drawn_variance**0.5)
            most = np.inf if column.signed else column.upper
            inside = -far <= draws.min() and draws.max() <= most + far
            require(inside, f"{column.drawn_column} has a draw that no noise gives")
        same = Histogram.count(counts) == column.histogram
        require(same, f"the distribution of {column.name} is not the one in the receipt")
    for name in facts.bins:
        fits = set(table.codes(name).labels) <= set(facts.list_ranges(name))
        require(fits, f"{name} has labels that are no ranges of the receipt")
    if facts.other:
        there = any(facts.other in table.codes(name).labels for name in rest)
        require(there, "no row has the label of the cell for other categories")
    order = _check_order(table, receipt)
    zeros = "" if free is None else f", {table.rows - protected:,} structural zeros are 0"
    runs = "; a spreadsheet would run cells of this file as formulas"
    warning = runs if find_formulas(table, rest) else ""
    held = f"every count inside its range, distributions as stated{zeros}{order}"
    return f"{numbered(table.rows, 'row')}, {held}{warning}"


def _read_column(table: Table, column: ColumnRecord) -> NDArray[Any]:
    """Read the counts in a narrow type, in batches; refuse any outside its range.

    Signed counts are clamped at 0.
    """
    if column.signed:
        return read_signed(table, column.name).clip(0, column.upper)
    read, plain = read_plain_counts(table, column.name, column.upper)
    require(not read.above, f"a count of {column.name} lies outside 0..{column.upper}")
    require(plain, f"a count of {column.name} is not written in its one form")
    return read.values


def _part(values: Column, free: Mask | None) -> tuple[Column, Column]:
    """Split rows into free ones and structural zeros; all and none without the latter."""
    free_rows, fixed = (slice(None), slice(0)) if free is None else (free, ~free)
    return cast("Column", values[free_rows]), cast("Column", values[fixed])


def _check_order(table: Table, receipt: Receipt) -> str:
    """Check that nested columns keep their order in every row.

    Returns the nested columns, as text.
    """
    words = ""
    names = [column.name for column in receipt.columns]
    for column in receipt.columns:
        if column.at_most:
            is_nested = column.at_most in names and "counts.nested" in column.method.takes
            require(is_nested, f"{column.name} is nested in a column or method that it cannot be")
            small, large = (
                read_counts(table, name, LARGEST).values for name in (column.name, column.at_most)
            )
            holds = bool((small <= large).all())
            require(holds, f"a row has more of {column.name} than of {column.at_most}")
            words += f", no row with more {column.name} than {column.at_most}"
    return words


def _check_figures(
    receipt: Receipt, certified: list[list[Certified]], matrices: list[Floats | None]
) -> str:
    """Work out stated figures again; keep the `matrices` that the page shows."""
    require(len(certified) == len(receipt.columns), UNPROVED)
    for column, drawn_from in zip(receipt.columns, certified, strict=True):
        method = column.method
        fits = (column.matching is not None) == (method.matches or bool(column.at_most))
        require(fits, f"the matching of {column.name} is not that of its published counts")
        figures = describe_again(column, method, drawn_from)
        matrices.append(None if figures.mechanism is None else figures.mechanism.matrix)
        for name, expected in figures.state().items():
            problem, slack = FIGURES[name]
            same = agrees(to_plain(getattr(column, name)), to_plain(expected), *slack)
            require(same, problem.format(column.name))
        drawn = DrawnRecord.of(column.name, drawn_from[-1], column.signed)
        fits = column.unbiased == (drawn if method.unbiased or column.signed else None)
        require(fits, f"{column.name} misstates its unbiased column")
    return "every figure as worked out again"


def _check_page(root: Path, receipt: Receipt, matrices: list[Floats | None]) -> str:
    """Build the methodology page again, if this program wrote it."""
    page = read_file(root / METHODOLOGY)
    if receipt.program.page != fingerprint_page():
        raise NotComparedError(f"{METHODOLOGY} was written by another version of Tallyveil")
    require(len(matrices) == len(receipt.columns), "its figures could not be worked out")
    same = page == methodology(receipt, matrices).encode()
    require(same, f"{METHODOLOGY} is not the page of this receipt")
    return f"{METHODOLOGY} as built again"


def _check_groups(
    root: Path, table: Table, receipt: Receipt, certified: list[list[Certified]]
) -> str:
    """Check that every stated total of a group follows from published counts."""
    require(len(certified) == len(receipt.columns), UNPROVED)
    drawn_from = [stages[-1] for stages in certified]
    restated = restate_groups(table, receipt, drawn_from, read_sums(root, receipt))
    for column, groups in zip(receipt.columns, restated, strict=True):
        public = groups is not None
        require(public, f"the groups of {column.name} are not those of public columns")
        stated, expected = column.groups, groups or ()
        same = len(stated) == len(expected) and all(map(_same_groups, stated, expected))
        require(same, f"the totals of groups of {column.name} are not those of the data")
    kinds = sum(len(column.groups) for column in receipt.columns)
    return f"{numbered(kinds, 'table')} of totals as worked out again" if kinds else "none stated"


def _same_groups(stated: GroupRecord, expected: GroupRecord) -> bool:
    """Return whether two records agree; doubles differ between processors in their last digits."""
    same = structs.replace(stated, estimate=expected.estimate) == expected
    return same and agrees(stated.estimate, expected.estimate, TOTAL_SLACK)


def _check_description(root: Path, table: Table, receipt: Receipt, hashed: Hashed) -> str:
    written = FileFacts(*hashed(root / plain_name(receipt.table.file)))
    stated = read_json(root / DATAPACKAGE)["resources"][0]
    types = {field["name"]: field["type"] for field in stated["schema"]["fields"]}
    require(set(types.values()) <= set(FIELD_TYPES), f"{DATAPACKAGE} has an unknown type")
    files = () if receipt.sums is None else receipt.sums.files
    sums = {name: read_file(root / name) for name in files}
    expected = describe_data(table, written, receipt, types, sums)
    same = read_file(root / DATAPACKAGE) == expected
    require(same, f"{DATAPACKAGE} does not describe the data that is here")
    return f"{numbered(len(receipt.table.columns), 'column')} as described"


def _check_levels(root: Path, levels: list[Path], large: bool) -> list[Finding]:
    """Check every level by itself, and then that they belong together."""
    findings = [
        replace(finding, name=f"{level.name}: {finding.name}")
        for level in levels
        for finding in _check_release(level, large)
    ]
    return [*findings, try_check("levels", lambda: _check_together(root, levels))]


def _check_together(root: Path, levels: list[Path]) -> str:
    require_names({path.name for path in root.iterdir()}, {path.name for path in levels})
    receipts = [read_receipt(level) for level in levels]
    first = receipts[0]
    numbers = [receipt.level for receipt in receipts]
    require(numbers == list(range(1, len(levels) + 1)), "the levels are not 1, 2, 3, ...")
    alike = ("release", "created", "program", "unit", "disjoint", "ledger", "table", "about")
    shared = [
        [getattr(receipt, name) for name in alike]
        + [(column.name, column.upper, column.why, column.method) for column in receipt.columns]
        for receipt in receipts
    ]
    require(all(part == shared[0] for part in shared), "the levels are not of one release")
    names = [name_level_folder(level, e) for level, e in enumerate(first.levels, start=1)]
    require([level.name for level in levels] == names[: len(levels)], "a folder was renamed")
    pairs = list(zip(levels, receipts, strict=True))
    for column in range(len(first.columns)):
        files = [level / receipt.columns[column].counts_stage.file for level, receipt in pairs]
        tables = [read_json(file)["ladder"]["weights"] for file in files]  # proved level by level
        nested = all(more[: len(less)] == less for less, more in pairwise(tables))
        require(nested, "the levels were not drawn one from the other")
    return f"{len(levels)} levels of release {first.release}; all together cost what the first does"


def list_shown(findings: Sequence[Finding]) -> tuple[str, str]:
    """Say what findings show where nothing that was compared fails."""
    compared = all(finding.compared for finding in findings)
    documents = "document" if compared else f"document but {METHODOLOGY}, which was not compared,"
    return (
        "The files are those of the receipt; each draw was certified private at the epsilon "
        "stated.",
        f"The amounts add up, and every {documents} follows from the receipt's facts.",
    )


def describe_checked(folder: Path) -> dict[str, str]:
    """Describe the query, the privacy unit and the program of a folder that checks."""
    first = folder if (folder / RECEIPT).exists() else min(folder.glob("level-1-*"))
    receipt = read_receipt(first)
    ranges = (f"{column.name} {column.range_words}" for column in receipt.columns)
    program = receipt.program
    same = "this very program" if program.fingerprint == fingerprint() else "not this program"
    return {
        "query": f"counts in {numbered(receipt.table.rows, 'row')}: {', '.join(ranges)}",
        "neighbours": receipt.unit_moves,
        "unit": receipt.unit_name,
        "promise": receipt.promise,
        "program": f"tallyveil {program.version}, fingerprint {program.fingerprint}: {same}",
    }
