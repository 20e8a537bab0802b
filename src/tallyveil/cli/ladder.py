"""`tallyveil ladder`: one count or column, released at several privacy levels."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli.common import JsonOption, example, note, out, print_json, text_table

if TYPE_CHECKING:
    from tallyveil.certified.ladder import Ladder

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil ladder cases.csv --count cases --upper 60 --epsilons 2,1,0.5 --out levels/",
    "tallyveil ladder --value 17 --upper 40 --epsilons 2,1,0.5",
)


def command(
    file: Annotated[
        Path | None,
        typer.Argument(help="CSV, TSV, Parquet or Arrow file.", show_default=False),
    ] = None,
    *,
    upper: Annotated[int, typer.Option(help="Largest count that can be published.")],
    epsilons: Annotated[
        str, typer.Option(help="Privacy levels, least private first, such as 2,1,0.5.")
    ],
    count: Annotated[str | None, typer.Option(help="With a file: the column of counts.")] = None,
    value: Annotated[int | None, typer.Option(help="Instead of a file: one true count.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Publish only these other columns; repeat for more. Default: all."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="With a file: a new folder, a table per level.")
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="The budget ledger to debit.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in the ledger.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Release counts at several privacy levels at once, for readers trusted differently.

    Whoever collects several levels learns no more than the least private one says, so the
    whole release costs the largest epsilon, not the sum. Every level is verified in exact
    integers before anything is drawn. Counts above --upper are top-coded.
    """
    from tallyveil.errors import ArgumentError

    if (file is None) == (value is None):
        raise ArgumentError("ladder", "be given either a FILE or --value")
    if (ledger is None) != (dataset is None):
        raise ArgumentError("--ledger", "come with --dataset, and --dataset with --ledger")
    if file is not None and (count is None or folder is None):
        raise ArgumentError("ladder", "be told --count and --out with a FILE")
    if value is not None and value < 0:
        raise ArgumentError("--value", "be a count: 0 or more")
    from tallyveil.certified.ladder import Ladder
    from tallyveil.query import Query

    ladder = Ladder(Query.count(upper), [part.strip() for part in epsilons.split(",")])
    if file is not None and count is not None and folder is not None:
        account = (ledger, dataset)
        _release_column(ladder, file, count, keep=keep, folder=folder, account=account)
        _report(ladder, {"out": str(folder)}, as_json)
        if not as_json:
            out.print(f"Written to {folder}: hand each level's table to its readers.", markup=False)
        return
    _debit(ladder, "value", (ledger, dataset))
    released = ladder.release(min(int(value or 0), upper)).tolist()
    _report(ladder, {"released": released}, as_json)


def _release_column(
    ladder: Ladder,
    file: Path,
    column: str,
    *,
    keep: list[str] | None,
    folder: Path,
    account: tuple[str | None, str | None],
) -> None:
    """Check, reserve room, debit, draw, write: in this order."""
    import numpy as np

    from tallyveil.errors import TableError
    from tallyveil.publish.folder import staging
    from tallyveil.tables.categories import require_distinct
    from tallyveil.tables.source import read_table

    table = read_table(file)
    wanted = list(keep) if keep else [name for name in table.names if name != column]
    for name in (column, *wanted):
        if name not in table.names:
            raise TableError(f"The table has no column {name!r}. It has: {', '.join(table.names)}.")
    if not keep:
        note(f"Published unchanged: {', '.join(wanted) or 'no other column'}, and the row order.")
    require_distinct(table, wanted)
    upper = len(ladder.query.inputs) - 1
    table.require_room(column, upper)
    counts = np.clip(table.counts(column), 0, upper)
    document = json.dumps(ladder.to_dict())
    room = len(ladder.epsilons) * (file.stat().st_size + 64 * table.rows) + len(document) + 10_000
    names = [name for name in table.names if name == column or name in wanted]
    with staging(folder, room) as place:
        _debit(ladder, column, account)
        released = ladder.release(counts)
        files = {"ladder.json": document.encode()}
        for level, values in enumerate(released, start=1):
            made = table.released({column: values}, names)
            stem = f"level-{level}-epsilon-{_plain(ladder, level)}"
            files[f"{stem}.{made.extension.lstrip('.')}"] = made.to_bytes()
            law = ladder.rungs[level - 1].mechanism.to_json()
            files[f"{stem}.mechanism.json"] = law.encode()
        place.commit(files)


def _plain(ladder: Ladder, level: int) -> str:
    from tallyveil.budget.ledger import shown_rational

    return shown_rational(ladder.epsilons[level - 1]).replace("/", "_")


def _debit(ladder: Ladder, column: str, account: tuple[str | None, str | None]) -> None:
    """Spend the largest epsilon: a coalition of all readers learns no more."""
    book, dataset = account
    if book is None or dataset is None:
        note("No ledger: nothing keeps count of further releases of these data.")
        return
    from tallyveil.budget.ledger import Debit, Ledger, Stage

    stages = (Stage("ladder", ladder.epsilons[0]),)
    Ledger(book).debit(dataset, Debit((column,), stages, command=shlex.join(_public_arguments())))


def _public_arguments() -> list[str]:
    """The command line without the true count."""
    shown, hide = [], False
    for word in sys.argv:
        shown.append("(hidden)" if hide else word)
        hide = word == "--value"
    return ["--value=(hidden)" if word.startswith("--value=") else word for word in shown]


def _report(ladder: Ladder, result: dict[str, object], as_json: bool) -> None:
    from tallyveil.reading.precision import accuracy

    reach = [accuracy(ladder.query, epsilon) for epsilon in ladder.epsilons]
    levels = [float(epsilon) for epsilon in ladder.epsilons]
    if as_json:
        exact = [str(epsilon) for epsilon in ladder.epsilons]
        print_json({**result, "epsilons": levels, "epsilons_exact": exact, "within_95": reach,
                    "cost": levels[0], "verified": True})  # fmt: skip
        return
    given = result.get("released")
    rows = [
        (str(at), f"{epsilon:g}", f"{within:g}", *([str(given[at - 1])] if isinstance(given, list)
                                                   else []))
        for at, (epsilon, within) in enumerate(zip(levels, reach, strict=True), start=1)
    ]  # fmt: skip
    header = ("level", "epsilon", "within (95 %)", *(["released"] if given is not None else []))
    out.print(text_table(header, rows), markup=False)
    out.print(
        f"\nAll levels together cost epsilon {levels[0]:g} for one person added or removed.",
        markup=False,
    )
