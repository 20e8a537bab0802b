"""The structural properties a mechanism may have, each defined once as linear rows.

The seven properties come from Cormode, Kulkarni and Srivastava (paper 000, section 4), in
the form that Croft, Sack and Shi (paper 001, equations 10 to 15) give for queries whose
outputs differ from their inputs. **The papers' names keep the papers' meaning.** Papers 000
and 001 write one *released* answer per row, so their "row" is a COLUMN of our
``matrix[true, released]``:

=================  =======================================================================
row_honest         an output is likeliest when it is the truth: down each of our columns
row_monotone       ... and less likely the further the truth lies from it
column_honest      the truth is the likeliest output: along each of our rows
column_monotone    ... and outputs are less likely the further they lie from the truth
fair               the truth is reported with the same probability whatever it is
weakly_honest      ... with probability at least that of guessing, 1/m
symmetric          counting from the other end changes nothing
output_private     neighbouring outputs are within e^epsilon of each other (000, section 8)
=================  =======================================================================

With h(i) the output that input i belongs to, the definition of a property is the list of
inequalities returned by `rows`; the test of a property and the constraint of a design
program are the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError
from tallyveil.query import Query

__all__ = ["IMPLIED", "PROPERTIES", "SEVEN", "Rows", "Witness", "check_names", "rows", "witness"]

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Rows:
    """Linear rows ``factor * M[larger] - M[smaller] >= floor`` (or ``==``) on a matrix.

    `larger` and `smaller` are (true, released) index arrays of one length; `smaller` is None
    where only the floor bounds the larger entry.
    """

    larger: tuple[Integers, Integers]
    smaller: tuple[Integers, Integers] | None = None
    factor: float = 1.0
    floor: float = 0.0
    equal: bool = False

    def __len__(self) -> int:
        return len(self.larger[0])

    def slack(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much each row holds; negative where it is broken."""
        gap: NDArray[np.float64] = self.factor * matrix[self.larger] - self.floor
        if self.smaller is not None:
            gap = gap - matrix[self.smaller]
        return -np.abs(gap) if self.equal else gap


@dataclass(frozen=True)
class Witness:
    """The cells that break a property most: ``factor * larger >= smaller + floor`` fails."""

    property: str
    larger: tuple[int, int]
    smaller: tuple[int, int] | None
    shortfall: float

    def __str__(self) -> str:
        other = f" against cell {self.smaller}" if self.smaller else ""
        return f"{self.property}: cell {self.larger}{other} falls short by {self.shortfall:.3g}"


def _grid(rows_: Integers, columns: Integers) -> tuple[Integers, Integers]:
    first, second = np.broadcast_arrays(rows_, columns)
    return first.ravel(), second.ravel()


def _row_honest(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] >= M[k, h(i)] for all inputs i, k (000, equation 8)."""
    n = len(query.inputs)
    own, other = _grid(np.arange(n)[:, None], np.arange(n)[None, :])
    keep = own != other
    own, other = own[keep], other[keep]
    return [Rows((own, query.home[own]), (other, query.home[own]))]


def _row_monotone(query: Query, epsilon: float) -> list[Rows]:
    """Rising towards the output's own inputs, falling after (001, equations 12 and 13)."""
    n, m = query.shape
    i, j = _grid(np.arange(n - 1)[:, None], np.arange(m)[None, :])
    rising, falling = query.home[i + 1] <= j, query.home[i] >= j
    return [
        Rows((i[rising] + 1, j[rising]), (i[rising], j[rising])),
        Rows((i[falling], j[falling]), (i[falling] + 1, j[falling])),
    ]


def _column_honest(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] >= M[i, j] for every output j (000, equation 10)."""
    n, m = query.shape
    i, j = _grid(np.arange(n)[:, None], np.arange(m)[None, :])
    keep = query.home[i] != j
    i, j = i[keep], j[keep]
    return [Rows((i, query.home[i]), (i, j))]


def _column_monotone(query: Query, epsilon: float) -> list[Rows]:
    """Rising towards the truth, falling after (001, equations 10 and 11)."""
    n, m = query.shape
    i, j = _grid(np.arange(n)[:, None], np.arange(m - 1)[None, :])
    rising = j < query.home[i]
    falling = ~rising
    return [
        Rows((i[rising], j[rising] + 1), (i[rising], j[rising])),
        Rows((i[falling], j[falling]), (i[falling], j[falling] + 1)),
    ]


def _fair(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] = M[i+1, h(i+1)] (001, equation 15)."""
    i = np.arange(len(query.inputs) - 1)
    return [Rows((i, query.home[i]), (i + 1, query.home[i + 1]), equal=True)]


def _weakly_honest(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] >= 1/m (000, equation 14)."""
    i = np.arange(len(query.inputs))
    return [Rows((i, query.home[i]), floor=1.0 / len(query.outputs))]


def _symmetric(query: Query, epsilon: float) -> list[Rows]:
    """M[i, j] = M[n-1-i, m-1-j] (001, equation 14)."""
    n, m = query.shape
    i, j = _grid(np.arange(n)[:, None], np.arange(m)[None, :])
    first = i * m + j < (n - 1 - i) * m + (m - 1 - j)
    i, j = i[first], j[first]
    return [Rows((i, j), (n - 1 - i, m - 1 - j), equal=True)]


def _output_private(query: Query, epsilon: float) -> list[Rows]:
    """M[i, j] and M[i, j+1] within a factor e^epsilon (000, section 8)."""
    n, m = query.shape
    i, j = _grid(np.arange(n)[:, None], np.arange(m - 1)[None, :])
    grow = math.exp(epsilon)
    return [Rows((i, j), (i, j + 1), factor=grow), Rows((i, j + 1), (i, j), factor=grow)]


PROPERTIES: dict[str, Callable[[Query, float], list[Rows]]] = {
    "row_honest": _row_honest,
    "row_monotone": _row_monotone,
    "column_honest": _column_honest,
    "column_monotone": _column_monotone,
    "fair": _fair,
    "weakly_honest": _weakly_honest,
    "symmetric": _symmetric,
    "output_private": _output_private,
}
SEVEN = tuple(PROPERTIES)[:7]
"""The seven properties of paper 000, section 4."""

IMPLIED: dict[str, tuple[str, ...]] = {
    "row_monotone": ("row_honest",),
    "column_monotone": ("column_honest", "weakly_honest"),
    "column_honest": ("weakly_honest",),
}
"""What each property brings along: RM => RH and CM => CH => WH (000, section 4)."""


def check_names(names: Iterable[str] | str | None, argument: str = "properties") -> tuple[str, ...]:
    """The names in the order of `PROPERTIES`, once each; an unknown one is an error.

    None means no property.

    >>> check_names(["fair", "row_honest", "fair"])
    ('row_honest', 'fair')
    """
    wanted = {names} if isinstance(names, str) else set(names or ())
    for name in sorted(wanted, key=str):
        if name not in PROPERTIES:
            known = "Known properties: " + ", ".join(PROPERTIES) + "."
            raise ArgumentError(argument, "be known properties", name, known)
    return tuple(name for name in PROPERTIES if name in wanted)


def rows(name: str, query: Query, epsilon: float | None = None) -> list[Rows]:
    """The linear rows that define property `name` on `query`.

    Only ``output_private`` depends on `epsilon`.
    """
    (known,) = check_names(name, "property")
    if known == "output_private" and epsilon is None:
        raise ArgumentError("epsilon", "be given to judge 'output_private'")
    return PROPERTIES[known](query, 0.0 if epsilon is None else epsilon)


def witness(
    name: str,
    query: Query,
    matrix: NDArray[np.float64],
    epsilon: float | None = None,
    tolerance: float = TOLERANCE,
) -> Witness | None:
    """The cells where `matrix` breaks property `name` most, or None where it holds."""
    worst: Witness | None = None
    for block in rows(name, query, epsilon):
        if len(block) == 0:
            continue
        slack = block.slack(matrix)
        at = int(slack.argmin())
        if slack[at] < -tolerance and (worst is None or -slack[at] > worst.shortfall):
            smaller = None
            if block.smaller is not None:
                smaller = (int(block.smaller[0][at]), int(block.smaller[1][at]))
            larger = (int(block.larger[0][at]), int(block.larger[1][at]))
            worst = Witness(name, larger, smaller, float(-slack[at]))
    return worst
