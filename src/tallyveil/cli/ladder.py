"""`tallyveil ladder`: one count or table, released at several privacy levels."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import example, note, out, print_json, text_table
from tallyveil.cli.options import make_options, takes_flags
from tallyveil.cli.privatize import note_unreleased, publish_file

if TYPE_CHECKING:
    from tallyveil.release.options import ReleaseOptions

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil ladder cases.csv --count cases --keep all --upper 60 --epsilons 2,1 --out levels/",
    "tallyveil ladder --value 17 --upper 40 --epsilons 2,1,0.5",
)
FLAGS = (
    *("--count", "--keep", "--upper", "--by", "--categories", "--out", "--ledger", "--dataset"),
    *("--set", "--json"),
)


@takes_flags(FLAGS, required=["--upper"])
def command(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="Table of counts: a file or a database's address.",
            show_default=False,
        ),
    ] = None,
    epsilons: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Privacy levels, least private first, e.g. 2,1,0.5.",
            show_default=False,
        ),
    ] = "",
    value: Annotated[int | None, typer.Option(help="Instead of a file: one true count.")] = None,
    *,
    request: dict[str, Any],
    settings: list[str],
    json: bool = False,
) -> None:
    """Release counts at several privacy levels at once, for readers trusted differently.

    Whoever collects several levels learns no more than the least private one says, so the
    whole release costs the largest epsilon, not the sum. Every level is proved in exact
    integers before anything is drawn, and gets a complete release folder of its own inside
    --out, for its readers.
    """
    from tallyveil.errors import UsageError

    if (file is None) == (value is None):
        raise UsageError("Give either a FILE or --value.")
    if not epsilons:
        raise UsageError("Give the levels with --epsilons, such as --epsilons 2,1,0.5.")
    options = make_options(request | {"method": {"name": "ladder", "epsilons": epsilons}}, settings)
    if value is not None:
        _release_value(value, options, json)
        return
    if options.out is None or not (options.count or options.by):
        raise UsageError("With a FILE, name the column with --count and the folder with --out.")
    if options.ledger is None:
        note("No ledger: other releases of this data are not tracked.")
    releases, unreleased = publish_file(str(file), options)
    note_unreleased(unreleased)
    receipts = [release.receipt for release in releases]
    levels = [receipt.columns[0].epsilon for receipt in receipts]
    reach = [_reach(column.upper, column.epsilon) for r in receipts for column in r.columns[:1]]
    result: dict[str, Any] = {"out": str(options.out)}
    if json:
        result["receipts"] = [receipt.to_dict() for receipt in receipts]
    _report(levels, receipts[0].epsilon, reach, result, json)
    if not json:
        out.print(
            f"Written to {options.out}: hand each level's folder to its readers. "
            f"Check all of them with: tallyveil check {options.out}",
            markup=False,
        )


def _release_value(value: int, options: ReleaseOptions, as_json: bool) -> None:
    """One count, without a table: debited, drawn and printed."""
    from tallyveil.budget.entries import Debit, Stage
    from tallyveil.certified.ladder import Ladder
    from tallyveil.errors import UsageError
    from tallyveil.query import Query
    from tallyveil.release.transaction import open_account
    from tallyveil.request.request import check_options
    from tallyveil.structs import list_changes

    allowed = {"upper", "method", "ledger", "dataset"}
    if others := sorted(set(list_changes(options)) - allowed):
        raise UsageError(f"{others[0]!r} is for a table: it does not go with --value.")
    if value < 0:
        raise UsageError("--value must be a count: 0 or more.")
    account = open_account(options)
    request = check_options(options, array=True)
    (column,) = request.columns
    upper = column.upper or 0
    ladder = Ladder(Query.count(upper), request.levels)
    reach = [_reach(upper, epsilon) for epsilon in ladder.epsilons]
    if account is None:
        note("No ledger: other releases of this data are not tracked.")
    else:
        ledger, dataset = account
        debit = Debit(
            ("value",),
            (Stage("value: counts", ladder.exact_epsilon),),
            certificate=(str(ladder.certificate["digest"]),),
            command=shlex.join(_hide_value(sys.argv)),
        )
        ledger.debit(dataset, debit)
    released = ladder.release(min(value, upper)).tolist()
    _report(ladder.epsilons, ladder.exact_epsilon, reach, {"released": released}, as_json)


def _hide_value(words: Sequence[str]) -> list[str]:
    """The command line without the true count."""
    shown, hide = [], False
    for word in words:
        shown.append("(hidden)" if hide else word)
        hide = word == "--value"
    return ["--value=(hidden)" if word.startswith("--value=") else word for word in shown]


def _reach(upper: int, epsilon: Fraction) -> float:
    from tallyveil.query import Query
    from tallyveil.reading.precision import accuracy

    return accuracy(Query.count(upper), epsilon)


def _report(
    epsilons: Sequence[Fraction],
    cost: Fraction,
    reach: Sequence[float],
    result: dict[str, Any],
    as_json: bool,
) -> None:
    levels = [float(epsilon) for epsilon in epsilons]
    if as_json:
        exact = [str(epsilon) for epsilon in epsilons]
        facts = {"epsilons": levels, "epsilons_exact": exact, "within_95": list(reach)}
        print_json({**result, **facts, "cost": float(cost), "verified": True})
        return
    given = result.get("released")
    header = ("level", "epsilon", "within (95 %)", *(["released"] if given is not None else []))
    rows = [
        (str(at), f"{epsilon:g}", f"{within:g}", *([str(given[at - 1])] if given else []))
        for at, (epsilon, within) in enumerate(zip(levels, reach, strict=True), start=1)
    ]
    out.print(text_table(header, rows), markup=False)
    out.print(f"\nAll levels together cost epsilon {float(cost):g} for one person.", markup=False)
