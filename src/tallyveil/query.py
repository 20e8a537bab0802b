"""Queries: true answers, answers that may be released, and neighbours.

A query is public. It never holds data, only the shape of the question, so everything
computed from it may be published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.answers import (
    LARGEST_ANSWER,
    read_bounds,
    read_categories,
    read_increasing,
    read_numbers,
    read_real,
    read_whole,
    require_few,
)
from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.errors import QueryError, describe_kind
from tallyveil.neighbours import Neighbours

GRID_TOLERANCE = 1e-9
"""Distance, in steps between answers, within which a number counts as one of the answers."""

EDGE_TOLERANCE = 1e-9
"""Distance, relative to the range of the answers, within which two category edges are equal."""

GRID_ARGUMENTS = {
    "count": ("upper",),
    "mean": ("records", "lower", "upper"),
    "maximum": ("lower", "upper"),
    "minimum": ("lower", "upper"),
    "median": ("lower", "upper"),
}
"""What each kind of query on a grid needs; `categories` and `extend` may be left out."""


@dataclass(frozen=True, eq=False, repr=False)
class Query:
    """A numeric question with a known range.

    Build one with `count`, `mean`, `maximum`, `minimum`, `median` or `custom`. Construction
    checks that response categories are disjoint, that their union is finite, and that every
    true answer lies in one of them.

    Attributes
    ----------
    kind : str
        "count", "mean", "maximum", "minimum", "median" or "custom".
    inputs : array, shape (n,)
        The true answers, strictly increasing.
    outputs : array, shape (m,)
        The released answers (midpoints of categories), strictly increasing.
    neighbours : Neighbours
        Which inputs one person can turn into which.
    lower_edges, upper_edges : array of float, shape (m,), or None
        The category of each output; both None for plain values.
    arguments : tuple
        The arguments it was built from, for every kind but "custom".
    step : float or None
        The distance between adjacent inputs where they are evenly spaced by construction.

    References
    ----------
    Croft, Sack and Shi (2020), section 3.2, requirements R.1 to R.3.

    Examples
    --------
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
        """Build the query of a count between 0 and `upper`; one person moves it by one.

        Parameters
        ----------
        upper : int
            The largest possible count, at least 1. It is public.
        categories : float
            Width of a response category, in steps between true answers.
        extend : float
            Width of the released range over the valid range, at least 1; 3 releases over 300%.
        """
        top = read_whole(upper, "upper", least=1)
        inputs = np.arange(require_few(top + 1, "upper"))
        neighbours = Neighbours.path(top + 1)
        return cls._on_grid(
            "count", inputs, neighbours, upper=top, categories=categories, extend=extend
        )

    @classmethod
    def mean(
        cls, records: int, lower: int, upper: int, *, categories: float = 1, extend: float = 1
    ) -> Query:
        """Build the query of the mean of `records` whole numbers between `lower` and `upper`.

        The reachable means lie 1/records apart, and one person moves the mean by up to
        (upper - lower)/records: neighbours are all index pairs at most upper - lower apart
        (Croft, Sack and Shi 2020, section 4.3; errata, Croft 3).

        Parameters
        ----------
        records : int
            How many numbers, at least 1. It is public.
        lower, upper : int
            The public bounds of each number, lower < upper.
        categories, extend : float
            See `count`.

        Examples
        --------
        >>> Query.mean(records=2, lower=0, upper=1).inputs.tolist()
        [0.0, 0.5, 1.0]
        """
        size = read_whole(records, "records", least=1)
        low, high = read_bounds(lower, upper)
        require_few((high - low) * size + 1, "records")
        if max(abs(low), abs(high)) * size > LARGEST_ANSWER:
            raise QueryError("records", f"keep all sums within {LARGEST_ANSWER:,}", size)
        inputs = np.arange(low * size, high * size + 1) / size
        entries: dict[str, Any] = {"records": size, "lower": low, "upper": high}
        entries |= {"categories": categories, "extend": extend}
        neighbours = Neighbours.band(len(inputs), high - low)
        return cls._on_grid("mean", inputs, neighbours, 1 / size, **entries)

    @classmethod
    def maximum(cls, lower: int, upper: int, *, categories: float = 1, extend: float = 1) -> Query:
        """Build the query of the largest of several whole numbers between `lower` and `upper`.

        One person can move it from any value to any other, so all pairs are neighbours.

        Parameters
        ----------
        lower, upper : int
            The public bounds, lower < upper.
        categories, extend : float
            See `count`.
        """
        return cls._extreme("maximum", lower, upper, categories, extend)

    @classmethod
    def minimum(cls, lower: int, upper: int, *, categories: float = 1, extend: float = 1) -> Query:
        """Build the query of the smallest of several whole numbers; see `maximum`."""
        return cls._extreme("minimum", lower, upper, categories, extend)

    @classmethod
    def median(cls, lower: int, upper: int, *, categories: float = 1, extend: float = 1) -> Query:
        """Build the query of the (lower) median of several whole numbers; see `maximum`."""
        return cls._extreme("median", lower, upper, categories, extend)

    @classmethod
    def custom(
        cls, inputs: ArrayLike, outputs: ArrayLike, neighbours: Neighbours | str | ArrayLike
    ) -> Query:
        """Build a query from any true answers, released answers and neighbour relation.

        Parameters
        ----------
        inputs : array, shape (n,)
            Strictly increasing numbers, n >= 2.
        outputs : array, shape (m,) or (m, 2)
            Strictly increasing numbers, or intervals that are disjoint, finite and together
            contain every input.
        neighbours : Neighbours, str or array of int, shape (k, 2)
            "path", "complete", a relation, or index pairs.

        Examples
        --------
        >>> q = Query.custom([0, 1, 2], [(-0.5, 1.5), (1.5, 2.5)], [(0, 1), (1, 2)])
        >>> q.outputs.tolist(), q.home.tolist()
        ([0.5, 2.0], [0, 0, 1])
        """
        true = read_increasing(inputs, "inputs")
        if len(true) < 2:
            raise QueryError("inputs", "hold at least two true answers", len(true))
        lower_edges = upper_edges = None
        released = read_numbers(outputs, "outputs")
        if released.ndim == 2 and released.shape[1] == 2:
            lower_edges, upper_edges = read_categories(released)
            released = (lower_edges + upper_edges) / 2
        released = read_increasing(released, "outputs")
        relation = _read_relation(neighbours, len(true))
        return cls("custom", true, released, relation, lower_edges, upper_edges)

    @classmethod
    def _extreme(cls, kind: str, lower: int, upper: int, categories: float, extend: float) -> Query:
        low, high = read_bounds(lower, upper)
        inputs = low + np.arange(require_few(high - low + 1, "upper"))
        neighbours = Neighbours.complete(len(inputs))
        return cls._on_grid(
            kind, inputs, neighbours, lower=low, upper=high, categories=categories, extend=extend
        )

    @classmethod
    def _on_grid(
        cls,
        kind: str,
        inputs: NDArray[Any],
        neighbours: Neighbours,
        step: float = 1.0,
        **arguments: Any,
    ) -> Query:
        """Build a query of evenly spaced answers, its categories centred on the valid range."""
        scale = read_real(arguments["categories"], "categories", 0, included=False)
        stretch = read_real(arguments["extend"], "extend", 1, included=True)
        centre = (float(inputs[0]) + float(inputs[-1])) / 2
        steps = (len(inputs) - 1) / scale
        require_few(steps, "categories")
        inside = math.floor(steps + GRID_TOLERANCE) + 1
        require_few(inside * stretch, "extend")
        beyond = math.ceil(inside * (stretch - 1) / 2 - GRID_TOLERANCE)
        total, width = require_few(inside + 2 * beyond, "categories"), scale * step
        if scale == 1 and beyond == 0:
            outputs: NDArray[Any] = inputs.copy()
        else:
            outputs = centre + width * (np.arange(total) - (total - 1) / 2)
        lower = outputs - width / 2
        entries = tuple(arguments.items())
        return cls(kind, inputs, outputs, neighbours, lower, lower + width, entries, step)

    def __post_init__(self) -> None:
        for array in (self.inputs, self.outputs, self.lower_edges, self.upper_edges):
            if array is not None:
                freeze(array)
        if self.neighbours.size != len(self.inputs):
            rule = f"cover the {len(self.inputs)} inputs"
            raise QueryError("neighbours", rule, self.neighbours.size)
        if self.lower_edges is not None:
            slack = EDGE_TOLERANCE * float(self.inputs[-1] - self.inputs[0])
            outside = (self.inputs < self.lower_edges[self.home] - slack) | (
                self.inputs > self.edges()[1][self.home] + slack
            )
            if outside.any():
                got = f"none around {self.inputs[outside][0]}"
                raise QueryError(
                    "outputs", "have a response category around every true answer", got=got
                )

    # -- what a query knows -----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(true answers, released answers): the shape of a mechanism's matrix."""
        return len(self.inputs), len(self.outputs)

    @property
    def is_square(self) -> bool:
        """True if the true answers are the released answers."""
        return len(self.inputs) == len(self.outputs) and bool((self.inputs == self.outputs).all())

    @cached_property
    def home(self) -> Integers:
        """Index of the output each input belongs to, shape (n,), non-decreasing.

        With categories it is the one that contains the input; an input on the edge between
        two goes to the one nearer the centre of the range, so that symmetric queries have
        symmetric homes. With plain values it is the nearest output.
        """
        lower, upper = self.edges()
        slack = EDGE_TOLERANCE * float(self.inputs[-1] - self.inputs[0])
        # Widened by the slack, every category holds the inputs on its edges: the first and the
        # last category that hold an input differ only there.
        first = np.searchsorted(upper + slack, self.inputs, side="left")
        last = np.searchsorted(lower - slack, self.inputs, side="right") - 1
        low_half = self.inputs <= (float(self.inputs[0]) + float(self.inputs[-1])) / 2
        home = np.where(low_half, np.maximum(first, last), np.minimum(first, last))
        return freeze(np.clip(home, 0, len(self.outputs) - 1).astype(np.int64))

    @property
    def sensitivity(self) -> float:
        """The largest distance between neighbouring true answers."""
        if self.step is not None:
            return self.neighbours.width * self.step
        gaps = (
            np.abs(self.inputs[high] - self.inputs[low]).max()
            for low, high in self.neighbours.blocks()
        )
        return float(max(gaps))

    def edges(self) -> tuple[Floats, Floats]:
        """Return the lower and upper edge of every output's category, shapes (m,) and (m,).

        Plain values get the interval halfway to the neighbouring values.
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
            rule = f"have the same inputs and outputs for {what}"
            raise QueryError("query", rule, got=repr(self))

    def require_path(self, hint: str = "") -> None:
        """Raise a `QueryError` unless neighbours are adjacent true answers, as in a count."""
        if not self.neighbours.is_path:
            rule = "have adjacent true answers as neighbours, as a count does"
            raise QueryError("query", rule, hint=hint, got=repr(self))

    def to_guesses(self) -> Query:
        """Return the query whose released answers are its true answers."""
        return self if self.is_square else Query.custom(self.inputs, self.inputs, self.neighbours)

    # -- identity ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Describe the query, JSON-ready; `from_dict` reads it back without loss."""
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
    def from_dict(cls, data: Mapping[str, Any]) -> Query:
        """Read the query that `to_dict` described; refuse missing and unknown entries.

        The description may come from a file that somebody else wrote: everything is checked
        as in the constructors, before any array is made.
        """
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if not isinstance(kind, str) or kind not in (*GRID_ARGUMENTS, "custom"):
            rule = f"name a query: {', '.join(GRID_ARGUMENTS)} or custom"
            raise QueryError("kind", rule, kind)
        custom = kind == "custom"
        needed = {"inputs", "outputs", "neighbours"} if custom else {*GRID_ARGUMENTS[kind]}
        optional = set() if custom else {"categories", "extend"}
        entries = {key: value for key, value in data.items() if key != "kind"}
        if not needed <= set(entries) <= needed | optional:
            rule = f"have exactly the entries {', '.join(sorted(needed))} besides its kind"
            raise QueryError("query", rule, got=f"{', '.join(map(str, entries)) or 'none'}")
        if custom:
            relation = Neighbours.from_dict(entries["neighbours"])
            return cls.custom(entries["inputs"], entries["outputs"], relation)
        built: Query = getattr(cls, kind)(**entries)
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
        hint = "For example tv.Query.count(40)."
        raise QueryError("query", "be a Query", hint=hint, got=describe_kind(query))


def _read_relation(neighbours: Neighbours | str | ArrayLike, size: int) -> Neighbours:
    if isinstance(neighbours, Neighbours):
        return neighbours
    if isinstance(neighbours, str):
        if neighbours not in ("path", "complete"):
            raise QueryError("neighbours", "be 'path', 'complete' or index pairs", neighbours)
        return Neighbours.path(size) if neighbours == "path" else Neighbours.complete(size)
    return Neighbours.explicit(size, neighbours)
