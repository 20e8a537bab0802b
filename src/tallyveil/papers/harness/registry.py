"""The list of experiments: every table, figure and tested claim of the four papers."""

from __future__ import annotations

from importlib import import_module

from tallyveil.errors import ArgumentError
from tallyveil.papers.harness.experiment import Experiment

__all__ = ["MODULES", "PAPERS", "experiments", "select"]

PAPERS = {
    "000": "Cormode, Kulkarni and Srivastava, Constrained Private Mechanisms for Count Data",
    "001": "Croft, Sack and Shi, The Impact of Range Constraints on Utility in the Design of "
    "Differentially Private Mechanisms",
    "002": "Kohli and Laskowski, tables of private counts that preserve their distribution",
    "003": "Gupte and Sundararajan, Universally Optimal Privacy Mechanisms for Minimax Agents",
}
MODULES = (
    "cormode.structure",
    "cormode.programs",
    "cormode.data_figures",
    "cormode.losses",
    "cormode.models",
    "croft.tables",
    "croft.figures",
    "croft.families",
    "kohli.distribution_figures",
    "kohli.tables",
    "kohli.runtime",
    "kohli.split",
    "kohli.theory",
    "gupte.experiments",
)


def experiments() -> tuple[Experiment, ...]:
    """All experiments in the order of the papers."""
    found: list[Experiment] = []
    for name in MODULES:
        found.extend(import_module(f"tallyveil.papers.{name}").EXPERIMENTS)
    return tuple(sorted(found, key=_order))


def _order(experiment: Experiment) -> tuple[str, int, int, str]:
    kind, _, which = experiment.item.partition(" ")
    kinds = ("Table", "Figure")
    rank = kinds.index(kind) if kind in kinds else len(kinds)
    digits = "".join(symbol for symbol in which if symbol.isdigit())
    return experiment.paper, rank, int(digits or 0), experiment.id


def select(
    paper: str | None = None, figure: str | None = None, table: str | None = None
) -> tuple[Experiment, ...]:
    """The experiments of one paper, or one figure or table; all without arguments.

    A figure or table number without a paper picks it in every paper that has one.
    """
    if paper is not None and paper not in PAPERS:
        raise ArgumentError("paper", f"be one of {', '.join(PAPERS)}", paper)
    if figure is not None and table is not None:
        raise ArgumentError("figure", "not be given together with a table")
    chosen = tuple(e for e in experiments() if paper in (None, e.paper))
    if figure is not None:
        chosen = tuple(e for e in chosen if e.is_figure(figure))
    if table is not None:
        chosen = tuple(e for e in chosen if e.is_table(table))
    if not chosen:
        which = f"figure {figure}" if figure is not None else f"table {table}"
        raise ArgumentError("figure" if figure is not None else "table", "exist", which,
                            "`tallyveil reproduce --list` shows what there is.")  # fmt: skip
    return chosen
