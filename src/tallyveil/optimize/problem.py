"""A design problem: its options, checked once and put into arrays, its constraints and tolerances.

The rows of privacy and of the properties leave out what other rows imply. Every row has
the form ``factor * M[larger] - M[smaller] >= floor`` (`properties.Rows`), so that the program, the
lower bound and the final check read the same rows.

The tolerances of the whole search are here as well.

**What a design promises**, measured on the matrix as given: properties hold to
`properties.TOLERANCE` (that of `Mechanism.has`), output distributions come out to
`DISTRIBUTION_TOLERANCE`, and ratios between neighbours exceed e^epsilon by no more than
`RATIO_ROUNDING`, relatively.

**When the search stops.** The solver's tolerance is `SOLVER_TOLERANCE`, far below what is needed,
because the certified gap is what counts: at most `SUFFICIENT_GAP` ends the search at once, at
most `ACCEPTABLE_GAP` ends it after the first choice of cost scaling.

**Why a matrix is repaired twice.** Two steps treat small entries as zero, for two reasons:

- `polish` drops *outputs* that an interior-point solution never quite gives up. The solver's
  tolerance is 1e-11, so a column whose largest entry is below 1e-8 (`NEGLIGIBLE_OUTPUTS`) is an
  output that the optimum never releases. Whether dropping it is harmless is checked against the
  objective (`MAX_DROP_COST`), and properties must survive.
- `tallyveil.proof.repair` mends *ratios* of any matrix, from any source, and knows neither an
  objective nor properties. It measures the error of the ratios and drops entries below four
  times that error, up to a limit. For a matrix that comes out of `polish` the
  measured error is round-off, so repairing it again before certification changes the last
  digits only.

`polish` leaves ratios to `proof.repair` wherever it can. It mends them itself, by mixing with a
constant mechanism, only where properties, delta or a least probability must survive.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.loss import Loss, loss_name, loss_table
from tallyveil.optimize.solver import Progress
from tallyveil.prior import Prior, mark_possible_answers, require_distribution, resolve_prior
from tallyveil.properties import IMPLIED, Rows, check_names, rows
from tallyveil.query import Query, require_query

DISTRIBUTION_TOLERANCE = 1e-8
"""Largest absolute error of an output distribution that was demanded."""

ROUNDED_PROPERTY = 1e-14
"""The most that a closed form may miss a property by: nothing but the rounding of doubles."""

TIGHT_SHARE = 1e-6
"""Demands missed by more than this share of the objective, in units of the largest loss, count as
missed where another mechanism meets them better."""

RATIO_ROUNDING = 1e-14
"""Ratios this close to e^epsilon, relatively, count as e^epsilon in doubles."""

LEAST_OUTPUT_SHARE = 1e-3
"""With ``zero_outputs=False``: the least probability of an output when the truth is nearest to it,
as a share of 1/m. Without such a floor there is no best mechanism, only a limit."""

# -- when the search stops ------------------------------------------------------------------------

SUFFICIENT_GAP = 1e-7
"""A relative gap at which no other window, scaling or closed form is tried."""

ACCEPTABLE_GAP = 1e-6
"""A relative gap above which the whole search is repeated with unscaled costs."""

MANY_ANSWERS = 120
"""With more answers than this, a window with an acceptable gap ends the search as well."""

ROUNDED_GAP = 1e-12
"""A relative difference between objective and bound that ratios rounded to doubles can make."""

SOLVER_TOLERANCE = 1e-11
"""Tolerance asked of the solver; it costs two or three iterations and is often reached."""

COARSE_TOLERANCE = 1e-10
"""Tolerance asked of the solver at first with more answers than `MANY_ANSWERS`: 17 of 80 iterations
less where they take longest, for a gap of 5e-7 instead of 9e-8."""

PATH_TOLERANCE = 9e-8
"""Relative error asked of `path_solver`, whose matrices need next to no repair: below
`SUFFICIENT_GAP`."""

TAIL_SHARES = (0.03, 1e-3, 1e-6)
"""Windows to try in turn: tails begin at the distance d where e^(-epsilon d) is below these."""

CUT_SHARE = 1e-9
"""The same where tails are left out and filled in afterwards, as with output privacy."""

FEW_VARIABLES = 4000
"""Programs without tails and with at most this many variables are solved at a vertex, by the
simplex method; half as many for a worst case, which takes it much longer."""

ROW_MARGINS = (0.0, 1e-10, 1e-9)
"""Slack demanded of inequalities, in turn, while polishing breaks a property by round-off."""

MAX_ROW_SUM_ERROR = 1e-4
"""A solver's matrix whose row sums are further from one is not a solution."""

CONFLICT_MISS = 1e-7
"""Demands conflict if output distributions are provably missed by more than this in total."""

# -- what counts as zero or as equal --------------------------------------------------------------

NEGLIGIBLE_OUTPUTS = (1e-8, 1e-11)
"""Columns whose largest entry is below this are set to zero. The larger limit is tried first and
kept where that costs no more than `MAX_DROP_COST`."""

MAX_DROP_COST = 1e-8
"""Largest relative increase of the objective accepted when negligible columns are set to zero."""

SMALLEST_ENTRY = 1e-290
"""Below this, doubles lose the digits that ratios between neighbours need."""

SYMMETRY_ROUNDING = 1e-13
"""Largest relative difference between a number and its mirror image that counts as none."""


@dataclass(frozen=True, eq=False)
class DesignOptions:
    """The options of a design, apart from the query and epsilon; see `design`."""

    loss: Loss = "absolute"
    prior: Prior = None
    worst_case: bool = False
    side_information: Iterable[float] | None = None
    properties: Iterable[str] | str | None = ()
    delta: Epsilon = 0
    fixed_point: ArrayLike | None = None
    target: ArrayLike | None = None
    method: Literal["auto", "lp"] = "auto"
    zero_outputs: bool | float = True
    cache: str | Path | None = None
    progress: Progress = None

    def __post_init__(self) -> None:
        if self.method not in ("auto", "lp"):
            raise ArgumentError("method", "be 'auto' or 'lp'", self.method)
        if self.worst_case and self.prior is not None:
            raise UsageError(
                "A worst case has no prior. Leave out either worst_case or prior. Weights in a "
                "worst case go into the loss: see tallyveil.weigh_loss."
            )


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

    @property
    def is_path(self) -> bool:
        """True if the true answers are a count's and privacy is pure."""
        return self.query.neighbours.is_path and not self.delta and self.private

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
        """True if counting from the other end gives the same problem.

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
            _is_even(marginal.source) and _is_even(marginal.target) for marginal in self.marginals
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
    """Check the options of a design and put them into arrays; None takes the defaults."""
    chosen = DesignOptions() if options is None else options
    require_query(query)
    n, m = query.shape
    possible = mark_possible_answers(query, chosen.side_information)
    prior = chosen.fixed_point if chosen.prior is None else chosen.prior
    belief = resolve_prior(prior, n)
    marginals = _check_marginals(query, belief, chosen.fixed_point, chosen.target)
    if not chosen.worst_case and not possible.all():
        if belief[possible].sum() <= 0:
            raise ArgumentError("prior", "be positive somewhere on the side information")
        belief = np.where(possible, belief, 0.0) / belief[possible].sum()
    names = check_names(chosen.properties)
    return Problem(
        query,
        exact_epsilon(epsilon),
        exact_delta(chosen.delta),
        loss_table(query, chosen.loss),
        loss_name(chosen.loss),
        belief,
        bool(chosen.worst_case),
        possible,
        names,
        marginals,
        _check_least_probability(chosen.zero_outputs, m),
    )


def _check_marginals(
    query: Query, prior: Floats, fixed_point: ArrayLike | None, target: ArrayLike | None
) -> tuple[Marginal, ...]:
    """Check the demanded output distributions."""
    marginals = []
    if fixed_point is not None:
        query.require_square("a fixed point")
        distribution = require_distribution(fixed_point, len(query.inputs), "fixed_point")
        marginals.append(Marginal("fixed_point", distribution, distribution))
    if target is not None:
        marginals.append(
            Marginal("target", prior, require_distribution(target, len(query.outputs), "target"))
        )
    return tuple(marginals)


def _check_least_probability(zero_outputs: bool | float, m: int) -> float:
    """Return the least probability that `zero_outputs` demands."""
    if zero_outputs is True:
        return 0.0
    if zero_outputs is False:
        return LEAST_OUTPUT_SHARE / m
    if not isinstance(zero_outputs, Real) or not 0 < float(zero_outputs) <= 1 / m:
        rule = f"be True, False, or a least probability in (0, 1/{m}]"
        raise ArgumentError("zero_outputs", rule, zero_outputs)
    return float(zero_outputs)


def _is_even(values: Floats) -> bool:
    """Return True if a vector reads the same from both ends."""
    return bool(np.allclose(values, values[::-1], rtol=SYMMETRY_ROUNDING, atol=0))


PRIVACY = "privacy"
"""The name of the blocks of privacy rows."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that belong together, under the name that the user knows; keys of the program's rows."""

    name: str
    rows: Rows


def list_property_rows(problem: Problem) -> list[Block]:
    """List the rows of every requested property that no other requested property implies."""
    requested = set(problem.properties)
    implied = {name for strong in requested for name in IMPLIED.get(strong, ())}
    epsilon = float(problem.epsilon)
    blocks = [
        Block(name, part)
        for name in problem.properties
        if name not in implied
        for part in rows(name, problem.query, epsilon)
        if len(part)
    ]
    if problem.least_probability > 0:
        cells = _find_nearest_cells(problem)
        blocks.append(Block("zero_outputs", Rows(cells, floor=problem.least_probability)))
    return blocks


def _find_nearest_cells(problem: Problem) -> tuple[Integers, Integers]:
    """Return each output with the true answer, or the two, nearest to it."""
    distance = np.abs(problem.query.inputs[:, None].astype(float) - problem.query.outputs[None, :])
    tie = 1e-9 * float(problem.query.inputs[-1] - problem.query.inputs[0])
    i, j = np.nonzero(distance <= distance.min(axis=0) + tie)
    return i.astype(np.int64), j.astype(np.int64)


def has_output_minimum(problem: Problem) -> bool:
    """Return True if privacy goes through one variable per output.

    Its rows are m_j <= M[i,j] <= e^epsilon m_j. On a complete graph that is 2nm rows instead of n^2
    m. Row monotonicity does better still, with nm rows and no new variable.
    """
    return (
        problem.query.neighbours.kind == "complete"
        and len(problem.query.inputs) > 2
        and "row_monotone" not in problem.properties
        and not problem.delta
        and problem.private
    )


def list_privacy_rows(problem: Problem) -> list[Block]:
    """List the rows e^epsilon M[k, j] >= M[i, j] for neighbours i, k, as few as suffice."""
    if has_output_minimum(problem) or not problem.private:
        return []
    banded = problem.query.neighbours.kind != "explicit" and not problem.delta
    if banded and "row_monotone" in problem.properties:
        larger, smaller, output = _pair_towards_peak(problem)
    else:
        larger, smaller, output = _pair_neighbours(problem)
    rows = Rows((larger, output), (smaller, output), factor=problem.growth)
    return [Block(PRIVACY, rows)]


def _pair_neighbours(problem: Problem) -> tuple[Integers, Integers, Integers]:
    """Return every ordered pair of neighbours with every output."""
    pairs, m = problem.query.neighbours.pairs, len(problem.query.outputs)
    first = np.concatenate([pairs[:, 0], pairs[:, 1]])
    second = np.concatenate([pairs[:, 1], pairs[:, 0]])
    return np.repeat(first, m), np.repeat(second, m), np.tile(np.arange(m), len(first))


def _pair_towards_peak(problem: Problem) -> tuple[Integers, Integers, Integers]:
    """Return every entry with the likeliest of its neighbours, for monotone rows on a band.

    Column j rises up to input `last` and falls from input `first` on (they cross where j is the
    nearest output of some inputs). The largest entry within the band of i is then the one `width`
    steps towards the peak, or the peak itself; every other pair is implied.
    """
    home, (n, m) = problem.query.home, problem.query.shape
    width = problem.query.neighbours.width
    last = np.searchsorted(home, np.arange(m), side="right") - 1
    first = np.searchsorted(home, np.arange(m), side="left")
    i, j = np.indices((n, m)).reshape(2, -1)
    parts = []
    for peak in (last, first):
        inside = (peak[j] >= 0) & (peak[j] < n)
        step = np.clip(peak[j] - i, -width, width)
        parts.append((i[inside], (i + step)[inside], j[inside]))
    far, near, column = (np.concatenate(part) for part in zip(*parts, strict=True))
    code = np.unique((far * n + near) * m + column)
    far, near, column = code // (n * m), code // m % n, code % m
    moved = far != near
    return far[moved], near[moved], column[moved]


def select_rows(rows: Rows, which: Mask | Integers) -> Rows:
    """Return the rows that a mask or an array of numbers selects."""
    smaller = None if rows.smaller is None else (rows.smaller[0][which], rows.smaller[1][which])
    larger = (rows.larger[0][which], rows.larger[1][which])
    return Rows(larger, smaller, rows.factor, rows.floor, rows.equal)


def number_pairs(rows: Rows, n: int) -> Integers:
    """Number the ordered pairs of neighbours, and return that number for each privacy row."""
    assert rows.smaller is not None
    numbers: Integers = np.unique(rows.larger[0] * n + rows.smaller[0], return_inverse=True)[1]
    return numbers
