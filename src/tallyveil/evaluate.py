"""Comparisons of mechanisms, audits of matrices, and distances between tables.

An audit measures a matrix of doubles; only a certificate is a proof. Comparing with the truth is
confidential: keep such numbers inside the agency.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.answers import read_floats
from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, describe_kind, numbered
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, loss_name
from tallyveil.matrix import check_confidence
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.prior import Prior, require_distribution, resolve_prior
from tallyveil.properties import IMPLIED

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group
    from rich.table import Table

AUDIT_SLACK = 1e-9
"""By how much, relatively, a realised epsilon may exceed the claimed one: decimals are rounded."""


@dataclass(frozen=True)
class Audit:
    """How private a matrix is, measured in floating point.

    Attributes
    ----------
    private : bool
        Whether the realised epsilon is finite and at most the claimed one.
    epsilon : Fraction or None
        The epsilon that was claimed or asked for.
    realised_epsilon : float
        ln of the largest ratio between neighbours; infinite where a zero is next to a
        positive probability.
    delta : float or None
        The smallest delta that goes with the claimed epsilon, if one was claimed.
    worst : str
        A description of the cell that tells two neighbours apart best.
    properties : dict of str to bool
        The named properties.
    """

    private: bool
    epsilon: Fraction | None
    realised_epsilon: float
    delta: float | None
    worst: str
    properties: dict[str, bool]


def audit_mechanism(mechanism: MechanismLike, epsilon: Epsilon | None = None) -> Audit:
    """Measure a mechanism against the epsilon it claims, or against `epsilon`."""
    matrix = as_mechanism(mechanism)
    claimed = matrix.exact_epsilon if epsilon is None else exact_epsilon(epsilon)
    realised = float(matrix.realised_epsilon())
    limit = math.inf if claimed is None else float(claimed) * (1 + AUDIT_SLACK)
    pair = matrix.worst_pair()
    inputs, outputs = matrix.query.inputs, matrix.query.outputs
    first, second = matrix.matrix[[pair.likelier, pair.rarer], pair.output]
    worst = (
        f"released {outputs[pair.output]}: true {inputs[pair.likelier]} has {first:.6g}, "
        f"true {inputs[pair.rarer]} has {second:.6g}"
    )
    private = math.isfinite(realised) and realised <= limit
    delta = None if claimed is None else float(matrix.privacy_profile([float(claimed)])[0])
    return Audit(private, claimed, realised, delta, worst, matrix.properties())


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
        The properties it has.
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
        """Return the rows, ready for JSON; an infinite privacy loss becomes the string "inf"."""
        rows = []
        for row in self.rows:
            cells: dict[str, Any] = {**vars(row), "properties": list(row.properties)}
            unbounded = (k for k, v in cells.items() if isinstance(v, float) and not np.isfinite(v))
            rows.append(cells | {name: str(cells[name]) for name in unbounded})
        return rows

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV, and write them to `path` if given."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row, cells in zip(self.rows, self.to_dict(), strict=True):
            writer.writerow({**cells, "properties": " ".join(row.properties)})
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def table(self) -> Group:
        """Build rich tables for the terminal, one per loss and prior; the best value is bold.

        Properties are abbreviated (RH, RM, CH, CM, F, WH, S, OP), and only the strongest are
        shown: RM implies RH, and CM implies CH and WH.
        """
        from rich.console import Group

        return Group(*(_make_table(*parts) for parts in self._tables()))

    def _tables(self) -> Iterator[tuple[str, list[list[str]], list[list[bool]]]]:
        """Yield the title, the cells and which cells are best, for each loss and prior."""
        for title, group in self._groups().items():
            figures = np.array([[getattr(row, name) for name, _ in SHOWN] for row in group])
            least = np.fmin.reduce(np.abs(figures))  # a NaN is never best
            bold = (np.abs(figures) <= least) & (len(group) > 1)
            cells = [
                [_label(row, group), *map(_format, values), _abbreviate(row.properties)]
                for row, values in zip(group, figures.tolist(), strict=True)
            ]
            yield title, cells, [[False, *best, False] for best in bold.tolist()]

    def _groups(self) -> dict[str, list[Row]]:
        """Return the rows of every loss and prior."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(f"{row.loss} loss, {row.prior} prior", []).append(row)
        return groups

    def _repr_html_(self) -> str:
        """Return a table per loss and prior with the best values bold, for notebooks."""
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
            f"<Comparison: {numbered(len(self.names), 'mechanism')}, {losses} loss, "
            f"{numbered(priors, 'prior')}>"
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the loss for each true answer, a panel per loss, and the bias.

        Saved to `path` if given.
        """
        from tallyveil.notebook import Curve, Panel, panels

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
        from tallyveil.notebook import Curve, Panel, panels

        parts = []
        for title, group in self._groups().items():
            points: dict[str, list[tuple[float, float]]] = {}
            for row in group:
                if row.epsilon is not None:
                    points.setdefault(row.family, []).append((row.epsilon, row.expected_loss))
            curves = [Curve(name, *np.transpose(sorted(by))) for name, by in points.items()]
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
        styles = ("bold" if best_value else "" for best_value in bold)
        table.add_row(*map(Text, row, styles))
    return table


def _label(row: Row, group: Sequence[Row]) -> str:
    """Name a row, without its epsilon where the column of epsilons tells rows apart."""
    alike = [other for other in group if other.family == row.family]
    distinct = len({other.epsilon for other in alike}) == len(alike)
    return row.family if distinct else row.mechanism


def _abbreviate(properties: Sequence[str]) -> str:
    """Abbreviate the strongest of the properties: RM implies RH, CM implies CH and WH."""
    weaker = {name for held in properties for name in IMPLIED.get(held, ())}
    return " ".join(SHORT[name] for name in properties if name not in weaker)


def _format(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


Candidates: TypeAlias = Mapping[str, MechanismLike] | Iterable[MechanismLike] | MechanismLike


def compare(
    mechanisms: Candidates,
    losses: Mapping[str, Loss] | Iterable[Loss] | Loss = ("absolute",),
    priors: Mapping[str, Prior] | Iterable[Prior] | None = None,
    *,
    confidence: float = 0.95,
) -> Comparison:
    """Compare mechanisms for the same question under several losses and priors.

    All figures are exact up to the rounding of doubles: nothing is sampled. Costs O(n m) per
    row, and O(n^2 m) for the best response.

    Parameters
    ----------
    mechanisms : Mechanism, Design or certified mechanism, or several of them
        A mapping gives them names, else their own are used.
    losses : loss, iterable of losses or mapping
        As for `tallyveil.design`; a mapping gives them names.
    priors : iterable of priors, mapping or None
        Distributions on the true answers; a mapping gives them names. None is the uniform
        one alone.
    confidence : float
        The level of the intervals whose width is reported, strictly between 0 and 1.

    Returns
    -------
    Comparison
        A row for every mechanism, loss and prior.

    Examples
    --------
    >>> from tallyveil.mechanisms.geometric import geometric
    >>> from tallyveil.mechanisms.exponential import uniform
    >>> from tallyveil.query import Query
    >>> q = Query.count(4)
    >>> c = compare([geometric(q, 1.0), uniform(q, 1.0)], ["absolute", "zero_one"])
    >>> [(row.mechanism, row.loss, round(row.expected_loss, 3)) for row in c.rows]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('geometric', 'absolute', 0.584), ('geometric', 'zero_one', 0.43),
     ('uniform', 'absolute', 1.6), ('uniform', 'zero_one', 0.8)]
    """
    check_confidence(confidence)
    families, chosen = _name_mechanisms(mechanisms)
    names = _make_distinct(families, [mechanism.epsilon for mechanism in chosen])
    named_losses = _name_losses(losses)
    named_priors = _name_priors(priors, len(chosen[0].query.inputs))
    rows = tuple(
        _make_row((name, family), mechanism, loss, prior, confidence)
        for name, family, mechanism in zip(names, families, chosen, strict=True)
        for loss in named_losses
        for prior in named_priors
    )
    return Comparison(rows, tuple(chosen), tuple(names), named_losses, confidence)


def _make_row(
    names: tuple[str, str],
    mechanism: Mechanism,
    loss: tuple[str, Loss],
    prior: tuple[str, Prior],
    confidence: float,
) -> Row:
    bias = mechanism.bias()
    largest = np.abs(bias).max() * (1 - 1e-9)  # the first of equals, up to rounding
    weights = resolve_prior(prior[1], len(bias))
    width = np.diff(mechanism.interval(confidence), axis=1)[:, 0]
    is_table = not (isinstance(loss[1], (str, tuple)) or callable(loss[1]))
    answerable = mechanism.query.is_square or not is_table
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
        tuple(name for name, holds in mechanism.properties().items() if holds),
    )


def _name_losses(
    losses: Mapping[str, Loss] | Iterable[Loss] | Loss,
) -> tuple[tuple[str, Loss], ...]:
    single = isinstance(losses, str) or callable(losses)
    if isinstance(losses, tuple) and len(losses) == 2:
        single = isinstance(losses[1], (int, float))  # such as ("beyond", 2)
    members = _list_members([losses] if single else losses, "losses")
    return tuple((name or loss_name(loss), loss) for name, loss in members)


def _list_members(members: Any, argument: str) -> list[tuple[str, Any]]:
    """List members, at least one, with their names in a mapping, else without; or refuse."""
    try:
        named = members.items() if isinstance(members, Mapping) else (("", x) for x in members)
    except TypeError:
        got = describe_kind(members)
        raise ArgumentError(argument, "be a list or a mapping", got=got) from None
    if not (listed := [(str(name), member) for name, member in named]):
        singular = "loss" if argument == "losses" else argument.removesuffix("s")
        raise ArgumentError(argument, f"hold at least one {singular}", got="nothing")
    return listed


def _name_mechanisms(mechanisms: Candidates) -> tuple[list[str], list[Mechanism]]:
    """Return the names and the candidates; all must have the same true answers."""
    single = isinstance(mechanisms, (Mechanism, str)) or hasattr(mechanisms, "mechanism")
    members = _list_members([mechanisms] if single else mechanisms, "mechanisms")
    chosen = [as_mechanism(candidate, "mechanisms") for _, candidate in members]
    for candidate in chosen:
        if not np.array_equal(candidate.query.inputs, chosen[0].query.inputs):
            got = repr(candidate.query)
            raise ArgumentError("mechanisms", "have the same true answers", got=got)
    names = [name or m.name for (name, _), m in zip(members, chosen, strict=True)]
    return names, chosen


def _make_distinct(names: Sequence[str], epsilons: Sequence[float | None]) -> list[str]:
    """Return the names; repeated ones get their epsilon, and a number if that is not enough."""
    labelled = [
        f"{name}, ε = {epsilon:g}" if names.count(name) > 1 and epsilon is not None else name
        for name, epsilon in zip(names, epsilons, strict=True)
    ]
    return [
        f"{name} ({labelled[: position + 1].count(name)})"
        if labelled[:position].count(name)
        else name
        for position, name in enumerate(labelled)
    ]


def _name_priors(
    priors: Mapping[str, Prior] | Iterable[Prior] | None, size: int
) -> list[tuple[str, Prior]]:
    members = [("", None)] if priors is None else _list_members(priors, "priors")
    for _, prior in members:
        resolve_prior(prior, size)
    return [(name or _name_prior(prior, k), prior) for k, (name, prior) in enumerate(members, 1)]


def _name_prior(prior: Prior, position: int) -> str:
    if prior is None or isinstance(prior, str):
        return prior or "uniform"
    if isinstance(prior, tuple) and isinstance(prior[0], str):
        return " ".join(map(str, prior))
    return f"prior {position}"


def wasserstein(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the Wasserstein-1 distance: how far rows must move, on average.

    sum_j |F(j) - G(j)| over the cumulative distributions F and G.

    Parameters
    ----------
    first, second : array of float, shape (n,)
        Two distributions over the same counts.

    Returns
    -------
    float
        The distance, 0 for equal distributions.

    References
    ----------
    Kohli and Laskowski (2026), section 6.1.

    Examples
    --------
    >>> wasserstein([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    2.0
    """
    p, q = _read_pair(first, second)
    return float(np.abs(np.cumsum(p - q)).sum())


def total_variation(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the total variation distance: the share of rows that must move.

    Half the sum of absolute differences.

    Parameters
    ----------
    first, second : array of float, shape (n,)
        Two distributions over the same counts.

    Returns
    -------
    float
        The distance, 0 for equal distributions.

    Examples
    --------
    >>> total_variation([1.0, 0.0], [0.5, 0.5])
    0.5
    """
    p, q = _read_pair(first, second)
    return float(np.abs(p - q).sum() / 2)


def kolmogorov_smirnov(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the Kolmogorov-Smirnov distance.

    The largest difference between the cumulative distributions.

    Parameters
    ----------
    first, second : array of float, shape (n,)
        Two distributions over the same counts.

    Returns
    -------
    float
        The distance, 0 for equal distributions.

    Examples
    --------
    >>> kolmogorov_smirnov([1.0, 0.0], [0.5, 0.5])
    0.5
    """
    p, q = _read_pair(first, second)
    return float(np.abs(np.cumsum(p - q)).max())


@dataclass(frozen=True)
class CountErrors:
    """Mean absolute and mean squared error of released counts."""

    absolute: float
    squared: float


def count_errors(true: ArrayLike, released: ArrayLike) -> CountErrors:
    """Compute how far released counts are from the true ones, row by row.

    Parameters
    ----------
    true, released : array of int, shape (rows,)
        True and released counts. The result is confidential.

    Returns
    -------
    CountErrors
        Mean absolute and mean squared error.

    References
    ----------
    Kohli and Laskowski (2026), section 6.2.

    Examples
    --------
    >>> count_errors([0, 4], [1, 1])
    CountErrors(absolute=2.0, squared=5.0)
    """
    before, after = read_floats(true, "true"), read_floats(released, "released")
    if before.shape != after.shape or before.ndim != 1 or len(before) == 0:
        got = f"shape {after.shape}"
        raise ArgumentError("released", "have one count for every true one", got=got)
    error = after - before
    return CountErrors(float(np.abs(error).mean()), float((error**2).mean()))


def _read_pair(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    """Return both as distributions of one length."""
    shape = read_floats(first, "first").shape
    if len(shape) != 1 or shape[0] == 0:
        raise ArgumentError("first", "be a distribution", got=f"shape {shape}")
    size = shape[0]
    return require_distribution(first, size, "first"), require_distribution(second, size, "second")
