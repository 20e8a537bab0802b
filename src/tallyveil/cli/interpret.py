"""`tallyveil interpret`: what a released number says, and what accuracy costs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, errors, example, out, print_json, write_data

if TYPE_CHECKING:
    from tallyveil.mechanism import Mechanism
    from tallyveil.prior import Prior

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil interpret release/ --column cases --out read.csv",
    "tallyveil interpret --released 7 --mechanism mechanism.json --plot seven.png",
    "tallyveil interpret released.csv --column cases --mechanism mechanism.json --out read.csv",
    "tallyveil interpret --query count:40 --within 3 --confidence 0.95",
    "tallyveil interpret --query count:40 --epsilon 1",
)

USAGE = (
    "Give --mechanism and either --released or a FILE; or the FOLDER of a release; or --query with "
    "--within or --epsilon. See: tallyveil interpret --help"
)
MATCHED = (
    "note: this release handed out counts by rank after the draw. The figures describe the whole "
    "procedure as it is in a large table, with the released distribution taken for the true one."
)
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")


@dataclass(frozen=True)
class _Cells:
    """A table as text: the cells of every column, and what separates them."""

    columns: dict[str, Sequence[str]]
    delimiter: str

    def to_text(self) -> str:
        """The table as CSV with one line ending."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue()


def command(
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
    as_json: JsonOption = False,
) -> None:
    """Say in words and numbers what a released answer tells about the truth.

    One answer with --released, a whole column with FILE or FOLDER and --column, or, before
    anything is released, what accuracy costs with --query and --within or --epsilon.
    """
    from tallyveil.errors import UsageError

    if question is not None:
        _print_accuracy(question, within, epsilon, confidence, method, as_json=as_json)
        return
    folder = file if file is not None and file.is_dir() else None
    source = mechanism or folder
    if source is None or (folder is None and (released is None) == (file is None)):
        raise UsageError(USAGE)
    if mechanism is not None and folder is not None:
        raise UsageError("A release FOLDER holds its own mechanism: leave out --mechanism.")
    table, column, made = _read_source(source, column, strict=folder is not None)
    belief = _read_prior(prior)
    if released is not None:
        _print_answer(made, released, belief, confidence, plot, as_json=as_json)
        return
    file = table if folder is not None else file
    if file is None:
        raise UsageError(f"{folder} is not the folder of a release: it has no receipt.json.")
    _interpret_column(
        _read_cells(file, delimiter, encoding),
        column,
        made,
        prior=belief,
        confidence=confidence,
        target=target,
        as_json=as_json,
    )


def _print_answer(
    mechanism: Mechanism,
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

    found = describe_release(mechanism, released, prior, confidence)
    belief = posterior(mechanism, released, prior)
    if plot is not None:
        belief.plot(confidence, plot)
    if as_json:
        print_json(found)
        return
    out.print(found["words"], markup=False)
    out.print(_draw_bars(belief.answers.tolist(), belief.distribution.tolist()), markup=False)
    if plot is not None:
        out.print(f"Drawn in {plot}", markup=False)


def _read_source(
    path: Path, column: str | None, *, strict: bool
) -> tuple[Path | None, str | None, Mechanism]:
    """The data file if `path` is in a release, the column, and the mechanism it went through.

    In a release that matched ranks after its draw, the certified file describes the draw
    alone; there the whole procedure is returned. If `strict`, the column must be one of the
    release; else a release of one column may have been renamed. The only place that knows
    release folders.
    """
    from tallyveil.certified.files import read_mechanism
    from tallyveil.errors import ArgumentError, UsageError
    from tallyveil.mechanism import as_mechanism

    folder = path if path.is_dir() else path.parent
    if not (folder / "receipt.json").is_file():
        return None, column, as_mechanism(read_mechanism(path))
    from tallyveil.publish.accuracy import WIDEST_PICTURE
    from tallyveil.publish.reopen import published_mechanism, read_receipt

    receipt = read_receipt(folder)
    table = folder / Path(receipt.table.file).name
    columns = receipt.columns
    if not path.is_dir():
        columns = tuple(c for c in columns if c.counts_stage.file == path.name)
    if not columns:
        return table, column, as_mechanism(read_mechanism(path))
    named = [record for record in columns if record.name == column]
    if not named and (len(columns) > 1 or (strict and column is not None)):
        names = ", ".join(record.name for record in columns)
        raise UsageError(f"Give --column with one of the released columns of counts: {names}.")
    record = (named or list(columns))[0]
    whole = published_mechanism(folder, record)
    if whole is None:
        rule = f"have at most {WIDEST_PICTURE} possible counts"
        raise ArgumentError("--column", rule, record.name)
    if record.kind.keeps_distribution:
        errors.print(MATCHED, markup=False)
    return table, column or record.name, whole


def _read_prior(text: str | None) -> Prior:
    """The prior named on the command line; None for confidence sets without one."""
    from tallyveil.cli.design import parse_prior

    if text == "none":
        return None
    return "uniform" if text == "uniform" else parse_prior(text)


def _draw_bars(answers: list[float], distribution: list[float], width: int = 40) -> str:
    """The likely answers as lines of blocks, for the terminal."""
    top = max(distribution)
    pairs = zip(answers, distribution, strict=True)
    shown = [(answer, chance) for answer, chance in pairs if chance >= 0.01 * top]
    label = max(len(f"{answer:g}") for answer, _ in shown)
    lines = [
        f"{answer:>{label}g}  {chance:6.3f}  {'█' * max(1, round(width * chance / top))}"
        for answer, chance in shown
    ]
    return "\n".join(["", "true answer, probability", *lines])


def _interpret_column(
    cells: _Cells,
    column: str | None,
    mechanism: Mechanism,
    *,
    prior: Prior,
    confidence: float,
    target: Path | None,
    as_json: bool,
) -> None:
    """Add low, high and standard error of one column to the table, and its total."""
    from tallyveil.errors import ArgumentError, TableError
    from tallyveil.reading.interpret import interpret

    if column is None or column not in cells.columns:
        known = "Columns: " + ", ".join(cells.columns) + "."
        raise ArgumentError("--column", "name a column of the table", column, known)
    try:
        values = [float(cell) for cell in cells.columns[column]]
    except ValueError:
        raise TableError(f"Column {column!r} must hold one released number in every row.") from None
    found = interpret(mechanism, values, prior, confidence)
    added = {
        f"{column}_low": [f"{value:g}" for value in found.low],
        f"{column}_high": [f"{value:g}" for value in found.high],
        f"{column}_standard_error": [f"{value:.6g}" for value in found.standard_error],
    }
    text = _Cells({**cells.columns, **added}, cells.delimiter).to_text()
    if target is not None:
        target.write_text(text, encoding="utf-8", newline="\n")
    summary = {
        "rows": len(values),
        "kind": found.kind,
        "confidence": confidence,
        **_estimate_totals(mechanism, values, confidence),
    }
    if as_json:
        print_json({**summary, "out": None if target is None else str(target)})
    elif target is None:
        write_data(text)
    else:
        out.print(f"Written to {target}: {len(values)} rows with {', '.join(added)}.", markup=False)
        out.print(_totals_in_words(summary), markup=False)


def _read_cells(file: Path, delimiter: str | None, encoding: str) -> _Cells:
    """The cells of a released table by column, as text."""
    from tallyveil.tables.source import read_table

    encoding = "utf-8-sig" if encoding == "utf-8" else encoding  # reads a byte-order mark too
    mark = "\t" if delimiter == "tab" else delimiter or _guess_delimiter(file)
    table = read_table(file, mark, encoding)
    return _Cells({name: table.labels(name) for name in table.names}, mark)


def _guess_delimiter(file: Path) -> str:
    """The mark that the header holds most often; safe to guess, because a release is public."""
    if file.suffix.lower() not in TEXT_ENDINGS or not file.is_file():
        return ","
    with file.open("rb") as text:
        header = text.readline()
    return max(",;\t", key=lambda mark: header.count(mark.encode()))


def _estimate_totals(
    mechanism: Mechanism, values: list[float], confidence: float
) -> dict[str, Any]:
    """Total and mean of the true answers, None where there is no unbiased estimate."""
    from tallyveil.errors import InfeasibleError
    from tallyveil.reading.unbiased import estimate_mean, estimate_total

    try:
        return {
            "total": asdict(estimate_total(mechanism, values, confidence)),
            "mean": asdict(estimate_mean(mechanism, values, confidence)),
        }
    except InfeasibleError:
        return {"total": None, "mean": None}


def _totals_in_words(summary: dict[str, Any]) -> str:
    total = summary["total"]
    if total is None:
        return "This mechanism has no unbiased estimate, so none of the total either."
    return (
        f"The total of the true answers is about {total['value']:.6g}, standard error "
        f"{total['standard_error']:.4g}; {summary['confidence']:.0%} interval "
        f"{total['low']:.6g} to {total['high']:.6g} (normal approximation)."
    )


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
