"""`tallyveil interpret`: what a released number says, and what accuracy costs."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import tallyveil as tv
from tallyveil.cli.common import (
    JsonOption,
    LargeOption,
    answer,
    errors,
    example,
    out,
    print_json,
    refuse_others,
    write_data,
)
from tallyveil.cli.design import parse_prior, parse_query
from tallyveil.errors import numbered

if TYPE_CHECKING:
    from tallyveil.arrays import Floats, Integers, Mask
    from tallyveil.prior import Prior
    from tallyveil.reading.unbiased import Estimate
    from tallyveil.release.receipt import ColumnRecord
    from tallyveil.release.totals import Adder
    from tallyveil.tables.table import Table

EXAMPLE = example(
    "tallyveil interpret release/ --column cases --out read.csv",
    "tallyveil interpret release/ --column cases --by state",
    "tallyveil interpret --released 7 --mechanism mechanism.json --plot seven.png",
    "tallyveil interpret released.csv --column cases --mechanism mechanism.json --out read.csv",
    "tallyveil interpret --query count:40 --within 3 --confidence 0.95",
    "tallyveil interpret --query count:40 --epsilon 1",
)

MATCHED = "note: These figures allow for counts having been assigned by rank."
Cells: TypeAlias = Callable[[slice], list[list[str]]]
"""Gives the cells of further columns, for some rows."""

LONGEST_TEXT = 100 << 20
"""Characters that the labels of one batch may have."""

LARGE = 1000
"""Numbers from here on are shown as whole ones."""

USAGE = (
    "Give --mechanism and either --released or a FILE; or the FOLDER of a release; or --query with "
    "--within or --epsilon. See: tallyveil interpret --help"
)


def command(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="A released table, or the folder of a release.", show_default=False),
    ] = None,
    *,
    released: Annotated[
        float | None, typer.Option(metavar="COUNT", help="One released count.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="With a file or folder: the column of released counts.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="With a folder: totals by this column. Repeatable."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="With a folder: totals of matching rows, e.g. 'region = west'. Repeatable.",
        ),
    ] = None,
    mechanism: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What released it: mechanism.json, a matrix as CSV, or a release."
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="uniform, binomial:P, numbers 1,2,3 or a file; none for no belief."),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="LEVEL", help="Level of the intervals.")
    ] = 0.95,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the likely true counts (PNG, SVG, PDF)."),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="With a file: where the new table goes."),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option("--query", metavar="QUERY", help="For --within or --epsilon: count:UPPER ..."),
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(metavar="K", help="Find the epsilon that releases within this distance."),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="E", help="Find the distance that this epsilon releases within."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="For --within or --epsilon: the mechanism.")
    ] = "geometric",
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR", help="With a file: what separates cells; by default the header tells."
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="With a file: its encoding.")] = "utf-8",
    large: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Estimate true counts and totals from a release.

    One count with --released, a whole column with FILE or FOLDER and --column, totals of groups
    with FOLDER and --by, or, before anything is released, what accuracy costs with --query and
    --within or --epsilon.
    """
    view = View(confidence, target, as_json)
    _require_new(target)
    if question is not None:
        for_query = ("question", "within", "epsilon", "confidence", "method")
        refuse_others(context, for_query, "--query")
        _print_accuracy(question, within, epsilon, method, view)
        return
    folder = file if file is not None and file.is_dir() else None
    if mechanism is not None and folder is not None:
        raise tv.UsageError("A release FOLDER holds its own mechanism: leave out --mechanism.")
    if file is not None:
        _require_likely(file, large=large or released is not None)
    if by or where:
        if folder is None:
            raise tv.UsageError("Totals by group are for the FOLDER of a release: name it.")
        for_totals = ("file", "column", "by", "where", "target", "large", "confidence")
        refuse_others(context, for_totals, "totals, --by or --where")
        _print_totals(folder, column, by or (), where or (), view)
        return
    origin = mechanism or folder
    if origin is None or (folder is None and (released is None) == (file is None)):
        raise tv.UsageError(USAGE)
    for_both = ("file", "column", "mechanism", "prior", "confidence")
    if released is not None:
        refuse_others(context, (*for_both, "released", "plot"), "--released")
    else:
        for_column = (*for_both, "target", "delimiter", "encoding", "large")
        refuse_others(context, for_column, "a whole column")
    if folder is not None and released is None and prior is None and _is_wide(folder, column):
        _interpret_wide(folder, column, view)
        return
    source = _read_source(origin, column, strict=folder is not None)
    if released is not None:
        _print_answer(source, released, _read_prior(prior), plot, view)
        return
    file = source.table if folder is not None else file
    assert file is not None  # a folder without a receipt was refused
    table = open_released(file, delimiter, encoding, folder)
    _interpret_column(table, source, _read_prior(prior), view)


def _require_new(target: Path | None) -> None:
    """Refuse a file that exists, or whose name says that it is something else than text."""
    if target is None:
        return
    if target.suffix.lower() != ".csv":
        raise tv.UsageError(
            f"--out writes CSV: name a file that ends in .csv. Got {str(target)!r}."
        )
    if os.path.lexists(target):
        raise tv.UsageError(f"{str(target)!r} exists already: name a new file.")


@dataclass(frozen=True)
class View:
    """A view of answers: the level of intervals, a file for them, JSON or text."""

    confidence: float
    target: Path | None
    as_json: bool


def _print_answer(
    source: Source, released: float, prior: Prior, plot: Path | None, view: View
) -> None:
    """Show what one released count tells, in sentences and bars or as JSON."""
    from tallyveil.reading.interpret import describe_release

    options = source.list_options(view.confidence)
    facts = describe_release(source.mechanism, released, prior, view.confidence, **options)
    belief = tv.posterior(source.mechanism, released, prior)
    lines = [facts["words"]]
    lines += _draw_bars(belief.answers.tolist(), belief.distribution.tolist(), facts["or_more"])
    if plot is not None:
        belief.plot(view.confidence, plot)
        lines.append(f"Drawn in {plot}")
    answer(facts, "\n".join(lines), as_json=view.as_json)


def _read_prior(text: str | None) -> Prior:
    """Read the prior named on the command line; None for confidence sets without one."""
    if text == "none":
        return None
    return "uniform" if text == "uniform" else parse_prior(text)


def _draw_bars(
    answers: list[float], distribution: list[float], or_more: float | None, width: int = 40
) -> list[str]:
    """Draw the likely answers as lines of blocks, for the terminal."""
    top = max(distribution)
    pairs = zip(answers, distribution, strict=True)
    shown = [(value, chance) for value, chance in pairs if chance >= 0.01 * top]
    label = max(len(f"{value:g}") for value, _ in shown)
    lines = ["", "true count, probability"]
    for value, chance in shown:
        blocks = "█" * max(1, round(width * chance / top))
        lines.append(f"{value:>{label}g}{'+' if value == or_more else ' '} {chance:6.3f}  {blocks}")
    return lines


def _interpret_column(released: Released, source: Source, prior: Prior, view: View) -> None:
    """Add low, high and standard error of one column to the table, and its total."""
    import numpy as np

    column, names, free = source.column, released.table.names, source.free
    if column is None or column not in names:
        columns = "Columns: " + ", ".join(names) + "."
        raise tv.ArgumentError("--column", "name a column of the table", column, columns)
    values = released.read_numbers(column)
    if not len(values):
        raise tv.TableError("The table has no rows.")
    if free is not None and len(free) != len(values):
        rule = "Structural zeros are known of the release's own table: name its FOLDER."
        raise tv.UsageError(rule)
    distinct, places = np.unique(values, return_inverse=True)
    options = source.list_options(view.confidence)
    view_of_values = tv.interpret(source.mechanism, distinct, prior, view.confidence, **options)
    figures = [view_of_values.low, view_of_values.high, view_of_values.standard_error]
    if free is not None:  # a structural zero is certain
        figures = [np.append(numbers, 0) for numbers in figures]
        places[~free] = len(distinct)
    drawn = values if free is None else values[free]
    total = source.estimate_total(drawn, view.confidence)
    summary = _summarize(len(values), view_of_values.kind, total, len(drawn), view)
    _show_column(released, column, (figures, places), summary, view)


def _interpret_wide(folder: Path, column: str | None, view: View) -> None:
    """Add the same to a column whose range is too wide for a matrix."""
    from tallyveil.release.groups import estimate_rows
    from tallyveil.release.release import read_receipt

    name, estimates, places = estimate_rows(folder, view.confidence, column=column)
    total = tv.estimate_total(folder, confidence=view.confidence, column=name)
    facts, rows = read_receipt(folder).table, len(places)
    figures = [[e.low for e in estimates], [e.high for e in estimates]]
    figures.append([e.standard_error for e in estimates])
    released = open_released(folder / facts.file, ",", "utf-8")
    summary = _summarize(rows, "estimate", total, rows, view)
    _show_column(released, name, (figures, places), summary, view)


def _summarize(
    rows: int, kind: str, total: Estimate | None, answers: int, view: View
) -> dict[str, Any]:
    """Return the facts of a whole column; total and mean are None without an estimate."""
    summary: dict[str, Any] = {"rows": rows, "kind": kind, "confidence": view.confidence}
    if total is None:
        return summary | {"total": None, "mean": None}
    parts = asdict(total)
    mean = {name: value / answers for name, value in parts.items()}
    return summary | {"total": parts, "mean": mean | {"groups": answers}}


def _show_column(
    released: Released,
    column: str,
    intervals: tuple[Sequence[Iterable[float]], Integers],
    summary: dict[str, Any],
    view: View,
) -> None:
    """Write the table with low, high and standard error after its columns, and say its total.

    `intervals` are these three for every distinct answer, and which of them each row has.
    """
    import numpy as np

    figures, places = intervals
    texts = [
        np.array([format(number, form) for number in numbers], object)
        for numbers, form in zip(figures, (".15g", ".15g", ".6g"), strict=True)
    ]

    def cells(rows: slice) -> list[list[str]]:
        return [text[places[rows]].tolist() for text in texts]

    added = [f"{column}_{word}" for word in ("low", "high", "standard_error")]
    data = {**summary, "out": None if view.target is None else str(view.target)}
    words = f"{numbered(summary['rows'], 'row')} with {', '.join(added)}.\n"
    words += _describe_total(summary["total"], view.confidence)
    _deliver(released.write(added, cells), data, words, view)


def _deliver(table: Iterable[str], data: dict[str, Any], words: str, view: View) -> None:
    """Write a table to its file, or print it unless JSON was asked for instead."""
    if view.target is not None:
        with view.target.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(table)
    if view.as_json:
        print_json(data)
    elif view.target is None:
        for text in table:
            write_data(text)
    else:
        out.print(f"Written to {view.target}: {words}")


def _describe_total(total: dict[str, Any] | None, confidence: float) -> str:
    """Describe the total of a column in a sentence."""
    if total is None:
        return "This mechanism has no unbiased estimate, so none of the total either."
    value, low, high = (_show(total[part]) for part in ("value", "low", "high"))
    error = _show(total["standard_error"], 4)
    return (
        f"The total of the true counts is about {value}, standard error {error}; "
        f"{confidence:.0%} interval {low} to {high}."
    )


def _show(value: float, digits: int = 6) -> str:
    """Write a number, large ones rounded and with separators, never with a power of ten.

    >>> [_show(x) for x in (270812345.6, -1234.0, 0.5, 999.99)]
    ['270,812,346', '-1,234', '0.5', '999.99']
    """
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.{digits}g}"


def _print_totals(
    folder: Path, column: str | None, by: Sequence[str], where: Sequence[str], view: View
) -> None:
    """Show a line for each group: rows, total, standard error, interval."""
    level = view.confidence
    totals = tv.estimate_total(folder, confidence=level, column=column, by=by, where=where)
    rows = [
        {
            **dict(zip(by, key if len(by) > 1 else (key,), strict=False)),
            "rows": total.groups,
            "total": round(total.value, 2),
            "standard_error": round(total.standard_error, 4),
            "low": int(total.low),
            "high": int(total.high),
            "bias_bound": round(total.bias_bound, 4),
        }
        for key, total in (totals if by else {(): totals}).items()
    ]
    text = _write_rows([rows[0], *(row.values() for row in rows)], ",")
    data = {"confidence": level, "groups": rows}
    _deliver([text], data, f"{numbered(len(rows), 'total')} with intervals.", view)


def _print_accuracy(
    question: str, within: float | None, epsilon: str | None, method: str, view: View
) -> None:
    from tallyveil.exact import exact_rational

    query, confidence = parse_query(question), view.confidence
    if (within is None) == (epsilon is None):
        raise tv.UsageError("Give either --within or --epsilon with --query.")
    if within is not None:
        needed = tv.epsilon_for(query, within, confidence, method)
        reach, shown, amount = within, f"{needed:g}", needed
        chance = tv.chance_within(query, needed, within, method)
        end = f"; a smaller epsilon does not reach {confidence:g}."
    else:
        shown, amount, end = str(epsilon), float(exact_rational(str(epsilon))), "."
        reach = tv.accuracy(query, shown, confidence, method)
        chance = tv.chance_within(query, shown, reach, method)
    text = (
        f"Epsilon {shown} releases within {reach:g} of the truth with probability "
        f"{chance:.6f} or more, for every true count{end}"
    )
    data = {"epsilon": amount, "within": reach, "confidence": confidence, "probability": chance}
    answer({**data, "mechanism": method}, text, as_json=view.as_json)


@dataclass(frozen=True)
class Released:
    """A released table and what separates its cells; a long one is read batch by batch."""

    table: Table
    delimiter: str

    def read_numbers(self, column: str) -> Floats:
        """Read the released numbers of a column, one for every row."""
        import numpy as np

        parts = [np.zeros(0)]
        for batch in self.table.batches([column]):
            codes = batch.codes(column)
            try:
                numbers = np.array([float(label) for label in codes.labels])
            except ValueError:
                rule = f"Column {column!r} must hold one released number in every row."
                raise tv.TableError(rule) from None
            parts.append(numbers[codes.codes])
        return np.concatenate(parts)

    def write(self, added: Sequence[str], cells: Cells) -> Iterator[str]:
        """Write the table as CSV with one line ending, piece by piece, with further columns."""
        yield _write_rows([(*self.table.names, *added)], self.delimiter)
        start = 0
        for batch in self.table.batches():
            columns = [batch.labels(name) for name in self.table.names]
            if sum(sum(map(len, column)) for column in columns) > LONGEST_TEXT:
                raise tv.TableError("The labels are too long to be written as text.")
            columns += cells(slice(start, start + batch.rows))
            yield _write_rows(zip(*columns, strict=True), self.delimiter)
            start += batch.rows


def _write_rows(rows: Iterable[Iterable[Any]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


@dataclass(frozen=True)
class Source:
    """The mechanism behind answers, and the release they are from if there is one.

    `table` is the data file of the release, `column` the name of the answers, and `free` marks
    the rows that are not structural zeros, if there are any.
    """

    mechanism: tv.Mechanism
    column: str | None
    table: Path | None = None
    record: ColumnRecord | None = None
    adder: Adder | None = None
    free: Mask | None = None

    def list_options(self, confidence: float) -> dict[str, Any]:
        """Return what `interpret` has to know of a release, besides its mechanism."""
        if self.record is None:
            return {}
        from tallyveil.release.release import published_sets

        sets = published_sets(self.record, self.mechanism, confidence)
        return {"sets": sets, "open_end": True}

    def estimate_total(self, values: Floats, confidence: float) -> Estimate | None:
        """Estimate the total of the true counts; None where nothing is unbiased."""
        import numpy as np

        from tallyveil.reading import unbiased

        record = self.record
        try:
            if record is None or self.adder is None or self.table is None:
                return unbiased.estimate_total(self.mechanism, values, confidence)
            fitted, is_part = record.method.adds_up, len(values) < sum(record.histogram.rows)
            if is_part and (record.at_most or record.method.by_group or fitted):
                return None  # parts of such a column cannot be added
            if not fitted:
                return self.adder.add(values.astype(np.int64), confidence)
            folder, name = self.table.parent, record.name
            total: Estimate = tv.estimate_total(folder, confidence=confidence, column=name)
            return total
        except tv.InfeasibleError:
            return None


def _read_source(path: Path, column: str | None, *, strict: bool) -> Source:
    """Read what released the answers: a mechanism's file, or a release.

    In a release that matched ranks after its draw, the certified file describes the draw
    alone; there the mechanism of both steps is returned. If `strict`, the column must be one of
    the release; else a release of one column may have been renamed.
    """
    from tallyveil.certified.files import read_mechanism
    from tallyveil.mechanism import as_mechanism

    folder = path if path.is_dir() else path.parent
    if not (folder / "receipt.json").is_file():
        return Source(as_mechanism(read_mechanism(path)), column)
    from tallyveil.release.accuracy import WIDEST_PICTURE
    from tallyveil.release.release import load_stage, published_mechanism, read_receipt
    from tallyveil.release.totals import make_adder
    from tallyveil.tables.published import read_published

    receipt = read_receipt(folder)
    table = folder / Path(receipt.table.file).name
    columns = receipt.columns
    if not path.is_dir():
        columns = tuple(c for c in columns if c.counts_stage.file == path.name)
    if not columns:
        return Source(as_mechanism(read_mechanism(path)), column, table)
    matches = [record for record in columns if record.name == column]
    if not matches and (len(columns) > 1 or (strict and column is not None)):
        names = ", ".join(record.name for record in columns)
        raise tv.UsageError(f"Give --column with one of the released columns of counts: {names}.")
    record = (matches or list(columns))[0]
    mechanism = published_mechanism(folder, record)
    if mechanism is None:
        rule = f"have at most {WIDEST_PICTURE} possible counts"
        hint = "Without --released and --prior the whole column can be read."
        if record.method.adds_up:
            hint = "Groups of rows can be read: name them with --by."
        raise tv.ArgumentError("--column", rule, record.name, hint)
    if record.method.keeps_distribution or record.at_most:
        errors.print(MATCHED)
    adder = make_adder(load_stage(folder, record.counts_stage), record.upper, record.matching)
    free = None if receipt.zeros is None else receipt.zeros.find_free(read_published(table))
    return Source(mechanism, column or record.name, table, record, adder, free)


def _is_wide(folder: Path, column: str | None) -> bool:
    """Return whether a column of a release has more possible counts than a matrix is built for."""
    from tallyveil.release.accuracy import WIDEST_PICTURE
    from tallyveil.release.release import read_receipt

    columns = read_receipt(folder).columns
    records = [record for record in columns if column in (None, record.name)]
    return len(records) == 1 and records[0].upper + 1 > WIDEST_PICTURE


def _require_likely(file: Path, *, large: bool) -> None:
    """Refuse a table with far more rows than its size makes likely, unless it may be large.

    A folder must be that of a release; the error says what else it is.
    """
    from tallyveil.release.release import plain_name, read_receipt
    from tallyveil.tables.published import require_likely_rows
    from tallyveil.tables.text import UnpackedError

    if file.is_dir():
        file /= plain_name(read_receipt(file).table.file)
    if large:
        return
    try:
        require_likely_rows(file)
    except UnpackedError as problem:
        raise tv.TableError(f"{problem} If that is right, say --large.") from None


def open_released(
    file: Path, delimiter: str | None, encoding: str, folder: Path | None = None
) -> Released:
    """Open a released table; that of a release `folder` must be the one its receipt describes."""
    from tallyveil.release.release import read_receipt, require_described
    from tallyveil.tables.published import read_published

    mark = "\t" if delimiter == "tab" else delimiter or _guess_delimiter(file)
    table = read_published(file, mark, encoding)
    if folder is not None:
        require_described(table, read_receipt(folder))
    return Released(table, mark)


def _guess_delimiter(file: Path) -> str:
    """Return the most frequent mark of the header; safe to guess, because a release is public."""
    from tallyveil.tables.read import TEXT_ENDINGS

    if file.suffix.lower() not in TEXT_ENDINGS or not file.is_file():
        return ","
    with file.open("rb") as text:
        header = text.readline()
    return max(",;\t", key=lambda mark: header.count(mark.encode()))
