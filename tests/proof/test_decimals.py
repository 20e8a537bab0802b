"""Lines of decimals: the fast writer writes what Python writes, the reader accepts only that."""

import random

import numpy as np
import pytest

from tallyveil.proof import certificate as document
from tallyveil.proof.decimals import CELLS_AT_ONCE, parse_table, read_table, write_table

LARGEST = 2**63 - 1


def written(table):
    """What a reader of the format would write, cell by cell."""
    return [" ".join(str(cell) for cell in row) for row in table.tolist()]


def slow_read(lines):
    """Read cell by cell as integers of any size, write again, compare."""
    rows = [[int(cell) for cell in line.split(" ")] for line in lines]
    if written(np.array(rows, dtype=object)) != lines or max(map(max, rows)) > LARGEST:
        raise ValueError
    return np.array(rows, dtype=np.int64).tolist()


def tables():
    rng = np.random.default_rng(5)
    for rows, columns in ((1, 1), (1, CELLS_AT_ONCE + 3), (40, 1), (7, 331), (300, 257)):
        shift = rng.integers(0, 63, size=(rows, columns))
        table = rng.integers(0, LARGEST, size=(rows, columns), endpoint=True) >> shift
        table[-1, 0] = LARGEST
        yield table


@pytest.mark.parametrize("table", list(tables()), ids=lambda table: str(table.shape))
def test_tables_are_written_as_python_writes_them_and_read_back(table):
    lines = written(table)
    assert b"".join(write_table(table)).decode() == "".join(line + "\n" for line in lines)
    assert document.rows_text(table) == lines
    assert np.array_equal(read_table(lines), table)
    assert np.array_equal(parse_table(lines), table)
    assert document.lines_sha256(lines) == document.weights_sha256(table)


def test_every_length_and_views_are_written_by_their_values():
    numbers = sorted({10**power + step for power in range(19) for step in (-1, 0, 1)})
    assert document.rows_text(np.array([numbers])) == [" ".join(map(str, numbers))]
    table = np.arange(12).reshape(3, 4)
    assert document.rows_text(table.T) == written(table.T)
    assert document.rows_text(table[:, ::-2]) == written(table[:, ::-2])
    assert document.rows_text(np.array([[-3, 0], [5, -17]])) == ["-3 0", "5 -17"]


@pytest.mark.parametrize(
    "lines",
    [
        *(["01"], ["1  2"], [" 1"], ["1 "], ["1\t2"], ["+1"], ["-0"], ["1_0"], ["1.0"], ["1e2"]),
        *([""], ["1 2", "3"], ["1", "2 3"], ["1\n2"], ["1 2\n3 4", "5 6"], ["1", "", "2"]),
        *(["9223372036854775808"], ["99999999999999999999999"], ["٣"], ["1\r"], ["1\x00"]),
        *(["-"], ["1-2"], ["--1"], ["1 -"], ["１"], ["1\u00a02"], ["\ud800"]),
    ],
    ids=repr,
)
def test_anything_else_is_refused(lines):
    with pytest.raises(ValueError):  # noqa: PT011
        document.read_rows(lines)


@pytest.mark.parametrize("lines", [None, "1 2", ("1 2",), [1], [b"1"], [None]])
def test_only_a_list_of_lines_is_read(lines):
    with pytest.raises(ValueError, match="list of lines"):
        document.read_rows(lines)


def test_changed_lines_are_read_as_the_slow_reader_reads_them():
    pick = random.Random(8)
    cells = (0, 1, 9, 10, 2**62, LARGEST, LARGEST + 1, 10**19, 12345)
    agreed = {True: 0, False: 0}
    for _ in range(4_000):
        shape = pick.randint(1, 3), pick.randint(1, 3)
        lines = [
            " ".join(str(pick.choice(cells)) for _ in range(shape[1])) for _ in range(shape[0])
        ]
        for _ in range(pick.randint(0, 2)):
            row, letter = pick.randrange(len(lines)), pick.choice("0123456789 \n-+_.e\t")
            at = pick.randint(0, len(lines[row]))
            lines[row] = lines[row][:at] + pick.choice(["", letter]) + lines[row][at + 1 :]
        try:
            expected = slow_read(lines)
        except ValueError:
            with pytest.raises(ValueError):  # noqa: PT011
                read_table(lines)
            agreed[False] += 1
        else:
            assert read_table(lines).tolist() == expected
            agreed[True] += 1
    assert min(agreed.values()) > 500
