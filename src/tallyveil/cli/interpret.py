"""`tallyveil interpret`: what a released number says, and what accuracy costs."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, errors, example, out, print_json

if TYPE_CHECKING:
    from tallyveil.mechanism import Mechanism
    from tallyveil.prior import Prior

__all__ = ["EXAMPLE", "command", "read_mechanism"]

EXAMPLE = example(
    "tallyveil interpret --released 7 --mechanism mechanism.json --plot seven.png",
    "tallyveil interpret released.csv --column cases --mechanism mechanism.json --out read.csv",
    "tallyveil interpret --query count:40 --within 3 --confidence 0.95",
    "tallyveil interpret --query count:40 --epsilon 1",
)

MATCHED = (
    "note: this release handed out counts by rank after the draw. The figures describe the whole "
    "procedure as it is in a large table, with the released distribution taken for the true one."
)


def command(
    file: Annotated[
        Path | None, typer.Argument(help="A released CSV or TSV table.", show_default=False)
    ] = None,
    *,
    released: Annotated[float | None, typer.Option(help="One released answer.")] = None,
    column: Annotated[
        str | None, typer.Option(help="With a file: the column of released answers.")
    ] = None,
    mechanism: Annotated[
        Path | None,
        typer.Option(help="What released it: mechanism.json, or a matrix as CSV."),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="uniform, binomial:P, numbers 1,2,3 or a file; none for no belief."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="The level of every interval.")] = 0.95,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the law of the true answer (PNG, SVG, PDF).")
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
    as_json: JsonOption = False,
) -> None:
    """Say in words and numbers what a released answer tells about the truth.

    One answer with --released, a whole column with FILE and --column, or, before anything is
    released, what accuracy costs with --query and --within or --epsilon.
    """
    from tallyveil.errors import ArgumentError

    if question is not None:
        _accuracy(question, within, epsilon, confidence, method, as_json=as_json)
        return
    if mechanism is None or (released is None) == (file is None):
        raise ArgumentError(
            "interpret", "be told --mechanism and either --released or a FILE",
            hint="Or --query with --within or --epsilon. See: tallyveil interpret --help",
        )  # fmt: skip
    made, belief = _matched(mechanism) or read_mechanism(mechanism), _prior(prior)
    if file is not None:
        _column(file, column, made, prior=belief, confidence=confidence, target=target,
                as_json=as_json)  # fmt: skip
        return
    if released is None:
        return
    from tallyveil.reading.interpret import reading
    from tallyveil.reading.posterior import posterior

    found = reading(made, released, belief, confidence)
    law = posterior(made, released, belief)
    if plot is not None:
        law.plot(confidence, plot)
    if as_json:
        print_json(found)
        return
    out.print(found["words"], markup=False)
    out.print(_bars(law.answers.tolist(), law.law.tolist()), markup=False)
    if plot is not None:
        out.print(f"Drawn in {plot}", markup=False)


def read_mechanism(path: Path) -> Mechanism:
    """A mechanism from a certified file (verified on the way in), plain JSON, or a CSV matrix."""
    from tallyveil.errors import ArgumentError
    from tallyveil.mechanism import FORMAT, Mechanism

    if path.is_dir():
        path = path / "mechanism.json"
    if path.suffix.lower() == ".csv":
        return Mechanism.from_csv(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ArgumentError("mechanism", "be a JSON or CSV file", str(path)) from None
    if isinstance(data, dict) and data.get("format") == FORMAT:
        return Mechanism.from_dict(data)
    from tallyveil.certified.certify import load

    return load(path).mechanism


def _matched(path: Path) -> Mechanism | None:
    """What counts went through as a whole in a release that matched ranks after its draw.

    There the certified file tells only of the draw, and would mislead.
    """
    folder = path if path.is_dir() else path.parent
    if not (folder / "receipt.json").is_file():
        return None
    from tallyveil.errors import ArgumentError
    from tallyveil.publish.check import read_package
    from tallyveil.publish.rebuild import published_mechanism

    file = "mechanism.json" if path.is_dir() else path.name
    for column in read_package(folder)["columns"]:
        if column["mechanism"]["file"] == file and column["method"] == "preserve":
            whole = published_mechanism(folder, column)
            if whole is None:
                raise ArgumentError("mechanism", "have at most 1001 possible counts", file)
            errors.print(MATCHED, markup=False)
            return whole
    return None


def _prior(text: str | None) -> Prior:
    from tallyveil.cli.design import parse_prior

    if text == "none":
        return None
    return "uniform" if text == "uniform" else parse_prior(text)


def _bars(answers: list[float], law: list[float], width: int = 40) -> str:
    """The likely answers as lines of blocks, for the terminal."""
    top = max(law)
    shown = [(answer, chance) for answer, chance in zip(answers, law, strict=True)
             if chance >= 0.01 * top]  # fmt: skip
    label = max(len(f"{answer:g}") for answer, _ in shown)
    lines = [
        f"{answer:>{label}g}  {chance:6.3f}  {'█' * max(1, round(width * chance / top))}"
        for answer, chance in shown
    ]
    return "\n".join(["", "true answer, probability", *lines])


def _column(
    file: Path,
    column: str | None,
    mechanism: Mechanism,
    *,
    prior: Prior,
    confidence: float,
    target: Path | None,
    as_json: bool,
) -> None:
    from tallyveil.errors import ArgumentError
    from tallyveil.reading.interpret import interpret

    header, rows, separator = _read_rows(file)
    if column is None or column not in header:
        raise ArgumentError("--column", "name a column of the table", column,
                            "Columns: " + ", ".join(header) + ".")  # fmt: skip
    at = header.index(column)
    try:
        values = [float(row[at]) for row in rows]
    except (ValueError, IndexError):
        raise ArgumentError("--column", "hold one released number in every row", column) from None
    if not values:
        raise ArgumentError("FILE", "hold at least one row", str(file))
    found = interpret(mechanism, values, prior, confidence)
    added = [f"{column}_low", f"{column}_high", f"{column}_standard_error"]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow([*header, *added])
    for row, low, high, error in zip(rows, found.low, found.high, found.standard_error,
                                     strict=True):  # fmt: skip
        writer.writerow([*row, f"{low:g}", f"{high:g}", f"{error:.6g}"])
    if target is not None:
        target.write_text(text.getvalue(), encoding="utf-8", newline="\n")
    summary = {"rows": len(values), "kind": found.kind, "confidence": confidence,
               **_totals(mechanism, values, confidence)}  # fmt: skip
    if as_json:
        print_json({**summary, "out": None if target is None else str(target)})
    elif target is None:
        sys.stdout.write(text.getvalue())
    else:
        out.print(f"Written to {target}: {len(values)} rows with {', '.join(added)}.", markup=False)
        out.print(_totals_in_words(summary), markup=False)


def _read_rows(file: Path) -> tuple[list[str], list[list[str]], str]:
    from tallyveil.errors import ArgumentError

    text = file.read_text(encoding="utf-8-sig")
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    lines = [line for line in csv.reader(io.StringIO(text), delimiter=separator) if line]
    if not lines:
        raise ArgumentError("FILE", "hold a header line", str(file))
    return lines[0], lines[1:], separator


def _totals(mechanism: Mechanism, values: list[float], confidence: float) -> dict[str, Any]:
    from tallyveil.errors import InfeasibleError
    from tallyveil.reading.unbiased import estimate_mean, estimate_total

    try:
        return {"total": vars(estimate_total(mechanism, values, confidence)),
                "mean": vars(estimate_mean(mechanism, values, confidence))}  # fmt: skip
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


def _accuracy(
    question: str,
    within: float | None,
    epsilon: str | None,
    confidence: float,
    method: str,
    *,
    as_json: bool,
) -> None:
    from tallyveil.cli.design import parse_query
    from tallyveil.errors import ArgumentError
    from tallyveil.exact import exact_rational
    from tallyveil.reading.precision import accuracy, chance_within, epsilon_for

    query = parse_query(question)
    if (within is None) == (epsilon is None):
        raise ArgumentError("--query", "come with either --within or --epsilon")
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
