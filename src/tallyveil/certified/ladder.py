"""One true count, several releases: each as private as its reader is trusted.

The least private answer is drawn from the truth; every further one is drawn from the answer
before it, never from the truth again. So whoever collects several of them knows no more than
the least private one says (003, Algorithm 1 and Lemma 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import BigIntegers, Integers
from tallyveil.certified.certify import certify
from tallyveil.errors import ArgumentError, CertificationError, VerificationError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric, geometric_step
from tallyveil.proof.certificate import read_rows, rows_text
from tallyveil.proof.exponent import Growth
from tallyveil.proof.products import exact_product, law_ratio_holds
from tallyveil.proof.rounding import TOTAL, round_rows
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.positions import input_positions, released_values
from tallyveil.sampling.sampler import Sampler

__all__ = ["Ladder", "Rung"]

FORMAT = "tallyveil-ladder"
TRIES = 12
LARGEST_SLACK = 1e-6
MOST_CELLS = 3_000_000
"""How many cells of a joint law `verify_coalitions` enumerates at most."""


@dataclass(frozen=True, eq=False)
class Rung:
    """One level: how it is drawn from the level before, and the law that results.

    Attributes
    ----------
    epsilon : the exact privacy loss of this level on its own
    weights : integers, rows totalling 2^62. On the first rung rows are true answers; on every
        other they are what the rung before released.
    mechanism : the law of this level given the truth, as doubles, for accuracy statements
    distance : how far that law is from the exact geometric mechanism: the largest total
        variation over true answers
    """

    epsilon: Fraction
    weights: Integers
    mechanism: Mechanism
    distance: float

    @cached_property
    def sampler(self) -> Sampler:
        """The exact sampler of the weights."""
        return Sampler(self.weights)


@dataclass(frozen=True, init=False, eq=False)
class Ladder:
    """Releases of one count at several privacy levels, safe against collusion.

    Parameters
    ----------
    query : a count, or another query whose answers are evenly spaced, released as they are
    epsilons : strictly decreasing, least private first

    **What is guaranteed, exactly.** Level k on its own is epsilon_k-private. Any coalition
    is as private as its least private member, so the whole release costs epsilons[0]: given
    that member's answer, the others are drawn without looking at the truth. Every level is
    the geometric mechanism at its epsilon up to `Rung.distance`, about 1e-9 or less.

    **Why each level keeps its promise although weights are rounded.** The first rung is
    certified as any mechanism is. Each further remap is the closed form of Lemma 3 for an
    epsilon smaller by a relative 1e-12, rounded down to integers, the rest of each row spread
    evenly over the outputs. The law of the level is then the product of integer tables; it is
    computed in exact integers and compared, entry by entry, with a rational proved not to
    exceed e^epsilon_k. If rounding broke a ratio anywhere, the slack and the even share are
    enlarged and the test repeated; nothing that has not passed it can be drawn.

    Building costs O(levels^2) exact n x n products: well under a second for 101 answers,
    about ten seconds for three levels of 1001.

    >>> ladder = Ladder(Query.count(20), epsilons=[2.0, 1.0, 0.5])
    >>> len(ladder.release(17)), all(ladder.verify())
    (3, True)
    """

    query: Query
    epsilons: tuple[Fraction, ...]
    rungs: tuple[Rung, ...]

    def __init__(self, query: Query, epsilons: Sequence[Epsilon]) -> None:
        levels = _levels(epsilons)
        query.require_square("a ladder")
        object.__setattr__(self, "query", query)
        object.__setattr__(self, "epsilons", levels)
        object.__setattr__(self, "rungs", tuple(_built(query, levels)))

    def release(self, counts: Any, entropy: Entropy | None = None) -> NDArray[Any]:
        """One answer per level, in the order of `epsilons`.

        Parameters
        ----------
        counts : one true answer, or a column of them; checked before anything is drawn
        entropy : None takes a fresh key from the operating system, as every release should

        Returns shape (levels,) for one answer and (levels, rows) for a column: row k of the
        array is what level k's readers get. Exact draws from the verified integer weights;
        different counts are drawn independently.
        """
        positions, one, kind = input_positions(counts, self.query)
        source = Entropy.fresh(entropy)
        levels = []
        for rung in self.rungs:
            positions = rung.sampler.draw(positions, source)
            levels.append(released_values(positions, self.query, kind))
        released = np.stack(levels)
        return released[:, 0] if one else released

    def law(self, level: int) -> tuple[BigIntegers, int]:
        """The exact law of one level given the truth: integers, and what each row totals."""
        product: BigIntegers = self.rungs[0].weights.astype(object)
        for rung in self.rungs[1 : level + 1]:
            product = exact_product(product, rung.weights)
        return product, TOTAL ** (level + 1)

    def verify(self) -> list[bool]:
        """For every level, whether its exact law is private at its epsilon: from scratch."""
        found: list[bool] = []
        law: BigIntegers = np.eye(len(self.query.inputs), dtype=np.int64).astype(object)
        for rung in self.rungs:
            rows = rung.weights.astype(object).sum(axis=1)
            sound = int(rung.weights.min()) >= 0 and bool((rows == TOTAL).all())
            law = exact_product(law, rung.weights) if sound else law
            private = law_ratio_holds(law, self.query.neighbours, rung.epsilon)
            found.append(sound and private and all(found))
        return found

    def verify_coalitions(self) -> dict[tuple[int, ...], bool]:
        """For every set of levels, whether their joint law has its least private epsilon.

        By enumeration of every joint outcome in exact integers, for ranges small enough: it
        shows on the weights themselves what Lemma 4 of paper 003 proves for any range.
        """
        joint = self._joint()
        held = {}
        for size in range(1, len(self.rungs) + 1):
            for group in combinations(range(len(self.rungs)), size):
                others = tuple(1 + k for k in range(len(self.rungs)) if k not in group)
                view = joint.sum(axis=others) if others else joint
                flat = view.reshape(len(view), -1)
                epsilon = self.epsilons[group[0]]
                held[group] = law_ratio_holds(flat, self.query.neighbours, epsilon)
        return held

    def _joint(self) -> BigIntegers:
        """Pr(all releases | truth) in units of TOTAL^-levels, one axis per level."""
        cells = len(self.query.inputs) ** (len(self.rungs) + 1)
        if cells > MOST_CELLS:
            raise ArgumentError(
                "query", f"have a joint law of at most {MOST_CELLS} cells to enumerate", cells,
                "For wide ranges the argument of the class's documentation applies.",
            )  # fmt: skip
        joint: BigIntegers = self.rungs[0].weights.astype(object)
        for rung in self.rungs[1:]:
            joint = joint[..., None] * rung.weights.astype(object)
        return joint

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to verify the ladder again, JSON-ready."""
        return {
            "format": FORMAT,
            "version": 1,
            "query": self.query.to_dict(),
            "epsilons": [str(epsilon) for epsilon in self.epsilons],
            "weights": [rows_text(rung.weights) for rung in self.rungs],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ladder:
        """The ladder that `to_dict` described, every level verified from scratch."""
        if data.get("format") != FORMAT or data.get("version") != 1:
            raise VerificationError(f"Not a {FORMAT} of version 1.")
        query, levels = Query.from_dict(data["query"]), _levels(data["epsilons"])
        tables = [read_rows(lines) for lines in data["weights"]]
        size = len(query.inputs)
        if len(tables) != len(levels) or any(table.shape != (size, size) for table in tables):
            raise VerificationError("The weights do not have the shape of the query's answers.")
        ladder = cls.__new__(cls)
        law: BigIntegers = np.eye(size, dtype=np.int64).astype(object)
        rungs = []
        for power, (epsilon, weights) in enumerate(zip(levels, tables, strict=True), start=1):
            law = exact_product(law, weights)
            rungs.append(_rung(query, epsilon, weights, law, TOTAL**power))
        for field, value in (("query", query), ("epsilons", levels), ("rungs", tuple(rungs))):
            object.__setattr__(ladder, field, value)
        for level, held in enumerate(ladder.verify(), start=1):
            if not held:
                raise VerificationError(
                    f"Level {level} of the ladder is not as private as it says."
                )
        return ladder

    def __repr__(self) -> str:
        levels = ", ".join(f"{float(epsilon):g}" for epsilon in self.epsilons)
        return f"<Ladder: {self.query!r}, epsilons {levels}>"


def _levels(epsilons: Sequence[Epsilon]) -> tuple[Fraction, ...]:
    levels = tuple(exact_epsilon(epsilon, "epsilons") for epsilon in epsilons)
    if not levels:
        raise ArgumentError("epsilons", "hold at least one level", "nothing")
    if any(after >= before for before, after in pairwise(levels)):
        raise ArgumentError("epsilons", "be strictly decreasing, least private first",
                            [float(level) for level in levels])  # fmt: skip
    return levels


def _built(query: Query, levels: tuple[Fraction, ...]) -> list[Rung]:
    first = certify(geometric(query, levels[0]))
    law: BigIntegers = first.weights.astype(object)
    rungs = [_rung(query, levels[0], first.weights, law, TOTAL)]
    for power, (before, epsilon) in enumerate(pairwise(levels), start=2):
        weights, law = _certified_step(query, before, epsilon, law)
        rungs.append(_rung(query, epsilon, weights, law, TOTAL**power))
    return rungs


def _rung(query: Query, epsilon: Fraction, weights: Integers, law: BigIntegers, total: int) -> Rung:
    weights.setflags(write=False)
    shift = max(0, total.bit_length() - 901)  # doubles end at 2^1023
    matrix = (law >> shift).astype(float) / float(total >> shift)
    name = f"geometric, level epsilon {float(epsilon):g}"
    made = Mechanism(matrix / matrix.sum(axis=1, keepdims=True), query, epsilon, name=name)
    ideal = geometric(query, epsilon).matrix
    distance = float(np.abs(made.matrix - ideal).sum(axis=1).max()) / 2
    return Rung(epsilon, weights, made, distance)


def _certified_step(
    query: Query, before: Fraction, epsilon: Fraction, law: BigIntegers
) -> tuple[Integers, BigIntegers]:
    """Weights from the rung before to this one, and the law they give, proved private."""
    size, width = len(query.inputs), query.neighbours.width
    slack = 1e-12
    # The even share must outweigh rounding: some n units against a factor of e^epsilon - 1,
    # and the last bits of doubles, 2^-53 of 2^62 each.
    reserve = int(size * size / (Growth.of(epsilon).ratio - 1)) + size * 2**11
    for _ in range(TRIES):
        aim = float(epsilon) * (1 - slack) / width
        remap = geometric_step(size, float(before) / width, aim)
        every = np.ones(remap.shape, dtype=bool)
        weights = round_rows(remap, np.arange(size), reserve=reserve, shared_by=every)
        product = exact_product(law, weights)
        if int(weights.min()) >= 0 and law_ratio_holds(product, query.neighbours, epsilon):
            return weights, product
        slack, reserve = 4 * slack, 4 * reserve
        if slack > LARGEST_SLACK or reserve > LARGEST_SLACK * TOTAL:
            break
    raise CertificationError(
        f"Epsilon {float(epsilon):g} is too small for {size} answers on a ladder: rounding to "
        "integers would cost more than a millionth. Use a larger epsilon or fewer answers."
    )
