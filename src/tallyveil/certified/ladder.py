"""One true count, several releases: each as private as its reader is trusted.

The least private answer is drawn from the truth; every further one is drawn from the answer
before it, never from the truth again. So whoever collects several of them knows no more than
the least private one says (Gupte and Sundararajan 2010, Algorithm 1 and Lemma 4).
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

from tallyveil._threads import one_blas_thread
from tallyveil.arrays import BigIntegers, Integers
from tallyveil.certified.base import Certified, seal_claim
from tallyveil.certified.certify import make_weights
from tallyveil.errors import ArgumentError, CertificationError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric, geometric_step
from tallyveil.proof import certificate as document
from tallyveil.proof.costs import count_characters, require_few_products
from tallyveil.proof.decimals import parse_table
from tallyveil.proof.exponent import Growth
from tallyveil.proof.levels import first_broken_level, multiply_levels
from tallyveil.proof.products import exact_product, ratio_holds
from tallyveil.proof.ratios import Verdict
from tallyveil.proof.rounding import TOTAL, round_rows
from tallyveil.query import Query, require_query
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.marks import mark_draws
from tallyveil.sampling.positions import input_positions, released_values
from tallyveil.sampling.sampler import Sampler

__all__ = ["Ladder", "Rung", "check_levels"]

WIDEST_LADDER = 4001
"""How many answers a ladder may have: its levels are whole tables."""

TRIES = 12
LARGEST_SLACK = 1e-6
"""The largest relative change of epsilon, or share of a row, that rounding may cost a level."""

MOST_CELLS = 3_000_000
"""How many cells of a joint distribution `verify_coalitions` enumerates at most."""


@dataclass(frozen=True, eq=False, repr=False)
class Rung:
    """One level: how it is drawn from the level before, and the distribution that results.

    Attributes
    ----------
    epsilon : Fraction
        The exact privacy loss of this level on its own.
    weights : array of int, shape (n, n)
        Rows total 2^62. On the first rung rows are true answers; on every other they are
        what the rung before released.
    mechanism : Mechanism
        The distribution of this level given the truth, as doubles, for accuracy statements.
    distance : float
        How far it is from the exact geometric mechanism: the largest total variation over
        true answers.
    """

    epsilon: Fraction
    weights: Integers
    mechanism: Mechanism
    distance: float

    @cached_property
    def sampler(self) -> Sampler:
        """The exact sampler of the weights."""
        return Sampler(self.weights)

    def __repr__(self) -> str:
        return f"<Rung: epsilon={self.epsilon}, {len(self.weights)} answers>"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ladder(Certified):
    """Releases of one count at several privacy levels, safe against collusion.

    **What is guaranteed, exactly.** Level k on its own is epsilon_k-private. Any coalition
    is as private as its least private member, so the whole release costs epsilons[0]: given
    that member's answer, the others are drawn without looking at the truth. Every level is
    the geometric mechanism at its epsilon up to `Rung.distance`, about 1e-9 or less.

    **Why each level keeps its promise although weights are rounded.** The first rung is
    certified as any mechanism is. Each further table is the closed form of Lemma 3 for an
    epsilon smaller by a relative 1e-12, rounded down to integers, the rest of each row spread
    evenly over the outputs. The level's distribution is then the product of integer tables;
    it is computed in exact integers and compared, entry by entry, with a rational proved not
    to exceed e^epsilon_k. If rounding broke a ratio anywhere, the slack and the even share are
    enlarged and the test repeated; nothing that has not passed it can be drawn.

    Building costs O(levels^2) exact products of windows around the diagonal: a fraction of a
    second for 501 answers, a few seconds for three levels of 2001.

    Parameters
    ----------
    query : Query
        A count, or another query whose answers are evenly spaced, released as they are.
    epsilons : sequence of numbers
        Strictly decreasing, least private first.

    References
    ----------
    Gupte and Sundararajan (2010), Algorithm 1, Lemmas 3 and 4.

    Examples
    --------
    >>> ladder = Ladder(Query.count(20), epsilons=[2.0, 1.0, 0.5])
    >>> len(ladder.release(17)), bool(ladder.verify())
    (3, True)
    """

    query: Query
    rungs: tuple[Rung, ...]

    def __init__(self, query: Query, epsilons: Sequence[Epsilon]) -> None:
        require_query(query)
        query.require_square("a ladder")
        if len(query.inputs) > WIDEST_LADDER:
            rule = f"have at most {WIDEST_LADDER:,} answers for a ladder"
            raise ArgumentError("query", rule, len(query.inputs))
        rungs = tuple(_build_rungs(query, check_levels(epsilons)))
        written = sum(count_characters(rung.weights) for rung in rungs)
        require_few_products(len(query.inputs), len(rungs), written)
        self._fill(query, rungs, "every level")

    def _fill(
        self,
        query: Query,
        rungs: tuple[Rung, ...],
        published: str,
        certificate: Mapping[str, Any] | None = None,
    ) -> None:
        for name, value in (("query", query), ("rungs", rungs)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "certificate", certificate or self._claim(published))

    def _claim(self, published: str) -> dict[str, Any]:
        ladder = self.body()["ladder"]
        epsilon = self.epsilons[0 if published == "every level" else -1]
        return seal_claim(
            f"ladder of {len(self.rungs)} levels",
            Verdict(True, epsilon, Fraction(0), None, None, None, ""),
            query=self.query.to_dict(),
            neighbours=self.query.neighbours.to_dict(),
            shape=self.query.shape,
            kind="ladder",
            sha256=document.digest(ladder),
            epsilons=ladder["epsilons"],
            published=published,
        )

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """The exact privacy loss of every level on its own, least private first."""
        return tuple(rung.epsilon for rung in self.rungs)

    @property
    def mechanism(self) -> Mechanism:
        """The distribution of the last level given the truth, as a matrix of doubles."""
        return self.rungs[-1].mechanism

    def level(self, number: int) -> Ladder:
        """The ladder up to level `number` (from 1), certified for publishing that level alone.

        What the readers of that level need to check it: how it was drawn, and the proof that
        it is epsilon-private on its own.
        """
        if not 1 <= number <= len(self.rungs):
            raise ArgumentError("number", f"lie between 1 and {len(self.rungs)}", number)
        part = Ladder.__new__(Ladder)
        part._fill(self.query, self.rungs[:number], "last level")
        return part

    def release(self, counts: Any, entropy: Entropy | None = None) -> NDArray[Any]:
        """One answer per level, in the order of `epsilons`.

        Parameters
        ----------
        counts : int or array of int
            One true answer, or a column of them; checked before anything is drawn.
        entropy : Entropy, optional
            None takes fresh bits from the operating system, as every release should.

        Returns
        -------
        array of int, shape (levels,) or (levels, rows)
            Row k is what level k's readers get. Exact draws from the verified integer
            weights; different counts are drawn independently.
        """
        positions, one, kind = input_positions(counts, self.query)
        source = Entropy.for_one_call(entropy)
        levels = [
            released_values(drawn, self.query, kind)
            for drawn in self.draw_positions(positions, source)
        ]
        released: NDArray[Any] = mark_draws(np.stack(levels), source)
        return released[:, 0] if one else released

    def draw_positions(self, positions: NDArray[Any], entropy: Entropy) -> list[NDArray[Any]]:
        """Output positions of every level for input positions, which the caller has checked."""
        levels = []
        for rung in self.rungs:
            positions = rung.sampler.draw(positions, entropy)
            levels.append(positions)
        return levels

    def distribution(self, level: int) -> tuple[BigIntegers, int]:
        """The exact distribution of one level given the truth: integers, and their row total."""
        product: BigIntegers = self.rungs[0].weights.astype(object)
        for rung in self.rungs[1 : level + 1]:
            product = exact_product(product, rung.weights)
        return product, TOTAL ** (level + 1)

    def verify_coalitions(self) -> dict[tuple[int, ...], bool]:
        """For every set of levels, whether their joint distribution has its least private epsilon.

        By enumeration of every joint outcome in exact integers, for ranges small enough: it
        shows on the weights themselves what Lemma 4 of Gupte and Sundararajan (2010) proves
        for any range.
        """
        joint = self._joint()
        held = {}
        for size in range(1, len(self.rungs) + 1):
            for group in combinations(range(len(self.rungs)), size):
                others = tuple(1 + k for k in range(len(self.rungs)) if k not in group)
                view = joint.sum(axis=others) if others else joint
                flat = view.reshape(len(view), -1)
                epsilon = self.epsilons[group[0]]
                held[group] = ratio_holds(flat, self.query.neighbours, epsilon)
        return held

    def _joint(self) -> BigIntegers:
        """Pr(all releases | truth) in units of TOTAL^-levels, one axis per level."""
        cells = len(self.query.inputs) ** (len(self.rungs) + 1)
        if cells > MOST_CELLS:
            rule = f"have a joint distribution of at most {MOST_CELLS:,} cells to enumerate"
            hint = "For wide ranges the argument of the class's documentation applies."
            raise ArgumentError("query", rule, cells, hint)
        joint: BigIntegers = self.rungs[0].weights.astype(object)
        for rung in self.rungs[1:]:
            joint = joint[..., None] * rung.weights.astype(object)
        return joint

    def body(self) -> dict[str, Any]:
        """The tables of all levels."""
        return {
            "ladder": {
                "format": document.LADDER_FORMAT,
                "version": document.VERSION,
                "query": self.query.to_dict(),
                "epsilons": [str(epsilon) for epsilon in self.epsilons],
                "weights": [document.rows_text(rung.weights) for rung in self.rungs],
            }
        }

    @classmethod
    def from_verified(
        cls, data: Mapping[str, Any], certificate: Mapping[str, Any] | None = None
    ) -> Ladder:
        """The ladder in a document that `tv.verify` has accepted; `tv.load` calls this."""
        query = Query.from_dict(data["query"])
        tables = [parse_table(lines) for lines in data["weights"]]
        levels = [exact_epsilon(text) for text in data["epsilons"]]
        ladder = cls.__new__(cls)
        rungs = tuple(_make_rungs(query, levels, tables))
        ladder._fill(query, rungs, "every level", certificate)
        return ladder

    def __repr__(self) -> str:
        levels = ", ".join(f"{float(epsilon):g}" for epsilon in self.epsilons)
        return f"<Ladder: {self.query!r}, epsilons {levels}>"


def check_levels(epsilons: Sequence[Epsilon]) -> tuple[Fraction, ...]:
    """The levels of a ladder as exact rationals, strictly decreasing, or an `ArgumentError`."""
    if isinstance(epsilons, (int, float)) or not hasattr(epsilons, "__iter__"):
        raise ArgumentError("epsilons", "be a list of numbers, least private first", epsilons)
    levels = tuple(exact_epsilon(epsilon, "epsilons") for epsilon in epsilons)
    if not levels:
        raise ArgumentError("epsilons", "hold at least one level", got="none")
    if any(after >= before for before, after in pairwise(levels)):
        shown = ", ".join(f"{float(level):g}" for level in levels)
        raise ArgumentError("epsilons", "be strictly decreasing, least private first", got=shown)
    return levels


@one_blas_thread()  # many small products: two threads take three times the processor time
def _build_rungs(query: Query, levels: tuple[Fraction, ...]) -> list[Rung]:
    tables = [make_weights(geometric(query, levels[0]), levels[0])[0]]
    for number in range(1, len(levels)):
        tables.append(_certify_step(query, levels[: number + 1], tables))
    return _make_rungs(query, levels, tables)


@one_blas_thread()
def _make_rungs(query: Query, levels: Sequence[Fraction], tables: Sequence[Integers]) -> list[Rung]:
    """Every level with its distribution as doubles: the product of the tables up to it."""
    rungs: list[Rung] = []
    for epsilon, weights, product in zip(levels, tables, multiply_levels(tables), strict=True):
        weights.setflags(write=False)
        matrix = product / product.sum(axis=1, keepdims=True)
        name = f"geometric, level epsilon {float(epsilon):g}"
        made = Mechanism(matrix, query, epsilon, name=name)
        ideal = geometric(query, epsilon).matrix
        distance = float(np.abs(made.matrix - ideal).sum(axis=1).max()) / 2
        rungs.append(Rung(epsilon, weights, made, distance))
    return rungs


def _certify_step(query: Query, levels: Sequence[Fraction], tables: Sequence[Integers]) -> Integers:
    """Weights from the level before to the last of `levels`, proved private."""
    before, epsilon = levels[-2:]
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
        asked = [*(None for _ in tables), epsilon]
        if int(weights.min()) >= 0 and not first_broken_level(
            [*tables, weights], query.neighbours, asked
        ):
            return weights
        slack, reserve = 4 * slack, 4 * reserve
        if slack > LARGEST_SLACK or reserve > LARGEST_SLACK * TOTAL:
            break
    raise CertificationError(
        f"Epsilon {float(epsilon):g} is too small for {size} answers on a ladder: rounding to "
        "integers would cost more than a millionth. Use a larger epsilon or fewer answers."
    )
