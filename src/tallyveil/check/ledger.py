"""Comparison of a release with the ledger's entry that paid for it."""

from __future__ import annotations

from pathlib import Path

from tallyveil.budget.entries import Entry, shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.check.findings import Finding
from tallyveil.errors import LedgerError, PackageError
from tallyveil.release.folder import RECEIPT
from tallyveil.release.methods.base import require
from tallyveil.release.receipt import Receipt
from tallyveil.release.records import LedgerRecord
from tallyveil.release.release import read_receipt
from tallyveil.untrusted import escape_controls


def check_ledger(folder: str | Path, ledger: str | Path | Ledger, dataset: str) -> Finding:
    """Look for the release in `folder` in a ledger: found, not found, or different.

    Parameters
    ----------
    folder : str or Path
        A release folder, or the folder of a ladder.
    ledger : path or Ledger
        The budget ledger; its whole chain is verified first.
    dataset : str
        The dataset's name in it.

    Returns
    -------
    Finding
        It is fine if the ledger's entry has the digest, dataset, accounting, release, columns,
        amount and mechanisms of the receipt. The amount holds the contributions: a unit that
        may be counted twice is charged twice.
    """
    root = Path(folder)
    levels = [] if (root / RECEIPT).exists() else sorted(root.glob("level-*"))
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    try:
        book.verify()
        entries = book.history(dataset)
        words = [_compare(read_receipt(place), entries, dataset) for place in levels or [root]]
    except (PackageError, LedgerError) as problem:
        return Finding("ledger", False, escape_controls(str(problem)))
    return Finding("ledger", True, escape_controls(words[0]))


def _compare(receipt: Receipt, entries: list[Entry], dataset: str) -> str:
    named = receipt.ledger
    require(named is not None, "not found: the release says that it was entered in no ledger")
    if named is None:
        return ""
    debited = next((entry for entry in entries if entry.digest == named.digest), None)
    if debited is None:
        same = [entry for entry in entries if entry.body.get("release") == receipt.release]
        require(not same, "different: the ledger's entry of this release has another digest")
        raise PackageError(f"not found: no entry of {dataset!r} has the digest of the receipt")
    body = debited.body
    hashes = {stage.sha256 for stage in receipt.stages}
    level = receipt.level
    is_first = level <= 1
    paid = debited.epsilon == receipt.epsilon if is_first else debited.epsilon > receipt.epsilon
    for holds, what in (
        ((debited.dataset, debited.sequence) == (named.dataset, named.entry), "dataset or number"),
        (LedgerRecord.of(debited) == named, "accounting or total"),
        (body.get("release") == receipt.release, "release"),
        (body.get("columns") == [column.name for column in receipt.columns], "columns"),
        (paid, "amount"),
        (debited.delta == receipt.delta, "delta"),
        (level > 0 or set(body.get("mechanism", ())) <= hashes, "mechanism"),
    ):
        require(holds, f"different: the ledger's entry {debited.sequence} has another {what}")
    return (
        f"found: entry {debited.sequence} of {dataset!r} paid epsilon "
        f"{shown_rational(debited.epsilon)} for this release"
    )
