"""Mechanisms side by side: what they cost, how private they are, what properties they have."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tallyveil.errors import ArgumentError
from tallyveil.loss import Loss, loss_name
from tallyveil.mechanism import Mechanism
from tallyveil.optimize.design import Design
from tallyveil.prior import Prior
from tallyveil.prior import resolve_prior as prior_law
from tallyveil.properties import IMPLIED

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group
    from rich.table import Table

__all__ = ["Comparison", "Row", "compare"]

Candidate: TypeAlias = Mechanism | Design
Candidates: TypeAlias = Mapping[str, Candidate] | Iterable[Candidate]


@dataclass(frozen=True)
class Row:
    """One mechanism under one loss and one prior.

    Attributes
    ----------
    mechanism, family : its name; and the name it shares with itself at other epsilons
    expected_loss : prior mean of the loss
    worst_loss : the largest expected loss over the true answers
    response_loss : prior mean after the best Bayesian response to each output; nan for a
        table of losses whose outputs are not the true answers (it does not price a response)
    largest_bias : the bias of largest size over the true answers
    error_probability : prior mean of releasing something that is not the truth's own output
    interval_width : prior mean width of the central interval of `Comparison.confidence`
    epsilon, realised_epsilon : stated and measured privacy loss; None where not stated
    properties : those that hold
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


@dataclass(frozen=True)
class Comparison:
    """Rows for every mechanism, loss and prior; as data, CSV, a rich table, or a picture."""

    rows: tuple[Row, ...]
    mechanisms: tuple[Mechanism, ...]
    names: tuple[str, ...]
    losses: tuple[tuple[str, Loss], ...]
    confidence: float

    def to_dict(self) -> list[dict[str, object]]:
        """The rows, JSON-ready; an infinite privacy loss becomes the string "inf"."""
        return [{name: _plain(getattr(row, name)) for name in _columns()} for row in self.rows]

    def to_csv(self, path: str | Path | None = None) -> str:
        """The rows as CSV; also written to `path` if given."""
        text = io.StringIO()
        writer = csv.DictWriter(text, _columns(), lineterminator="\n")
        writer.writeheader()
        for row in self.to_dict():
            listed = row["properties"]
            assert isinstance(listed, list)
            writer.writerow({**row, "properties": " ".join(listed)})
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def table(self) -> Group:
        """Rich tables for the terminal, one per loss and prior; the best value is bold.

        Properties carry the papers' abbreviations, and only the strongest: RM brings RH, and
        CM brings CH and WH.
        """
        from rich.console import Group

        groups = dict.fromkeys((row.loss, row.prior) for row in self.rows)
        return Group(*(self._one_table(loss, prior) for loss, prior in groups))

    def _one_table(self, loss: str, prior: str) -> Table:
        from rich import box
        from rich.table import Table

        title = f"{loss} loss, {prior} prior"
        shown = Table(
            title=title,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),  # eight columns in eighty characters
            pad_edge=False,
        )
        shown.add_column("mechanism", overflow="fold", min_width=14)
        for _, heading in SHOWN:
            shown.add_column(heading, justify="right", no_wrap=True)
        shown.add_column("properties", no_wrap=True)
        group = [row for row in self.rows if (row.loss, row.prior) == (loss, prior)]
        for row in group:
            weaker = {name for held in row.properties for name in IMPLIED.get(held, ())}
            marks = " ".join(SHORT[name] for name in row.properties if name not in weaker)
            alike = [other for other in group if other.family == row.family]
            told_apart = len({other.epsilon for other in alike}) == len(alike)
            name = row.family if told_apart else row.mechanism  # the table has an epsilon column
            shown.add_row(name, *(_cell(row, group, name) for name, _ in SHOWN), marks)
        return shown

    def plot(self, path: str | Path | None = None) -> Figure:
        """Loss for each true answer, a panel per loss, then bias; saved to `path` if given."""
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
        """Privacy against loss: expected loss over epsilon, a curve per name, a panel per loss.

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
"""The papers' abbreviations (000, section 4), for narrow columns."""


def compare(
    mechanisms: Candidates,
    losses: Mapping[str, Loss] | Iterable[Loss] | str = ("absolute",),
    priors: Mapping[str, Prior] | Iterable[Prior] | None = None,
    *,
    confidence: float = 0.95,
) -> Comparison:
    """Judge mechanisms for the same question under several losses and priors.

    Parameters
    ----------
    mechanisms : mechanisms or designs; a mapping gives them names, else their own are used
    losses : as for `tallyveil.design`, one or several; a mapping gives them names
    priors : laws on the true answers, a mapping to name them; None is the uniform one alone
    confidence : of the intervals whose width is reported

    All figures are exact up to the rounding of doubles: nothing is sampled. Costs O(n m) per
    row, and O(n^2 m) for the best response.

    >>> from tallyveil.mechanisms.geometric import geometric
    >>> from tallyveil.mechanisms.fair import uniform
    >>> from tallyveil.query import Query
    >>> q = Query.count(4)
    >>> c = compare([geometric(q, 1.0), uniform(q, 1.0)], ["absolute", "zero_one"])
    >>> [(row.mechanism, row.loss, round(row.expected_loss, 3)) for row in c.rows]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('geometric', 'absolute', 0.584), ('geometric', 'zero_one', 0.43),
     ('uniform', 'absolute', 1.6), ('uniform', 'zero_one', 0.8)]
    """
    families, chosen = _named(mechanisms)
    names = _distinct(families, [mechanism.epsilon for mechanism in chosen])
    given = _losses(losses)
    laws = _laws(priors, len(chosen[0].query.inputs))
    rows = tuple(
        _row((name, family), mechanism, loss, prior, confidence)
        for name, family, mechanism in zip(names, families, chosen, strict=True)
        for loss in given
        for prior in laws
    )
    return Comparison(rows, tuple(chosen), tuple(names), given, confidence)


def _row(
    names: tuple[str, str],
    mechanism: Mechanism,
    loss: tuple[str, Loss],
    prior: tuple[str, Prior],
    confidence: float,
) -> Row:
    bias = mechanism.bias()
    largest = np.abs(bias).max() * (1 - 1e-9)  # the first of equals, whatever the rounding
    weights = prior_law(prior[1], len(bias))
    width = np.diff(mechanism.interval(confidence), axis=1)[:, 0]
    answerable = mechanism.query.is_square or not _is_table(loss[1])
    return Row(
        *names,
        loss[0],
        prior[0],
        mechanism.expected_loss(loss[1], prior[1]),
        mechanism.worst_loss(loss[1]),
        mechanism.bayes_loss(loss[1], prior[1]) if answerable else float("nan"),
        float(bias[np.argmax(np.abs(bias) >= largest)]),
        mechanism.error_probability(prior[1]),
        float(weights @ width),
        mechanism.epsilon,
        mechanism.realised_epsilon(),
        tuple(known for known, holds in mechanism.properties().items() if holds),
    )


def _losses(
    losses: Mapping[str, Loss] | Iterable[Loss] | str,
) -> tuple[tuple[str, Loss], ...]:
    if isinstance(losses, Mapping):
        given = tuple(losses.items())
    else:
        one = isinstance(losses, str) or (
            isinstance(losses, tuple) and len(losses) == 2 and isinstance(losses[1], (int, float))
        )
        listed: Iterable[Loss] = [losses] if one else losses  # type: ignore[list-item]
        given = tuple((loss_name(loss), loss) for loss in listed)
    if not given:
        raise ArgumentError("losses", "hold at least one loss", "nothing")
    return given


def _is_table(loss: Loss) -> bool:
    return not (isinstance(loss, (str, tuple)) or callable(loss))


def _named(mechanisms: Candidates) -> tuple[list[str], list[Mechanism]]:
    if isinstance(mechanisms, (Mechanism, Design)):
        mechanisms = [mechanisms]
    if isinstance(mechanisms, Mapping):
        pairs = list(mechanisms.items())
    else:
        pairs = [(_own_name(candidate), candidate) for candidate in mechanisms]
    if not pairs:
        raise ArgumentError("mechanisms", "hold at least one mechanism", "nothing")
    chosen = [c.mechanism if isinstance(c, Design) else c for _, c in pairs]
    for candidate in chosen:
        if not isinstance(candidate, Mechanism):
            raise ArgumentError("mechanisms", "be mechanisms or designs", type(candidate).__name__)
        if not np.array_equal(candidate.query.inputs, chosen[0].query.inputs):
            raise ArgumentError("mechanisms", "have the same true answers", repr(candidate.query))
    return [name for name, _ in pairs], chosen


def _own_name(candidate: object) -> str:
    mechanism = candidate.mechanism if isinstance(candidate, Design) else candidate
    return mechanism.name if isinstance(mechanism, Mechanism) else type(candidate).__name__


def _distinct(names: Sequence[str], epsilons: Sequence[float | None]) -> list[str]:
    """The names; where one comes twice, with its epsilon, and with a number if need be."""
    told = [
        f"{name}, ε = {epsilon:g}" if names.count(name) > 1 and epsilon is not None else name
        for name, epsilon in zip(names, epsilons, strict=True)
    ]
    return [
        f"{name} ({told[: at + 1].count(name)})" if told[:at].count(name) else name
        for at, name in enumerate(told)
    ]


def _laws(
    priors: Mapping[str, Prior] | Iterable[Prior] | None, size: int
) -> list[tuple[str, Prior]]:
    if priors is None:
        return [("uniform", None)]
    if isinstance(priors, Mapping):
        return list(priors.items())
    labelled: list[tuple[str, Prior]] = []
    for at, law in enumerate(priors, start=1):
        prior_law(law, size)
        labelled.append((_prior_name(law, at), law))
    if not labelled:
        raise ArgumentError("priors", "hold at least one prior", "nothing")
    return labelled


def _prior_name(law: Prior, at: int) -> str:
    if law is None:
        return "uniform"
    if isinstance(law, str):
        return law
    if isinstance(law, tuple) and isinstance(law[0], str):
        return " ".join(str(part) for part in law)
    return f"prior {at}"


def _cell(row: Row, group: Sequence[Row], name: str) -> str:
    value = getattr(row, name)
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    least = min(abs(getattr(other, name)) for other in group)
    return f"[bold]{text}[/]" if len(group) > 1 and abs(value) <= least else text


def _columns() -> list[str]:
    return [field.name for field in fields(Row)]


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
