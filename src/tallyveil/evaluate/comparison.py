"""The result of a comparison: rows of figures, and ways to show them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.properties import IMPLIED

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group
    from rich.table import Table

__all__ = ["Comparison", "Row"]


@dataclass(frozen=True)
class Row:
    """One mechanism under one loss and one prior.

    Attributes
    ----------
    mechanism, family : str
        Its name, and the name it shares with itself at other epsilons.
    loss, prior : str
        Names of the loss and the prior.
    expected_loss : float
        Prior mean of the loss.
    worst_loss : float
        The largest expected loss over the true answers.
    response_loss : float
        Prior mean after the best Bayesian response to each output. NaN if the loss is a table
        and inputs differ from outputs: such a table does not define the loss of a remapped
        answer.
    largest_bias : float
        The bias of largest size over the true answers.
    error_probability : float
        Prior mean of releasing another output than the one the true answer belongs to.
    interval_width : float
        Prior mean width of the central interval of `Comparison.confidence`.
    epsilon, realised_epsilon : float
        Stated and measured privacy loss; the stated one is None where unknown.
    properties : tuple of str
        Those that hold.
    """

    mechanism: str
    family: str
    loss: str
    prior: str
    expected_loss: float
    worst_loss: float
    response_loss: float
    largest_bias: float
    error_probability: float
    interval_width: float
    epsilon: float | None
    realised_epsilon: float
    properties: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Comparison:
    """Rows for every mechanism, loss and prior; as data, CSV, a table or a figure.

    Attributes
    ----------
    rows : tuple of Row
        One for every mechanism, loss and prior.
    mechanisms, names : tuple
        What was compared.
    losses : tuple of (str, loss)
        The losses with their names.
    confidence : float
        The level of the intervals whose width is reported.
    """

    rows: tuple[Row, ...]
    mechanisms: tuple[Mechanism, ...]
    names: tuple[str, ...]
    losses: tuple[tuple[str, Loss], ...]
    confidence: float

    def to_dict(self) -> list[dict[str, object]]:
        """The rows, JSON-ready; an infinite privacy loss becomes the string "inf"."""
        return [{name: _to_json(value) for name, value in vars(row).items()} for row in self.rows]

    def to_csv(self, path: str | Path | None = None) -> str:
        """The rows as CSV; also written to `path` if given."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row, cells in zip(self.rows, self.to_dict(), strict=True):
            writer.writerow({**cells, "properties": " ".join(row.properties)})
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def table(self) -> Group:
        """Rich tables for the terminal, one per loss and prior; the best value is bold.

        Properties are abbreviated (RH, RM, CH, CM, F, WH, S, OP), and only the strongest are
        shown: RM implies RH, and CM implies CH and WH.
        """
        from rich.console import Group

        return Group(*(_make_table(*parts) for parts in self._tables()))

    def _tables(self) -> Iterator[tuple[str, list[list[str]], list[list[bool]]]]:
        """Yield the title, the cells and which cells are best, for each loss and prior."""
        for loss, prior in dict.fromkeys((row.loss, row.prior) for row in self.rows):
            group = [row for row in self.rows if (row.loss, row.prior) == (loss, prior)]
            cells, best = [], []
            for row in group:
                figures = [_format(getattr(row, name)) for name, _ in SHOWN]
                cells.append([_label(row, group), *figures, _abbreviate(row.properties)])
                best.append([False, *(_is_best(row, group, name) for name, _ in SHOWN), False])
            yield f"{loss} loss, {prior} prior", cells, best

    def _repr_html_(self) -> str:
        """A table per loss and prior with the best values bold, for notebooks."""
        from tallyveil.notebook import show_table

        header = ["mechanism", *(heading for _, heading in SHOWN), "properties"]
        return "".join(
            show_table(header, cells, title=title, strong=best)
            for title, cells, best in self._tables()
        )

    def __repr__(self) -> str:
        losses = ", ".join(name for name, _ in self.losses)
        priors = len({row.prior for row in self.rows})
        return (
            f"<Comparison: {len(self.names)} mechanisms, {losses} loss, "
            f"{priors} prior{'s' if priors > 1 else ''}>"
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the loss for each true answer, a panel per loss, and the bias.

        Saved to `path` if given.
        """
        from tallyveil.figures import Curve, Panel, panels

        pairs = list(zip(self.names, self.mechanisms, strict=True))
        parts = [
            Panel(
                f"{label} loss",
                [Curve(name, m.query.inputs, m.loss_by_input(loss)) for name, m in pairs],
                "true answer",
                "expected loss",
            )
            for label, loss in self.losses
        ]
        biases = [Curve(name, m.query.inputs, m.bias()) for name, m in pairs]
        parts.append(Panel("bias", biases, "true answer", "released - true"))
        return panels(parts, path, columns=2 if len(parts) in (2, 4) else 3)

    def tradeoff(self, path: str | Path | None = None) -> Figure:
        """Draw expected loss over epsilon, a curve per name, a panel per loss and prior.

        For mechanisms of one name at several epsilons; saved to `path` if given.
        """
        from tallyveil.figures import Curve, Panel, panels

        parts = []
        for loss, prior in dict.fromkeys((row.loss, row.prior) for row in self.rows):
            curves = []
            for family in dict.fromkeys(row.family for row in self.rows):
                points = sorted(
                    (row.epsilon, row.expected_loss)
                    for row in self.rows
                    if (row.family, row.loss, row.prior) == (family, loss, prior)
                    and row.epsilon is not None
                )
                if points:
                    x, y = (list(part) for part in zip(*points, strict=True))
                    curves.append(Curve(family, x, y))
            title = f"{loss} loss, {prior} prior"
            parts.append(Panel(title, curves, "epsilon", "expected loss", log="x"))
        return panels(parts, path, columns=2 if len(parts) in (2, 4) else 3)


SHOWN = (
    ("expected_loss", "mean"),
    ("worst_loss", "worst"),
    ("response_loss", "response"),
    ("largest_bias", "bias"),
    ("error_probability", "error"),
    ("interval_width", "width"),
    ("realised_epsilon", "ε"),
)

SHORT = {
    "row_honest": "RH",
    "row_monotone": "RM",
    "column_honest": "CH",
    "column_monotone": "CM",
    "fair": "F",
    "weakly_honest": "WH",
    "symmetric": "S",
    "output_private": "OP",
}
"""Abbreviations of Cormode, Kulkarni and Srivastava (2018), section 4, for narrow columns."""


def _make_table(title: str, cells: list[list[str]], best: list[list[bool]]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=escape(title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),  # eight columns in eighty characters
        pad_edge=False,
    )
    table.add_column("mechanism", overflow="fold", min_width=14)
    for _, heading in SHOWN:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("properties", no_wrap=True)
    for row, bold in zip(cells, best, strict=True):
        styles = ("bold" if one else "" for one in bold)
        table.add_row(*map(Text, row, styles))
    return table


def _label(row: Row, group: Sequence[Row]) -> str:
    """The name of a row; without its epsilon where the column of epsilons tells rows apart."""
    alike = [other for other in group if other.family == row.family]
    distinct = len({other.epsilon for other in alike}) == len(alike)
    return row.family if distinct else row.mechanism


def _abbreviate(properties: Sequence[str]) -> str:
    """The strongest of the properties, abbreviated: RM implies RH, CM implies CH and WH."""
    weaker = {name for held in properties for name in IMPLIED.get(held, ())}
    return " ".join(SHORT[name] for name in properties if name not in weaker)


def _format(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _is_best(row: Row, group: Sequence[Row], name: str) -> bool:
    """Whether no other row of the group has a value of smaller size."""
    least = min(abs(getattr(other, name)) for other in group)
    return len(group) > 1 and abs(getattr(row, name)) <= least


def _to_json(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
