"""`tallyveil compare`: mechanisms side by side, from files or by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli.common import example, pictures
from tallyveil.cli.design import parse_prior, parse_query

if TYPE_CHECKING:
    from tallyveil.mechanism import Mechanism
    from tallyveil.query import Query

__all__ = ["EXAMPLE", "command"]

CLOSED_FORMS = ("geometric", "fair", "uniform", "exponential", "laplace", "staircase")
DESIGNED = ("variant1", "variant2", "ucm", "wm", "fm", "am")

EXAMPLE = example(
    "tallyveil compare geometric fair variant2 --query count:40 --epsilon 0.5 --out view"
)


def command(
    candidates: Annotated[
        list[str],
        typer.Argument(
            metavar="MECHANISM...",
            help="Files (mechanism.json, CSV or ptable), or names: geometric, fair, uniform, "
            "exponential, laplace, staircase, variant1, variant2, ucm, wm, fm, am.",
        ),
    ],
    *,
    question: Annotated[
        str | None, typer.Option("--query", help="For names: count:40, maximum:0:9, ...")
    ] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option("--epsilon", help="For names: privacy loss; several give the trade-off."),
    ] = None,
    loss: Annotated[
        list[str] | None, typer.Option("--loss", help="absolute, squared, zero_one, beyond:D ...")
    ] = None,
    prior: Annotated[
        list[str] | None, typer.Option("--prior", help="uniform, binomial:P, numbers or a file.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Where comparison.csv and comparison.png go.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Compare mechanisms: losses, bias, error probability, interval width, privacy, properties."""
    from tallyveil.cli.common import out, print_json
    from tallyveil.evaluate import compare
    from tallyveil.loss import parse_loss

    query = None if question is None else parse_query(question)
    chosen = [m for text in candidates for m in _read_candidate(text, query, epsilon or [])]
    losses = [parse_loss(text) for text in loss or ["absolute"]]
    priors = {text: parse_prior(text) for text in prior or ["uniform"]}
    view = compare(chosen, losses, priors, confidence=confidence)
    if as_json:
        print_json(view.to_dict())
    else:
        out.print(view.table())
    if out_folder is not None:
        out_folder.mkdir(parents=True, exist_ok=True)
        view.to_csv(out_folder / "comparison.csv")
        with pictures():
            view.plot(out_folder / "comparison.png")
            if len(epsilon or []) > 1:
                view.tradeoff(out_folder / "tradeoff.png")
        if not as_json:
            out.print(f"Written to {out_folder}", markup=False)


def _read_candidate(text: str, query: Query | None, epsilons: list[str]) -> list[Mechanism]:
    """The mechanism in a file, or the named one at every epsilon."""
    from tallyveil.errors import ArgumentError, UsageError

    if os.path.exists(text):
        return [_read_file(Path(text))]
    if text not in (*CLOSED_FORMS, *DESIGNED):
        known = f"Known names: {', '.join((*CLOSED_FORMS, *DESIGNED))}."
        raise ArgumentError("MECHANISM", "be a file or a known name", text, known)
    if query is None or not epsilons:
        raise UsageError(f"{text} is the name of a mechanism: give --query and --epsilon with it.")
    return [_make_named(text, query, epsilon) for epsilon in epsilons]


def _make_named(name: str, query: Query, epsilon: str) -> Mechanism:
    """The mechanism called `name` for `query` at `epsilon`."""
    import tallyveil as tv
    from tallyveil.mechanism import Mechanism, as_mechanism

    home = tv if name in CLOSED_FORMS else tv.papers
    made = as_mechanism(getattr(home, name)(query, epsilon))
    return Mechanism(made.matrix, query, epsilon, delta=made.exact_delta, name=name)


def _read_file(file: Path) -> Mechanism:
    """The mechanism in `file`, named after it."""
    from tallyveil.certified.files import read_mechanism
    from tallyveil.mechanism import as_mechanism

    named_by_folder = file.is_dir() or file.stem == "mechanism"
    folder = file.resolve() if file.is_dir() else file.resolve().parent
    name = folder.name if named_by_folder else file.stem
    return as_mechanism(read_mechanism(file)).renamed(name)
