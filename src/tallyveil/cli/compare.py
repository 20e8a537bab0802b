"""`tallyveil compare`: mechanisms side by side, from files or by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli.common import example, pictures
from tallyveil.cli.design import parse_prior, parse_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from tallyveil.mechanism import Mechanism
    from tallyveil.query import Query

__all__ = ["EXAMPLE", "command"]

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
    from tallyveil.evaluate.compare import compare
    from tallyveil.loss import parse_loss

    query = None if question is None else parse_query(question)
    chosen = [m for text in candidates for m in _candidates(text, query, epsilon or [])]
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


def _candidates(text: str, query: Query | None, epsilons: list[str]) -> list[Mechanism]:
    """The mechanism in a file, or the named one at every epsilon."""
    from tallyveil.errors import ArgumentError

    if Path(text).is_file():
        return [_from_file(Path(text))]
    makers = _makers()
    if text not in makers:
        known = f"Known names: {', '.join(makers)}."
        raise ArgumentError("MECHANISM", "be a file or a known name", text, known)
    if query is None or not epsilons:
        raise ArgumentError("MECHANISM", "come with --query and --epsilon when it is a name", text)
    return [makers[text](query, value) for value in epsilons]


def _makers() -> dict[str, Callable[[Query, str], Mechanism]]:
    import tallyveil as tv
    from tallyveil.mechanism import Mechanism

    closed = ("geometric", "fair", "uniform", "exponential", "laplace", "staircase")
    designed = ("variant1", "variant2", "ucm", "wm", "fm", "am")

    def named(name: str) -> Callable[[Query, str], Mechanism]:
        def make(query: Query, epsilon: str) -> Mechanism:
            made = getattr(tv if name in closed else tv.papers, name)(query, epsilon)
            found = made if isinstance(made, Mechanism) else made.mechanism
            return Mechanism(found.matrix, query, epsilon, delta=found.exact_delta, name=name)

        return make

    return {name: named(name) for name in (*closed, *designed)}


def _from_file(file: Path) -> Mechanism:
    """A certified mechanism, a plain one, or a matrix; named after its file."""
    from tallyveil.certified.certify import load
    from tallyveil.mechanism import FORMAT, Mechanism

    if file.suffix != ".json":
        found = Mechanism.from_csv(file)
    else:
        data = json.loads(file.read_text(encoding="utf-8"))
        plain = isinstance(data, dict) and data.get("format") == FORMAT
        found = Mechanism.from_dict(data) if plain else load(file).mechanism
    name = file.stem if file.stem != "mechanism" else file.resolve().parent.name
    return Mechanism(found.matrix, found.query, found.exact_epsilon, delta=found.exact_delta,
                     name=name)  # fmt: skip
