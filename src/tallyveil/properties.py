"""Structural properties of mechanisms, each defined once as linear rows.

The seven properties come from Cormode, Kulkarni and Srivastava (2018), section 4, in the form
that Croft, Sack and Shi (2020), equations 10 to 15, give for queries whose outputs differ from
their inputs. **The papers' names keep the papers' meaning.** Both papers write one *released*
answer per row, so their "row" is a COLUMN of our ``matrix[true, released]``:

=================  =======================================================================
row_honest         an output is likeliest when it is the truth: down each of our columns
row_monotone       ... and less likely the further the truth lies from it
column_honest      the truth is the likeliest output: along each of our rows
column_monotone    ... and outputs are less likely the further they lie from the truth
fair               the truth is reported with a probability that does not depend on it
weakly_honest      ... with probability at least that of guessing, 1/m
symmetric          counting from the other end changes nothing
output_private     neighbouring outputs are within e^epsilon of each other (section 8)
=================  =======================================================================

The definition of a property is the list of inequalities that `rows` returns; the test of a
property and the constraint of a design program are the same rows. Equation numbers below are
those of Cormode et al. or Croft et al.; h(i) is the output that input i belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError, describe_kind
from tallyveil.query import Query, require_query

TOLERANCE = 1e-9
"""Probability by which a cell may fall short of a property that still counts as held."""


@dataclass(frozen=True)
class Rows:
    """Linear constraints ``factor * M[larger] - M[smaller] >= floor`` (or ``==``) on a matrix.

    `larger` and `smaller` are (true, released) index arrays of one length; without `smaller`
    only the floor bounds the larger entry.
    """

    larger: tuple[Integers, Integers]
    smaller: tuple[Integers, Integers] | None = None
    factor: float = 1.0
    floor: float = 0.0
    equal: bool = False

    def __len__(self) -> int:
        return len(self.larger[0])

    def slack(self, matrix: Floats) -> Floats:
        """Return the slack of each constraint; negative where violated."""
        gap: Floats = self.factor * matrix[self.larger] - self.floor
        if self.smaller is not None:
            gap = gap - matrix[self.smaller]
        return -np.abs(gap) if self.equal else gap


@dataclass(frozen=True)
class Witness:
    """The (true, released) cells that break a property most, and by how much; see `Rows`."""

    property: str
    larger: tuple[int, int]
    smaller: tuple[int, int] | None
    shortfall: float

    def __str__(self) -> str:
        other = f" against cell {self.smaller}" if self.smaller else ""
        return f"{self.property}: cell {self.larger}{other} falls short by {self.shortfall:.3g}"


def _row_honest(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] >= M[k, h(i)] for all inputs i, k (Cormode, equation 8)."""
    n = len(query.inputs)
    i, other = np.indices((n, n)).reshape(2, -1)
    keep = i != other
    i, other = i[keep], other[keep]
    return [Rows((i, query.home[i]), (other, query.home[i]))]


def _row_monotone(query: Query, epsilon: float) -> list[Rows]:
    """Rising towards the output's own inputs, falling after (Croft, equations 12 and 13)."""
    n, m = query.shape
    i, j = np.indices((n - 1, m)).reshape(2, -1)
    rising, falling = query.home[i + 1] <= j, query.home[i] >= j
    return [
        Rows((i[rising] + 1, j[rising]), (i[rising], j[rising])),
        Rows((i[falling], j[falling]), (i[falling] + 1, j[falling])),
    ]


def _column_honest(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] >= M[i, j] for every output j (Cormode, equation 10)."""
    n, m = query.shape
    i, j = np.indices((n, m)).reshape(2, -1)
    keep = query.home[i] != j
    i, j = i[keep], j[keep]
    return [Rows((i, query.home[i]), (i, j))]


def _column_monotone(query: Query, epsilon: float) -> list[Rows]:
    """Rising towards the truth, falling after (Croft, equations 10 and 11)."""
    n, m = query.shape
    i, j = np.indices((n, m - 1)).reshape(2, -1)
    rising = j < query.home[i]
    falling = ~rising
    return [
        Rows((i[rising], j[rising] + 1), (i[rising], j[rising])),
        Rows((i[falling], j[falling]), (i[falling], j[falling] + 1)),
    ]


def _fair(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] = M[i+1, h(i+1)] (Croft, equation 15)."""
    i = np.arange(len(query.inputs) - 1)
    return [Rows((i, query.home[i]), (i + 1, query.home[i + 1]), equal=True)]


def _weakly_honest(query: Query, epsilon: float) -> list[Rows]:
    """M[i, h(i)] >= 1/m (Cormode, equation 14)."""
    i = np.arange(len(query.inputs))
    return [Rows((i, query.home[i]), floor=1.0 / len(query.outputs))]


def _symmetric(query: Query, epsilon: float) -> list[Rows]:
    """M[i, j] = M[n-1-i, m-1-j] (Croft, equation 14)."""
    n, m = query.shape
    i, j = np.indices((n, m)).reshape(2, -1)
    first = i * m + j < (n - 1 - i) * m + (m - 1 - j)
    i, j = i[first], j[first]
    return [Rows((i, j), (n - 1 - i, m - 1 - j), equal=True)]


def _output_private(query: Query, epsilon: float) -> list[Rows]:
    """M[i, j] and M[i, j+1] within a factor e^epsilon (Cormode, section 8)."""
    n, m = query.shape
    i, j = np.indices((n, m - 1)).reshape(2, -1)
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
"""The seven properties of Cormode, Kulkarni and Srivastava (2018), section 4."""

IMPLIED: dict[str, tuple[str, ...]] = {
    "row_monotone": ("row_honest",),
    "column_monotone": ("column_honest", "weakly_honest"),
    "column_honest": ("weakly_honest",),
}
"""What each property brings along: RM => RH and CM => CH => WH (Cormode, section 4)."""


def check_names(names: Iterable[str] | str | None, argument: str = "properties") -> tuple[str, ...]:
    """Return the names in the order of `PROPERTIES`, without repeats; refuse unknown ones.

    >>> check_names(["fair", "row_honest", "fair"])
    ('row_honest', 'fair')
    """
    hint = "Known properties: " + ", ".join(PROPERTIES) + "."
    try:
        chosen = {names} if isinstance(names, str) else set(() if names is None else names)
    except TypeError:
        got = describe_kind(names)
        raise ArgumentError(argument, "be known properties", hint=hint, got=got) from None
    for name in sorted(chosen, key=str):
        if name not in PROPERTIES:
            raise ArgumentError(argument, "be known properties", name, hint)
    return tuple(name for name in PROPERTIES if name in chosen)


def rows(name: str, query: Query, epsilon: float | None = None) -> list[Rows]:
    """Return the linear constraints that define property `name` on `query`.

    Only ``output_private`` depends on `epsilon`.
    """
    require_query(query)
    if not isinstance(name, str):
        raise ArgumentError("property", "be the name of a property", got=describe_kind(name))
    (checked,) = check_names(name, "property")
    if checked == "output_private" and epsilon is None:
        raise ArgumentError("epsilon", "be given to judge 'output_private'")
    return PROPERTIES[checked](query, 0.0 if epsilon is None else epsilon)


def witness(
    name: str,
    query: Query,
    matrix: Floats,
    epsilon: float | None = None,
    tolerance: float = TOLERANCE,
) -> Witness | None:
    """Find the cells where `matrix` breaks property `name` most; None where it holds.

    It holds where no cell falls short by a probability of more than `tolerance`.
    """
    worst: Witness | None = None
    for block in rows(name, query, epsilon):
        if len(block) == 0:
            continue
        slack = block.slack(matrix)
        weakest = int(slack.argmin())
        if slack[weakest] < -tolerance and (worst is None or -slack[weakest] > worst.shortfall):
            smaller = None
            if block.smaller is not None:
                smaller = (int(block.smaller[0][weakest]), int(block.smaller[1][weakest]))
            larger = (int(block.larger[0][weakest]), int(block.larger[1][weakest]))
            worst = Witness(name, larger, smaller, float(-slack[weakest]))
    return worst
