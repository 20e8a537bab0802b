"""A mechanism: the distribution of the released answer for every true answer, as one matrix.

A `Mechanism` is frozen and answers questions about privacy, properties and accuracy. It cannot
release anything; only a certified mechanism can (`tallyveil.certify`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil import formats
from tallyveil.answers import read_floats, read_whole
from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, MechanismError, describe_kind
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.loss import loss_table
from tallyveil.matrix import (
    AccuracyMeasures,
    FrozenArrays,
    WorstPair,
    check_matrix,
    hockey_stick,
    worst_pair,
)
from tallyveil.properties import PROPERTIES, SEVEN, TOLERANCE, Witness, witness
from tallyveil.query import Query, require_query
from tallyveil.untrusted import parse_json, read_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "tallyveil-mechanism"
FIELDS = ("name", "query", "epsilon", "delta", "matrix")


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(FrozenArrays, AccuracyMeasures):
    """A matrix ``M[true, released]``, the query it answers, and the epsilon it was made for.

    Parameters
    ----------
    matrix : array of float, shape (n, m)
        Non-negative, with rows that sum to one; n and m are those of the query. A solver's
        round-off is tolerated: rows within 1e-6 of one, and entries above -1e-6, which
        become 0. Nothing else is changed.
    query : Query
        The query that the mechanism answers.
    epsilon : exact number, optional
        The privacy loss it was made for; None if unknown.
    delta : exact number
        The slack of (epsilon, delta)-privacy, 0 for pure privacy.
    name : str
        For captions.

    Examples
    --------
    >>> m = Mechanism([[0.75, 0.25], [0.25, 0.75]], Query.count(1), epsilon="1.0986123")
    >>> round(m.realised_epsilon(), 6)
    1.098612
    >>> m.properties()["fair"], m.expected_loss("absolute")
    (True, 0.25)
    """

    matrix: Floats
    query: Query
    epsilon: float | None
    exact_epsilon: Fraction | None
    delta: float
    exact_delta: Fraction
    name: str

    def __init__(
        self,
        matrix: ArrayLike,
        query: Query,
        epsilon: Epsilon | None = None,
        *,
        delta: Epsilon = 0,
        name: str = "mechanism",
    ) -> None:
        require_query(query)
        checked = check_matrix(matrix, query.shape)
        exact = None if epsilon is None else exact_epsilon(epsilon)
        slack = exact_delta(delta)
        stated = None if exact is None else float(exact)
        values = checked, query, stated, exact, float(slack), slack, name
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    # -- privacy ------------------------------------------------------------------------------

    def worst_pair(self) -> WorstPair:
        """The neighbours and the output whose probabilities differ most, and by how much."""
        return worst_pair(self.matrix, self.query.neighbours)

    def realised_epsilon(self) -> float:
        """The smallest epsilon for which this matrix is epsilon-private.

        Infinite where a zero is next to a positive entry. It judges the stored
        doubles: beyond epsilon * n of about 700 far tails underflow and the result is infinite
        (Cormode, Kulkarni and Srivastava 2018, Definition 2).
        """
        return self.worst_pair().epsilon

    def privacy_profile(self, epsilons: ArrayLike) -> Floats:
        """The smallest delta for each epsilon: the hockey-stick divergence over neighbours.

        >>> q = Query.count(1)
        >>> Mechanism([[0.75, 0.25], [0.25, 0.75]], q).privacy_profile([0.0]).tolist()
        [0.5]
        """
        values = np.atleast_1d(read_floats(epsilons, "epsilons"))
        if not np.isfinite(values).all() or (values < 0).any():
            raise ArgumentError("epsilons", "be finite and at least 0", epsilons)
        return hockey_stick(self.matrix, self.query.neighbours, values)

    # -- structure ----------------------------------------------------------------------------

    def witness(self, property: str, tolerance: float = TOLERANCE) -> Witness | None:
        """Return the cells that break `property` most, or None if it holds."""
        return witness(property, self.query, self.matrix, self._find_epsilon(), tolerance)

    def has(self, property: str, tolerance: float = TOLERANCE) -> bool:
        """Return True if `property` holds, to an absolute `tolerance` on probabilities."""
        return self.witness(property, tolerance) is None

    def properties(self, tolerance: float = TOLERANCE) -> dict[str, bool]:
        """Return for every property whether it holds (see `tallyveil.properties`)."""
        judged = PROPERTIES if self._find_epsilon() is not None else SEVEN
        return {name: self.has(name, tolerance) for name in judged}

    def _find_epsilon(self) -> float | None:
        """Return the stated epsilon, else the measured one; None if that is infinite."""
        if self.epsilon is not None:
            return self.epsilon
        realised = self.realised_epsilon()
        return realised if np.isfinite(realised) else None

    # -- comparison ---------------------------------------------------------------------------

    def smaller_than(self, other: MechanismLike, tolerance: float = 1e-12) -> bool:
        """Return True if this mechanism's error is stochastically no larger than `other`'s.

        Holds when, for every true answer and every distance d, this mechanism releases
        something within d at least as often (Croft, Sack and Shi 2020, Definition 7).
        """
        other = as_mechanism(other, "other")
        if self.query != other.query:
            raise ArgumentError("other", "answer the same query", got=repr(other.query))
        distance = loss_table(self.query, "absolute")
        order = np.argsort(distance, axis=1, kind="stable")
        ranked = np.take_along_axis(distance, order, axis=1)
        gap = np.cumsum(np.take_along_axis(self.matrix - other.matrix, order, axis=1), axis=1)
        step = 1e-9 * float(np.diff(self.query.inputs).min())
        last = np.ones_like(ranked, dtype=bool)
        last[:, :-1] = ranked[:, 1:] > ranked[:, :-1] + step
        return bool((gap[last] >= -tolerance).all())

    # -- derived mechanisms ---------------------------------------------------------------------

    def symmetrized(self) -> Mechanism:
        """Return the mean of this mechanism and its mirror image.

        Keeps privacy and every property, and the expected loss if prior and loss are
        symmetric; with an uneven prior the loss may grow (Cormode, Kulkarni and Srivastava
        2018, Theorem 1; errata, Cormode 10).
        """
        return self._rebuild((self.matrix + self.matrix[::-1, ::-1]) / 2, self.name)

    def renamed(self, name: str) -> Mechanism:
        """Return the same mechanism under another name."""
        return self._rebuild(self.matrix, name)

    def _rebuild(self, matrix: Floats, name: str) -> Mechanism:
        slack = self.exact_delta
        return Mechanism(matrix, self.query, self.exact_epsilon, delta=slack, name=name)

    def isclose(self, other: MechanismLike, tolerance: float = 1e-9) -> bool:
        """Return True if query and probabilities are equal, to an absolute `tolerance`."""
        other = as_mechanism(other, "other")
        same = self.query == other.query
        return same and bool(np.abs(self.matrix - other.matrix).max() <= tolerance)

    # -- files ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-ready data; `from_dict` reads them back without loss."""
        return {
            "format": FORMAT,
            "version": 1,
            "name": self.name,
            "query": self.query.to_dict(),
            "epsilon": None if self.exact_epsilon is None else str(self.exact_epsilon),
            "delta": str(self.exact_delta),
            "matrix": self.matrix.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Mechanism:
        """Build the mechanism that `to_dict` described."""
        is_ours = isinstance(data, Mapping) and data.get("format") == FORMAT
        if not is_ours or data.get("version") != 1:
            raise MechanismError("data", f"be a {FORMAT} of version 1", got="something else")
        if any(key not in data for key in FIELDS):
            raise MechanismError("data", "have the fields " + ", ".join(FIELDS), got="others")
        return cls(
            data["matrix"],
            Query.from_dict(data["query"]),
            data["epsilon"],
            delta=data["delta"],
            name=str(data["name"]),
        )

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Mechanism:
        """Build the mechanism that `to_json` wrote."""
        try:
            data = parse_json(text.encode())
        except (AttributeError, ValueError):
            raise MechanismError("text", "be JSON", got="something else") from None
        return cls.from_dict(data)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the matrix as labelled CSV; also write it to `path` if given."""
        return self._write(formats.csv_text, path)

    def to_ptable(self, path: str | Path | None = None) -> str:
        """Return the matrix as a ptable, for users of the R packages ptable and cellKey."""
        return self._write(formats.ptable_text, path)

    def _write(self, form: Any, path: str | Path | None) -> str:
        text: str = form(self.matrix, self.query.inputs, self.query.outputs)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_csv(
        cls,
        source: str | Path,
        query: Query | None = None,
        epsilon: Epsilon | None = None,
        *,
        upper: int | None = None,
    ) -> Mechanism:
        """Read a mechanism from a CSV matrix or a ptable: a path, or the text itself.

        Without a `query` the labels become its inputs and outputs (0, 1, 2, ... if there are
        none) and neighbours are adjacent inputs, as for a count. With an `upper` the last row's
        noise goes on up to that count, as cellKey applies a ptable to larger counts.
        """
        if not isinstance(source, (str, Path)):
            got = describe_kind(source)
            raise ArgumentError("source", "be a path or the text itself", got=got)
        location = str(source)
        text = location if "\n" in location else read_file(location).decode("utf-8")
        read = formats.ptable_matrix if formats.is_ptable(text) else formats.csv_matrix
        matrix, inputs, outputs = read(text)
        if upper is not None:
            if inputs is None or outputs is None:
                raise MechanismError("matrix", "name its counts to be continued up to 'upper'")
            last = read_whole(upper, "upper", least=1)
            matrix, inputs, outputs = formats.continue_noise(matrix, inputs, outputs, last)
        if query is None:
            rows = np.arange(matrix.shape[0]) if inputs is None else _as_integers(inputs)
            columns = np.arange(matrix.shape[1]) if outputs is None else _as_integers(outputs)
            query = _guess_query(rows, columns)
        return cls(matrix, query, epsilon, name="imported")

    # -- display --------------------------------------------------------------------------------

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw a heatmap of the matrix; save it to `path` if given."""
        from tallyveil.notebook import heatmap

        title = self.name if self.epsilon is None else f"{self.name}, ε = {self.epsilon:g}"
        return heatmap(self.matrix, self.query.inputs, self.query.outputs, title, path)

    def _repr_html_(self) -> str:
        """Return a heatmap with a caption, for notebooks."""
        from tallyveil.notebook import show_matrix

        n, m = self.query.shape
        epsilon = "ε unknown" if self.epsilon is None else f"ε = {self.epsilon:g}"
        delta = f", δ = {self.delta:g}" if self.delta else ""
        about = f"{epsilon}{delta} · {self.query!r} · {n} true × {m} released answers"
        return show_matrix(self.matrix, self.query.inputs, self.query.outputs, self.name, about)

    # -- identity ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mechanism)
            and self.query == other.query
            and self.exact_epsilon == other.exact_epsilon
            and self.exact_delta == other.exact_delta
            and bool(np.array_equal(self.matrix, other.matrix))
        )

    def __hash__(self) -> int:
        return hash((self.query, self.exact_epsilon, self.matrix.tobytes()))

    def __repr__(self) -> str:
        n, m = self.query.shape
        epsilon = "unknown" if self.epsilon is None else f"{self.epsilon:g}"
        delta = f", delta={self.delta:g}" if self.delta else ""
        return f"<{self.name}: {n} x {m}, {self.query!r}, epsilon={epsilon}{delta}>"


class HasMechanism(Protocol):
    """An object with a mechanism: a design, a certified mechanism, a repair."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism itself."""


MechanismLike: TypeAlias = Mechanism | HasMechanism
"""What every function that takes a mechanism accepts."""


def as_mechanism(carrier: MechanismLike, argument: str = "mechanism") -> Mechanism:
    """Return the mechanism in `carrier`, which errors call `argument`.

    >>> import tallyveil as tv
    >>> m = tv.geometric(tv.Query.count(1), epsilon=1.0)
    >>> as_mechanism(m) is m, as_mechanism(tv.certify(m)).query == m.query
    (True, True)
    """
    if isinstance(carrier, Mechanism):
        return carrier
    carried = getattr(carrier, "mechanism", None)
    if isinstance(carried, Mechanism):
        return carried
    hint = "Make one with tv.Mechanism(matrix, query), or with a constructor such as tv.geometric."
    rule = "be a tallyveil.Mechanism, a design or a certified mechanism"
    raise ArgumentError(argument, rule, hint=hint, got=describe_kind(carrier))


def _as_integers(values: Floats) -> NDArray[Any]:
    """Return `values` as integers if all are whole, else unchanged."""
    integers = values.astype(np.int64)
    return integers if (integers == values).all() else values


def _guess_query(inputs: NDArray[Any], outputs: NDArray[Any]) -> Query:
    """Return a count if the labels are 0, 1, 2, ..., else a path over the labels."""
    counts = np.arange(len(inputs))
    if len(inputs) > 1 and np.array_equal(inputs, counts) and np.array_equal(outputs, counts):
        return Query.count(len(inputs) - 1)
    return Query.custom(inputs, outputs, "path")


def is_matrix_file(file: Path) -> bool:
    """Return True if `file` holds a matrix of doubles and not a certified mechanism."""
    if file.suffix.lower() != ".json":
        return True
    try:
        data = parse_json(read_file(file))
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("format") == FORMAT
