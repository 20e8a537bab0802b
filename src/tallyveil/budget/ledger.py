"""Append-only ledger of each dataset's privacy budget.

Entries open a dataset, debit a release or close a dataset. Every debit verifies the whole chain
and sums the spent budget in exact fractions, in the transaction that appends the entry. Rounding,
crashes, races and edited entries therefore cannot overspend it.

Two budgets for one dataset protect it half as well, so a new name must differ visibly from
every name that a ledger has: not only by case, spaces, invisible characters or letters of
another alphabet that look the same.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallyveil._version import __version__
from tallyveil.budget.accounting import (
    ACCOUNTINGS,
    SMALLEST_DELTA,
    Account,
    check_plan,
    read_account,
)
from tallyveil.budget.entries import (
    Debit,
    Entry,
    LedgerStore,
    Link,
    StoreTransaction,
    read_chain,
    read_entry,
    write_amount,
)
from tallyveil.budget.postgresql import (
    KEEP_PASSWORDS,
    NOT_SHOWN,
    is_address,
    is_unknown_address,
)
from tallyveil.errors import ArgumentError, BudgetError, LedgerError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.untrusted import remove_invisible


class Ledger:
    """The ledger at `location`: a SQLite file, or ``postgresql://USER@HOST/DATABASE``.

    >>> import tempfile
    >>> from fractions import Fraction
    >>> from tallyveil.budget.entries import Stage
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
        """Open the ledger at `location`; create it if there is none."""
        ledger = cls(location)
        ledger.store.create()
        return ledger

    # -- writing ------------------------------------------------------------------------------

    def open(
        self, dataset: str, epsilon: Epsilon, delta: Epsilon = 0, accounting: str = "pure"
    ) -> Account:
        """Give `dataset` its total budget, once, under a name that looks like no other.

        `accounting` says how debits add up: ``"pure"`` by addition, ``"exact"`` by optimal
        composition of a plan that is made before the first debit (see `plan`), ``"zcdp"`` by
        zero-concentrated privacy. The last two need a delta.
        """
        total, slack = exact_epsilon(epsilon), exact_delta(delta)
        if accounting not in ACCOUNTINGS:
            raise ArgumentError("accounting", f"be one of: {', '.join(ACCOUNTINGS)}", accounting)
        if accounting != "pure" and not slack:
            hint = "A usual choice is far below one in the number of people, such as 1e-6."
            raise ArgumentError("delta", f"be above 0 for {accounting} accounting", hint=hint)
        if 0 < slack < SMALLEST_DELTA and accounting != "pure":
            raise ArgumentError("delta", "be at least 1e-30 for this accounting", delta)
        amounts = {"epsilon": write_amount(total, "epsilon"), "delta": write_amount(slack, "delta")}
        if accounting != "pure":
            amounts["accounting"] = accounting

        def work(chain: StoreTransaction) -> None:
            names = {link.dataset for link in read_chain(chain)}
            if dataset in names:
                raise LedgerError(
                    f"The dataset {dataset!r} is already in this ledger; a total is set once."
                )
            check_new_name(dataset, sorted(names))
            _append(chain, dataset, "open", amounts)

        self.store.write(work)
        return self.account(dataset)

    def plan(self, dataset: str, epsilons: Sequence[Epsilon]) -> Account:
        """Fix the epsilons of all stages that will ever be debited, before the first debit.

        For datasets with exact accounting. Together the stages must keep the total epsilon
        and delta by optimal composition. Each debited stage then takes the smallest place that
        is free and large enough.
        """
        places = [exact_epsilon(epsilon, "epsilons") for epsilon in epsilons]
        if not places:
            raise ArgumentError("epsilons", "name at least one stage")
        body = {"epsilons": [write_amount(place, "epsilons") for place in places]}

        def work(chain: StoreTransaction) -> None:
            account = self._stand(chain, dataset)
            if account.accounting != "exact":
                raise LedgerError(
                    f"The dataset {dataset!r} has {account.accounting} accounting; a plan is for "
                    "exact accounting."
                )
            if account.closed or account.debits or account.remaining_epsilon:
                raise LedgerError(
                    f"The dataset {dataset!r} is planned, debited or closed already; a plan is "
                    "made once, before the first debit."
                )
            check_plan(account, places)
            _append(chain, dataset, "plan", body)

        self.store.write(work)
        return self.account(dataset)

    def debit(self, dataset: str, debit: Debit) -> Entry:
        """Spend the cost of `debit`, or raise `BudgetError` and spend nothing.

        One transaction: check the whole chain, add up what is spent, compare exactly, append,
        force to disk. When this returns the amount is spent, even if the caller
        fails afterwards. A chain that does not hold is refused with a `LedgerError`. So is a debit
        whose `request` was debited before, from any process: a request is debited once.
        """
        body = debit.body()

        def work(chain: StoreTransaction) -> Entry:
            account = self._stand(chain, dataset)
            _require_new(chain, debit.request)
            _require_covered(account, debit)
            return _append(chain, dataset, "debit", body | account.terms)

        return self.store.write(work)

    def close(self, dataset: str) -> Account:
        """Refuse every later debit of `dataset`, for good."""

        def work(chain: StoreTransaction) -> None:
            if self._stand(chain, dataset).closed:
                raise LedgerError(f"The dataset {dataset!r} is closed already.")
            _append(chain, dataset, "close", {})

        self.store.write(work)
        return self.account(dataset)

    # -- reading ------------------------------------------------------------------------------

    def account(self, dataset: str) -> Account:
        """Return the account of `dataset`."""
        return self.store.read(lambda chain: self._stand(chain, dataset))

    def require_covered(self, dataset: str, debit: Debit) -> None:
        """Raise the `BudgetError` that `debit` would raise now; nothing is spent."""
        _require_covered(self.account(dataset), debit)

    def accounts(self) -> list[Account]:
        """Return the account of every dataset, in the order of opening."""
        links = self.store.read(read_chain)
        return [self._add_up(links, name) for name in dict.fromkeys(k.dataset for k in links)]

    def history(self, dataset: str | None = None, kind: str | None = "debit") -> list[Entry]:
        """Return the entries in order, by default the debits."""
        links = self.store.read(read_chain)
        if dataset is not None:
            self._add_up(links, dataset)
            links = [link for link in links if link.dataset == dataset]
        return [read_entry(link) for link in links if kind is None or link.kind == kind]

    def verify(self) -> tuple[int, str]:
        """Check the whole chain; return its length and last digest, or raise `LedgerError`.

        Every digest is recomputed, every link must name the one before, and every balance is
        replayed. An entry that was changed, removed, inserted or reordered is found. Somebody
        who rewrites the whole chain leaves a consistent one: compare the digest, or the
        entry in a release's receipt, with a copy kept elsewhere.
        """

        def work(chain: StoreTransaction) -> tuple[list[Link], tuple[int, str]]:
            return read_chain(chain), chain.head()

        links, head = self.store.read(work)
        for name in dict.fromkeys(link.dataset for link in links):
            self._add_up(links, name)
        return head

    def _stand(self, chain: StoreTransaction, dataset: str) -> Account:
        return self._add_up(read_chain(chain), dataset)

    def _add_up(self, links: list[Link], dataset: str) -> Account:
        """Return the account of a dataset from the entries of a chain, which must be consistent."""
        entries = [read_entry(link) for link in links if link.dataset == dataset]
        if not entries:
            raise _unknown(dataset, links, self.store.name)
        kinds = [entry.kind for entry in entries]
        is_ordered = kinds[0] == "open" and "open" not in kinds[1:]
        is_ordered &= "plan" not in kinds[2:] and "close" not in kinds[:-1]
        if not is_ordered or entries[0].body.get("accounting", "pure") not in ACCOUNTINGS:
            raise LedgerError(f"The dataset {dataset!r} has entries out of order.")
        account = read_account(dataset, entries)
        if not account.is_sound:
            raise LedgerError(f"The dataset {dataset!r} is overspent: the ledger is damaged.")
        return account


def open_store(location: str | Path) -> LedgerStore:
    """Return the store at `location`: the path of a file, or ``postgresql://USER@HOST/DATABASE``."""
    text = str(location)
    if isinstance(location, str) and is_address(text):
        from tallyveil.budget.postgresql import PostgresqlStore

        return PostgresqlStore(text)
    is_postgres = text.partition(":")[0].lower().startswith("postgres") and ":" in text
    if "://" in text or is_postgres or is_unknown_address(location):
        raise LedgerError(
            "A ledger is the path of a file, or an address: write postgresql://USER@HOST/DATABASE, "
            "as text. What was given is an address of another kind, or a connection string. "
            f"{NOT_SHOWN} {KEEP_PASSWORDS}"
        )
    from tallyveil.budget.sqlite import SqliteStore

    return SqliteStore(location)


def _append(chain: StoreTransaction, dataset: str, kind: str, body: dict[str, Any]) -> Entry:
    """Append an entry after reading it back."""
    length, previous = chain.head()
    body = {
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        **body,
        "version": __version__,
        "who": chain.who(),
    }
    text = json.dumps(body, sort_keys=True, allow_nan=False)
    link = Link.after(length, previous, dataset, kind, text)
    entry = read_entry(link)
    chain.append(link)
    return entry


def _unknown(dataset: str, links: list[Link], ledger: str) -> LedgerError:
    twin = find_look_alike(str(dataset), sorted({link.dataset for link in links}))
    if twin is not None:
        return LedgerError(
            f"The dataset {dataset!a} is not in the ledger {ledger}; {twin!a} is, which "
            "looks like it."
        )
    return LedgerError(
        f"The dataset {dataset!r} is not in the ledger {ledger}. Open it with: "
        "tallyveil ledger init --ledger FILE --dataset NAME --epsilon TOTAL"
    )


def _require_new(chain: StoreTransaction, request: str) -> None:
    """Refuse a request that the chain holds already; nobody appends meanwhile."""
    for link in chain.links() if request else ():
        if link.kind == "debit" and read_entry(link).body.get("request") == request:
            raise LedgerError(
                f"This request was debited before, as entry {link.sequence} of the ledger. Nothing "
                "more was spent."
            )


def _require_covered(account: Account, debit: Debit) -> None:
    if account.closed:
        raise BudgetError(f"The dataset {account.dataset!r} is closed. Nothing was spent.")
    if excess := account.find_excess(debit):
        problem, advice = excess
        raise BudgetError(f"{problem} Nothing was spent. {advice}".rstrip())


LONGEST_NAME = 200

SYLLABIC = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"})
"""Scripts that are written together with others and look like none of them."""

LOOK_ALIKES = {
    "a": "аαɑ", "b": "вβ", "c": "сϲ", "d": "ԁ", "e": "еε", "g": "ɡց", "h": "нһհ", "j": "јϳ",
    "k": "кκ", "m": "мμ", "n": "ηոп", "o": "оοօ0", "p": "рρ", "q": "ԛզ", "r": "г", "s": "ѕ",
    "t": "тτ", "u": "υս", "v": "νѵ", "w": "ԝω", "x": "хχ", "y": "уүγ", "z": "ζ",
    "l": "1|iіӏιıɩǀ", "-": "−", "/": "⁄∕", "'": "`´ʼ",
}  # fmt: skip
"""Letters of one alphabet and those of others that look like them, in lower case."""

TO_LATIN = str.maketrans({twin: shown for shown, twins in LOOK_ALIKES.items() for twin in twins})


def check_new_name(name: str, names: Iterable[str]) -> None:
    """Raise an `ArgumentError` if a dataset cannot be opened under `name`.

    Parameters
    ----------
    name : str
        The new dataset's name.
    names : iterable of str
        The names that the ledger has already.

    Examples
    --------
    >>> check_new_name("Fälle 2026", ["Fälle 2025"])
    >>> check_new_name("Cases", ["cases"])
    Traceback (most recent call last):
    ...
    tallyveil.errors.ArgumentError: 'dataset' must not look like 'cases', which is in this ledger \
already. Got 'Cases'.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ArgumentError("dataset", "be a name of at least one printable character", name)
    if len(name) > LONGEST_NAME:
        raise ArgumentError("dataset", f"have at most {LONGEST_NAME} characters", name)
    plain = unicodedata.normalize("NFKC", name)
    if name != " ".join(plain.split(" ")).strip() or "  " in name:
        hint = "No space at either end, no two in a row, no special forms of letters."
        raise ArgumentError("dataset", "be written plainly", got=ascii(name), hint=hint)
    if remove_invisible(name) != name:
        raise ArgumentError("dataset", "have no invisible characters", got=ascii(name))
    letters = (unicodedata.name(letter, "UNKNOWN") for letter in name if letter.isalpha())
    scripts = sorted({letter.split()[0] for letter in letters} - SYLLABIC)
    if len(scripts) > 1:
        got = f"{name!a}, which mixes {' and '.join(map(str.capitalize, scripts))}"
        raise ArgumentError("dataset", "use the letters of one alphabet", got=got)
    twin = find_look_alike(name, names)
    if twin is not None:
        shown = [repr(text) if text.isascii() else ascii(text) for text in (twin, name)]
        rule = f"not look like {shown[0]}, which is in this ledger already"
        raise ArgumentError("dataset", rule, got=shown[1])


def find_look_alike(name: str, names: Iterable[str]) -> str | None:
    """Find the first of `names` that looks like `name` but differs; None for none."""
    look = _simplify(name)
    return next((other for other in names if other != name and _simplify(other) == look), None)


def _simplify(name: str) -> str:
    """Reduce a name to what readers cannot overlook."""
    folded = unicodedata.normalize("NFKC", remove_invisible(name)).casefold()
    digits = (str(unicodedata.decimal(letter, letter)) for letter in folded)  # of every script
    plain = "".join("-" if unicodedata.category(letter) == "Pd" else letter for letter in digits)
    return " ".join(plain.translate(TO_LATIN).split())
