"""`tallyveil ladder`: one count or table, released at several privacy levels."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

import typer

import tallyveil as tv
from tallyveil.cli.common import NO_LEDGER, answer, example, note, text_table
from tallyveil.cli.options import make_options, takes_flags
from tallyveil.cli.privatize import note_unreleased, publish_file

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
    value: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Instead of a file: one true count.")
    ] = None,
    *,
    request: dict[str, Any],
    settings: list[str],
    json: bool = False,
) -> None:
    """Release counts at several privacy levels at once, for readers trusted differently.

    Somebody with several levels learns no more than the least private one says, so the
    whole release costs the largest epsilon, not the sum. Every level is proved in exact
    integers before anything is drawn, and gets a complete release folder inside
    --out, for its readers.
    """
    if (file is None) == (value is None):
        raise tv.UsageError("Give either a FILE or --value.")
    if not epsilons:
        raise tv.UsageError("Give the levels with --epsilons, such as --epsilons 2,1,0.5.")
    options = make_options(request | {"method": {"name": "ladder", "epsilons": epsilons}}, settings)
    if value is not None:
        _release_value(value, options, json)
        return
    if options.out is None or not (options.count or options.by):
        raise tv.UsageError("With a FILE, name the column with --count and the folder with --out.")
    if options.ledger is None:
        note(f"{NO_LEDGER.capitalize()}.")
    releases, unreleased = publish_file(str(file), options)
    note_unreleased(unreleased)
    receipts = [release.receipt for release in releases]
    columns = [receipt.columns[0] for receipt in receipts]
    levels, upper = [column.epsilon for column in columns], columns[0].upper
    data = {"out": options.out, "receipts": [receipt.to_dict() for receipt in receipts]}
    text = (
        f"Written to {options.out}: hand each level's folder to its readers. "
        f"Check all of them with: tallyveil check {options.out}"
    )
    _report(levels, upper, receipts[0].epsilon, data, text, as_json=json)


def _release_value(value: int, options: tv.ReleaseOptions, as_json: bool) -> None:
    """Release one count without a table: debit it, draw and print."""
    from tallyveil.release.request import check_options
    from tallyveil.release.transaction import open_account
    from tallyveil.structs import list_changes

    allowed = {"upper", "method", "ledger", "dataset"}
    if others := sorted(set(list_changes(options)) - allowed):
        raise tv.UsageError(f"{others[0]!r} is for a table: it does not go with --value.")
    if value < 0:
        raise tv.UsageError("--value must be a count: 0 or more.")
    account = open_account(options)
    request = check_options(options, array=True)
    upper = request.columns[0].upper or 0
    ladder = tv.Ladder(tv.Query.count(upper), request.method.levels)
    if account is None:
        note(f"{NO_LEDGER.capitalize()}.")
    else:
        ledger, dataset = account
        debit = tv.Debit(
            ("value",),
            (tv.Stage("value: counts", ladder.exact_epsilon),),
            certificate=(str(ladder.certificate["digest"]),),
            command=shlex.join(_hide_value(sys.argv)),
        )
        ledger.debit(dataset, debit)
    data = {"released": ladder.release(min(value, upper)).tolist()}
    _report(ladder.epsilons, upper, ladder.exact_epsilon, data, as_json=as_json)


def _hide_value(words: Sequence[str]) -> list[str]:
    """Return the command line without the true count."""
    pairs = zip(["", *words], words, strict=False)
    hidden = ["(hidden)" if before == "--value" else word for before, word in pairs]
    return ["--value=(hidden)" if word.startswith("--value=") else word for word in hidden]


def _report(
    epsilons: Sequence[Fraction],
    upper: int,
    cost: Fraction,
    data: dict[str, Any],
    text: str = "",
    *,
    as_json: bool,
) -> None:
    """Print every level: its epsilon, how close it comes and, of one value, what is released."""
    reach = [tv.accuracy(tv.Query.count(upper), epsilon) for epsilon in epsilons]
    released = data.get("released")
    columns = {
        "level": range(1, len(epsilons) + 1),
        "epsilon": [f"{float(epsilon):g}" for epsilon in epsilons],
        "within (95%)": [f"{within:g}" for within in reach],
        **({} if released is None else {"released": released}),
    }
    rows = [list(map(str, row)) for row in zip(*columns.values(), strict=True)]
    table = text_table(list(columns), rows)
    total = f"\nAll levels together cost epsilon {float(cost):g} for one person."
    facts = {
        "epsilons": [float(epsilon) for epsilon in epsilons],
        "epsilons_exact": [str(epsilon) for epsilon in epsilons],
        "within_95": reach,
        "cost": float(cost),
        "verified": True,
    }
    answer({**data, **facts}, "\n".join(filter(None, [table, total, text])), as_json=as_json)
