"""Check a release folder offline, trusting nothing that it says about itself.

The receipt's few facts are read, everything that follows from them is worked out again, and
whole documents are compared. What no check can show is that the draws were honest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from msgspec import structs

from tallyveil.arrays import Floats
from tallyveil.certified.base import Certified
from tallyveil.check.counts import check_counts
from tallyveil.check.files import Hashed, check_files
from tallyveil.check.findings import (
    Finding,
    NotComparedError,
    is_close,
    is_same_total,
    remember,
    try_check,
)
from tallyveil.errors import PackageError
from tallyveil.fingerprint import fingerprint_page
from tallyveil.release.datapackage import (
    DATAPACKAGE,
    METHODOLOGY,
    RECEIPT,
    FileFacts,
    describe_data,
)
from tallyveil.release.folder import name_level_folder
from tallyveil.release.groups import read_sums, restate_groups
from tallyveil.release.methods.base import Task, require
from tallyveil.release.page import methodology
from tallyveil.release.receipt import Receipt
from tallyveil.release.records import DrawnRecord, GroupRecord, to_plain
from tallyveil.release.release import (
    describe_again,
    plain_name,
    prove_stage,
    read_json,
    read_receipt,
    require_listed_files,
)
from tallyveil.tables.published import read_released
from tallyveil.tables.table import Table
from tallyveil.untrusted import hash_file, read_file

UNPROVED = "the certificates do not hold, and without them there is nothing to work out again"

FIELD_TYPES = ("string", "integer", "number", "boolean", "date", "datetime", "time", "any")


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
    findings = [try_check("files and checksums", lambda: check_files(root, hashed))]
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
        ("published counts", lambda: check_counts(read(), receipt)),
        ("figures", partial(_check_figures, receipt, certified, matrices)),
        ("page", partial(_check_page, root, receipt, matrices)),
        *receipt.method.list_checks(root, read, receipt),
        ("groups", lambda: _check_groups(root, read(), receipt, certified)),
        ("data description", lambda: _check_description(root, read(), receipt, hashed)),
    ]
    return findings + [try_check(name, check) for name, check in checks]


def _check_receipt(root: Path, receipt: Receipt) -> str:
    """The receipt is the one document that follows from its facts, and names all the files."""
    require(receipt.private is True, "the release says of itself that it is NOT PRIVATE")
    require(
        read_file(root / RECEIPT) == receipt.to_json().encode(),
        "the receipt contradicts itself, or is not written in its one form",
    )
    require_listed_files(root, receipt)
    return f"release {receipt.release} of {receipt.created}"


def _check_certificates(root: Path, receipt: Receipt, certified: list[list[Certified]]) -> str:
    """Every stage's file is the one the receipt names, and holds at the epsilon it states."""
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
    """Every stage that the method needs is there, and costs what its certificate says."""
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


def _check_figures(
    receipt: Receipt, certified: list[list[Certified]], matrices: list[Floats | None]
) -> str:
    """Stated figures, worked out again; leaves the `matrices` that the page shows."""
    require(len(certified) == len(receipt.columns), UNPROVED)
    for column, drawn_from in zip(receipt.columns, certified, strict=True):
        method = column.method
        fits = (column.matching is not None) == (method.matches or bool(column.at_most))
        require(fits, f"the matching of {column.name} is not that of its published counts")
        figures = describe_again(column, method, drawn_from)
        matrices.append(None if figures.mechanism is None else figures.mechanism.matrix)
        require(figures.properties == column.properties, f"{column.name} has other properties")
        stated, expected_accuracy = to_plain(column.accuracy), to_plain(figures.accuracy.record())
        fits = all(is_close(stated[key], expected_accuracy[key]) for key in expected_accuracy)
        require(fits, f"the stated accuracy of {column.name} is not that of its mechanism")
        drawn = DrawnRecord.of(column.name, drawn_from[-1], column.signed)
        fits = column.unbiased == (drawn if method.unbiased or column.signed else None)
        require(fits, f"{column.name} misstates its unbiased column")
        sums, total = to_plain(column.total) or {}, to_plain(figures.state_total()) or {}
        fits = sums.keys() == total.keys() and all(is_same_total(sums[k], total[k]) for k in total)
        require(fits, f"the stated total of {column.name} is not that of its published counts")
        bounds, least = to_plain(column.optimality) or {}, to_plain(figures.optimality) or {}
        fits = bounds.keys() == least.keys() and all(is_close(bounds[k], least[k]) for k in least)
        require(fits, f"{column.name} misstates how far it is from the best there is")
        spread = figures.spread
        same = (column.spread is None) == (spread is None)
        if spread is not None and column.spread is not None:
            same = len(spread) == len(column.spread) and bool(
                np.allclose(column.spread, 2 * spread, rtol=1e-9, atol=1e-3)
            )
        require(same, f"the stated spread of {column.name} is not that of its distribution")
    return "every figure as worked out again"


def _check_page(root: Path, receipt: Receipt, matrices: list[Floats | None]) -> str:
    """The methodology page, built again by the program that wrote it."""
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
    """Every total of a group that is stated follows from published counts."""
    require(len(certified) == len(receipt.columns), UNPROVED)
    drawn_from = [stages[-1] for stages in certified]
    restated = restate_groups(table, receipt, drawn_from, read_sums(root, receipt))
    for column, groups in zip(receipt.columns, restated, strict=True):
        public = groups is not None
        require(public, f"the groups of {column.name} are not those of public columns")
        stated, expected = column.groups, groups or ()
        same = len(stated) == len(expected) and all(map(_agree, stated, expected))
        require(same, f"the totals of groups of {column.name} are not those of the data")
    kinds = sum(len(column.groups) for column in receipt.columns)
    return f"totals of {kinds} {'kind' if kinds == 1 else 'kinds'} of groups as worked out again"


def _agree(stated: GroupRecord, expected: GroupRecord) -> bool:
    """Return whether two records agree; doubles differ between processors in their last digits."""
    same = structs.replace(stated, estimate=expected.estimate) == expected
    return same and is_same_total(stated.estimate, expected.estimate)


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
    return f"{len(receipt.table.columns)} columns as described"


def _check_levels(root: Path, levels: list[Path], large: bool) -> list[Finding]:
    """Every level by itself, and then that they belong together."""
    findings = [
        Finding(f"{level.name}: {finding.name}", finding.ok, finding.detail)
        for level in levels
        for finding in _check_release(level, large)
    ]
    return [*findings, try_check("levels", lambda: _check_together(root, levels))]


def _check_together(root: Path, levels: list[Path]) -> str:
    odd = sorted({path.name for path in root.iterdir()} - {path.name for path in levels})
    require(not odd, f"{odd[:1]} does not belong to a ladder")
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
