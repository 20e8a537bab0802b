"""What is asked of a design, checked once and put into arrays."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Mask
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.loss import loss_name, loss_table
from tallyveil.optimize.options import DesignOptions
from tallyveil.optimize.tolerances import LEAST_OUTPUT_SHARE, SYMMETRY_ROUNDING
from tallyveil.prior import mark_possible_answers, require_distribution, resolve_prior
from tallyveil.properties import check_names
from tallyveil.query import Query, require_query

__all__ = ["Marginal", "Problem", "pose"]


@dataclass(frozen=True, eq=False)
class Marginal:
    """The demand ``source @ M == target`` on the released answers; a key of the program's rows."""

    name: str
    source: Floats
    target: Floats


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise the prior mean (or the worst case) of a loss over private mechanisms.

    `possible` marks the true answers that count in a worst case; `least_probability` is that of
    every output when the truth is nearest to it, or 0; `private` is False only to ask whether
    the other demands clash without privacy.
    """

    query: Query
    epsilon: Fraction
    delta: Fraction
    loss_table: Floats
    loss_name: str
    prior: Floats  # ignored in a worst case
    worst_case: bool
    possible: Mask
    properties: tuple[str, ...]
    marginals: tuple[Marginal, ...]
    least_probability: float
    private: bool = True

    @property
    def growth(self) -> float:
        """e^epsilon as the nearest double."""
        return math.exp(float(self.epsilon))

    @cached_property
    def weights(self) -> Floats:
        """prior * loss: the objective is the inner product of this with the matrix."""
        return self.prior[:, None] * self.loss_table

    def rescale(self, exponent: int) -> Problem:
        """Return the problem with losses multiplied by 2^exponent, which rounds nothing."""
        return replace(self, loss_table=np.ldexp(self.loss_table, exponent))

    def objective(self, matrix: Floats) -> float:
        """Return the prior mean, or the worst case, of the loss of a mechanism."""
        by_input: Floats = (matrix * self.loss_table).sum(axis=1)
        return float(by_input[self.possible].max() if self.worst_case else self.prior @ by_input)

    @cached_property
    def is_mirrored(self) -> bool:
        """Whether counting from the other end gives the same problem.

        Then the mean of a mechanism and its mirror image is as good, so a symmetric optimum
        exists; with an uneven prior it need not (Cormode, Kulkarni and Srivastava 2018,
        Theorem 1; errata, Cormode 10).
        """
        n, m = self.query.shape
        pairs = self.query.neighbours
        same_graph = pairs.kind != "explicit" or np.array_equal(
            pairs.pairs, np.unique(np.sort(n - 1 - pairs.pairs, axis=1), axis=0)
        )
        same_homes = np.array_equal(self.query.home, m - 1 - self.query.home[::-1])
        same_marginals = all(
            _is_even(one.source) and _is_even(one.target) for one in self.marginals
        )
        costs = self.loss_table if self.worst_case else self.weights
        inputs = self.possible.astype(float) if self.worst_case else self.prior
        return bool(
            same_graph
            and same_homes
            and same_marginals
            and _is_even(inputs)
            and np.allclose(costs, costs[::-1, ::-1], rtol=SYMMETRY_ROUNDING, atol=0)
        )

    def digest(self) -> str:
        """Return a hash of everything that determines the answer, for the cache."""
        described = [
            self.query.to_dict(),
            str(self.epsilon),
            str(self.delta),
            self.worst_case,
            self.properties,
            self.least_probability,
            [marginal.name for marginal in self.marginals],
        ]
        digest = hashlib.sha256(json.dumps(described).encode())
        for array in (self.loss_table, self.prior, self.possible):
            digest.update(np.ascontiguousarray(array).tobytes())
        for marginal in self.marginals:
            digest.update(marginal.source.tobytes() + marginal.target.tobytes())
        return digest.hexdigest()


def pose(query: Query, epsilon: Epsilon, options: DesignOptions | None = None) -> Problem:
    """Check what is asked of a design and put it into arrays; no options are the defaults."""
    given = DesignOptions() if options is None else options
    require_query(query)
    n, m = query.shape
    possible = mark_possible_answers(query, given.side_information)
    prior = given.fixed_point if given.prior is None else given.prior
    belief = resolve_prior(prior, n)
    marginals = _check_marginals(query, belief, given.fixed_point, given.target)
    if not given.worst_case and not possible.all():
        if belief[possible].sum() <= 0:
            raise ArgumentError("prior", "be positive somewhere on the side information")
        belief = np.where(possible, belief, 0.0) / belief[possible].sum()
    names = check_names(given.properties)
    return Problem(
        query,
        exact_epsilon(epsilon),
        exact_delta(given.delta),
        loss_table(query, given.loss),
        loss_name(given.loss),
        belief,
        bool(given.worst_case),
        possible,
        names,
        marginals,
        _check_least_probability(given.zero_outputs, m),
    )


def _check_marginals(
    query: Query, prior: Floats, fixed_point: ArrayLike | None, target: ArrayLike | None
) -> tuple[Marginal, ...]:
    marginals = []
    if fixed_point is not None:
        query.require_square("a fixed point")
        kept = require_distribution(fixed_point, len(query.inputs), "fixed_point")
        marginals.append(Marginal("fixed_point", kept, kept))
    if target is not None:
        marginals.append(
            Marginal("target", prior, require_distribution(target, len(query.outputs), "target"))
        )
    return tuple(marginals)


def _check_least_probability(zero_outputs: bool | float, m: int) -> float:
    if zero_outputs is True:
        return 0.0
    if zero_outputs is False:
        return LEAST_OUTPUT_SHARE / m
    if not isinstance(zero_outputs, Real) or not 0 < float(zero_outputs) <= 1 / m:
        rule = f"be True, False, or a least probability in (0, 1/{m}]"
        raise ArgumentError("zero_outputs", rule, zero_outputs)
    return float(zero_outputs)


def _is_even(values: Floats) -> bool:
    """Whether a vector reads the same from both ends."""
    return bool(np.allclose(values, values[::-1], rtol=SYMMETRY_ROUNDING, atol=0))
