"""`tallyveil reproduce`: compute every table and figure of the papers again and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli.common import JsonOption, example, print_json

if TYPE_CHECKING:
    from tallyveil.papers.harness.experiment import Context, Experiment
    from tallyveil.papers.harness.run import Outcome

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil reproduce --quick --out results/",
    "tallyveil reproduce --paper kohli --figure 6 --homicides counties.csv --out results/",
)

COLOURS = {
    "matches": "green",
    "differs": "yellow",
    "open": "magenta",
    "not judged": "dim",
    "unexplained": "bold red",
}


def command(
    *,
    out_folder: Annotated[Path, typer.Option("--out", help="Where the results go.")] = Path(
        "results"
    ),
    paper: Annotated[
        str | None, typer.Option(help="Only this paper: cormode, croft, kohli or gupte.")
    ] = None,
    figure: Annotated[str | None, typer.Option(help="Only the figure with this number.")] = None,
    table: Annotated[str | None, typer.Option(help="Only the table with this number.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repetitions and smaller grids: two minutes.")
    ] = False,
    adult: Annotated[
        Path | None, typer.Option(help="UCI Adult (adult.data, plain or gzip).", exists=True)
    ] = None,
    homicides: Annotated[
        Path | None, typer.Option(help="CSV with a column MURDER, a row per county.", exists=True)
    ] = None,
    schools: Annotated[
        Path | None,
        typer.Option(help="CSV with a column FT_TEACHER, a row per school.", exists=True),
    ] = None,
    families: Annotated[
        Path | None, typer.Option(help="CSV with a column NPF, a row per person.", exists=True)
    ] = None,
    bird_flu: Annotated[
        Path | None,
        typer.Option(help="CSV with a column Bird_Flu_Cases, a row per state.", exists=True),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Also write the page here, for the documentation.")
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Show what can be reproduced and stop.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compute every table and figure of the four papers again and say where they hold.

    Writes the data (CSV), the picture (SVG and PNG) and a verdict for each. Without a path to
    the real data, a labelled stand-in is generated. Exit code 1 if anything differs from a
    paper for a reason that is not known. The papers' misprints are listed in the errata.
    """
    from tallyveil.cli.common import out
    from tallyveil.papers.harness.data import Data
    from tallyveil.papers.harness.experiment import Context
    from tallyveil.papers.harness.registry import select_experiments

    chosen = select_experiments(paper, figure, table)
    if listing and as_json:
        print_json([{"paper": e.paper, "item": e.item, "title": e.title} for e in chosen])
        return
    if listing:
        for experiment in chosen:
            out.print(f"{experiment.name:<24} {experiment.title}")
        return
    context = Context(quick=quick, data=Data(adult, homicides, schools, families, bird_flu))
    outcomes = _run_with_bars(chosen, context, out_folder, quiet=as_json)
    if page is not None:
        from tallyveil.papers.harness.run import write_page

        write_page(outcomes, quick, out_folder, page)
    if as_json:
        print_json([_summarise(outcome) for outcome in outcomes])
    else:
        out.print(f"\nWritten to {out_folder}: open {out_folder / 'README.md'}")
    if any(outcome.result.verdict == "unexplained" for outcome in outcomes):
        raise typer.Exit(1)


def _summarise(outcome: Outcome) -> dict[str, str]:
    """Describe the outcome of one experiment, for machines."""
    experiment, result = outcome.experiment, outcome.result
    return {
        "paper": experiment.paper,
        "item": experiment.item,
        "title": experiment.title,
        "verdict": result.verdict,
        "finding": result.verdict_line,
    }


def _run_with_bars(
    chosen: tuple[Experiment, ...], context: Context, out_folder: Path, quiet: bool
) -> list[Outcome]:
    """Run with one progress bar over all experiments and one inside the current one."""
    from dataclasses import replace

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from tallyveil.cli.common import errors, out
    from tallyveil.papers.harness.run import run_experiments

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=errors, transient=True) as progress:
        whole = progress.add_task("all", total=len(chosen))
        inner = progress.add_task("", total=1)

        def tell(done: int, total: int) -> None:
            progress.update(inner, completed=done, total=total)

        def starting(experiment: Experiment) -> None:
            progress.reset(inner, total=1, description=experiment.name)

        def finished(outcome: Outcome) -> None:
            progress.advance(whole)
            if quiet:
                return
            colour = COLOURS[outcome.result.verdict]
            name, line = outcome.experiment.name, outcome.result.verdict_line
            out.print(f"[{colour}]●[/] [bold]{name}[/] {line}")

        told = replace(context, tell=tell)
        return run_experiments(chosen, told, out_folder, starting=starting, finished=finished)
