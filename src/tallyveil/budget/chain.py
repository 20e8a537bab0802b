"""An append-only chain of entries, and what a ledger needs of the database that keeps it.

A store knows nothing of budgets. It runs a piece of work in one transaction, during which
nobody else appends, and keeps what the work appended only if the work ends well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tallyveil.errors import LedgerError

__all__ = ["FIRST", "LedgerStore", "Link", "StoreTransaction", "read_chain"]

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
        """The link that follows a chain of `length` links ending in digest `previous`."""
        bare = cls(length + 1, dataset, kind, body, previous, "")
        return cls(bare.sequence, dataset, kind, body, previous, bare.expected_digest())

    def expected_digest(self) -> str:
        """SHA-256 over everything else in this link, in one unambiguous writing."""
        parts = [self.sequence, self.dataset, self.kind, self.body, self.previous]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()

    def is_intact(self) -> bool:
        """Whether every part is of its kind and the digest is the one it should be."""
        texts = (self.dataset, self.kind, self.body, self.previous, self.digest)
        kinds = type(self.sequence) is int and all(type(text) is str for text in texts)
        return kinds and self.digest == self.expected_digest()


class StoreTransaction(Protocol):
    """A view of the chain during which nobody else appends."""

    def head(self) -> tuple[int, str]:
        """How many entries there are, and the digest of the last."""

    def links(self) -> list[Link]:
        """All entries in order."""

    def append(self, link: Link) -> None:
        """Add one entry at the end; kept only if the transaction ends well."""

    def who(self) -> str:
        """The account that is at work, as the store knows it."""


class LedgerStore(Protocol):
    """What a ledger needs of a database. `name` says where it is, without any password."""

    name: str

    def create(self) -> None:
        """Make an empty chain unless there is one already."""

    def read(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` on a consistent view, for looking only."""

    def write(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` with the exclusive right to append, durable once this returns.

        `work` may be run again where the database asks for it; only the last run counts.
        """


def read_chain(transaction: StoreTransaction) -> list[Link]:
    """Every link in order, or a `LedgerError` if one was changed, removed, added or moved."""
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
