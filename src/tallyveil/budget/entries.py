"""Entries of a ledger, the append-only chain that they form, and the interface of its stores.

Every amount is an exact rational, written in one way only, and read back before it counts.

A store knows nothing of budgets. It runs a piece of work in one transaction, during which
nobody else appends, and keeps what the work appended only if the work ends well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from tallyveil.errors import ArgumentError, LedgerError, TallyveilError
from tallyveil.exact import exact_rational
from tallyveil.passwords import hide_in_command

FIRST = "0" * 64
"""What the first entry names as its predecessor."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Link:
    """One entry as stored: its text, and the digests that tie it to the entry before."""

    sequence: int
    dataset: str
    kind: str
    body: str
    previous: str
    digest: str

    @classmethod
    def after(cls, length: int, previous: str, dataset: str, kind: str, body: str) -> Link:
        """Build the link that follows a chain of `length` links with last digest `previous`."""
        bare = cls(length + 1, dataset, kind, body, previous, "")
        return cls(bare.sequence, dataset, kind, body, previous, bare.expected_digest())

    def expected_digest(self) -> str:
        """Return the SHA-256 of everything else in this link, in one unambiguous encoding."""
        parts = [self.sequence, self.dataset, self.kind, self.body, self.previous]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()

    def is_intact(self) -> bool:
        """Return True if every part has its type and the digest is right."""
        texts = (self.dataset, self.kind, self.body, self.previous, self.digest)
        kinds = type(self.sequence) is int and all(type(text) is str for text in texts)
        return kinds and self.digest == self.expected_digest()


class StoreTransaction:
    """A view of the chain in an open transaction of a database; nobody else appends meanwhile.

    `place` precedes the names of tables, `mark` is the database's sign for a parameter, and
    `who` returns the name of the current account, as the database knows it.
    """

    def __init__(
        self, connection: Any, who: Callable[[], str], place: str = "", mark: str = "?"
    ) -> None:
        self.connection, self.who, self.place, self.mark = connection, who, place, mark

    def head(self) -> tuple[int, str]:
        """Return the number of entries and the digest of the last."""
        heads = self.connection.execute(f"SELECT length, digest FROM {self.place}head").fetchall()
        if len(heads) != 1:
            raise LedgerError("The ledger has lost its head record: it was tampered with.")
        return heads[0][0], heads[0][1]

    def links(self) -> list[Link]:
        """Return all entries in order."""
        columns = ", ".join(field.name for field in fields(Link))
        query = f"SELECT {columns} FROM {self.place}entries ORDER BY sequence"
        return [Link(*row) for row in self.connection.execute(query)]

    def append(self, link: Link) -> None:
        """Add one entry at the end; kept only if the transaction ends well."""
        values, mark = astuple(link), self.mark
        for query, parameters in (
            (f"INSERT INTO {self.place}entries VALUES ({', '.join([mark] * len(values))})", values),
            (
                f"UPDATE {self.place}head SET length = {mark}, digest = {mark}",
                (link.sequence, link.digest),
            ),
        ):
            if self.connection.execute(query, parameters).rowcount != 1:
                raise LedgerError("The database did not keep the entry. Nothing was spent.")


class LedgerStore(Protocol):
    """Interface of a ledger's database. `name` is its location, without any password."""

    name: str

    def create(self) -> None:
        """Create an empty chain unless there is one already."""

    def read(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` on a consistent read-only view."""

    def write(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` with the exclusive right to append, durable once this returns.

        `work` may be run again where the database asks for it; only the last run counts.
        """


def read_chain(transaction: StoreTransaction) -> list[Link]:
    """Return every link in order; refuse a chain that was edited."""
    links, head = transaction.links(), transaction.head()
    previous = FIRST
    for position, link in enumerate(links, start=1):
        if link.sequence != position or link.previous != previous:
            raise LedgerError(f"Entry {position} of the ledger is missing or out of its place.")
        if not link.is_intact():
            raise LedgerError(f"Entry {position} of the ledger was changed after it was written.")
        previous = link.digest
    if head != (len(links), previous):
        raise LedgerError("Entries were removed from the end of the ledger, or added to it.")
    return links


MOST_DIGITS = 400
"""An amount has at most this many digits above and below its fraction bar."""

AMOUNT = re.compile(rf"(0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})(/[1-9][0-9]{{0,{MOST_DIGITS - 1}}})?")
KINDS = ("open", "plan", "debit", "close")


def shown_rational(value: Fraction) -> str:
    """Format `value` as a short exact decimal if there is one, else as p/q.

    >>> shown_rational(Fraction(1, 10)), shown_rational(Fraction(2)), shown_rational(Fraction(1, 3))
    ('0.1', '2', '1/3')
    """
    if value.denominator >= 10**MOST_DIGITS or abs(value) >= 10**MOST_DIGITS:
        return f"about {Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    text = repr(float(value)) if abs(value) < 10**15 else ""
    text = text.removesuffix(".0")
    return text if text and Fraction(text) == value else str(value)


@dataclass(frozen=True)
class Stage:
    """One step that spends: its name and its exact epsilon."""

    name: str
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_rational(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Debit:
    """The planned spending of a release, stage by stage, and its certified mechanisms."""

    columns: tuple[str, ...]
    stages: tuple[Stage, ...]
    delta: Fraction = Fraction(0)
    mechanism: tuple[str, ...] = ()
    certificate: tuple[str, ...] = ()
    command: str = ""
    release: str = ""
    request: str = ""
    """Identifies a request that a caller may repeat: a ledger debits it once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", exact_rational(self.delta, "delta"))

    @property
    def epsilon(self) -> Fraction:
        """The exact sum over the stages."""
        return sum((stage.epsilon for stage in self.stages), Fraction(0))

    def body(self) -> dict[str, Any]:
        """Return the content of the entry; every amount is an exact rational."""
        data = asdict(self)
        if not self.stages or any(stage.epsilon <= 0 for stage in self.stages):
            raise ArgumentError("stages", "each spend an epsilon greater than 0")
        data["stages"] = [
            {"name": stage.name, "epsilon": write_amount(stage.epsilon, "epsilon")}
            for stage in self.stages
        ]
        epsilon, delta = write_amount(self.epsilon, "epsilon"), write_amount(self.delta, "delta")
        command = hide_in_command(self.command)
        if not self.request:
            del data["request"]
        return data | {"epsilon": epsilon, "delta": delta, "command": command}


@dataclass(frozen=True)
class Entry:
    """One line of the ledger, read back."""

    sequence: int
    dataset: str
    kind: str
    digest: str
    body: dict[str, Any]

    @property
    def epsilon(self) -> Fraction:
        """The epsilon this entry opens or spends."""
        return _read_amount(self.body.get("epsilon", "0"))

    @property
    def delta(self) -> Fraction:
        """The delta this entry opens or spends."""
        return _read_amount(self.body.get("delta", "0"))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """The epsilon of every stage that this entry spends or plans."""
        if self.kind == "plan":
            return tuple(_read_amount(text) for text in self.body["epsilons"])
        return tuple(_read_amount(stage["epsilon"]) for stage in self.body.get("stages", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data: readable numbers, each with its exact rational."""
        body = dict(self.body)
        if isinstance(body.get("command"), str):  # an earlier program kept more passwords
            body["command"] = hide_in_command(body["command"])
        if "stages" in body:
            body["stages"] = [_show_amounts(stage) for stage in body["stages"]]
        head = {"entry": self.sequence, "dataset": self.dataset, "kind": self.kind}
        return head | _show_amounts(body) | {"digest": self.digest}


def _show_amounts(body: dict[str, Any]) -> dict[str, Any]:
    """Return `body` with a readable number for every amount, and the exact one."""
    shown = dict(body)
    for name in ("epsilon", "delta"):
        if name in body:
            shown[name], shown[f"{name}_exact"] = float(Fraction(body[name])), body[name]
    return shown


def write_amount(value: Fraction, argument: str) -> str:
    """Format an amount for a ledger; refuse one that could not be read back.

    >>> write_amount(Fraction(1, 10), "epsilon")
    '1/10'
    """
    if not 0 <= value <= 10**MOST_DIGITS or value.denominator >= 10**MOST_DIGITS:
        rule = f"be at least 0 and a fraction of numbers of at most {MOST_DIGITS} digits"
        raise ArgumentError(argument, rule)
    return str(value)


def read_entry(link: Link) -> Entry:
    """Read the entry in a link; refuse amounts that contradict each other."""
    try:
        body = json.loads(link.body)
        entry = Entry(link.sequence, link.dataset, link.kind, link.digest, body)
        amounts = {name: _read_amount(body[name]) for name in ("epsilon", "delta") if name in body}
        amounts_expected = 2 if link.kind in ("open", "debit") else 0
        is_sound = link.kind in KINDS and len(amounts) == amounts_expected
        if link.kind in ("plan", "debit"):
            is_sound &= bool(entry.epsilons) and min(entry.epsilons) > 0
        if link.kind == "debit":
            is_sound &= sum(entry.epsilons) == amounts["epsilon"]
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        is_sound = False
    if not is_sound:
        raise LedgerError(f"Entry {link.sequence} of the ledger is damaged.")
    return entry


@lru_cache(maxsize=4096)
def _read_amount(text: Any) -> Fraction:
    """Read a rational in canonical form, or raise a `ValueError`."""
    amount = Fraction(text) if isinstance(text, str) and AMOUNT.fullmatch(text) else None
    if amount is None or str(amount) != text:
        raise ValueError
    return amount


@contextmanager
def say_spent() -> Iterator[list[Entry | None]]:
    """Note on any error after a debit that the budget is spent.

    Gives a list for the entry, which is empty, or holds None, as long as nothing was debited.
    """
    debited: list[Entry | None] = []
    try:
        yield debited
    except Exception as problem:
        for entry in filter(None, debited):
            spent = f"The budget was spent before that, by entry {entry.sequence} of the ledger."
            if isinstance(problem, TallyveilError) and not isinstance(problem, ImportError):
                problem.args = (f"{problem} {spent}",)
            else:
                problem.add_note(spent)
        raise
