"""`tallyveil design`: write the best mechanism for a query as files and a picture."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tallyveil.cli.common import example, pictures

if TYPE_CHECKING:
    from tallyveil.loss import Loss
    from tallyveil.optimize.design import Design
    from tallyveil.optimize.problem import DesignOptions
    from tallyveil.prior import Prior
    from tallyveil.query import Query

__all__ = ["EXAMPLE", "command", "parse_distribution", "parse_loss", "parse_prior", "parse_query"]

COMMAND = "tallyveil design count:40 --epsilon 1 --property fair --property column_monotone"
EXAMPLE = example(COMMAND)


def command(
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="count:UPPER, mean:RECORDS:LOWER:UPPER, maximum:LOWER:UPPER (also minimum, "
            "median), or a JSON file that describes a query.",
        ),
    ],
    *,
    epsilon: Annotated[
        list[str],
        typer.Option("--epsilon", help="Privacy loss; several give the trade-off as well."),
    ],
    loss: Annotated[
        str, typer.Option(help="absolute, squared, zero_one, beyond:D or power:P.")
    ] = "absolute",
    prior: Annotated[
        str | None, typer.Option(help="uniform, binomial:P, numbers 1,2,3 or a file of numbers.")
    ] = None,
    worst_case: Annotated[
        bool, typer.Option("--worst-case", help="Minimise the largest expected loss.")
    ] = False,
    side_information: Annotated[
        str | None, typer.Option(help="Possible true answers: 5:40 or 1,2,3.")
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            help="row_honest, row_monotone, column_honest, "
            "column_monotone, fair, weakly_honest, symmetric, output_private, or all.",
        ),
    ] = None,
    delta: Annotated[str, typer.Option(help="Slack of (epsilon, delta)-privacy.")] = "0",
    fixed_point: Annotated[
        str | None,
        typer.Option(help="Distribution that must come out as it goes in: numbers or file."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Distribution of outputs that must come out: numbers or file."),
    ] = None,
    zero_outputs: Annotated[
        bool, typer.Option(help="Whether outputs may have probability zero.")
    ] = True,
    method: Annotated[str, typer.Option(help="auto or lp.")] = "auto",
    categories: Annotated[float, typer.Option(help="Width of a response category.")] = 1,
    extend: Annotated[float, typer.Option(help="Released range over valid range.")] = 1,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep and look up results.")] = None,
    out_folder: Annotated[Path, typer.Option("--out", help="Where the files go.")] = Path("design"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Find the best private mechanism, prove how close to best it is, and certify it.

    Writes mechanism.json (certified in integers), matrix.csv, heatmap.png and design.json;
    with several epsilons one folder each, and tradeoff.csv and tradeoff.png.
    """
    from tallyveil.optimize.design import design_with
    from tallyveil.optimize.problem import DesignOptions

    query = parse_query(question, categories, extend)
    options = DesignOptions(
        loss=parse_loss(loss),
        prior=parse_prior(prior),
        worst_case=worst_case,
        side_information=parse_answers(side_information),
        properties=parse_properties(properties or []),
        delta=delta,
        fixed_point=parse_distribution(fixed_point, "fixed_point"),
        target=parse_distribution(target, "target"),
        method=cast(Any, method),  # any word is checked there
        zero_outputs=zero_outputs,
        cache=cache,
    )
    found = {text: design_with(query, text, options) for text in epsilon}
    designs = list(found.values())
    if len(found) == 1:
        _write_design(out_folder, designs[0])
    else:
        for text, one in found.items():
            _write_design(out_folder / f"epsilon-{text.replace('/', '_')}", one)
        _write_tradeoff(out_folder, designs, options)
    if as_json:
        from tallyveil.cli.common import print_json

        summaries = [summarize(one) for one in designs]
        print_json(summaries[0] if len(summaries) == 1 else summaries)
    else:
        _print_designs(designs, out_folder)


def summarize(found: Design) -> dict[str, Any]:
    """Return what design.json says: everything but the matrix."""
    mechanism = found.mechanism
    realised = mechanism.realised_epsilon()
    return {
        "query": mechanism.query.to_dict(),
        "epsilon": str(mechanism.exact_epsilon),
        "delta": str(mechanism.exact_delta),
        "realised_epsilon": realised if realised < float("inf") else None,
        "objective": found.objective,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "method": found.method,
        "reason": found.reason,
        "solver": found.solver,
        "seconds": found.seconds,
        "attempts": [asdict(attempt) for attempt in found.attempts],
        "properties": mechanism.properties(),
        "bias": mechanism.bias().tolist(),
    }


def _write_design(folder: Path, found: Design) -> None:
    from tallyveil.certified.certify import certify

    folder.mkdir(parents=True, exist_ok=True)
    certify(found.mechanism).save(folder / "mechanism.json")
    found.mechanism.to_csv(folder / "matrix.csv")
    with pictures():
        found.mechanism.plot(folder / "heatmap.png")
    text = json.dumps(summarize(found), indent=2, allow_nan=False) + "\n"
    (folder / "design.json").write_text(text, encoding="utf-8")


def _write_tradeoff(folder: Path, found: list[Design], options: DesignOptions) -> None:
    from tallyveil.evaluate import compare

    prior = options.prior if options.prior is not None else options.fixed_point
    view = compare(found, [options.loss], [prior])
    view.to_csv(folder / "tradeoff.csv")
    with pictures():
        view.tradeoff(folder / "tradeoff.png")


def _print_designs(found: list[Design], folder: Path) -> None:
    from rich import box
    from rich.table import Table

    from tallyveil.cli.common import out

    out.print(found[0].mechanism.name, markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("epsilon", "objective", "lower bound", "gap", "method", "seconds"):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(
            f"{one.mechanism.epsilon:g}",
            f"{one.objective:.6g}",
            f"{one.lower_bound:.6g}",
            f"{one.gap:.1e}",
            one.method,
            f"{one.seconds:.2f}",
        )
    out.print(table)
    out.print(found[0].reason, markup=False)
    out.print(f"Written to {folder}", markup=False)


# -- what the words on the command line mean ------------------------------------------------------


def parse_query(text: str, categories: float = 1, extend: float = 1) -> Query:
    """Read a query from ``count:40``, ``mean:10:0:4``, ``maximum:0:9`` or a JSON file."""
    from tallyveil.errors import ArgumentError
    from tallyveil.query import Query

    if text.endswith(".json"):
        try:
            return Query.from_dict(json.loads(Path(text).read_text(encoding="utf-8")))
        except (json.JSONDecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
            rule = "be a JSON file that describes a query, as `Query.to_dict` does"
            raise ArgumentError("QUERY", rule, text) from None
    kind, *numbers = text.split(":")
    names = {"count": ("upper",), "mean": ("records", "lower", "upper")}
    names |= dict.fromkeys(("maximum", "minimum", "median"), ("lower", "upper"))
    try:
        given = dict(zip(names[kind], map(int, numbers), strict=True))
    except (KeyError, ValueError):
        rule = (
            "be count:UPPER, mean:RECORDS:LOWER:UPPER, maximum:LOWER:UPPER (also minimum, "
            "median), or a .json file"
        )
        raise ArgumentError("QUERY", rule, text, f"For example: {COMMAND}") from None
    return Query.from_dict({"kind": kind, **given, "categories": categories, "extend": extend})


def parse_loss(text: str) -> Loss:
    """Read a loss from its name, or from ``beyond:2`` or ``power:1.5``."""
    name, colon, value = text.partition(":")
    return (name, _parse_number(value, "loss", f"give {name!r} a number")) if colon else name


def parse_prior(text: str | None) -> Prior:
    """Read a prior from ``uniform``, ``binomial:0.3``, numbers or a file."""
    if text is None or text == "uniform":
        return None
    name, colon, value = text.partition(":")
    if colon and name == "binomial":
        rule = "give the binomial a probability in [0, 1]"
        return (name, _parse_number(value, "prior", rule))
    return parse_distribution(text, "prior")


def parse_distribution(text: str | None, argument: str) -> list[float] | None:
    """Read numbers separated by commas, or a file with one number per line."""
    if text is None:
        return None
    file = Path(text)
    body = file.read_text(encoding="utf-8") if os.path.isfile(file) else text
    rule = "be numbers separated by commas, or a file with one number per line"
    parts = body.replace("\n", ",").split(",")
    return [_parse_number(part, argument, rule) for part in parts if part.strip()]


def parse_answers(text: str | None) -> list[float] | None:
    """Read true answers from ``5:40``, both included, or from numbers separated by commas."""
    if text is None:
        return None
    rule = "be FIRST:LAST in whole numbers, or numbers separated by commas"
    low, colon, high = text.partition(":")
    if not colon:
        parts = text.split(",")
        return [_parse_number(part, "side_information", rule) for part in parts if part.strip()]
    from tallyveil.errors import ArgumentError

    first, last = (_parse_number(part, "side_information", rule) for part in (low, high))
    if not (first.is_integer() and last.is_integer()):
        raise ArgumentError("side_information", rule, text)
    return [float(value) for value in range(int(first), int(last) + 1)]


def parse_properties(names: list[str]) -> tuple[str, ...]:
    """Read names of properties, with hyphens or underscores; ``all`` is the seven."""
    from tallyveil.properties import SEVEN, check_names

    listed = [name.replace("-", "_") for name in names]
    return SEVEN if "all" in listed else check_names(listed)


def _parse_number(text: str, argument: str, rule: str) -> float:
    from tallyveil.errors import ArgumentError

    try:
        return float(text)
    except ValueError:
        raise ArgumentError(argument, rule, text) from None
