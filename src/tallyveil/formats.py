"""Write and read matrices as text: plain CSV, and the ptable layout of cellKey users.

Numbers are written with their shortest exact decimal, so a round trip changes nothing.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import MechanismError

__all__ = ["csv_matrix", "csv_text", "is_ptable", "ptable_matrix", "ptable_text"]

PTABLE_COLUMNS = ("i", "j", "p", "v", "p_int_lb", "p_int_ub")


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
    lines = [line for line in csv.reader(io.StringIO(text.lstrip("\ufeff"))) if line]
    if not lines:
        raise MechanismError("matrix", "hold at least one line", got="an empty file")
    labelled = lines[0][0].strip().lower() == "true"
    body = lines[1:] if labelled else lines
    if not body or len({len(line) for line in lines}) != 1:
        raise MechanismError("matrix", "have lines of equal length, one per true answer")
    cells = np.array([[_read_number(cell) for cell in line] for line in body], dtype=float)
    if not labelled:
        return cells, None, None
    return cells[:, 1:], cells[:, 0], np.array([_read_number(cell) for cell in lines[0][1:]])


def _read_number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise MechanismError("matrix", "hold numbers only", cell) from None


def is_ptable(text: str) -> bool:
    """Whether the first line names the ptable columns i, j and p."""
    header = text.lstrip("\ufeff").split("\n", 1)[0].replace(";", ",").lower()
    return {"i", "j", "p"} <= {name.strip().strip('"') for name in header.split(",")}


def ptable_text(matrix: Floats, inputs: NDArray[Any], outputs: NDArray[Any]) -> str:
    """Write one line per possible transition: true i, released j, probability p, noise v.

    ``p_int_lb`` and ``p_int_ub`` cut [0, 1] into the intervals that a cell key falls into.
    """
    lines = [",".join(PTABLE_COLUMNS)]
    for value, row in zip(inputs, matrix, strict=True):
        ends = np.concatenate([[0.0], np.cumsum(row)])
        for j in np.flatnonzero(row):
            noise = outputs[j] - value
            cells = (value, outputs[j], row[j], noise, ends[j], ends[j + 1])
            lines.append(",".join(_show_number(cell) for cell in cells))
    return "\n".join(lines) + "\n"


def ptable_matrix(text: str) -> tuple[Floats, Floats, Floats]:
    """Read the matrix, inputs and outputs of a ptable; separators , and ; are both read."""
    lines = text.lstrip("\ufeff").strip().splitlines()
    separator = ";" if ";" in lines[0] else ","
    header = [name.strip().strip('"').lower() for name in lines[0].split(separator)]
    where = [header.index(name) for name in ("i", "j", "p")]
    cells = [line.split(separator) for line in lines[1:] if line.strip()]
    if not cells:
        raise MechanismError("ptable", "hold at least one transition", got="only a header")
    if any(len(line) != len(header) for line in cells):
        raise MechanismError("ptable", "have lines of equal length")
    i, j, p = (
        np.array([_read_number(line[at].strip().strip('"')) for line in cells]) for at in where
    )
    inputs, row = np.unique(i, return_inverse=True)
    outputs, column = np.unique(j, return_inverse=True)
    matrix = np.zeros((len(inputs), len(outputs)))
    np.add.at(matrix, (row, column), p)
    return matrix, inputs, outputs
