"""What will be drawn, from what, and what it costs: decided before any count is touched.

A plan depends on the request and on the number of rows, which are public. The same plan is
made for a dry run and for a release.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.budget.ledger import Stage
from tallyveil.certified.certify import (
    CertifiedGeometric,
    CertifiedMechanism,
    certify,
    certify_geometric,
    load,
)
from tallyveil.errors import ArgumentError
from tallyveil.loss import loss_name
from tallyveil.mechanism import Mechanism
from tallyveil.proof.certificate import MECHANISM_FORMAT, canonical
from tallyveil.publish.accuracy import (
    WIDEST_PICTURE,
    Accuracy,
    drawn_spread,
    estimated_spread,
    geometric_accuracy,
    matched_mechanism,
)
from tallyveil.publish.budget_split import Split, split_budget
from tallyveil.publish.methods import draw_privately, match_counts
from tallyveil.publish.options import Request
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy

__all__ = ["ROWS_PER_COUNT", "ColumnPlan", "Drawn", "choose_method", "plan_column"]


ROWS_PER_COUNT = 5
"""`auto` preserves the distribution if there are this many rows for each possible count."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A released column: nothing in it is confidential any more."""

    counts: Integers
    histogram: Integers
    spread: Floats | None
    accuracy: Accuracy
    picture: Floats | None


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """One count column: its mechanism, its certificate, its stages.

    `stages` holds what each step costs a person, the request's multiplier included.
    """

    name: str
    upper: int
    upper_source: str
    epsilon: Fraction
    method: str
    why: str
    certified: CertifiedMechanism | CertifiedGeometric
    split: Split | None
    stages: tuple[Stage, ...]
    solver: str
    loss: str
    steps: tuple[str, ...]

    @cached_property
    def mechanism_bytes(self) -> bytes:
        """The content of the mechanism's file."""
        return self.certified.to_json().encode()

    @cached_property
    def certificate_bytes(self) -> bytes:
        """The content of the certificate's file."""
        return canonical(self.certified.certificate).encode()

    @property
    def mechanism_hash(self) -> str:
        """SHA-256 of the mechanism's file."""
        return hashlib.sha256(self.mechanism_bytes).hexdigest()

    @cached_property
    def mechanism(self) -> Mechanism | None:
        """The certified law as a matrix; None where the range is too wide for one."""
        return self.certified.mechanism if self.upper + 1 <= WIDEST_PICTURE else None

    def expected_accuracy(self) -> Accuracy:
        """What can be said before anything is drawn: the accuracy of the certified draw."""
        if isinstance(self.certified, CertifiedGeometric):
            return geometric_accuracy(self.upper, self.certified.exact_epsilon)
        return Accuracy.of(self.certified.mechanism)

    def draw(self, counts: Integers, entropy: Entropy | None) -> Drawn:
        """Release the column; `counts` lie in 0..upper."""
        if self.split is not None:
            return self._preserve(counts, self.split, entropy)
        released = np.asarray(self.certified.release(counts, entropy), dtype=np.int64)
        histogram = np.bincount(released, minlength=self.upper + 1)
        spread = None if self.mechanism is None else drawn_spread(self.mechanism, histogram)
        picture = None if self.mechanism is None else self.mechanism.matrix
        return Drawn(released, histogram, spread, self.expected_accuracy(), picture)

    def _preserve(self, counts: Integers, split: Split, entropy: Entropy | None) -> Drawn:
        source = Entropy.fresh(entropy)
        released, histogram = match_counts(
            draw_privately(counts, self.upper, split, source), source
        )
        spread = estimated_spread(histogram, split.epsilon1, split.epsilon2)
        matched = matched_mechanism(self.upper, split.epsilon2, histogram)
        if matched is None:
            return Drawn(released, histogram, spread, self.expected_accuracy(), None)
        return Drawn(released, histogram, spread, Accuracy.of(matched, False), matched.matrix)


def choose_method(rows: int | None, upper: int) -> tuple[str, str]:
    """The method for `auto`, and why; looks at public sizes only.

    >>> choose_method(1000, 40)[0], choose_method(50, 40)[0]
    ('preserve', 'geometric')
    """
    needed = ROWS_PER_COUNT * (upper + 1)
    if rows is None:
        return "preserve", f"assuming at least {needed:,} rows, {ROWS_PER_COUNT} per possible count"
    if rows >= needed:
        return "preserve", f"{rows:,} rows are at least {ROWS_PER_COUNT} per possible count"
    return "geometric", f"{rows:,} rows are fewer than {ROWS_PER_COUNT} per possible count"


def plan_column(
    request: Request,
    name: str,
    *,
    upper: int,
    epsilon: Fraction,
    rows: int | None,
    found_upper: bool = False,
) -> ColumnPlan:
    """The plan for one column; `rows` is None in a dry run that does not know it."""
    method, why = request.method, request.why
    if method == "auto":
        method, why = choose_method(rows, upper)
    query = Query.count(upper)
    split: Split | None = None
    steps: tuple[str, ...] = ()
    loss = "not used"
    solver = "closed form"
    if method in ("preserve", "geometric"):
        if method == "preserve":
            records = ROWS_PER_COUNT * (upper + 1) if rows is None else rows
            split = split_budget(epsilon, records=records, size=upper + 1)
            steps = PRESERVE_STEPS if split.epsilon1 else PRESERVE_STEPS[1:]
        drawn_at = epsilon if split is None else split.epsilon2
        certified: CertifiedMechanism | CertifiedGeometric = certify_geometric(query, drawn_at)
    elif method == "fair":
        from tallyveil.mechanisms.fair import fair

        certified = certify(fair(query, epsilon))
    elif method == "design":
        from tallyveil.optimize.design import design

        made = design(query, epsilon, loss=request.loss, properties=request.properties)
        certified = certify(made.mechanism, loss=request.loss)
        solver = f"{made.method}, {made.solver}; within {made.gap:.1e} of the best possible"
        loss = loss_name(request.loss)
    else:
        certified, solver, method = _from_file(Path(method), query, epsilon), "supplied", "file"
        epsilon = certified.exact_epsilon
    _require_pure(certified)
    return ColumnPlan(
        name, upper, "private" if found_upper else "given", epsilon, method, why, certified,
        split, _stages(name, epsilon, split, request.multiplier), solver, loss, steps,
    )  # fmt: skip


PRESERVE_STEPS = (
    "Noise was added to the table's cumulative histogram (how many rows have at most j).",
    "Noise was added to every count, and the result kept inside the range.",
    "From what was drawn, and nothing else, the distribution of counts was estimated.",
    "Rows were ranked by their noisy counts, ties in random order, and counts with exactly that "
    "distribution were handed out in this order. This step looks at no confidential value.",
)


def _stages(
    name: str, epsilon: Fraction, split: Split | None, multiplier: int
) -> tuple[Stage, ...]:
    if split is None:
        return (Stage(f"{name}: counts", epsilon * multiplier),)
    stages = [Stage(f"{name}: counts", split.epsilon2 * multiplier)]
    if split.epsilon1:
        stages.insert(0, Stage(f"{name}: distribution", split.epsilon1 * multiplier))
    return tuple(stages)


def _from_file(
    path: Path, query: Query, epsilon: Fraction
) -> CertifiedMechanism | CertifiedGeometric:
    """A mechanism the publisher supplies: certified already, or certified here."""
    text = path.read_text(encoding="utf-8")
    if path.suffix.lower() == ".csv":
        certified: Any = certify(Mechanism.from_csv(path, query, epsilon))
    elif json.loads(text).get("format") == MECHANISM_FORMAT:
        certified = load(path)
    else:
        certified = certify(Mechanism.from_json(text), epsilon)
    if certified.query != query:
        raise ArgumentError("method", f"be a mechanism for {query!r}", repr(certified.query))
    if certified.exact_epsilon > epsilon:
        raise ArgumentError("method", f"hold at epsilon {epsilon}", str(certified.exact_epsilon))
    return certified  # type: ignore[no-any-return]


def _require_pure(certified: Any) -> None:
    if certified.exact_delta:
        raise ArgumentError("method", "be a mechanism with a delta of 0", certified.delta)
