"""What is asked: the true answers, the answers that may be released, and the neighbours.

A query is public. It never holds data, only the shape of the question, so everything
computed from it may be published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import QueryError
from tallyveil.neighbours import Neighbours

__all__ = ["Query", "require_query"]

MOST_ANSWERS = 10**8
"""More true or released answers than this are refused before any array is made."""


@dataclass(frozen=True, eq=False, repr=False)
class Query:
    """A numeric question with a known range.

    Build one with `count`, `mean`, `maximum`, `minimum`, `median` or `custom`. The
    requirements R.1 to R.3 of Croft, Sack and Shi (2020), section 3.2, that concern the
    question itself are checked on construction: response categories are disjoint, their
    union is finite, and every true answer lies in one of them.

    Attributes
    ----------
    inputs : the true answers, strictly increasing, shape (n,)
    outputs : the released answers (midpoints of categories), strictly increasing, shape (m,)
    lower_edges, upper_edges : the category of each output; both None for plain values
    neighbours : which inputs one person can turn into which
    step : the distance between adjacent inputs where they are evenly spaced, else None

    >>> q = Query.count(3)
    >>> q.inputs.tolist(), q.outputs.tolist(), q.neighbours.pairs.tolist()
    ([0, 1, 2, 3], [0, 1, 2, 3], [[0, 1], [1, 2], [2, 3]])
    """

    kind: str
    inputs: NDArray[Any]
    outputs: NDArray[Any]
    neighbours: Neighbours
    lower_edges: Floats | None = None
    upper_edges: Floats | None = None
    arguments: tuple[tuple[str, Any], ...] = ()
    step: float | None = None

    # -- constructors ---------------------------------------------------------------------

    @classmethod
    def count(cls, upper: int, *, categories: float = 1, extend: float = 1) -> Query:
        """A count between 0 and `upper`; one person moves it by one.

        Parameters
        ----------
        upper : the largest possible count, at least 1. It is public.
        categories : width of a response category, in steps between true answers.
        extend : width of the released range over the valid range; 3 releases over 300 %.
        """
        top = _whole(upper, "upper", least=1)
        inputs = np.arange(_size(top + 1, "upper"))
        arguments = (("upper", top), ("categories", categories), ("extend", extend))
        return cls._on_grid("count", inputs, Neighbours.path(top + 1), arguments)

    @classmethod
    def mean(
        cls, records: int, lower: int, upper: int, *, categories: float = 1, extend: float = 1
    ) -> Query:
        """The mean of `records` whole numbers between `lower` and `upper`.

        The reachable means lie 1/records apart, and one person moves the mean by up to
        (upper - lower)/records: neighbours are all index pairs at most upper - lower apart
        (the spacing printed in paper 001, section 4.3, is corrected).

        >>> Query.mean(records=2, lower=0, upper=1).inputs.tolist()
        [0.0, 0.5, 1.0]
        """
        size = _whole(records, "records", least=1)
        low, high = _bounds(lower, upper)
        _size((high - low) * size + 1, "records")
        inputs = np.arange(low * size, high * size + 1) / size
        arguments = (
            ("records", size),
            ("lower", low),
            ("upper", high),
            ("categories", categories),
            ("extend", extend),
        )
        neighbours = Neighbours.band(len(inputs), high - low)
        return cls._on_grid("mean", inputs, neighbours, arguments, step=1 / size)

    @classmethod
    def maximum(cls, lower: int, upper: int, *, categories: float = 1, extend: float = 1) -> Query:
        """The largest of some whole numbers between `lower` and `upper`.

        One person can move it from any value to any other, so all pairs are neighbours.
        """
        return cls._extreme("maximum", lower, upper, categories, extend)

    @classmethod
    def minimum(cls, lower: int, upper: int, *, categories: float = 1, extend: float = 1) -> Query:
        """The smallest of some whole numbers between `lower` and `upper`; see `maximum`."""
        return cls._extreme("minimum", lower, upper, categories, extend)

    @classmethod
    def median(cls, lower: int, upper: int, *, categories: float = 1, extend: float = 1) -> Query:
        """The (lower) median of some whole numbers between `lower` and `upper`; see `maximum`."""
        return cls._extreme("median", lower, upper, categories, extend)

    @classmethod
    def custom(
        cls,
        inputs: ArrayLike,
        outputs: ArrayLike,
        neighbours: Neighbours | str | ArrayLike,
    ) -> Query:
        """Any true answers, any released answers, any neighbour relation.

        Parameters
        ----------
        inputs : strictly increasing numbers, shape (n,), n >= 2
        outputs : strictly increasing numbers, shape (m,), or intervals, shape (m, 2), that
            are disjoint, finite and together contain every input
        neighbours : index pairs, shape (k, 2); or "path", "complete" or a `Neighbours`

        >>> q = Query.custom([0, 1, 2], [(-0.5, 1.5), (1.5, 2.5)], [(0, 1), (1, 2)])
        >>> q.outputs.tolist(), q.home.tolist()
        ([0.5, 2.0], [0, 0, 1])
        """
        true = _increasing(inputs, "inputs")
        if len(true) < 2:
            raise QueryError("inputs", "hold at least two true answers", len(true))
        lower_edges = upper_edges = None
        released = _numbers(outputs, "outputs")
        if released.ndim == 2 and released.shape[1] == 2:
            lower_edges, upper_edges = _categories(released)
            released = (lower_edges + upper_edges) / 2
        released = _increasing(released, "outputs")
        return cls("custom", true, released, _relation(neighbours, len(true)), lower_edges,
                   upper_edges)  # fmt: skip

    @classmethod
    def _extreme(cls, kind: str, lower: int, upper: int, categories: float, extend: float) -> Query:
        low, high = _bounds(lower, upper)
        arguments = (
            ("lower", low),
            ("upper", high),
            ("categories", categories),
            ("extend", extend),
        )
        inputs = low + np.arange(_size(high - low + 1, "upper"))
        return cls._on_grid(kind, inputs, Neighbours.complete(len(inputs)), arguments)

    @classmethod
    def _on_grid(
        cls,
        kind: str,
        inputs: NDArray[Any],
        neighbours: Neighbours,
        arguments: tuple[tuple[str, Any], ...],
        step: float = 1.0,
    ) -> Query:
        """Evenly spaced answers with categories centred on the valid range (001, 4.3)."""
        options = dict(arguments)
        scale = _at_least(options["categories"], "categories", above=0.0)
        stretch = _at_least(options["extend"], "extend", above=1.0, inclusive=True)
        centre = (float(inputs[0]) + float(inputs[-1])) / 2
        inside = math.floor((len(inputs) - 1) / scale + 1e-9) + 1
        beyond = math.ceil(inside * (stretch - 1) / 2 - 1e-9)
        total, width = _size(inside + 2 * beyond, "categories"), scale * step
        if scale == 1 and beyond == 0:
            outputs: NDArray[Any] = inputs.copy()
        else:
            outputs = centre + width * (np.arange(total) - (total - 1) / 2)
        lower = outputs - width / 2
        return cls(kind, inputs, outputs, neighbours, lower, lower + width, arguments, step)

    def __post_init__(self) -> None:
        for array in (self.inputs, self.outputs, self.lower_edges, self.upper_edges):
            if array is not None:
                array.setflags(write=False)
        if self.neighbours.size != len(self.inputs):
            raise QueryError(
                "neighbours", f"cover the {len(self.inputs)} inputs", self.neighbours.size
            )
        if self.lower_edges is not None:
            slack = 1e-9 * float(self.inputs[-1] - self.inputs[0])
            outside = (self.inputs < self.lower_edges[self.home] - slack) | (
                self.inputs > self.edges()[1][self.home] + slack
            )
            if outside.any():
                raise QueryError(
                    "outputs",
                    "have a response category around every true answer (R.2)",
                    f"none around {self.inputs[outside][0]}",
                )

    # -- what a query knows -----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(true answers, released answers): the shape of a mechanism's matrix."""
        return len(self.inputs), len(self.outputs)

    @property
    def is_square(self) -> bool:
        """Whether every true answer is its own released answer."""
        return len(self.inputs) == len(self.outputs) and bool((self.inputs == self.outputs).all())

    @cached_property
    def home(self) -> NDArray[np.int64]:
        """Index of the output each input belongs to, shape (n,), non-decreasing.

        With categories it is the one that contains the input; an input on the edge between
        two goes to the one nearer the centre of the range, so that symmetric queries have
        symmetric homes. With plain values it is the nearest output.
        """
        lower, upper = self.edges()
        slack = 1e-9 * float(self.inputs[-1] - self.inputs[0])  # edges carry rounding
        from_below = np.searchsorted(upper + slack, self.inputs, side="left")
        from_above = np.searchsorted(lower - slack, self.inputs, side="right") - 1
        low_half = self.inputs <= (float(self.inputs[0]) + float(self.inputs[-1])) / 2
        home = np.where(low_half, np.maximum(from_below, from_above),
                        np.minimum(from_below, from_above))  # fmt: skip
        home = np.clip(home, 0, len(self.outputs) - 1).astype(np.int64)
        home.setflags(write=False)
        return home

    @property
    def sensitivity(self) -> float:
        """The furthest apart that two neighbouring true answers lie."""
        if self.step is not None:
            return self.neighbours.width * self.step
        return float(max(np.abs(self.inputs[high] - self.inputs[low]).max()
                         for low, high in self.neighbours.blocks()))  # fmt: skip

    def edges(self) -> tuple[Floats, Floats]:
        """Lower and upper edge of every output's category, shapes (m,) and (m,).

        Plain values get the interval halfway to the values beside them.
        """
        if self.lower_edges is not None and self.upper_edges is not None:
            return self.lower_edges, self.upper_edges
        values = self.outputs.astype(float)
        if len(values) == 1:
            return values - 0.5, values + 0.5
        middle = (values[:-1] + values[1:]) / 2
        first, last = 2 * values[0] - middle[0], 2 * values[-1] - middle[-1]
        return np.concatenate([[first], middle]), np.concatenate([middle, [last]])

    def require_square(self, what: str) -> None:
        """Raise a `QueryError` unless inputs and outputs are the same values."""
        if not self.is_square:
            raise QueryError("query", f"have the same inputs and outputs for {what}", repr(self))

    # -- identity ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description; `from_dict` reads it back without loss."""
        if self.arguments:
            return {"kind": self.kind, **dict(self.arguments)}
        outputs: Any = self.outputs.tolist()
        if self.lower_edges is not None and self.upper_edges is not None:
            outputs = np.column_stack([self.lower_edges, self.upper_edges]).tolist()
        return {
            "kind": self.kind,
            "inputs": self.inputs.tolist(),
            "outputs": outputs,
            "neighbours": self.neighbours.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Query:
        """The query that `to_dict` described."""
        arguments = {key: value for key, value in data.items() if key != "kind"}
        if data.get("kind") == "custom":
            relation = Neighbours.from_dict(arguments["neighbours"])
            return cls.custom(arguments["inputs"], arguments["outputs"], relation)
        if data.get("kind") not in ("count", "mean", "maximum", "minimum", "median"):
            raise QueryError("kind", "name a query: count, mean, maximum, minimum, median, custom",
                             data.get("kind"))  # fmt: skip
        built: Query = getattr(cls, data["kind"])(**arguments)
        return built

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.shape, self.arguments))

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.arguments if not (k in ("categories", "extend") and v == 1)}
        inside = ", ".join(f"{key}={value}" for key, value in shown.items())
        return f"Query.{self.kind}({inside or f'{len(self.inputs)} x {len(self.outputs)}'})"


def require_query(query: object) -> None:
    """Raise a `QueryError` unless `query` is a `Query`."""
    if not isinstance(query, Query):
        raise QueryError("query", "be a Query", query, "For example tv.Query.count(40).")


def _relation(neighbours: Neighbours | str | ArrayLike, size: int) -> Neighbours:
    if isinstance(neighbours, Neighbours):
        return neighbours
    if isinstance(neighbours, str):
        if neighbours not in ("path", "complete"):
            raise QueryError("neighbours", "be 'path', 'complete' or index pairs", neighbours)
        return Neighbours.path(size) if neighbours == "path" else Neighbours.complete(size)
    pairs: Any = neighbours
    return Neighbours.explicit(size, pairs if isinstance(pairs, np.ndarray) else list(pairs))


def _whole(value: Any, argument: str, least: int | None = None) -> int:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole and not (isinstance(value, float) and value.is_integer()):
        raise QueryError(argument, "be a whole number", value)
    if least is not None and value < least:
        raise QueryError(argument, f"be at least {least}", value)
    return int(value)


def _size(answers: int, argument: str) -> int:
    if answers > MOST_ANSWERS:
        raise QueryError(argument, f"give at most {MOST_ANSWERS:,} answers", f"{answers:,}")
    return answers


def _bounds(lower: Any, upper: Any) -> tuple[int, int]:
    low, high = _whole(lower, "lower"), _whole(upper, "upper")
    if high <= low:
        raise QueryError("upper", f"be greater than lower ({low})", high)
    return low, high


def _at_least(value: Any, argument: str, above: float, inclusive: bool = False) -> float:
    rule = f"be a finite number {'of at least' if inclusive else 'greater than'} {above:g}"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise QueryError(argument, rule, value) from None
    if not math.isfinite(number) or number < above or (number == above and not inclusive):
        raise QueryError(argument, rule, value)
    return number


def _numbers(values: ArrayLike, argument: str) -> NDArray[Any]:
    array = np.asarray(list(values) if isinstance(values, range) else values)
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise QueryError(argument, "be numbers", str(array.dtype))
    if not np.isfinite(array).all():
        raise QueryError(argument, "be finite (R.2)", "an infinite or missing value")
    return array.copy()


def _increasing(values: ArrayLike, argument: str) -> NDArray[Any]:
    array = _numbers(values, argument)
    if array.ndim != 1 or len(array) == 0:
        raise QueryError(argument, "be a non-empty list of numbers", f"shape {array.shape}")
    if not (array[1:] > array[:-1]).all():
        raise QueryError(argument, "be strictly increasing")
    return array


def _categories(intervals: NDArray[Any]) -> tuple[Floats, Floats]:
    lower, upper = intervals[:, 0].astype(float), intervals[:, 1].astype(float)
    if not (lower < upper).all():
        raise QueryError("outputs", "be intervals with lower edge below upper edge")
    if not (lower[1:] >= upper[:-1]).all():
        raise QueryError("outputs", "be disjoint intervals in increasing order (R.2)")
    return lower, upper
