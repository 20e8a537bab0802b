"""What will be drawn, from what, and what it costs: decided before any count is touched.

A plan depends on the request and on the number of rows, which are public. The same plan is
made for a dry run and for a release, and it holds the very certified objects that draw, that
the ledger hashes and that the folder ships.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from tallyveil.arrays import freeze
from tallyveil.budget.entries import Stage
from tallyveil.certified.base import Certified
from tallyveil.certified.certify import certify, certify_geometric, certify_noise
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedGeometric, CertifiedNoise
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import LARGEST_EPSILON
from tallyveil.loss import loss_name
from tallyveil.plans.accuracy import FARTHEST_NOISE, REACH
from tallyveil.plans.choice import choose_method
from tallyveil.plans.margin_sums import MarginSums, make_margins
from tallyveil.plans.methods import Independent, Levels, Method, Preserve, count_cells
from tallyveil.plans.stratified import Stratified
from tallyveil.plans.sum_files import list_stages
from tallyveil.plans.sums import Sums, make_sums
from tallyveil.plans.unbiased import keep_draws
from tallyveil.plans.zeros import WithEmptyGroups, WithZeros
from tallyveil.query import Query
from tallyveil.release.methods.base import Method as AskedMethod
from tallyveil.release.methods.design import MechanismFile
from tallyveil.request.budget_split import Tradeoff, choose_split
from tallyveil.request.kinds import COUNTS, DISTRIBUTION, KINDS
from tallyveil.request.ranges import NO_UPPER, WIDE
from tallyveil.request.request import ColumnRequest, Request
from tallyveil.request.unit import PrivacyUnit
from tallyveil.sums.grouping import Margins

__all__ = ["WIDEST_STAIRCASE", "ColumnPlan", "PlannedStage", "plan_column"]

ROWS_PER_COUNT = 5
"""How many rows for each possible count a plan assumes that knows no table."""


STAIRCASE_FROM, WIDEST_STAIRCASE = 2, 1000
"""Staircase noise is used from this epsilon of all moves together, and up to this upper bound."""

LEAST_OPEN_RATE = Fraction(REACH, FARTHEST_NOISE)
"""Smallest epsilon of noise on counts in a wide range or none: figures cover all of it."""


@dataclass(frozen=True, eq=False)
class PlannedStage:
    """One step that spends: what it draws from, and what it costs a person.

    Attributes
    ----------
    column : str
        The count column it is about.
    kind : str
        ``"distribution"``, ``"counts"`` or that of a level of sums.
    certified : Certified
        What is drawn from. Its file and certificate go into the release folder.
    epsilon : Fraction
        The cost to one person: the certified epsilon times the moves one person can make.
    """

    column: str
    kind: str
    certified: Certified
    epsilon: Fraction

    @property
    def name(self) -> str:
        """The stage as receipts and ledgers call it."""
        return f"{self.column}: {self.kind}"

    @cached_property
    def mechanism_bytes(self) -> bytes:
        """The content of the mechanism's file."""
        return self.certified.to_json().encode()

    @cached_property
    def certificate_bytes(self) -> bytes:
        """The content of the certificate's file."""
        return self.certified.certificate_json().encode()

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the mechanism's file."""
        return hashlib.sha256(self.mechanism_bytes).hexdigest()

    def spend(self) -> Stage:
        """What the ledger is asked for."""
        return Stage(self.name, self.epsilon)


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """One count column: how it is drawn, from what, and what that costs.

    `stages` are in the order in which they draw, what draws the counts last.
    """

    name: str
    upper: int
    epsilon: Fraction
    method_name: str
    why: str
    method: Method
    stages: tuple[PlannedStage, ...]
    solver: str = "closed form"
    loss: str = "not used"
    tradeoff: Tradeoff | None = None

    @property
    def counts_stage(self) -> PlannedStage:
        """The stage that draws the counts themselves."""
        return self.stages[-1]


def plan_column(request: Request, column: ColumnRequest, rows: int | None) -> ColumnPlan:
    """The plan for one column.

    Parameters
    ----------
    request, column : Request, ColumnRequest
        What was asked for.
    rows : int or None
        The public number of rows; None in a dry run that does not know it.

    Returns
    -------
    ColumnPlan
        Everything certified, nothing drawn.
    """
    upper = column.upper
    if request.free is not None:
        rows = int(request.free.sum())
    name, why = request.method_name, request.why
    if name == "auto":
        name, why = choose_method(rows, upper, column.epsilon)
    if name not in PLANNERS:
        name = "file"
    if name == "geometric" and request.unit.one_row:
        name, why = _choose_for_one_row(request, upper, column.epsilon)
    if upper > WIDE:
        made = _plan_open(request, name, column.epsilon, rows, upper)
    else:
        made = PLANNERS[name](request, Query.count(upper), column.epsilon, rows)
    unit = PrivacyUnit() if KINDS[name].together else request.unit
    stages = [
        PlannedStage(column.name, kind, certified, unit.charge(certified.exact_epsilon))
        for kind, certified in made.draws_from
    ]
    keeps = request.unbiased or request.signed
    method = keep_draws(made.method, request.signed) if keeps else made.method
    return ColumnPlan(
        column.name,
        upper,
        column.epsilon if KINDS[name].together else made.epsilon,
        name,
        why,
        method if request.free is None else WithZeros(method, request.free),
        tuple(stages),
        made.solver,
        made.loss,
        request.tradeoff,
    )


@dataclass(frozen=True, eq=False)
class _Made:
    """A method with the kinds of its stages and what each draws from, in order."""

    method: Method
    draws_from: tuple[tuple[str, Certified], ...]
    epsilon: Fraction
    solver: str = "closed form"
    loss: str = "not used"


def _plan_preserve(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    def draw_from(rate: Fraction) -> CertifiedGeometric:
        return certify_geometric(query, rate)

    return _make_preserve(request, draw_from, epsilon, rows, query.shape[1])


def _plan_open(
    request: Request, name: str, epsilon: Fraction, rows: int | None, upper: int
) -> _Made:
    """Geometric noise without bounds, and public thresholds for the distribution."""

    def draw_from(rate: Fraction) -> CertifiedNoise:
        if rate < LEAST_OPEN_RATE:  # figures would leave out noise that is drawn
            rule = f"leave the counts at least {float(LEAST_OPEN_RATE):g} where their range is wide"
            hint = f"Use a larger epsilon, or an upper bound of at most {WIDE:,}."
            raise ArgumentError("epsilon", rule, got=f"{float(rate):g}", hint=hint)
        return certify_noise(rate)

    if name == "preserve":
        return _make_preserve(request, draw_from, epsilon, rows, count_cells(upper), upper=upper)
    return _make_independent(draw_from(epsilon), upper=upper)


def _make_preserve(
    request: Request,
    draw_from: Callable[[Fraction], CertifiedGeometric | CertifiedNoise],
    epsilon: Fraction,
    rows: int | None,
    cells: int,
    *,
    upper: int = NO_UPPER,
) -> _Made:
    records = ROWS_PER_COUNT * cells if rows is None else rows
    split = choose_split(request.tradeoff, epsilon, records=records, size=cells)
    noise = certify_noise(split.epsilon1) if split.epsilon1 else None
    certified = draw_from(split.epsilon2)
    first = () if noise is None else ((DISTRIBUTION, noise),)
    method = Preserve(certified, noise, request.tradeoff, upper)
    return _Made(method, (*first, (COUNTS, certified)), epsilon)


def _plan_strata(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    made = _plan_preserve(request, query, epsilon, rows)
    if request.groups is None or not isinstance(made.method, Preserve):
        return made  # a dry run, which opens no table and draws nothing
    groups = request.groups if request.free is None else request.groups[request.free]
    numbers = np.unique(groups, return_inverse=True)[1].reshape(-1)
    return replace(made, method=Stratified(made.method, freeze(numbers)))


def _plan_ladder(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    ladder = Ladder(query, request.levels)
    return _Made(Levels(ladder), ((COUNTS, ladder),), epsilon)


def _plan_geometric(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    return _make_independent(certify_geometric(query, epsilon))


def _plan_canonical(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    from tallyveil.mechanisms.geometric import canonical

    return _make_independent(certify(canonical(query, epsilon, request.delta)))


def _choose_for_one_row(request: Request, upper: int, epsilon: Fraction) -> tuple[str, str]:
    """Noise for all moves of a unit together, or plain noise, and why in words.

    The former errs less, but is not made for wide ranges, nor at a small or vast epsilon.
    """
    plain = ""
    if upper > WIDEST_STAIRCASE:
        plain = f"an upper bound of at most {WIDEST_STAIRCASE:,}"
    elif not STAIRCASE_FROM <= epsilon * request.multiplier <= LARGEST_EPSILON:
        plain = f"an epsilon of {STAIRCASE_FROM} to {LARGEST_EPSILON} for all of them"
    if not plain:
        return "staircase", request.why
    return "geometric", f"{request.why}; noise made for them together needs {plain}"


def _plan_staircase(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    from tallyveil.mechanisms.additive import whole_staircase

    upper, moves = query.shape[1] - 1, request.multiplier
    return _make_independent(certify(whole_staircase(upper, moves, epsilon * moves)))


def _plan_fair(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    from tallyveil.mechanisms.exponential import fair

    return _make_independent(certify(fair(query, epsilon)))


def _plan_design(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    from tallyveil.optimize.design import design

    made = design(
        query, epsilon, loss=request.loss, properties=request.properties, delta=request.delta
    )
    solver = f"{made.method}, {made.solver}; within {made.gap:.1e} of the best possible"
    certified = certify(made.mechanism, loss=request.loss)
    return _make_independent(certified, solver, loss_name(request.loss))


def _plan_file(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    return _make_independent(_read_supplied(_path_of(request.method), query, epsilon), "supplied")


def _plan_sums(request: Request, query: Query, epsilon: Fraction, rows: int | None) -> _Made:
    asked, grouping = request.hierarchy, request.grouping
    if asked is None or grouping is None:
        raise UsageError(
            "How a hierarchy shares its epsilon depends on the table's public labels: a dry run, "
            "which opens no table, cannot plan it."
        )
    upper, tree = query.shape[1] - 1, grouping.part
    made: Sums | MarginSums
    if isinstance(tree, Margins):
        made = make_margins(asked, tree, epsilon, upper)
    else:
        free = slice(None) if request.free is None else request.free
        bounds = None if request.bounds is None else request.bounds[free]
        made = make_sums(asked, tree, epsilon, upper, bounds)
    kinds = [kind for kind, _ in list_stages(asked, tree.sizes, made.budget)]
    noises = [*made.noises[:-1], made.distribution, made.noises[-1]]
    drawn = [noise for noise in noises if noise is not None]
    method = WithEmptyGroups(made, grouping)
    return _Made(method, tuple(zip(kinds, drawn, strict=True)), epsilon)


def _make_independent(
    certified: CertifiedAnswers | CertifiedNoise,
    solver: str = "closed form",
    loss: str = "not used",
    upper: int = NO_UPPER,
) -> _Made:
    stages = ((COUNTS, certified),)
    return _Made(Independent(certified, upper), stages, certified.exact_epsilon, solver, loss)


PLANNERS: Mapping[str, Callable[[Request, Query, Fraction, int | None], _Made]] = {
    "preserve": _plan_preserve,
    "strata": _plan_strata,
    "ladder": _plan_ladder,
    "geometric": _plan_geometric,
    "canonical": _plan_canonical,
    "staircase": _plan_staircase,
    "fair": _plan_fair,
    "design": _plan_design,
    "file": _plan_file,
    "hierarchy": _plan_sums,
    "sums": _plan_sums,
    "margins": _plan_sums,
}
"""For every method of `tallyveil.request.kinds`, what plans it."""


def _path_of(method: AskedMethod) -> Path:
    """Return the file of a mechanism of the publisher."""
    if not isinstance(method, MechanismFile):
        raise UsageError("Give the mechanism file as 'method'.")
    return Path(method.path)


def _read_supplied(path: Path, query: Query, epsilon: Fraction) -> CertifiedAnswers:
    """A mechanism the publisher supplies: certified already, or certified here."""
    from tallyveil.certified.files import read_mechanism

    read = read_mechanism(path, query, epsilon)
    certified = read if isinstance(read, CertifiedAnswers) else certify(read, epsilon)
    if certified.query != query:
        raise ArgumentError("method", f"be a mechanism for {query!r}", got=repr(certified.query))
    if certified.exact_epsilon > epsilon:
        got = f"a mechanism with epsilon {certified.exact_epsilon}"
        raise ArgumentError("method", f"hold at epsilon {epsilon}", got=got)
    if certified.exact_delta:
        got = f"a delta of {certified.exact_delta}"
        raise ArgumentError("method", "be a mechanism with a delta of 0", got=got)
    return certified
