"""A copy of a release's table for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallyveil.release.groups import require_described
from tallyveil.release.receipt import Receipt
from tallyveil.release.release import plain_name, read_receipt, require_listed_files
from tallyveil.tables.export import write_copy
from tallyveil.tables.published import read_released


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
    root, target = Path(folder), Path(file)
    receipt = read_receipt(root)
    require_listed_files(root, receipt)
    counts = [name for column in receipt.columns for name in column.columns]
    data = root / plain_name(receipt.table.file)
    table = read_released(data, rows=receipt.table.rows, counts=counts)
    require_described(table, receipt)
    about = {"about": [*_describe(receipt), [], *_list_intervals(receipt)]}
    write_copy(table, target, about, delimiter)
    return target


def _describe(receipt: Receipt) -> list[list[Any]]:
    """List the rows of the second sheet of a workbook: the release and its guarantee."""
    title = receipt.about.describe_package().get("title", "Privatized counts")
    rows = [["title", title], ["promise", receipt.promise], ["release", receipt.release]]
    rows += [["created", receipt.created], ["epsilon", float(receipt.epsilon)]]
    return rows + ([["warning", receipt.warning]] if receipt.warning else [])


def _list_intervals(receipt: Receipt) -> list[list[Any]]:
    """List the interval of the published count, by column and true count."""
    header = ["column", "true count", "published from", "published to", "in at least"]
    rows: list[list[Any]] = [header]
    for column in receipt.columns:
        stated = column.accuracy
        parts = zip(stated.true_count, stated.interval_low, stated.interval_high, strict=True)
        rows += [[column.name, *numbers, stated.confidence] for numbers in parts]
    return rows
