"""What an experiment is: something computed, drawn, and held against what a paper printed.

A `Finding` is one claim of a paper next to what we get. It can fail: a finding that does not
hold and has no known reason makes the experiment's verdict "differs, not explained", and the
command end with exit code 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tallyveil.papers.harness.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Context",
    "Experiment",
    "Finding",
    "Result",
    "Table",
    "Verdict",
    "holds",
    "improves",
    "number",
    "numbers",
    "skipped",
]

Item = TypeVar("Item")
Verdict = Literal["matches", "differs", "unexplained"]


@dataclass(frozen=True)
class Table:
    """Rows under named columns: what becomes one CSV file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
        """A table from any rows."""
        return cls(tuple(columns), tuple(tuple(row) for row in rows))


@dataclass(frozen=True)
class Finding:
    """One claim: what the paper says, what we get, whether they agree.

    `agrees` is None where there is nothing to hold it against (the paper's own data could not
    be had). `reason` says why a difference is known and right, such as a misprint. `ours`
    marks a claim that goes beyond the paper: `paper` then holds the figure that was beaten.
    """

    claim: str
    paper: str
    got: str
    agrees: bool | None
    reason: str = ""
    ours: bool = False

    @property
    def word(self) -> str:
        """The finding's own verdict in a word or two."""
        if self.agrees is None:
            return "not comparable"
        if self.ours:
            return "better" if self.agrees else "NOT better"
        return "agrees" if self.agrees else "differs"


def number(claim: str, paper: float, got: float, within: float, reason: str = "") -> Finding:
    """A printed number and ours: they agree if at most `within` apart.

    >>> number("pi", 3.14, 3.14159, within=0.005).agrees
    True
    """
    agrees = bool(math.isfinite(got) and abs(got - paper) <= within * (1 + 1e-9))
    return Finding(claim, f"{paper:.6g}", f"{got:.6g}", agrees, reason)


def numbers(
    claim: str, paper: Sequence[float], got: Sequence[float], within: float, reason: str = ""
) -> Finding:
    """Many printed numbers and ours at once: they agree if no pair is further than `within`.

    >>> numbers("first two", [1.0, 2.0], [1.0, 2.5], within=0.1).got
    'largest difference 0.5'
    """
    if len(paper) != len(got):
        raise ValueError("as many numbers as printed are needed")
    worst = max(abs(float(a) - float(b)) for a, b in zip(paper, got, strict=True))
    text = f"largest difference {worst:.2g}"
    return Finding(claim, f"{len(paper)} numbers", text, worst <= within * (1 + 1e-9), reason)


def holds(claim: str, got: str, true: Any, reason: str = "") -> Finding:
    """A statement of the paper in words, and whether it is true of what we computed."""
    return Finding(claim, "stated", got, bool(true), reason)


def improves(claim: str, paper: str, got: str, true: Any, reason: str = "") -> Finding:
    """A claim of ours that goes beyond the paper, and whether this run bears it out."""
    return Finding(claim, paper, got, bool(true), reason, ours=True)


def skipped(claim: str, paper: str, got: str, reason: str) -> Finding:
    """A printed value that cannot be held against ours here, and why."""
    return Finding(claim, paper, got, None, reason)


@dataclass(frozen=True)
class Result:
    """What an experiment found: tables, a picture, and the findings that give the verdict."""

    tables: dict[str, Table]
    draw: Callable[[], Figure]
    findings: tuple[Finding, ...]
    data: str = ""
    """Which data it ran on, where the paper used data: real or a generated stand-in."""

    @property
    def verdict(self) -> Verdict:
        """Matches; differs for known reasons; or differs and nobody knows why."""
        failed = [finding for finding in self.findings if finding.agrees is False]
        if any(not finding.reason for finding in failed):
            return "unexplained"
        return "differs" if failed else "matches"

    @property
    def verdict_line(self) -> str:
        """The verdict in one sentence, with the reasons where it differs."""
        failed = [finding for finding in self.findings if finding.agrees is False]
        beside = f" ({self.data})" if self.data else ""
        if not failed:
            partly = any(finding.agrees is None for finding in self.findings)
            return "matches the paper" + (" where it can be compared" if partly else "") + beside
        if self.verdict == "differs":
            reasons = list(dict.fromkeys(finding.reason for finding in failed))
            return f"differs from the print{beside}: " + " ".join(reasons)
        open_ones = "; ".join(finding.claim for finding in failed if not finding.reason)
        return f"DIFFERS, NOT EXPLAINED{beside}: {open_ones}"


@dataclass(frozen=True)
class Context:
    """What an experiment may use: how thorough to be, which data, whom to tell of progress."""

    quick: bool = False
    data: Data = field(default_factory=Data)
    seed: int = 1
    tell: Callable[[int, int], None] = lambda done, total: None

    def track(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items one by one, reporting how far along we are."""
        every = list(items)
        self.tell(0, len(every))
        for done, item in enumerate(every, 1):
            yield item
            self.tell(done, len(every))


@dataclass(frozen=True)
class Experiment:
    """One table, figure or claim of a paper, and the function that computes it again.

    `paper` is "000" to "003"; `item` is what the paper calls it ("Figure 9", "Table 3",
    "Section 8").
    """

    id: str
    paper: str
    item: str
    title: str
    section: str
    run: Callable[[Context], Result]

    def is_figure(self, which: str) -> bool:
        """Whether this is the figure with that number."""
        return self.item.lower() == f"figure {which.strip().lower()}"

    def is_table(self, which: str) -> bool:
        """Whether this is the table with that number."""
        return self.item.lower() == f"table {which.strip().lower()}"
