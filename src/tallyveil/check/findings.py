"""What a check found, and how a check that cannot be carried out is reported."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.errors import PackageError, TallyveilError
from tallyveil.tables.base import Table
from tallyveil.untrusted import escape_controls

__all__ = ["Finding", "is_close", "is_same_total", "remember", "try_check"]

FIGURE_SLACK = 2e-6
"""How far a stated figure, printed with six decimals, may be from the one worked out here."""

TOTAL_SLACK = 1e-10
"""By how much of itself a stated total may differ: sums of doubles differ in their last digits."""

LONGEST_DETAIL = 300
UNREADABLE = (
    TallyveilError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    csv.Error,
)
"""What reading and comparing documents of the wrong shape may raise."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, and how it came out."""

    name: str
    ok: bool
    detail: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"check": self.name, "ok": self.ok, "detail": self.detail}


def remember(read: Callable[[], Table]) -> Callable[[], Table]:
    """Read the data once, also where they cannot be read."""
    results: list[Table | Exception] = []

    def give() -> Table:
        if not results:
            try:
                results.append(read())
            except UNREADABLE as problem:
                results.append(problem)
        (result,) = results
        if isinstance(result, Exception):
            raise result
        return result

    return give


def try_check(name: str, check: Callable[[], str]) -> Finding:
    """Run one check; what goes wrong in it is its finding."""
    try:
        return Finding(name, True, escape_controls(check()))
    except PackageError as problem:
        return Finding(name, False, escape_controls(str(problem)))
    except UNREADABLE as problem:
        words = f"cannot be checked: {type(problem).__name__}: {problem}"
        return Finding(name, False, escape_controls(words[:LONGEST_DETAIL]))


def is_same_total(stated: Any, expected: Any) -> bool:
    """Whether stated totals are those worked out here; large ones have no more room than small."""
    return type(stated) is type(expected) and bool(
        np.allclose(stated, expected, rtol=TOTAL_SLACK, atol=FIGURE_SLACK)
    )


def is_close(stated: Any, expected: Any) -> bool:
    """Whether a stated figure is the one worked out here, as far as printed digits tell."""
    if type(stated) is not type(expected):
        return False
    if isinstance(expected, (bool, str)):
        return bool(stated == expected)
    first, second = np.asarray(stated, dtype=float), np.asarray(expected, dtype=float)
    return first.shape == second.shape and bool(
        np.allclose(first, second, rtol=FIGURE_SLACK, atol=FIGURE_SLACK)
    )
