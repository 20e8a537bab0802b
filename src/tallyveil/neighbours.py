"""Neighbour relations: the true answers that one person can turn into each other.

A relation is stored compactly: a band (a path is a band of width one), a complete graph, or a
list of index pairs. Nothing here is ever an n by n table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Integers, freeze
from tallyveil.errors import QueryError, describe_kind
from tallyveil.exact import is_whole

PAIRS_PER_BLOCK = 256
"""Listed pairs that `blocks` hands out at once."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """A symmetric neighbour relation on the indices 0..size-1.

    Build one with `path`, `band`, `complete` or `explicit`. Every relation has at least one
    pair, because a relation without pairs would make any mechanism private.

    Attributes
    ----------
    kind : str
        "band", "complete" or "explicit".
    size : int
        The number of indices, at least 2.
    width : int
        The largest distance between two neighbours, in 1..size-1.
    listed : array of int, shape (count, 2), or None
        The pairs of an explicit relation: each once, lower index first, in increasing order.

    Examples
    --------
    >>> Neighbours.path(4).pairs.tolist()
    [[0, 1], [1, 2], [2, 3]]
    >>> Neighbours.complete(3).pairs.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """

    kind: Literal["band", "complete", "explicit"]
    size: int
    width: int
    listed: Integers | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("band", "complete", "explicit"):
            raise QueryError("neighbours", "be of kind 'band', 'complete' or 'explicit'", self.kind)
        _require_size(self.size)
        _require_width(self.width, most=self.size - 1)
        if (self.kind == "explicit") != (self.listed is not None):
            raise QueryError("neighbours", "list pairs if they are explicit, and only then")
        if self.kind == "complete" and self.width != self.size - 1:
            raise QueryError("neighbours", "have width size - 1 if all are neighbours", self.width)

    @classmethod
    def path(cls, size: int) -> Neighbours:
        """Make indices one apart neighbours: what one person does to a count."""
        return cls.band(size, 1)

    @classmethod
    def band(cls, size: int, width: int) -> Neighbours:
        """Make indices at most `width` apart neighbours: what one person does to a mean.

        Parameters
        ----------
        size : int
            The number of indices, at least 2.
        width : int
            At least 1. From size - 1 on, all pairs are neighbours.
        """
        _require_size(size)
        _require_width(width)
        if width >= size - 1 > 1:
            return cls.complete(size)
        return cls("band", int(size), int(min(width, size - 1)))

    @classmethod
    def complete(cls, size: int) -> Neighbours:
        """Make all pairs neighbours: what one person does to a maximum, minimum or median."""
        _require_size(size)
        return cls("complete", int(size), int(size) - 1)

    @classmethod
    def explicit(cls, size: int, pairs: ArrayLike) -> Neighbours:
        """Make the given index pairs neighbours, in either order, repeated or not.

        Parameters
        ----------
        size : int
            The number of indices, at least 2.
        pairs : array of int, shape (k, 2)
            Two different indices in 0..size-1 each, k >= 1.
        """
        _require_size(size)
        array = _read_pairs(pairs)
        outside = array[(array < 0) | (array >= size)]
        if len(outside):
            raise QueryError("neighbours", f"index inputs 0..{size - 1}", int(outside[0]))
        if (array[:, 0] == array[:, 1]).any():
            raise QueryError("neighbours", "pair two different inputs")
        unique = freeze(np.unique(np.sort(array.astype(np.int64), axis=1), axis=0))
        return cls("explicit", int(size), int((unique[:, 1] - unique[:, 0]).max()), unique)

    @cached_property
    def pairs(self) -> Integers:
        """Every pair (i, k) with i < k, shape (count, 2); use `blocks` for large graphs."""
        if self.listed is not None:
            return self.listed
        first = [np.arange(self.size - step) for step in range(1, self.width + 1)]
        both = [np.column_stack([low, low + step]) for step, low in enumerate(first, start=1)]
        joined = np.concatenate(both).astype(np.int64)
        return freeze(joined[np.lexsort((joined[:, 1], joined[:, 0]))])

    @property
    def count(self) -> int:
        """The number of unordered pairs."""
        if self.listed is not None:
            return len(self.listed)
        return self.width * self.size - self.width * (self.width + 1) // 2

    @property
    def is_path(self) -> bool:
        """True if neighbours are exactly the adjacent indices, in any notation."""
        return self.width == 1 and self.count == self.size - 1

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yield index pairs (low, high) that cover every neighbour pair in whole-array steps.

        ``matrix[low]`` and ``matrix[high]`` hold neighbouring rows side by side. Band and
        complete graphs yield one pair of slices per step, so memory stays O(size).
        """
        if self.listed is not None:
            for start in range(0, len(self.listed), PAIRS_PER_BLOCK):
                part = self.listed[start : start + PAIRS_PER_BLOCK]
                yield part[:, 0], part[:, 1]
            return
        for step in range(1, self.width + 1):
            yield slice(0, self.size - step), slice(step, self.size)

    def ordered_blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yield every block of `blocks` in both orders: (low, high), then (high, low)."""
        for low, high in self.blocks():
            yield low, high
            yield high, low

    def to_dict(self) -> dict[str, Any]:
        """Describe the relation, JSON-ready; `from_dict` reads it back."""
        if self.listed is not None:
            return {"kind": "explicit", "size": self.size, "pairs": self.listed.tolist()}
        return {"kind": self.kind, "size": self.size, "width": self.width}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Neighbours:
        """Read the relation that `to_dict` described; refuse anything else.

        The description may come from a file that somebody else wrote. A width outside
        1..size-1 is refused rather than corrected: with a width of 0 every file would be
        proved private.
        """
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if kind not in ("band", "complete", "explicit"):
            raise QueryError("neighbours", "be of kind 'band', 'complete' or 'explicit'", kind)
        entries = {"kind", "size", "pairs" if kind == "explicit" else "width"}
        if set(data) != entries:
            raise QueryError("neighbours", f"have exactly the entries {', '.join(sorted(entries))}")
        if kind == "explicit":
            return cls.explicit(data["size"], data["pairs"])
        return cls(kind, data["size"], data["width"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Neighbours) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.size, self.width, self.count))

    def __repr__(self) -> str:
        words = {"band": f"at most {self.width} apart", "complete": "all pairs"}
        return f"Neighbours({words.get(self.kind, f'{self.count} pairs')} of {self.size})"


def _require_size(size: Any) -> None:
    if not is_whole(size) or size < 2:
        raise QueryError("neighbours", "relate a whole number of inputs, at least 2", size)


def _require_width(width: Any, most: int | None = None) -> None:
    if not is_whole(width) or width < 1 or (most is not None and width > most):
        limit = "" if most is None else f" and at most {most}"
        rule = f"have a whole band width of at least 1{limit}"
        raise QueryError("neighbours", rule, width)


def _read_pairs(pairs: Any) -> Integers:
    """Return `pairs` as an integer array of shape (k, 2), k >= 1."""
    rule = "be pairs of input indices, shape (k, 2)"
    try:
        listed = pairs if isinstance(pairs, np.ndarray) else [tuple(pair) for pair in pairs]
        array = np.asarray(listed)
    except (TypeError, ValueError):
        raise QueryError("neighbours", rule, got=describe_kind(pairs)) from None
    if array.size == 0:
        raise QueryError("neighbours", "hold at least one pair of input indices")
    if array.ndim != 2 or array.shape[1] != 2:
        raise QueryError("neighbours", rule, got=f"shape {array.shape}")
    # NumPy would read True in a list of integers as 1.
    mixed = listed is not pairs and not all(map(is_whole, chain.from_iterable(listed)))
    if mixed or not np.issubdtype(array.dtype, np.integer):
        raise QueryError("neighbours", "be pairs of whole numbers", got="another kind of entry")
    return array
