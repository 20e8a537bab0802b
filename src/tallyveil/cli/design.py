"""`tallyveil design` and `tallyveil compare`: find the best mechanism, and compare mechanisms."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import tallyveil as tv
from tallyveil.cli.common import JsonOption, answer, example, out, pictures, text_table

if TYPE_CHECKING:
    from tallyveil.optimize.problem import DesignOptions
    from tallyveil.prior import Prior

COMMAND = "tallyveil design count:40 --epsilon 1 --property fair --property column_monotone"
EXAMPLE = example(COMMAND)
COMPARE_EXAMPLE = example(
    "tallyveil compare geometric fair variant2 --query count:40 --epsilon 0.5 --out view"
)
CLOSED_FORMS = ("geometric", "fair", "uniform", "exponential", "laplace", "staircase")
NAMES = (*CLOSED_FORMS, "variant1", "variant2", "ucm", "wm", "fm", "am")
"""Mechanisms that `compare` takes by name."""

QUERIES = "count:UPPER, mean:RECORDS:LOWER:UPPER, maximum:LOWER:UPPER (also minimum, median), or a "
LOSSES = "absolute, squared, zero_one, beyond:D or power:P."
PRIORS = "uniform, binomial:P, numbers 1,2,3 or a file of numbers."
NUMBERS = "be numbers separated by commas, or a file with one number per line"


def command(
    question: Annotated[
        str,
        typer.Argument(metavar="QUERY", help=f"{QUERIES}JSON file that describes a query."),
    ],
    *,
    epsilon: Annotated[
        list[str],
        typer.Option(
            "--epsilon", metavar="E", help="Privacy loss; several give the trade-off as well."
        ),
    ],
    loss: Annotated[str, typer.Option(help=LOSSES)] = "absolute",
    prior: Annotated[str | None, typer.Option(help=PRIORS)] = None,
    worst_case: Annotated[
        bool, typer.Option("--worst-case", help="Minimise the largest expected loss.")
    ] = False,
    side_information: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Possible true answers: 5:40 or 1,2,3."),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="PROPERTY",
            help="row_honest, row_monotone, column_honest, "
            "column_monotone, fair, weakly_honest, symmetric, output_private, or all.",
        ),
    ] = None,
    delta: Annotated[str, typer.Option(help="Slack of (epsilon, delta)-privacy.")] = "0",
    fixed_point: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Distribution that must come out as it goes in: numbers or file."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Distribution of outputs that must come out: numbers or file."
        ),
    ] = None,
    zero_outputs: Annotated[bool, typer.Option(help="Allow outputs of probability zero.")] = True,
    method: Annotated[str, typer.Option(help="auto or lp.")] = "auto",
    categories: Annotated[
        float, typer.Option(metavar="WIDTH", help="Width of a response category.")
    ] = 1,
    extend: Annotated[
        float, typer.Option(metavar="RATIO", help="Released range over valid range.")
    ] = 1,
    cache: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to keep and look up results.")
    ] = None,
    out_folder: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the files go.")
    ] = Path("design"),
    as_json: JsonOption = False,
) -> None:
    """Find the best private mechanism, prove how close to best it is, and certify it.

    Writes mechanism.json (certified in integers), matrix.csv, heatmap.png and design.json;
    with several epsilons one folder each, and tradeoff.csv and tradeoff.png.
    """
    from tallyveil.loss import parse_loss
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
    designs = [design_with(query, text, options) for text in epsilon]
    if len(designs) == 1:
        _write_design(out_folder, designs[0])
    else:
        for text, design in zip(epsilon, designs, strict=True):
            _write_design(out_folder / f"epsilon-{text.replace('/', '_')}", design)
        _write_tradeoff(out_folder, designs, options)
    summaries = [_summarize(design) for design in designs]
    text = f"{_describe_designs(designs)}\nWritten to {out_folder}"
    answer(summaries[0] if len(summaries) == 1 else summaries, text, as_json=as_json)


def _summarize(design: tv.Design) -> dict[str, Any]:
    """Return what design.json says: everything but the matrix."""
    mechanism = design.mechanism
    realised = mechanism.realised_epsilon()
    figures = ("objective", "lower_bound", "gap", "method", "reason", "solver", "seconds")
    return {
        "query": mechanism.query.to_dict(),
        "epsilon": str(mechanism.exact_epsilon),
        "delta": str(mechanism.exact_delta),
        "realised_epsilon": realised if realised < float("inf") else None,
        **{name: getattr(design, name) for name in figures},
        "attempts": [asdict(attempt) for attempt in design.attempts],
        "properties": mechanism.properties(),
        "bias": mechanism.bias().tolist(),
    }


def _write_design(folder: Path, design: tv.Design) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tv.certify(design.mechanism).save(folder / "mechanism.json")
    design.mechanism.to_csv(folder / "matrix.csv")
    with pictures():
        design.mechanism.plot(folder / "heatmap.png")
    text = json.dumps(_summarize(design), indent=2, allow_nan=False) + "\n"
    (folder / "design.json").write_text(text, encoding="utf-8")


def _write_tradeoff(folder: Path, designs: list[tv.Design], options: DesignOptions) -> None:
    prior = options.prior if options.prior is not None else options.fixed_point
    view = tv.compare(designs, [options.loss], [prior])
    view.to_csv(folder / "tradeoff.csv")
    with pictures():
        view.tradeoff(folder / "tradeoff.png")


def _describe_designs(designs: list[tv.Design]) -> str:
    """Name the mechanism, list what every epsilon gave, and say how it was solved."""
    rows = []
    for design in designs:
        epsilon, seconds = f"{design.mechanism.epsilon:g}", f"{design.seconds:.2f}"
        bounds = (f"{design.objective:.6g}", f"{design.lower_bound:.6g}", f"{design.gap:.1e}")
        rows.append((epsilon, *bounds, design.method, seconds))
    header = ("epsilon", "objective", "lower bound", "gap", "method", "seconds")
    first = designs[0]
    return f"{first.mechanism.name}\n\n{text_table(header, rows)}\n\n{first.reason}"


def compare_mechanisms(
    candidates: Annotated[
        list[str],
        typer.Argument(
            metavar="MECHANISM...",
            help=f"Files (mechanism.json, CSV or ptable), or names: {', '.join(NAMES)}.",
        ),
    ],
    *,
    question: Annotated[
        str | None,
        typer.Option("--query", metavar="QUERY", help="For names: count:40, maximum:0:9, ..."),
    ] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            "--epsilon", metavar="E", help="For names: privacy loss; several give the trade-off."
        ),
    ] = None,
    loss: Annotated[list[str] | None, typer.Option("--loss", help=LOSSES)] = None,
    prior: Annotated[list[str] | None, typer.Option("--prior", help=PRIORS)] = None,
    confidence: Annotated[
        float, typer.Option(metavar="LEVEL", help="Level of the intervals.")
    ] = 0.95,
    out_folder: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where comparison.csv and comparison.png go."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare mechanisms: losses, bias, error probability, interval width, privacy, properties."""
    from tallyveil.loss import parse_loss

    query = None if question is None else parse_query(question)
    chosen = [m for text in candidates for m in _read_candidate(text, query, epsilon or [])]
    losses = [parse_loss(text) for text in loss or ["absolute"]]
    priors = {text: parse_prior(text) for text in prior or ["uniform"]}
    view = tv.compare(chosen, losses, priors, confidence=confidence)
    answer(view.to_dict(), view.table(), as_json=as_json)
    if out_folder is not None:
        out_folder.mkdir(parents=True, exist_ok=True)
        view.to_csv(out_folder / "comparison.csv")
        with pictures():
            view.plot(out_folder / "comparison.png")
            if len(epsilon or []) > 1:
                view.tradeoff(out_folder / "tradeoff.png")
        if not as_json:
            out.print(f"Written to {out_folder}")


def _read_candidate(text: str, query: tv.Query | None, epsilons: list[str]) -> list[tv.Mechanism]:
    """Return the mechanism in a file, or the named one at every epsilon."""
    from tallyveil.mechanism import as_mechanism

    if os.path.exists(text):
        return [_read_file(Path(text))]
    if text not in NAMES:
        names = f"Known names: {', '.join(NAMES)}."
        raise tv.ArgumentError("MECHANISM", "be a file or a known name", text, names)
    if query is None or not epsilons:
        raise tv.UsageError(
            f"{text} is the name of a mechanism: give --query and --epsilon with it."
        )
    make = getattr(tv if text in CLOSED_FORMS else tv.papers, text)
    return [as_mechanism(make(query, epsilon)).renamed(text) for epsilon in epsilons]


def _read_file(file: Path) -> tv.Mechanism:
    """Read the mechanism in `file`, named after it."""
    from tallyveil.certified.files import read_mechanism
    from tallyveil.mechanism import as_mechanism

    named_by_folder = file.is_dir() or file.stem == "mechanism"
    folder = file.resolve() if file.is_dir() else file.resolve().parent
    name = folder.name if named_by_folder else file.stem
    return as_mechanism(read_mechanism(file)).renamed(name)


# -- what the words on the command line mean ------------------------------------------------------


def parse_query(text: str, categories: float = 1, extend: float = 1) -> tv.Query:
    """Read a query from ``count:40``, ``mean:10:0:4``, ``maximum:0:9`` or a JSON file."""
    if text.endswith(".json"):
        try:
            return tv.Query.from_dict(json.loads(Path(text).read_text(encoding="utf-8")))
        except (json.JSONDecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
            rule = "be a JSON file that describes a query, as `Query.to_dict` does"
            raise tv.ArgumentError("QUERY", rule, text) from None
    from tallyveil.query import GRID_ARGUMENTS

    kind, *numbers = text.split(":")
    try:
        ends = dict(zip(GRID_ARGUMENTS[kind], map(int, numbers), strict=True))
    except (KeyError, ValueError):
        rule = f"be {QUERIES}.json file"
        raise tv.ArgumentError("QUERY", rule, text, f"For example: {COMMAND}") from None
    return tv.Query.from_dict({"kind": kind, **ends, "categories": categories, "extend": extend})


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
    return _parse_numbers(body.replace("\n", ","), argument, NUMBERS)


def parse_answers(text: str | None) -> list[float] | None:
    """Read true answers from ``5:40``, both included, or from numbers separated by commas."""
    if text is None:
        return None

    rule = "be FIRST:LAST in whole numbers, or numbers separated by commas"
    numbers = _parse_numbers(text.replace(":", ","), "side_information", rule)
    if ":" not in text:
        return numbers
    if len(numbers) != 2 or not all(map(float.is_integer, numbers)):
        raise tv.ArgumentError("side_information", rule, text)
    return [float(value) for value in range(int(numbers[0]), int(numbers[1]) + 1)]


def parse_properties(names: list[str]) -> tuple[str, ...]:
    """Read names of properties, with hyphens or underscores; ``all`` is the seven."""
    from tallyveil.properties import SEVEN, check_names

    listed = [name.replace("-", "_") for name in names]
    return SEVEN if "all" in listed else check_names(listed)


def _parse_numbers(text: str, argument: str, rule: str) -> list[float]:
    return [_parse_number(part, argument, rule) for part in text.split(",") if part.strip()]


def _parse_number(text: str, argument: str, rule: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise tv.ArgumentError(argument, rule, text) from None
