"""`tallyveil interpret`: what a released number says, and what accuracy costs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import (
    JsonOption,
    example,
    out,
    print_json,
    refuse_others,
    write_data,
)
from tallyveil.cli.released import (
    Released,
    Source,
    is_wide,
    open_released,
    read_source,
    require_likely,
)
from tallyveil.cli.totals import describe_total, print_totals

if TYPE_CHECKING:
    from tallyveil.arrays import Floats
    from tallyveil.cli.released import GiveCells
    from tallyveil.prior import Prior

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil interpret release/ --column cases --out read.csv",
    "tallyveil interpret release/ --column cases --by state",
    "tallyveil interpret --released 7 --mechanism mechanism.json --plot seven.png",
    "tallyveil interpret released.csv --column cases --mechanism mechanism.json --out read.csv",
    "tallyveil interpret --query count:40 --within 3 --confidence 0.95",
    "tallyveil interpret --query count:40 --epsilon 1",
)

ALWAYS = ("as_json",)
USAGE = (
    "Give --mechanism and either --released or a FILE; or the FOLDER of a release; or --query with "
    "--within or --epsilon. See: tallyveil interpret --help"
)


def command(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A released table, or the folder of a release.",
            show_default=False,
        ),
    ] = None,
    *,
    released: Annotated[float | None, typer.Option(help="One released answer.")] = None,
    column: Annotated[
        str | None, typer.Option(help="With a file or folder: the column of released answers.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="With a folder: totals of the groups of this column; repeat for more."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="With a folder: totals of rows with 'region == west'; repeat for more."),
    ] = None,
    mechanism: Annotated[
        Path | None,
        typer.Option(help="What released it: mechanism.json, a matrix as CSV, or a release."),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="uniform, binomial:P, numbers 1,2,3 or a file; none for no belief."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="The level of every interval.")] = 0.95,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the probable true answers (PNG, SVG, PDF).")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--out", help="With a file: where the new table goes.")
    ] = None,
    question: Annotated[
        str | None,
        typer.Option("--query", metavar="QUERY", help="For --within or --epsilon: count:UPPER ..."),
    ] = None,
    within: Annotated[
        float | None, typer.Option(help="Find the epsilon that releases within this distance.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Find the distance that this epsilon releases within.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="For --within or --epsilon: the mechanism.")
    ] = "geometric",
    delimiter: Annotated[
        str | None,
        typer.Option(help="With a file: what separates cells; by default the header tells."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="With a file: its encoding.")] = "utf-8",
    large: Annotated[
        bool,
        typer.Option(
            "--large", help="Read data that take longer than a file of their size should."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Estimate true counts and totals from a release.

    One answer with --released, a whole column with FILE or FOLDER and --column, totals of groups
    with FOLDER and --by, or, before anything is released, what accuracy costs with --query and
    --within or --epsilon.
    """
    from tallyveil.errors import UsageError

    if question is not None:
        refuse_others(
            context, ("question", "within", "epsilon", "confidence", "method", *ALWAYS), "--query"
        )
        _print_accuracy(question, within, epsilon, confidence, method, as_json=as_json)
        return
    folder = file if file is not None and file.is_dir() else None
    if mechanism is not None and folder is not None:
        raise UsageError("A release FOLDER holds its own mechanism: leave out --mechanism.")
    if file is not None:
        require_likely(file, large=large or released is not None)
    if by or where:
        if folder is None:
            raise UsageError("Totals by group are for the FOLDER of a release: name it.")
        own = ("file", "by", "where", "target", "large")
        refuse_others(context, (*own, "column", "confidence", *ALWAYS), "totals, --by or --where")
        print_totals(folder, column, (by or (), where or ()), confidence, target, as_json=as_json)
        return
    source = mechanism or folder
    if source is None or (folder is None and (released is None) == (file is None)):
        raise UsageError(USAGE)
    read = ("file", "column", "mechanism", "prior", "confidence", *ALWAYS)
    if released is not None:
        refuse_others(context, (*read, "released", "plot"), "--released")
    else:
        refuse_others(
            context, (*read, "target", "delimiter", "encoding", "large"), "a whole column"
        )
    if folder is not None and released is None and prior is None and is_wide(folder, column):
        _interpret_wide(folder, column, confidence, target, as_json=as_json)
        return
    made = read_source(source, column, strict=folder is not None)
    belief = _read_prior(prior)
    if released is not None:
        _print_answer(made, released, belief, confidence, plot, as_json=as_json)
        return
    file = made.table if folder is not None else file
    assert file is not None  # a folder without a receipt was refused
    _interpret_column(
        open_released(file, delimiter, encoding, folder),
        made,
        prior=belief,
        confidence=confidence,
        target=target,
        as_json=as_json,
    )


def _print_answer(
    source: Source,
    released: float,
    prior: Prior,
    confidence: float,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    """What one released answer says, in words and bars or as JSON."""
    from tallyveil.reading.interpret import describe_release
    from tallyveil.reading.posterior import posterior

    mechanism, known = source.mechanism, source.know(confidence)
    found = describe_release(mechanism, released, prior, confidence, **known)
    belief = posterior(mechanism, released, prior)
    if plot is not None:
        belief.plot(confidence, plot)
    if as_json:
        print_json(found)
        return
    out.print(found["words"], markup=False)
    bars = _draw_bars(belief.answers.tolist(), belief.distribution.tolist(), found["or_more"])
    out.print(bars, markup=False)
    if plot is not None:
        out.print(f"Drawn in {plot}", markup=False)


def _read_prior(text: str | None) -> Prior:
    """The prior named on the command line; None for confidence sets without one."""
    from tallyveil.cli.design import parse_prior

    if text == "none":
        return None
    return "uniform" if text == "uniform" else parse_prior(text)


def _draw_bars(
    answers: list[float], distribution: list[float], or_more: float | None, width: int = 40
) -> str:
    """The likely answers as lines of blocks, for the terminal."""
    top = max(distribution)
    pairs = zip(answers, distribution, strict=True)
    shown = [(answer, chance) for answer, chance in pairs if chance >= 0.01 * top]
    label = max(len(f"{answer:g}") for answer, _ in shown)
    lines = [
        f"{answer:>{label}g}{'+' if answer == or_more else ' '} {chance:6.3f}  "
        f"{'█' * max(1, round(width * chance / top))}"
        for answer, chance in shown
    ]
    return "\n".join(["", "true answer, probability", *lines])


def _interpret_column(
    released: Released,
    source: Source,
    *,
    prior: Prior,
    confidence: float,
    target: Path | None,
    as_json: bool,
) -> None:
    """Add low, high and standard error of one column to the table, and its total."""
    from tallyveil.errors import ArgumentError, TableError, UsageError

    column, names = source.column, released.table.names
    if column is None or column not in names:
        known = "Columns: " + ", ".join(names) + "."
        raise ArgumentError("--column", "name a column of the table", column, known)
    values = released.read_numbers(column)
    if not len(values):
        raise TableError("The table has no rows.")
    if source.free is not None and len(source.free) != len(values):
        raise UsageError("Structural zeros are known of the release's own table: name its FOLDER.")
    kind, give = _look_up(source, values, prior, confidence)
    drawn = values if source.free is None else values[source.free]
    totals = _estimate_totals(source, drawn, confidence)
    summary = {"rows": len(values), "kind": kind, "confidence": confidence, **totals}
    _show_column(released, column, give, summary, target, as_json=as_json)


def _interpret_wide(
    folder: Path, column: str | None, confidence: float, target: Path | None, *, as_json: bool
) -> None:
    """The same for a column whose range is too wide for a matrix."""
    import numpy as np

    from tallyveil.release.groups import estimate_rows, estimate_total
    from tallyveil.release.release import read_receipt

    name, found, places = estimate_rows(folder, confidence, column=column)
    total = asdict(estimate_total(folder, confidence=confidence, column=name))
    facts = read_receipt(folder).table
    mean = {part: total[part] / len(places) for part in total if part != "groups"}
    summary = {
        "rows": len(places),
        "kind": "estimate",
        "confidence": confidence,
        "total": total,
        "mean": {**mean, "groups": len(places)},
    }
    texts = [
        np.array([f"{one.low:.15g}" for one in found], object),
        np.array([f"{one.high:.15g}" for one in found], object),
        np.array([f"{one.standard_error:.6g}" for one in found], object),
    ]

    def give(rows: slice) -> list[list[str]]:
        return [text[places[rows]].tolist() for text in texts]

    released = open_released(folder / facts.file, facts.delimiter, facts.encoding)
    _show_column(released, name, give, summary, target, as_json=as_json)


def _show_column(
    released: Released,
    column: str,
    give: GiveCells,
    summary: dict[str, Any],
    target: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the table with low, high and standard error beside a column, and say its total."""
    added = [f"{column}_{word}" for word in ("low", "high", "standard_error")]
    if target is not None:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(released.write(added, give))
    if as_json:
        print_json({**summary, "out": None if target is None else str(target)})
    elif target is None:
        for text in released.write(added, give):
            write_data(text)
    else:
        rows = summary["rows"]
        out.print(f"Written to {target}: {rows} rows with {', '.join(added)}.", markup=False)
        out.print(describe_total(summary["total"], summary["confidence"]), markup=False)


def _look_up(
    source: Source, values: Floats, prior: Prior, confidence: float
) -> tuple[str, GiveCells]:
    """The kind of interval, and what gives low, high and standard error of some rows as text.

    Every value is interpreted once; a structural zero is certain.
    """
    import numpy as np

    from tallyveil.reading.interpret import interpret

    known = np.unique(values)
    found = interpret(source.mechanism, known, prior, confidence, **source.know(confidence))
    columns = ((found.low, "g"), (found.high, "g"), (found.standard_error, ".6g"))
    texts = [np.array([format(x, form) for x in numbers], object) for numbers, form in columns]

    def give(rows: slice) -> list[list[str]]:
        places = np.searchsorted(known, values[rows])
        cells = [text[places] for text in texts]
        if source.free is not None:
            cells = [np.where(source.free[rows], cell, "0") for cell in cells]
        return [cell.tolist() for cell in cells]

    return found.kind, give


def _estimate_totals(source: Source, values: Floats, confidence: float) -> dict[str, Any]:
    """Total and mean of the true answers, None where there is no estimate."""
    from tallyveil.errors import InfeasibleError

    try:
        total = source.estimate_total(values, confidence)
    except InfeasibleError:
        return {"total": None, "mean": None}
    parts = asdict(total)
    shared = {name: parts[name] / len(values) for name in parts if name != "groups"}
    return {"total": parts, "mean": {**shared, "groups": len(values)}}


def _print_accuracy(
    question: str,
    within: float | None,
    epsilon: str | None,
    confidence: float,
    method: str,
    *,
    as_json: bool,
) -> None:
    from tallyveil.cli.design import parse_query
    from tallyveil.errors import UsageError
    from tallyveil.exact import exact_rational
    from tallyveil.reading.precision import accuracy, chance_within, epsilon_for

    query = parse_query(question)
    if (within is None) == (epsilon is None):
        raise UsageError("Give either --within or --epsilon with --query.")
    if epsilon is None and within is not None:
        needed = epsilon_for(query, within, confidence, method)
        chance = chance_within(query, needed, within, method)
        said = (
            f"Epsilon {needed:g} releases within {within:g} of the truth with probability "
            f"{chance:.6f} or more, whatever the truth is; a smaller epsilon does not reach "
            f"{confidence:g}."
        )
        found: dict[str, Any] = {"epsilon": needed, "within": within}
    else:
        reach = accuracy(query, str(epsilon), confidence, method)
        chance = chance_within(query, str(epsilon), reach, method)
        said = (
            f"Epsilon {epsilon} releases within {reach:g} of the truth with probability "
            f"{chance:.6f} or more, whatever the truth is."
        )
        found = {"epsilon": float(exact_rational(str(epsilon))), "within": reach}
    if as_json:
        print_json({**found, "confidence": confidence, "probability": chance, "mechanism": method})
    else:
        out.print(said, markup=False)
