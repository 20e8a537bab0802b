"""Which true answers one person can turn into which: the graph privacy is measured on.

Stored compactly: a band (a path is a band of width one), a complete graph, or an explicit
list of index pairs. Nothing here is ever an n by n table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.errors import QueryError

__all__ = ["Neighbours"]

Kind = Literal["band", "complete", "explicit"]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """A symmetric neighbour relation on the indices 0..size-1.

    >>> Neighbours.path(4).pairs.tolist()
    [[0, 1], [1, 2], [2, 3]]
    >>> Neighbours.complete(3).pairs.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """

    kind: Kind
    size: int
    width: int = 0
    listed: NDArray[np.int64] | None = None

    @classmethod
    def path(cls, size: int) -> Neighbours:
        """Indices one apart: what one person does to a count."""
        return cls.band(size, 1)

    @classmethod
    def band(cls, size: int, width: int) -> Neighbours:
        """Indices at most `width` apart: what one person does to a mean."""
        if width < 1:
            raise QueryError("neighbours", "have a band width of at least 1", width)
        if width >= size - 1 > 1:
            return cls.complete(size)
        return cls("band", size, min(width, size - 1))

    @classmethod
    def complete(cls, size: int) -> Neighbours:
        """All pairs: what one person does to a maximum, a minimum or a median."""
        return cls("complete", size, size - 1)

    @classmethod
    def explicit(cls, size: int, pairs: ArrayLike) -> Neighbours:
        """The given index pairs, in either order, repeated or not."""
        array = np.asarray(pairs)
        if array.size == 0:
            raise QueryError("neighbours", "hold at least one pair of input indices")
        if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
            raise QueryError("neighbours", "be pairs of input indices, shape (k, 2)", array.shape)
        if array.min() < 0 or array.max() >= size:
            raise QueryError("neighbours", f"index inputs 0..{size - 1}", int(array.max()))
        if (array[:, 0] == array[:, 1]).any():
            raise QueryError("neighbours", "pair two different inputs")
        unique = np.unique(np.sort(array.astype(np.int64), axis=1), axis=0)
        unique.setflags(write=False)
        return cls("explicit", size, int((unique[:, 1] - unique[:, 0]).max()), unique)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Every pair (i, k) with i < k, shape (count, 2); prefer `blocks` for large graphs."""
        if self.listed is not None:
            return self.listed
        first = [np.arange(self.size - step) for step in range(1, self.width + 1)]
        both = [np.column_stack([low, low + step]) for step, low in enumerate(first, start=1)]
        joined = np.concatenate(both).astype(np.int64) if both else np.empty((0, 2), np.int64)
        ordered = joined[np.lexsort((joined[:, 1], joined[:, 0]))]
        ordered.setflags(write=False)
        return ordered

    @property
    def count(self) -> int:
        """How many unordered pairs there are."""
        if self.listed is not None:
            return len(self.listed)
        return self.width * self.size - self.width * (self.width + 1) // 2

    @property
    def is_path(self) -> bool:
        """Whether neighbours are exactly the adjacent indices, however that was stated."""
        return self.width == 1 and self.count == self.size - 1

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Index pairs (low, high) that cover every neighbour pair in whole-array steps.

        ``matrix[low]`` and ``matrix[high]`` hold neighbouring rows side by side. Band and
        complete graphs yield one pair of slices per step, so memory stays O(size).
        """
        if self.listed is not None:
            for start in range(0, len(self.listed), 4096):
                part = self.listed[start : start + 4096]
                yield part[:, 0], part[:, 1]
            return
        for step in range(1, self.width + 1):
            yield slice(0, self.size - step), slice(step, self.size)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description; `from_dict` reads it back."""
        if self.listed is not None:
            return {"kind": "explicit", "size": self.size, "pairs": self.listed.tolist()}
        return {"kind": self.kind, "size": self.size, "width": self.width}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Neighbours:
        """The relation that `to_dict` described."""
        if data["kind"] == "explicit":
            return cls.explicit(data["size"], data["pairs"])
        if data["kind"] == "complete":
            return cls.complete(data["size"])
        return cls("band", data["size"], data["width"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Neighbours) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.size, self.width, self.count))

    def __repr__(self) -> str:
        words = {"band": f"at most {self.width} apart", "complete": "all pairs"}
        return f"Neighbours({words.get(self.kind, f'{self.count} pairs')} of {self.size})"
