"""What is asked of a design, checked once and put into arrays."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.loss import Loss, loss_name, loss_table
from tallyveil.prior import Prior
from tallyveil.prior import mark_possible_answers as side_mask
from tallyveil.prior import require_distribution as law
from tallyveil.prior import resolve_prior as prior_law
from tallyveil.properties import check_names
from tallyveil.query import Query, require_query

__all__ = ["Law", "Problem", "pose"]


LEAST_SHARE = 1e-3
"""With ``zero_outputs=False``: the least probability of an output when the truth is nearest
to it, as a share of 1/m. Without such a floor there is no best mechanism, only a limit."""


@dataclass(frozen=True, eq=False)
class Law:
    """The demand that true answers with law `source` be released with law `target`."""

    name: str
    source: Floats
    target: Floats


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise the prior mean (or the worst case) of a loss over private mechanisms.

    Attributes
    ----------
    table : the loss, shape (n, m)
    prior : law on the true answers, shape (n,); ignored in a worst case
    possible : which true answers count in a worst case, shape (n,)
    laws : the output laws that must come out
    least : the least probability of every output when the truth is nearest to it, or 0
    private : False only to ask whether the other demands clash without privacy
    """

    query: Query
    epsilon: Fraction
    delta: Fraction
    table: Floats
    loss: str
    prior: Floats
    worst_case: bool
    possible: NDArray[np.bool_]
    properties: tuple[str, ...]
    laws: tuple[Law, ...]
    least: float
    private: bool = True

    @property
    def grow(self) -> float:
        """e^epsilon as the nearest double."""
        return math.exp(float(self.epsilon))

    @cached_property
    def weights(self) -> Floats:
        """prior * loss: the objective is the inner product of this with the matrix."""
        return self.prior[:, None] * self.table

    def value(self, matrix: Floats) -> float:
        """The objective of a mechanism: prior mean or worst case of its loss."""
        by_input: Floats = (matrix * self.table).sum(axis=1)
        return float(by_input[self.possible].max() if self.worst_case else self.prior @ by_input)

    @cached_property
    def is_mirrored(self) -> bool:
        """Whether counting from the other end gives the same problem (000, Theorem 1).

        Then the mean of a mechanism and its mirror image is as good, so a symmetric optimum
        exists; with an uneven prior it need not (errata 000.10).
        """
        n, m = self.query.shape
        pairs = self.query.neighbours
        same_graph = pairs.kind != "explicit" or np.array_equal(
            pairs.pairs, _sorted_pairs(n - 1 - pairs.pairs)
        )
        homes = np.array_equal(self.query.home, m - 1 - self.query.home[::-1])
        objective = self.table if self.worst_case else self.weights
        laws = all(_even(demand.source) and _even(demand.target) for demand in self.laws)
        weights = self.possible.astype(float) if self.worst_case else self.prior
        return bool(
            same_graph
            and homes
            and laws
            and _even(weights)
            and np.allclose(objective, objective[::-1, ::-1], rtol=1e-13, atol=0)
        )

    def digest(self) -> str:
        """A hash of everything that determines the answer, for the cache."""
        parts = json.dumps(
            [self.query.to_dict(), str(self.epsilon), str(self.delta), self.worst_case,
             self.properties, self.least, [demand.name for demand in self.laws]]
        )  # fmt: skip
        digest = hashlib.sha256(parts.encode())
        for array in (self.table, self.prior, self.possible):
            digest.update(np.ascontiguousarray(array).tobytes())
        for demand in self.laws:
            digest.update(demand.source.tobytes() + demand.target.tobytes())
        return digest.hexdigest()


def pose(
    query: Query,
    epsilon: Epsilon,
    *,
    loss: Loss = "absolute",
    prior: Prior = None,
    worst_case: bool = False,
    side_information: Iterable[float] | None = None,
    properties: Iterable[str] | str = (),
    delta: Epsilon = 0,
    fixed_point: ArrayLike | None = None,
    target: ArrayLike | None = None,
    zero_outputs: bool | float = True,
) -> Problem:
    """The checked problem behind the arguments of `tallyveil.design`."""
    require_query(query)
    n, m = query.shape
    possible = side_mask(query, side_information)
    if worst_case and prior is not None:
        hint = "A worst case has no prior; leave one of them out."
        raise ArgumentError("prior", "be None when worst_case is True", hint=hint)
    belief = prior_law(fixed_point if prior is None and fixed_point is not None else prior, n)
    laws = _laws(query, belief, fixed_point, target)
    if not worst_case and not possible.all():
        if belief[possible].sum() <= 0:
            rule = "be positive somewhere on the side information"
            raise ArgumentError("prior", rule)
        belief = np.where(possible, belief, 0.0) / belief[possible].sum()
    names = check_names(properties)
    return Problem(
        query,
        exact_epsilon(epsilon),
        exact_delta(delta),
        loss_table(query, loss),
        loss_name(loss),
        belief,
        bool(worst_case),
        possible,
        names,
        laws,
        _least(zero_outputs, m),
    )


def _laws(
    query: Query, prior: Floats, fixed_point: ArrayLike | None, target: ArrayLike | None
) -> tuple[Law, ...]:
    laws = []
    if fixed_point is not None:
        query.require_square("a fixed point")
        kept = law(fixed_point, len(query.inputs), "fixed_point")
        laws.append(Law("fixed_point", kept, kept))
    if target is not None:
        laws.append(Law("target", prior, law(target, len(query.outputs), "target")))
    return tuple(laws)


def _least(zero_outputs: bool | float, m: int) -> float:
    if zero_outputs is True:
        return 0.0
    if zero_outputs is False:
        return LEAST_SHARE / m
    if not isinstance(zero_outputs, Real) or not 0 < float(zero_outputs) <= 1 / m:
        rule = f"be True, False, or a least probability in (0, 1/{m}]"
        raise ArgumentError("zero_outputs", rule, zero_outputs)
    return float(zero_outputs)


def _even(values: Floats) -> bool:
    return bool(np.allclose(values, values[::-1], rtol=1e-13, atol=0))


def _sorted_pairs(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(np.sort(pairs, axis=1), axis=0)
