"""The privacy budget of every dataset: debited before output, exactly, once and for all.

A ledger is a chain of entries: a dataset is opened with a total, releases are debited, a
dataset may be closed. What is spent is always added up from the entries, in Fractions, inside
the transaction that appends the next one, so no rounding, no crash and no race overspends.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from tallyveil._version import __version__
from tallyveil.budget.sqlite import FIRST, LedgerStore, Link, StoreTransaction, open_store
from tallyveil.errors import ArgumentError, BudgetError, LedgerError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon

__all__ = ["Account", "Debit", "Entry", "Ledger", "Stage", "shown_rational"]


def shown_rational(value: Fraction) -> str:
    """`value` as people write it: an exact decimal where there is a short one, else p/q.

    >>> shown_rational(Fraction(1, 10)), shown_rational(Fraction(2)), shown_rational(Fraction(1, 3))
    ('0.1', '2', '1/3')
    """
    text = repr(float(value)) if abs(value) < 10**15 else ""
    text = text.removesuffix(".0")
    return text if text and Fraction(text) == value else str(value)


@dataclass(frozen=True)
class Stage:
    """One step that spends: its name and its exact epsilon."""

    name: str
    epsilon: Fraction


@dataclass(frozen=True)
class Debit:
    """What a release is about to spend, stage by stage, and what it will draw from."""

    columns: tuple[str, ...]
    stages: tuple[Stage, ...]
    delta: Fraction = Fraction(0)
    mechanism: tuple[str, ...] = ()
    certificate: tuple[str, ...] = ()
    command: str = ""
    release: str = ""

    @property
    def epsilon(self) -> Fraction:
        """The exact sum over the stages."""
        return sum((stage.epsilon for stage in self.stages), Fraction(0))

    def body(self) -> dict[str, Any]:
        """The entry's text as data; every amount is an exact rational."""
        data = asdict(self)
        data["stages"] = [{"name": s.name, "epsilon": str(s.epsilon)} for s in self.stages]
        data |= {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        return data


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
        return Fraction(self.body.get("epsilon", "0"))

    @property
    def delta(self) -> Fraction:
        """The delta this entry opens or spends."""
        return Fraction(self.body.get("delta", "0"))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: numbers for people, and the exact rationals beside them."""
        fields = dict(self.body)
        if "stages" in fields:
            fields["stages"] = [
                {
                    "name": s["name"],
                    "epsilon": float(Fraction(s["epsilon"])),
                    "epsilon_exact": s["epsilon"],
                }
                for s in fields["stages"]
            ]
        for name in ("epsilon", "delta"):
            if name in fields:
                fields[f"{name}_exact"] = fields[name]
                fields[name] = float(Fraction(fields[name]))
        head = {"entry": self.sequence, "dataset": self.dataset, "kind": self.kind}
        return head | fields | {"digest": self.digest}


@dataclass(frozen=True)
class Account:
    """Where one dataset stands."""

    dataset: str
    epsilon: Fraction
    delta: Fraction
    spent_epsilon: Fraction
    spent_delta: Fraction
    debits: int
    closed: bool

    @property
    def remaining_epsilon(self) -> Fraction:
        """What can still be spent."""
        return self.epsilon - self.spent_epsilon

    @property
    def remaining_delta(self) -> Fraction:
        """The delta that can still be spent."""
        return self.delta - self.spent_delta

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: numbers for people, and the exact rationals beside them."""
        amounts = {
            "epsilon": self.epsilon,
            "spent_epsilon": self.spent_epsilon,
            "remaining_epsilon": self.remaining_epsilon,
            "delta": self.delta,
            "spent_delta": self.spent_delta,
            "remaining_delta": self.remaining_delta,
        }
        data: dict[str, Any] = {"dataset": self.dataset, "debits": self.debits}
        data |= {"closed": self.closed}
        data |= {name: float(value) for name, value in amounts.items()}
        return data | {f"{name}_exact": str(value) for name, value in amounts.items()}


class Ledger:
    """The budget book at `location` (a SQLite file).

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> book = Ledger.create(folder.name + "/budget.db")
    >>> _ = book.open("cases", epsilon=1)
    >>> for _ in range(10):
    ...     _ = book.debit("cases", Debit(("n",), (Stage("draw", Fraction(1, 10)),)))
    >>> book.account("cases").remaining_epsilon
    Fraction(0, 1)
    >>> folder.cleanup()
    """

    def __init__(self, location: str | Path | LedgerStore) -> None:
        is_place = isinstance(location, (str, Path))
        self.store: LedgerStore = open_store(location) if is_place else location  # type: ignore[arg-type, assignment]

    @classmethod
    def create(cls, location: str | Path | LedgerStore) -> Ledger:
        """The ledger at `location`, made if it is not there yet."""
        ledger = cls(location)
        ledger.store.create()
        return ledger

    # -- writing ------------------------------------------------------------------------------

    def open(self, dataset: str, epsilon: Epsilon, delta: Epsilon = 0) -> Account:
        """Give `dataset` its total budget, once."""
        _require_name(dataset)
        total, slack = exact_epsilon(epsilon), exact_delta(delta)
        with self.store.writing() as chain:
            if chain.links(dataset):
                raise LedgerError(
                    f"The dataset {dataset!r} is already in this ledger; a total is set once."
                )
            _append(chain, dataset, "open", {"epsilon": str(total), "delta": str(slack)})
        return self.account(dataset)

    def debit(self, dataset: str, debit: Debit) -> Entry:
        """Spend what `debit` asks for, or raise `BudgetError` and spend nothing.

        One transaction: read what is spent, compare exactly, append, force to disk. When
        this returns the amount is spent, whatever happens to the caller afterwards.
        """
        if not debit.stages or any(stage.epsilon <= 0 for stage in debit.stages):
            raise ArgumentError("stages", "each spend an epsilon greater than 0")
        if debit.delta < 0:
            raise ArgumentError("delta", "be at least 0")
        with self.store.writing() as chain:
            account = _account(dataset, _entries(chain.links(dataset)), self.store.name)
            _require_covered(account, debit)
            return _append(chain, dataset, "debit", debit.body())

    def close(self, dataset: str) -> Account:
        """Refuse every later debit of `dataset`, for good."""
        with self.store.writing() as chain:
            account = _account(dataset, _entries(chain.links(dataset)), self.store.name)
            if account.closed:
                raise LedgerError(f"The dataset {dataset!r} is closed already.")
            _append(chain, dataset, "close", {})
        return self.account(dataset)

    # -- reading ------------------------------------------------------------------------------

    def account(self, dataset: str) -> Account:
        """Where `dataset` stands."""
        with self.store.reading() as chain:
            return _account(dataset, _entries(chain.links(dataset)), self.store.name)

    def accounts(self) -> list[Account]:
        """Where every dataset stands, in the order they were opened."""
        with self.store.reading() as chain:
            entries = _entries(chain.links())
        names = dict.fromkeys(entry.dataset for entry in entries)
        return [
            _account(name, [e for e in entries if e.dataset == name], self.store.name)
            for name in names
        ]

    def history(self, dataset: str | None = None, kind: str | None = "debit") -> list[Entry]:
        """The entries in order: by default the debits."""
        with self.store.reading() as chain:
            entries = _entries(chain.links(dataset))
        if dataset is not None:
            _account(dataset, entries, self.store.name)
        return [entry for entry in entries if kind is None or entry.kind == kind]

    def verify(self) -> tuple[int, str]:
        """Check the whole chain; return its length and last digest, or raise `LedgerError`.

        Every digest is recomputed, every link must name the one before, and every balance is
        replayed. An entry that was changed, removed, inserted or reordered is found. Somebody
        who rewrites the whole file leaves a consistent chain: compare the digest, or the
        entry in a release's receipt, with a copy kept elsewhere.
        """
        with self.store.reading() as chain:
            links, head = chain.links(), chain.head()
        previous = FIRST
        for position, link in enumerate(links, start=1):
            if link.sequence != position or link.previous != previous:
                raise LedgerError(f"Entry {position} is missing or out of its place.")
            if link.digest != link.expected_digest():
                raise LedgerError(f"Entry {position} was changed after it was written.")
            previous = link.digest
        if head != (len(links), previous):
            raise LedgerError("Entries were removed from the end of the ledger.")
        self._replay(_entries(links))
        return head

    def _replay(self, entries: list[Entry]) -> None:
        for name in dict.fromkeys(entry.dataset for entry in entries):
            own = [entry for entry in entries if entry.dataset == name]
            account = _account(name, own, self.store.name)
            if account.remaining_epsilon < 0 or account.remaining_delta < 0:
                raise LedgerError(f"The dataset {name!r} is overspent.")
            kinds = [entry.kind for entry in own]
            if "open" in kinds[1:] or "close" in kinds[:-1]:
                raise LedgerError(f"The dataset {name!r} has entries out of order.")


def _append(chain: StoreTransaction, dataset: str, kind: str, body: dict[str, Any]) -> Entry:
    length, previous = chain.head()
    body = {
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        **body,
        "version": __version__,
        "who": _who(),
    }
    link = Link.after(length, previous, dataset, kind, json.dumps(body, sort_keys=True))
    chain.append(link)
    return Entry(link.sequence, dataset, kind, link.digest, body)


def _entries(links: Iterable[Link]) -> list[Entry]:
    entries = []
    for link in links:
        try:
            body = json.loads(link.body)
            entry = Entry(link.sequence, link.dataset, link.kind, link.digest, body)
            broken = entry.epsilon < 0 or entry.delta < 0
        except (ValueError, AttributeError, TypeError, ZeroDivisionError):
            broken = True
        if broken:
            raise LedgerError(f"Entry {link.sequence} of the ledger is damaged.")
        entries.append(entry)
    return entries


def _account(dataset: str, entries: list[Entry], ledger: str) -> Account:
    if not entries:
        raise LedgerError(
            f"The dataset {dataset!r} is not in the ledger {ledger}. Open it with: "
            "tallyveil ledger init --ledger FILE --dataset NAME --epsilon TOTAL"
        )
    if entries[0].kind != "open":
        raise LedgerError(f"The dataset {dataset!r} was never opened: the ledger is damaged.")
    debits = [entry for entry in entries if entry.kind == "debit"]
    return Account(
        dataset,
        entries[0].epsilon,
        entries[0].delta,
        sum((entry.epsilon for entry in debits), Fraction(0)),
        sum((entry.delta for entry in debits), Fraction(0)),
        len(debits),
        any(entry.kind == "close" for entry in entries),
    )


def _require_covered(account: Account, debit: Debit) -> None:
    if account.closed:
        raise BudgetError(f"The dataset {account.dataset!r} is closed. Nothing was spent.")
    for name, wanted, left in (
        ("epsilon", debit.epsilon, account.remaining_epsilon),
        ("delta", debit.delta, account.remaining_delta),
    ):
        if wanted > left:
            raise BudgetError(
                f"The budget of {account.dataset!r} does not cover this release: it costs "
                f"{name} {shown_rational(wanted)}, and {shown_rational(left)} remains of "
                f"{shown_rational(getattr(account, name))}. Nothing was spent."
            )


def _require_name(dataset: str) -> None:
    if not isinstance(dataset, str) or not dataset.strip() or not dataset.isprintable():
        raise ArgumentError("dataset", "be a name of at least one printable character", dataset)


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return "unknown"
