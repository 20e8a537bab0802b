"""`tallyveil ladder`: one count or table, released at several privacy levels."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, example, note, out, print_json, text_table
from tallyveil.cli.options import takes_release_options
from tallyveil.cli.privatize import (
    FromOption,
    choose_source,
    publish_file,
)
from tallyveil.request.options import ReleaseOptions

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil ladder cases.csv --count cases --keep all --upper 60 --epsilons 2,1 --out levels/",
    "tallyveil ladder --value 17 --upper 40 --epsilons 2,1,0.5",
)
ONE_LEVEL = (
    "epsilon",
    "within",
    "confidence",
    "method",
    "loss",
    "properties",
    "hierarchy",
    "invariant",
    "level_weights",
    "bounds",
    "nested",
    "unbiased",
)
"""The options of `privatize` that mean nothing for several levels."""


@takes_release_options(leave_out=ONE_LEVEL, required=("upper", "levels"))
def command(
    file: Annotated[
        Path | None,
        typer.Argument(help="CSV, TSV, Parquet or Arrow file.", show_default=False),
    ] = None,
    *,
    options: ReleaseOptions,
    database: FromOption = None,
    value: Annotated[int | None, typer.Option(help="Instead of a file: one true count.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Release counts at several privacy levels at once, for readers trusted differently.

    Whoever collects several levels learns no more than the least private one says, so the
    whole release costs the largest epsilon, not the sum. Every level is proved in exact
    integers before anything is drawn, and gets a complete release folder of its own inside
    --out, to be handed to its readers.
    """
    from tallyveil.errors import UsageError

    given = [one for one in (file, database, value) if one is not None]
    if len(given) != 1:
        raise UsageError("Give either a FILE, --from or --value.")
    if value is not None:
        _release_value(value, options, as_json)
        return
    if options.out is None or (options.count is None and options.by is None):
        raise UsageError("With a FILE, name the column with --count and the folder with --out.")
    if options.ledger is None:
        note("No ledger: nothing keeps count of further releases of these data.")
    source = choose_source(file, database)
    releases = publish_file(source, options, shlex.join(sys.argv))
    receipts = [release.receipt for release in releases]
    epsilons = [receipt.columns[0].epsilon for receipt in receipts]
    reach = [_reach(column.upper, column.epsilon) for r in receipts for column in r.columns[:1]]
    result: dict[str, Any] = {"out": str(options.out)}
    if as_json:
        result["receipts"] = [receipt.to_dict() for receipt in receipts]
    _report(epsilons, receipts[0].epsilon, reach, result, as_json)
    if not as_json:
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

    defaults = ReleaseOptions(upper=options.upper, levels=options.levels)
    other = [
        name
        for name, given in vars(options).items()
        if given != getattr(defaults, name) and name not in ("ledger", "dataset")
    ]
    if other:
        raise UsageError(f"'{other[0]}' is for a table: it does not go with --value.")
    if value < 0:
        raise UsageError("--value must be a count: 0 or more.")
    account = open_account(options)
    request = check_options(options, array=True)
    (column,) = request.columns
    upper = column.upper or 0
    ladder = Ladder(Query.count(upper), request.levels)
    reach = [_reach(upper, epsilon) for epsilon in ladder.epsilons]
    if account is None:
        note("No ledger: nothing keeps count of further releases of these data.")
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
