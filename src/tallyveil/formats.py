"""Write and read matrices as text: plain CSV, and the ptable layout of cellKey users.

Both are read as R writes them too: a transition matrix by ``write.csv``, a ptable's ``pTable``.
Numbers are written with their shortest exact decimal, so a round trip changes nothing.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import MechanismError

PTABLE_COLUMNS = ("i", "j", "p", "v", "p_int_lb", "p_int_ub", "type")

MOST_LINES = 200_000
MOST_CELLS = 10**7
"""How many cells the matrix of a ptable may have, which lists only the possible ones."""


def _show_number(value: Any) -> str:
    return repr(value.item() if hasattr(value, "item") else value)


def csv_text(matrix: Floats, inputs: NDArray[Any], outputs: NDArray[Any]) -> str:
    """Write one line per true answer and one column per released answer, both labelled."""
    lines = ["true," + ",".join(_show_number(value) for value in outputs)]
    for value, row in zip(inputs, matrix, strict=True):
        lines.append(",".join([_show_number(value), *(_show_number(entry) for entry in row)]))
    return "\n".join(lines) + "\n"


def csv_matrix(text: str) -> tuple[Floats, Floats | None, Floats | None]:
    """Read a matrix, with its inputs and outputs where the CSV is labelled as `csv_text` does."""
    lines = _split_lines(text.lstrip("\ufeff"), ",")
    first = next(lines, None)
    if first is None:
        raise MechanismError("matrix", "hold at least one line", got="an empty file")
    labelled = first[0].strip().lower() in ("true", "")
    cells = array("d", () if labelled else map(_read_number, first))
    for row, line in enumerate(lines):
        if len(line) != len(first) or row == MOST_LINES:
            cells = array("d")
            break
        cells.extend(map(_read_number, line))
    if not cells:
        rule = f"have up to {MOST_LINES:,} lines of equal length, one per true answer"
        raise MechanismError("matrix", rule)
    matrix = np.array(cells).reshape(-1, len(first))
    if not labelled:
        return matrix, None, None
    return matrix[:, 1:], matrix[:, 0], np.array([_read_number(cell) for cell in first[1:]])


def _split_lines(text: str, separator: str) -> Iterator[list[str]]:
    """Yield the cells of one line after the other, empty lines left out."""
    try:
        yield from filter(None, csv.reader(io.StringIO(text), delimiter=separator))
    except csv.Error:
        raise MechanismError("matrix", "have shorter cells and no stray quotes") from None


def _read_number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise MechanismError("matrix", "hold numbers only", cell) from None


def is_ptable(text: str) -> bool:
    """Return whether the first line names the ptable columns i, j and p."""
    header = text.lstrip("\ufeff").split("\n", 1)[0].replace(";", ",").lower()
    return {"i", "j", "p"} <= {name.strip().strip('"') for name in header.split(",")}


def ptable_text(matrix: Floats, inputs: NDArray[Any], outputs: NDArray[Any]) -> str:
    """Write one line per possible transition: true i, released j, probability p, noise v.

    ``p_int_lb`` and ``p_int_ub`` cut [0, 1] into the intervals that a cell key falls into;
    ``type`` is "all", as in a ptable for counts.
    """
    lines = [",".join(PTABLE_COLUMNS)]
    for value, row in zip(inputs, matrix, strict=True):
        ends = np.concatenate([[0.0], np.cumsum(row)])
        for j in np.flatnonzero(row):
            noise = outputs[j] - value
            cells = (value, outputs[j], row[j], noise, ends[j], ends[j + 1])
            lines.append(",".join((*map(_show_number, cells), "all")))
    return "\n".join(lines) + "\n"


def ptable_matrix(text: str) -> tuple[Floats, Floats, Floats]:
    """Read the matrix, inputs and outputs of a ptable; separators , and ; are both read.

    With semicolons a comma may be the decimal point, as R's ``write.csv2`` writes it.

    >>> ptable_matrix("i;j;p\\n0;0;0,75\\n0;1;0,25\\n")[0].tolist()
    [[0.75, 0.25]]
    """
    start = text.lstrip("\ufeff")
    separator = ";" if ";" in start.split("\n", 1)[0] else ","
    lines = _split_lines(start, separator)
    header = [name.strip().lower() for name in next(lines)]
    where = [header.index(name) for name in ("i", "j", "p")]
    kind, kinds = header.index("type") if "type" in header else None, set()
    columns = array("d"), array("d"), array("d")
    for line in lines:
        if len(line) != len(header):
            raise MechanismError("ptable", "have lines of equal length")
        for column, place in zip(columns, where, strict=True):
            column.append(_read_number(line[place].replace(",", ".")))
        kinds.add("" if kind is None else line[kind].strip().lower())
    if len(kinds) > 1:
        hint = "Each of them is a separate table: keep the lines of one."
        raise MechanismError("ptable", "have one type of cells", hint=hint, got="several types")
    if not columns[0]:
        raise MechanismError("ptable", "hold at least one transition", got="only a header")
    i, j, p = map(np.array, columns)
    inputs, row = np.unique(i, return_inverse=True)
    outputs, column_of = np.unique(j, return_inverse=True)
    if len(inputs) * len(outputs) > MOST_CELLS:
        raise MechanismError("ptable", f"have a matrix of at most {MOST_CELLS:,} cells")
    matrix = np.zeros((len(inputs), len(outputs)))
    np.add.at(matrix, (row, column_of), p)
    return matrix, inputs, outputs


def continue_noise(
    matrix: Floats, inputs: Floats, outputs: Floats, upper: int
) -> tuple[Floats, Floats, Floats]:
    """Give every count above the last one, up to `upper`, the last one's noise, as cellKey does.

    >>> matrix, _, outputs = continue_noise(np.eye(2), np.arange(2.0), np.arange(2.0), 3)
    >>> matrix.diagonal().tolist(), outputs.tolist()
    ([1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0])
    """
    size = len(inputs)
    if not np.array_equal(inputs, np.arange(size)) or not (outputs == np.rint(outputs)).all():
        raise MechanismError("ptable", "list the counts 0, 1, 2, ... to be continued")
    if upper < size - 1:
        raise MechanismError("upper", f"be at least the ptable's last count, {size - 1}", upper)
    noise = np.flatnonzero(matrix[-1])
    low = int(outputs[0])
    high = max(int(outputs[-1]), upper + int(outputs[noise[-1]]) - (size - 1))
    if (upper + 1) * (high - low + 1) > MOST_CELLS:
        raise MechanismError("ptable", f"have a matrix of at most {MOST_CELLS:,} cells")
    longer = np.zeros((upper + 1, high - low + 1))
    longer[:size, (outputs - low).astype(int)] = matrix
    for count in range(size, upper + 1):
        longer[count, (outputs[noise] - low).astype(int) + count - (size - 1)] = matrix[-1, noise]
    return longer, np.arange(upper + 1.0), np.arange(low, high + 1.0)
