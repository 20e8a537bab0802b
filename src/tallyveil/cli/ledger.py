"""`tallyveil ledger`: init, plan, show, history, verify, close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import tallyveil as tv
from tallyveil.cli.common import (
    HelpCommand,
    HelpGroup,
    JsonOption,
    answer,
    example,
    fail,
    print_json,
    text_table,
)

Function = TypeVar("Function", bound=Callable[..., None])

app = typer.Typer(
    cls=HelpGroup,
    help="The privacy budget: what each dataset may spend, and what it has spent.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
LedgerOption = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="The ledger's file, or postgresql://USER@HOST/DATABASE.",
        show_default=False,
    ),
]
DatasetOption = Annotated[
    str,
    typer.Option(
        "--dataset", metavar="NAME", help="The dataset's name in the ledger.", show_default=False
    ),
]
MaybeDataset = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="One dataset only.", show_default=False),
]


def _command(*examples: str) -> Callable[[Function], Function]:
    """Make a function a command whose help ends with examples."""
    return app.command(cls=HelpCommand, epilog=example(*examples))


@_command("tallyveil ledger init --ledger budget.db --dataset cases --epsilon 2")
def init(
    ledger: LedgerOption,
    dataset: DatasetOption,
    *,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The total that may ever be spent.")],
    delta: Annotated[str, typer.Option(help="The total delta.")] = "0",
    accounting: Annotated[
        str,
        typer.Option(
            help="How debits add up: pure (addition), exact (optimal composition of a plan made "
            "before the first debit), or zcdp. The last two need --delta."
        ),
    ] = "pure",
    as_json: JsonOption = False,
) -> None:
    """Give a dataset its total budget; makes the ledger if there is none."""
    from tallyveil.exact import exact_delta, exact_epsilon

    total, slack = exact_epsilon(epsilon), exact_delta(delta)
    book = tv.Ledger.create(ledger)
    account = book.open(dataset, total, slack, accounting)
    with_delta = f" and delta {delta}" if slack else ""
    text = f"Opened {dataset!r} in {book.store.name} with epsilon {epsilon}{with_delta}."
    answer(account.to_dict(), text, as_json=as_json)


@_command("tallyveil ledger plan --ledger budget.db --dataset cases --stages 100")
def plan(
    ledger: LedgerOption,
    dataset: DatasetOption,
    stages: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many stages, all with the largest epsilon that they can have."
        ),
    ] = None,
    epsilons: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Instead: the epsilon of every stage, such as 0.1,0.1,0.5 or 0.1x12,0.5.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fix the epsilons of all stages of a dataset with exact accounting, before the first debit.

    A release has a stage for each step that spends: `tallyveil privatize --dry-run` lists them.
    """
    from tallyveil.budget.accounting import MOST_SHARED
    from tallyveil.budget.entries import shown_rational

    if (stages is None) == (epsilons is None):
        raise tv.UsageError("Give either --stages or --epsilons.")
    book = tv.Ledger(ledger)
    account = book.account(dataset)
    if stages is not None:
        if not 1 <= stages <= MOST_SHARED:
            raise tv.ArgumentError("--stages", f"lie between 1 and {MOST_SHARED:,}", stages)
        places = [tv.share_epsilon(stages, account.epsilon, account.delta)] * stages
    else:
        places = _read_plan(epsilons or "")
    account = book.plan(dataset, places)
    largest, added = shown_rational(max(places)), shown_rational(sum(places, Fraction(0)))
    text = (
        f"Planned {len(places):,} stages of up to epsilon {largest} for {dataset!r}. Added up they "
        f"have epsilon {added}; together they keep epsilon {shown_rational(account.epsilon)} with "
        f"delta {shown_rational(account.delta)}."
    )
    exact = [str(place) for place in places]
    answer(account.to_dict() | {"epsilons_exact": exact}, text, as_json=as_json)


def _read_plan(text: str) -> list[Fraction]:
    """Read epsilons written as 0.1x12,0.5."""
    from tallyveil.budget.accounting import MOST_SHARED
    from tallyveil.exact import exact_epsilon

    places: list[Fraction] = []
    for part in text.split(","):
        amount, _, times = part.strip().partition("x")
        if times and not (
            times.isascii() and times.isdigit() and 1 <= int(times[:9]) <= MOST_SHARED
        ):
            rule = f"repeat an epsilon up to {MOST_SHARED:,} times, such as 0.1x12"
            raise tv.ArgumentError("--epsilons", rule, part)
        places += [exact_epsilon(amount, "--epsilons")] * int(times or 1)
    return places


@_command("tallyveil ledger show --ledger budget.db")
def show(ledger: LedgerOption, dataset: MaybeDataset = None, as_json: JsonOption = False) -> None:
    """Show what every dataset may spend, has spent, and has left."""
    from tallyveil.budget.entries import shown_rational

    book = tv.Ledger(ledger)
    accounts = book.accounts() if dataset is None else [book.account(dataset)]
    header = ("dataset", "accounting", "epsilon", "delta", "spent", "remaining", "debits", "state")
    rows = []
    for account in accounts:
        amounts = (account.epsilon, account.delta, account.spent_epsilon, account.remaining_epsilon)
        state = "closed" if account.closed else "open"
        shown = (*map(shown_rational, amounts), str(account.debits), state)
        rows.append((account.dataset, account.accounting, *shown))
    planned = [_describe_places(account) for account in accounts if account.places is not None]
    text = "\n\n".join([text_table(header, rows), *planned])
    answer([account.to_dict() for account in accounts], text, as_json=as_json)


def _describe_places(account: Any) -> str:
    """Describe the free places of a plan."""
    from tallyveil.budget.entries import shown_rational

    name, taken = repr(account.dataset), account.planned - len(account.places)
    if not account.planned:
        return f"{name} has no plan yet: make one with tallyveil ledger plan."
    counted = Counter(account.places).items()
    listed = ", ".join(
        f"{many:,} of epsilon {shown_rational(epsilon)}" for epsilon, many in counted
    )
    return (
        f"{name} has a plan of {account.planned:,} places, {taken:,} of them taken. Free: "
        f"{listed or 'none'}. Every stage of a release takes one; 'remaining' is the largest."
    )


@_command("tallyveil ledger history --ledger budget.db --dataset cases --json")
def history(
    ledger: LedgerOption, dataset: MaybeDataset = None, as_json: JsonOption = False
) -> None:
    """List every debit, oldest first."""
    from tallyveil.budget.entries import shown_rational

    entries = tv.Ledger(ledger).history(dataset)
    header = ("entry", "time", "dataset", "columns", "epsilon", "who")
    rows = []
    for entry in entries:
        body, epsilon = entry.body, shown_rational(entry.epsilon)
        columns = ", ".join(body["columns"])
        time, who = body["time"][:19], body["who"]
        rows.append((str(entry.sequence), time, entry.dataset, columns, epsilon, who))
    text = text_table(header, rows) if rows else "No debits yet."
    answer([entry.to_dict() for entry in entries], text, as_json=as_json)


@_command(
    "tallyveil ledger verify --ledger budget.db",
    "tallyveil ledger verify --ledger budget.db --release release/",
)
def verify(
    ledger: LedgerOption,
    release: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also find the debit of this release folder."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no entry was changed, removed, inserted or reordered."""
    book = tv.Ledger(ledger)
    try:
        length, digest = book.verify()
        entry = None if release is None else _require_entry(book, release)
    except tv.LedgerError as problem:
        if as_json:
            print_json({"ok": False, "reason": str(problem)})
        raise typer.Exit(1 if as_json else fail(str(problem))) from problem
    data = {"ok": True, "entries": length, "digest": digest}
    text = f"The ledger holds: {length} entries, last digest {digest}."
    if entry is not None:
        data["entry"] = entry.sequence
        text += (
            f"\nFound: entry {entry.sequence} of {entry.dataset!r} is the debit of this release. "
            "To compare amounts, columns and mechanisms as well: tallyveil check FOLDER --ledger "
            "FILE --dataset NAME"
        )
    answer(data, text, as_json=as_json)


def _require_entry(book: Any, release: Path) -> Any:
    """Return the entry that a receipt names; raise a `LedgerError` if there is none."""
    from tallyveil.release.release import read_receipt

    named = read_receipt(release).ledger
    if named is None:
        raise tv.LedgerError("The release was not entered in any ledger.")
    for entry in book.history(named.dataset):
        if entry.digest == named.digest and entry.sequence == named.entry:
            return entry
    raise tv.LedgerError("The ledger does not hold the entry that the release names.")


@_command("tallyveil ledger close --ledger budget.db --dataset cases")
def close(ledger: LedgerOption, dataset: DatasetOption, as_json: JsonOption = False) -> None:
    """Refuse every later debit of a dataset, for good."""
    account = tv.Ledger(ledger).close(dataset)
    text = f"Closed {dataset!r}. It can never be debited again."
    answer(account.to_dict(), text, as_json=as_json)
