"""Findings of a check, and the report of a check that cannot be carried out."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tallyveil.errors import PackageError, TallyveilError
from tallyveil.tables.table import Table
from tallyveil.untrusted import escape_controls

FIGURE_SLACK = 2e-6
"""Slack of a stated figure, printed with six decimals, against the one worked out here."""

LONGEST_DETAIL = 300
NOT_COMPARED = (
    "The data and proofs check. The page was written by another version and was not compared, nor "
    "were the sentences of the receipt: do not rely on them. Write the page again with: tallyveil "
    "report FOLDER --out page.html"
)
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
"""Errors of reading and comparing documents of the wrong shape."""


@dataclass(frozen=True)
class Finding:
    """One checked item and its outcome.

    Attributes
    ----------
    name : str
        What was checked.
    ok : bool
        Whether it holds; false for what was not compared.
    detail : str
        What was seen, or what is wrong.
    compared : bool
        False for a page that another version of the program wrote.
    """

    name: str
    ok: bool
    detail: str
    compared: bool = True

    @property
    def mark(self) -> str:
        """The outcome in a word."""
        return "ok" if self.ok else "FAIL" if self.compared else "not compared"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding, JSON-ready."""
        skipped = {} if self.compared else {"compared": False}
        return {"check": self.name, "ok": self.ok, **skipped, "detail": self.detail}


class NotComparedError(PackageError):
    """A page that another version of the program wrote, so that this one cannot compare it."""


class Verdict(NamedTuple):
    """The outcome of all findings: the sentence, and the exit code of `tallyveil check`."""

    ok: bool
    sentence: str
    code: int


def judge(findings: Iterable[Finding]) -> Verdict:
    """Return the verdict: all holds, something does not, or only pages were not compared.

    >>> judge([Finding("page", False, "", compared=False)]).code
    3
    """
    failed = [finding for finding in findings if not finding.ok]
    if not failed:
        return Verdict(True, "This release checks.", 0)
    if any(finding.compared for finding in failed):
        return Verdict(False, "This release does NOT check.", 1)
    return Verdict(False, NOT_COMPARED, 3)


def remember(read: Callable[[], Table]) -> Callable[[], Table]:
    """Read the data once; an error is remembered and raised again."""
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
    """Run one check; a failure becomes its finding."""
    try:
        return Finding(name, True, escape_controls(check()))
    except NotComparedError as problem:
        return Finding(name, False, str(problem), compared=False)
    except PackageError as problem:
        return Finding(name, False, escape_controls(str(problem)))
    except UNREADABLE as problem:
        words = f"cannot be checked: {type(problem).__name__}: {problem}"
        return Finding(name, False, escape_controls(words[:LONGEST_DETAIL]))


def agrees(
    stated: Any, expected: Any, relative: float = FIGURE_SLACK, absolute: float = FIGURE_SLACK
) -> bool:
    """Compare a stated figure, or all of a record, with the one worked out here."""
    if type(stated) is not type(expected):
        return False
    if isinstance(expected, dict):
        stated, expected = (list(part.items()) for part in (stated, expected))
    if isinstance(expected, (list, tuple)):
        pairs = zip(stated, expected, strict=False)
        return len(stated) == len(expected) and all(
            agrees(*pair, relative, absolute) for pair in pairs
        )
    if not isinstance(expected, (int, float)):
        return bool(stated == expected)
    return bool(abs(stated - expected) <= absolute + relative * abs(expected))
