"""A mechanism: the law of the released answer for every true answer, as one matrix.

Frozen. It answers every question the papers ask of a mechanism; it cannot release anything.
Only a certified mechanism can (`tallyveil.certify`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil import audit, formats
from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, MechanismError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.loss import Loss, loss_table
from tallyveil.prior import Prior
from tallyveil.prior import mark_possible_answers as side_mask
from tallyveil.prior import resolve_prior as prior_law
from tallyveil.properties import PROPERTIES, SEVEN, TOLERANCE, Witness, witness
from tallyveil.query import Query, require_query

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Mechanism", "check_confidence", "require_mechanism"]

ROUND_OFF = 1e-6
"""How far solvers leave rows from summing to one, and entries below zero."""

FORMAT = "tallyveil-mechanism"


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """``matrix[true, released]``, the query it answers, and the epsilon it was made for.

    Parameters
    ----------
    matrix : non-negative, shape (n, m) of the query, rows summing to one. A solver's
        round-off is tolerated: rows within 1e-6 of one, and entries above -1e-6, which
        become 0. Nothing else is changed.
    query : what is asked
    epsilon : the privacy loss it was made for (any exact number), or None if unknown
    delta : the slack of (epsilon, delta)-privacy, 0 for pure privacy
    name : for captions

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
        checked = _stochastic(matrix, query)
        exact = None if epsilon is None else exact_epsilon(epsilon)
        slack = exact_delta(delta)
        fields = {
            "matrix": checked,
            "query": query,
            "epsilon": None if exact is None else float(exact),
            "exact_epsilon": exact,
            "delta": float(slack),
            "exact_delta": slack,
            "name": name,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    # -- privacy ------------------------------------------------------------------------------

    def worst_pair(self) -> audit.WorstPair:
        """The neighbours and the output whose probabilities differ most, and by how much."""
        return audit.worst_pair(self.matrix, self.query.neighbours)

    def realised_epsilon(self) -> float:
        """The smallest epsilon for which this matrix is epsilon-private (000, Definition 2).

        Infinite where a zero stands beside a positive. It judges the doubles as they are:
        beyond epsilon * n of about 700 far tails underflow and the answer says so.
        """
        return self.worst_pair().epsilon

    def privacy_profile(self, epsilons: ArrayLike) -> Floats:
        """The smallest delta for each epsilon: the hockey-stick divergence over neighbours.

        >>> q = Query.count(1)
        >>> Mechanism([[0.75, 0.25], [0.25, 0.75]], q).privacy_profile([0.0]).tolist()
        [0.5]
        """
        values = np.atleast_1d(np.asarray(epsilons, dtype=float))
        if not np.isfinite(values).all() or (values < 0).any():
            raise ArgumentError("epsilons", "be finite and at least 0", "another value")
        return audit.hockey_stick(self.matrix, self.query.neighbours, values)

    # -- structure ----------------------------------------------------------------------------

    def witness(self, property: str, tolerance: float = TOLERANCE) -> Witness | None:
        """The cells that break `property` most, or None where it holds."""
        return witness(property, self.query, self.matrix, self._judged_epsilon(), tolerance)

    def has(self, property: str, tolerance: float = TOLERANCE) -> bool:
        """Whether `property` holds, to an absolute `tolerance` on probabilities."""
        return self.witness(property, tolerance) is None

    def properties(self, tolerance: float = TOLERANCE) -> dict[str, bool]:
        """Every property and whether it holds (see `tallyveil.properties`)."""
        judged = PROPERTIES if self._judged_epsilon() is not None else SEVEN
        return {name: self.has(name, tolerance) for name in judged}

    def _judged_epsilon(self) -> float | None:
        if self.epsilon is not None:
            return self.epsilon
        realised = self.realised_epsilon()
        return realised if np.isfinite(realised) else None

    # -- accuracy -----------------------------------------------------------------------------

    def loss_by_input(self, loss: Loss = "absolute") -> Floats:
        """Expected loss for each true answer, shape (n,)."""
        by_input: Floats = (self.matrix * loss_table(self.query, loss)).sum(axis=1)
        return by_input

    def expected_loss(self, loss: Loss = "absolute", prior: Prior = None) -> float:
        """Prior mean of the loss (000, Definition 3; 001, equations 23 and 24)."""
        return float(prior_law(prior, len(self.query.inputs)) @ self.loss_by_input(loss))

    def worst_loss(
        self, loss: Loss = "absolute", side_information: Iterable[float] | None = None
    ) -> float:
        """Largest expected loss over the possible true answers (003, equation 1)."""
        return float(self.loss_by_input(loss)[side_mask(self.query, side_information)].max())

    def error_probability(self, prior: Prior = None) -> float:
        """Chance of releasing an output that is not the truth's own."""
        return self.expected_loss("zero_one", prior)

    def bias(self) -> Floats:
        """Expected released answer minus the true one, per true answer, shape (n,).

        No mechanism on a bounded range is unbiased at both ends.
        """
        error = self.query.outputs[None, :].astype(float) - self.query.inputs[:, None]
        bias: Floats = (self.matrix * error).sum(axis=1)
        return bias

    def variance(self) -> Floats:
        """Variance of the released answer, per true answer, shape (n,)."""
        centre = self.query.inputs + self.bias()
        spread = (self.query.outputs[None, :].astype(float) - centre[:, None]) ** 2
        variance: Floats = (self.matrix * spread).sum(axis=1)
        return variance

    def rmse(self) -> Floats:
        """Root mean squared error per true answer, shape (n,)."""
        return np.sqrt(self.loss_by_input("squared"))

    def interval(self, confidence: float = 0.95) -> Floats:
        """Which released answers to expect: lowest and highest per true answer, shape (n, 2).

        The central interval: at most (1 - confidence)/2 lies below it and as much above, so
        its probability is never under `confidence`.
        """
        check_confidence(confidence)
        tail = (1 - confidence) / 2
        below = np.cumsum(self.matrix, axis=1)
        above = np.cumsum(self.matrix[:, ::-1], axis=1)
        low = (below <= tail).sum(axis=1)
        high = len(self.query.outputs) - 1 - (above <= tail).sum(axis=1)
        released = self.query.outputs.astype(float)
        return np.column_stack([released[low], released[np.maximum(low, high)]])

    def error_histogram(self, prior: Prior = None) -> tuple[Floats, Floats]:
        """Every possible error (released - true) and its probability (000, Figure 14)."""
        error = self.query.outputs[None, :].astype(float) - self.query.inputs[:, None]
        weight = self.matrix * prior_law(prior, len(self.query.inputs))[:, None]
        values, where = np.unique(np.round(error, 9), return_inverse=True)
        mass: Any = np.bincount(where.ravel(), weights=weight.ravel(), minlength=len(values))
        return values, mass

    def bayes_remap(self, loss: Loss = "absolute", prior: Prior = None) -> NDArray[np.int64]:
        """For each output, the index of the true answer a Bayesian would report instead.

        Minimises the posterior expected loss over the true answers; the lowest on ties.
        """
        best: NDArray[np.int64] = self._guess_costs(loss, prior).argmin(axis=1)
        return best

    def bayes_loss(self, loss: Loss = "absolute", prior: Prior = None) -> float:
        """Expected loss after the best Bayesian remap (001, equations 25 and 26, corrected).

        sum_r min_f sum_f' prior(f') Pr(r|f') loss(f', f): the printed extra factor Pr(r)
        counts the output's probability twice (errata 001.2).
        """
        return float(self._guess_costs(loss, prior).min(axis=1).sum())

    def _guess_costs(self, loss: Loss, prior: Prior) -> Floats:
        guesses = Query.custom(self.query.inputs, self.query.inputs, self.query.neighbours)
        joint = self.matrix * prior_law(prior, len(self.query.inputs))[:, None]
        return joint.T @ loss_table(guesses, loss)

    def usability(self) -> dict[str, float]:
        """The four measures of paper 001, section 4.2, under a uniform prior."""
        return {
            "error": self.expected_loss("absolute"),
            "squared_error": self.expected_loss("squared"),
            "bayes_error": self.bayes_loss("absolute"),
            "bayes_squared_error": self.bayes_loss("squared"),
        }

    def smaller_than(self, other: Mechanism, tolerance: float = 1e-12) -> bool:
        """Whether `other`'s mass moved towards the truth gives this one (001, Definition 7).

        Holds when, for every true answer and every distance d, this mechanism releases
        something within d at least as often.
        """
        if self.query != other.query:
            raise ArgumentError("other", "answer the same query", repr(other.query))
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
        """The mean of this mechanism and its mirror image (000, Theorem 1).

        Keeps privacy and every property, and the expected loss if prior and loss are
        symmetric; with an uneven prior it may cost (errata 000.10).
        """
        mean = (self.matrix + self.matrix[::-1, ::-1]) / 2
        return Mechanism(mean, self.query, self.exact_epsilon, delta=self.exact_delta,
                         name=self.name)  # fmt: skip

    def papers_matrix(self) -> Floats:
        """The matrix as papers 000 and 001 print it: one released answer per row."""
        return self.matrix.T.copy()

    def isclose(self, other: Mechanism, tolerance: float = 1e-9) -> bool:
        """Same query and the same probabilities, to an absolute `tolerance`."""
        same = self.query == other.query
        return same and bool(np.abs(self.matrix - other.matrix).max() <= tolerance)

    # -- files ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready; `from_dict` reads it back without loss."""
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
        """The mechanism that `to_dict` described."""
        if data.get("format") != FORMAT or data.get("version") != 1:
            raise MechanismError("file", f"be a {FORMAT} of version 1", data.get("format"))
        return cls(
            data["matrix"],
            Query.from_dict(data["query"]),
            data["epsilon"],
            delta=data["delta"],
            name=data["name"],
        )

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Mechanism:
        """The mechanism that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    def to_csv(self, path: str | Path | None = None) -> str:
        """The matrix as labelled CSV; also written to `path` if given."""
        return self._written(formats.csv_text, path)

    def to_ptable(self, path: str | Path | None = None) -> str:
        """The matrix as a ptable (columns i, j, p, v, p_int_lb, p_int_ub), for cellKey users."""
        return self._written(formats.ptable_text, path)

    def _written(self, form: Any, path: str | Path | None) -> str:
        text: str = form(self.matrix, self.query.inputs, self.query.outputs)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_csv(
        cls, source: str | Path, query: Query | None = None, epsilon: Epsilon | None = None
    ) -> Mechanism:
        """A mechanism from a CSV matrix or a ptable: a path, or the text itself.

        Without a `query` the labels become its inputs and outputs (0, 1, 2, ... if there are
        none) and neighbours are adjacent inputs, as for a count.
        """
        given = str(source)
        text = given if "\n" in given else Path(given).read_text(encoding="utf-8")
        matrix, inputs, outputs = (formats.ptable_matrix if formats.is_ptable(text)
                                   else formats.csv_matrix)(text)  # fmt: skip
        if query is None:
            rows = np.arange(matrix.shape[0]) if inputs is None else _tidy(inputs)
            columns = np.arange(matrix.shape[1]) if outputs is None else _tidy(outputs)
            query = _plain_query(rows, columns)
        return cls(matrix, query, epsilon, name="imported")

    def plot(self, path: str | Path | None = None) -> Figure:
        """A heatmap as in Figures 1, 2 and 7 of paper 000; also saved to `path` if given."""
        from tallyveil.figures import heatmap

        title = self.name if self.epsilon is None else f"{self.name}, ε = {self.epsilon:g}"
        return heatmap(self.matrix, self.query.inputs, self.query.outputs, title, path)

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


def check_confidence(confidence: float) -> None:
    """Raise an `ArgumentError` unless `confidence` lies strictly between 0 and 1."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ArgumentError("confidence", "lie strictly between 0 and 1", confidence)


def require_mechanism(mechanism: object, argument: str = "mechanism") -> None:
    """Raise an `ArgumentError` unless `mechanism` is a `Mechanism`."""
    if not isinstance(mechanism, Mechanism):
        hint = "Make one with tv.Mechanism(matrix, query), or a constructor such as tv.geometric."
        raise ArgumentError(argument, "be a tallyveil.Mechanism", type(mechanism).__name__, hint)


def _stochastic(matrix: ArrayLike, query: Query) -> Floats:
    """`matrix` as a read-only array that is a mechanism for `query`, or a MechanismError."""
    try:
        array = np.array(matrix, dtype=float)
    except (TypeError, ValueError):
        raise MechanismError("matrix", "be a table of numbers", type(matrix).__name__) from None
    if array.shape != query.shape:
        rule = f"have shape {query.shape}: a row per true answer, a column per released answer"
        raise MechanismError("matrix", rule, f"shape {array.shape}")
    lowest = array.min()
    if not np.isfinite(lowest) or not np.isfinite(array.max()):
        raise MechanismError("matrix", "be finite", "an infinite or missing entry")
    if lowest < -ROUND_OFF:
        i, j = np.unravel_index(int(array.argmin()), array.shape)
        raise MechanismError("matrix", "be non-negative", f"{array[i, j]:.6g} at ({i}, {j})")
    if lowest < 0:
        np.maximum(array, 0.0, out=array)
    sums = array.sum(axis=1)
    off = int(np.abs(sums - 1).argmax())
    if abs(sums[off] - 1) > ROUND_OFF:
        raise MechanismError("matrix", "have rows that sum to 1", f"{sums[off]:.9g} in row {off}")
    array.setflags(write=False)
    return array


def _tidy(values: Floats) -> NDArray[Any]:
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values


def _plain_query(inputs: NDArray[Any], outputs: NDArray[Any]) -> Query:
    counts = np.arange(len(inputs))
    if len(inputs) > 1 and np.array_equal(inputs, counts) and np.array_equal(outputs, counts):
        return Query.count(len(inputs) - 1)
    return Query.custom(inputs, outputs, "path")
