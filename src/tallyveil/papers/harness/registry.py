"""The list of experiments: every table, figure and tested claim of the four papers."""

from __future__ import annotations

from importlib import import_module

from tallyveil.errors import UsageError
from tallyveil.papers.harness.bibliography import PAPERS, find_paper
from tallyveil.papers.harness.experiment import Experiment

__all__ = ["list_experiments", "select_experiments"]


def list_experiments() -> tuple[Experiment, ...]:
    """List all experiments: paper by paper, tables before figures before the rest."""
    found: list[Experiment] = []
    for name in PAPERS:
        found.extend(import_module(f"tallyveil.papers.{name}.experiments").EXPERIMENTS)
    return tuple(sorted(found, key=_order))


def _order(experiment: Experiment) -> tuple[int, int, int, str]:
    """Sort key: paper, kind of item, its number."""
    kind, _, which = experiment.item.partition(" ")
    kinds = ("Table", "Figure")
    rank = kinds.index(kind) if kind in kinds else len(kinds)
    digits = "".join(symbol for symbol in which if symbol.isdigit())
    return list(PAPERS).index(experiment.paper), rank, int(digits or 0), experiment.id


def select_experiments(
    paper: str | None = None, figure: str | None = None, table: str | None = None
) -> tuple[Experiment, ...]:
    """Select the experiments of one paper, or one figure or table; all without arguments.

    Parameters
    ----------
    paper : str, optional
        The first author of a paper; see `find_paper`.
    figure, table : str, optional
        The number of a figure or table, not both. Without `paper` it is selected in every
        paper that has one.

    Returns
    -------
    tuple of Experiment
        At least one experiment, in the order of `list_experiments`.
    """
    key = None if paper is None else find_paper(paper)
    if figure is not None and table is not None:
        raise UsageError("Give either a figure or a table, not both.")
    chosen = tuple(e for e in list_experiments() if key in (None, e.paper))
    wanted = f"figure {figure}" if figure is not None else f"table {table}"
    if figure is not None or table is not None:
        chosen = tuple(e for e in chosen if e.item.lower() == wanted.strip().lower())
    if not chosen:
        where = "none of the papers" if key is None else PAPERS[key].label
        message = f"There is no {wanted} in {where}: `tallyveil reproduce --list` shows all items."
        raise UsageError(message)
    return chosen
