"""What a check found, and how a check that cannot be carried out is reported."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tallyveil.errors import PackageError, TallyveilError
from tallyveil.tables.base import Table
from tallyveil.untrusted import escape_controls

__all__ = ["Finding", "remember", "try_check"]

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
    found: list[Table | Exception] = []

    def give() -> Table:
        if not found:
            try:
                found.append(read())
            except UNREADABLE as problem:
                found.append(problem)
        (known,) = found
        if isinstance(known, Exception):
            raise known
        return known

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
