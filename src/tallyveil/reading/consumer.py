"""Somebody who receives a release and wants the best answer for their own purpose.

A consumer has a loss, perhaps a prior, perhaps side information. With a prior they are
Bayesian and guess whatever is best on average; without one they are minimax agents and guard
against the worst true answer they hold possible (003, sections 2.3 to 2.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, loss_name, loss_table
from tallyveil.mechanism import Mechanism, require_mechanism
from tallyveil.mechanisms.geometric import geometric, geometric_rate
from tallyveil.prior import Prior
from tallyveil.prior import mark_possible_answers as side_mask
from tallyveil.prior import resolve_prior as prior_law
from tallyveil.query import Query
from tallyveil.reading.minimax import minimax_remap, price

__all__ = ["BoundCertificate", "Consumer", "Response", "Tie", "is_unimodal"]


@dataclass(frozen=True, eq=False)
class BoundCertificate:
    """A prior that proves a response (almost) optimal, by weak duality.

    Whatever the response, its worst-case loss is at least its mean under `prior`, and no
    response has a smaller mean than ``mechanism.bayes_loss(loss, prior)``. So anybody can
    check `lower_bound` with one call, trusting neither the solver nor this object.

    Attributes
    ----------
    prior : law on the true answers, shape (n,); the least favourable one for a minimax
        consumer, their own for a Bayesian
    lower_bound : no response to the mechanism has a smaller loss (floats; rounding allowed)
    gap : loss of the response minus `lower_bound`
    """

    prior: Floats
    lower_bound: float
    gap: float


@dataclass(frozen=True)
class Tie:
    """A released answer after which several guesses are equally good."""

    released: float
    guesses: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Response:
    """The best use of a mechanism by one consumer.

    Attributes
    ----------
    remap : shape (released, guesses), rows sum to one: what to report instead of a release.
        Guesses are the true answers. Deterministic for a Bayesian, randomised for a minimax
        consumer.
    induced : the mechanism that results, ``matrix @ remap``: post-processing, so as private
    loss : expected loss (Bayesian) or largest expected loss (minimax)
    certificate : the proof that no response loses less
    ties : where a Bayesian could as well guess otherwise; the lowest guess is in `remap`
    universal : True where the mechanism is geometric and the loss unimodal on a count: then
        no mechanism of the same epsilon serves this consumer better (003, Theorem 1)
    note : a sentence on what `universal` means here
    """

    remap: Floats
    induced: Mechanism
    loss: float
    certificate: BoundCertificate
    ties: tuple[Tie, ...]
    universal: bool
    note: str


@dataclass(frozen=True, init=False, eq=False)
class Consumer:
    """Someone with a loss, and a prior (Bayesian) or none (minimax).

    Parameters
    ----------
    loss : as everywhere: "absolute", "squared", "zero_one", ("beyond", d), a function of
        (true, guess), or a table of shape (true answers, true answers)
    prior : given, the consumer is Bayesian: "uniform", ("binomial", p) or weights. None:
        minimax.
    side_information : the true answers held possible; None for all. A Bayesian's prior is
        conditioned on them. Guesses may lie anywhere in the range.

    >>> from tallyveil import Query, geometric
    >>> agent = Consumer("absolute", side_information=range(2, 5))
    >>> r = agent.respond(geometric(Query.count(4), epsilon=1.0))
    >>> r.remap.shape, r.loss < geometric(Query.count(4), 1.0).worst_loss("absolute", range(2, 5))
    ((5, 5), True)
    """

    loss: Loss
    prior: Prior
    side_information: tuple[float, ...] | None

    def __init__(
        self,
        loss: Loss = "absolute",
        prior: Prior = None,
        side_information: Iterable[float] | None = None,
    ) -> None:
        known = None if side_information is None else tuple(side_information)
        if known is not None and not known:
            raise ArgumentError("side_information", "hold at least one true answer", "nothing")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "side_information", known)

    @property
    def is_bayesian(self) -> bool:
        """Whether a prior was given."""
        return self.prior is not None

    def respond(self, mechanism: Mechanism) -> Response:
        """The remap that serves this consumer best, for any mechanism, rectangular or not.

        Bayesian: after output r the guess that minimises
        sum_i prior[i] M[i, r] loss[i, guess], in O(m n^2). Minimax: the program of paper
        003, section 2.4.3, in the space of remaps (`tallyveil.reading.minimax`), to a
        certified relative gap of about 1e-8; 1001 answers take seconds.

        The remap is the best response whatever the loss. Only the further claim that no
        other mechanism would serve better needs a unimodal loss; see `Response.universal`.
        """
        require_mechanism(mechanism)
        query = _guess_query(mechanism.query)
        losses = loss_table(query, self.loss)
        possible = side_mask(mechanism.query, self.side_information)
        if self.is_bayesian:
            law = self._belief(len(possible), possible)
            remap, ties = _bayes(mechanism, losses, law)
            bound = float(price(mechanism.matrix, losses, law).min(axis=1).sum())
        else:
            saddle = minimax_remap(mechanism.matrix[possible], losses[possible])
            remap, ties, bound = saddle.remap, (), saddle.lower_bound
            law = np.zeros(len(possible))
            law[possible] = saddle.prior
        matrix = mechanism.matrix @ remap
        name = f"{mechanism.name}, reinterpreted for {loss_name(self.loss)} loss"
        induced = Mechanism(matrix, query, mechanism.exact_epsilon, delta=mechanism.exact_delta,
                            name=name)  # fmt: skip
        by_truth = (matrix * losses).sum(axis=1)
        loss = float(law @ by_truth) if self.is_bayesian else float(by_truth[possible].max())
        bound = min(bound, loss)
        universal, note = _universality(mechanism, losses)
        proof = BoundCertificate(law, bound, loss - bound)
        return Response(remap, induced, loss, proof, ties, universal, note)

    def best_mechanism(self, query: Query, epsilon: Epsilon) -> Mechanism:
        """The mechanism made for this consumer alone (003, section 2.5).

        For a unimodal loss on a count it is derived from the geometric mechanism, which no
        mechanism beats (docs/consumers.md has the proof). For any other loss or neighbour
        relation it is the optimum of the full design program, `tallyveil.design`, and may
        be strictly better than every response to the geometric mechanism.

        >>> best = Consumer("zero_one", "uniform").best_mechanism(Query.count(1), epsilon=1.0)
        >>> round(float(best.matrix[0, 0]), 6)
        0.731059
        """
        guesses = _guess_query(query)
        losses = loss_table(guesses, self.loss)
        possible = side_mask(query, self.side_information)
        if _is_path(guesses) and is_unimodal(losses):
            return self.respond(geometric(guesses, epsilon)).induced
        from tallyveil.optimize.design import design

        prior = self._belief(len(possible), possible) if self.is_bayesian else None
        found = design(guesses, exact_epsilon(epsilon), losses, prior=prior,
                       worst_case=not self.is_bayesian,
                       side_information=self.side_information)  # fmt: skip
        return found.mechanism

    def _belief(self, size: int, possible: NDArray[np.bool_]) -> Floats:
        law = np.where(possible, prior_law(self.prior, size), 0.0)
        if law.sum() <= 0:
            raise ArgumentError("prior", "give weight to some answer in the side information",
                                "none")  # fmt: skip
        belief: Floats = law / law.sum()
        return belief


def is_unimodal(losses: Floats) -> bool:
    """Whether every true answer's loss grows (or stays) as the guess moves away from it.

    This is what universality needs; the papers' "non-decreasing in |i - r|" (003, section
    2.3) implies it, and it allows overestimates to hurt more than underestimates.

    >>> is_unimodal(np.array([[0.0, 1.0], [5.0, 0.0]])), is_unimodal(np.array([[1.0, 0], [0, 1]]))
    (True, False)
    """
    index = np.arange(len(losses))
    rising = np.diff(losses, axis=1)
    slack = 1e-12 * float(np.abs(losses).max())
    right = index[None, :-1] >= index[:, None]
    return bool((np.where(right, rising, -rising) >= -slack).all())


def _guess_query(query: Query) -> Query:
    """The same question with the true answers as the answers that may be reported."""
    if query.is_square:
        return query
    return Query.custom(query.inputs, query.inputs, query.neighbours)


def _is_path(query: Query) -> bool:
    return query.neighbours.kind == "band" and query.neighbours.width == 1


def _bayes(mechanism: Mechanism, losses: Floats, law: Floats) -> tuple[Floats, tuple[Tie, ...]]:
    """Each output's best guess; after an output the prior rules out, the nearest answer."""
    costs = price(mechanism.matrix, losses, law)
    best = costs.argmin(axis=1)
    released = mechanism.query.outputs.astype(float)
    guesses = mechanism.query.inputs.astype(float)
    reach = law @ mechanism.matrix
    unseen = reach <= 0
    nearest = np.abs(released[:, None] - guesses[None, :]).argmin(axis=1)
    best = np.where(unseen, nearest, best)
    slack = 1e-12 * reach[:, None] * float(np.abs(losses).max())
    level = costs <= costs[np.arange(len(best)), best][:, None] + slack
    ties = tuple(
        Tie(float(released[r]), tuple(guesses[level[r]].tolist()))
        for r in np.flatnonzero(level.sum(axis=1) > 1)
    )
    remap = np.zeros(costs.shape)
    remap[np.arange(len(best)), best] = 1.0
    return remap, ties


def _universality(mechanism: Mechanism, losses: Floats) -> tuple[bool, str]:
    """Whether Theorem 1 of paper 003 (as extended in docs/consumers.md) covers this case."""
    rate = geometric_rate(mechanism)
    stated = mechanism.epsilon
    if rate is None or not _is_path(mechanism.query):
        return False, (
            "This is the best response to this mechanism. It is not a geometric mechanism of a "
            "count, so another mechanism of the same epsilon may serve better."
        )
    if not is_unimodal(losses):
        return False, (
            "This is the best response to this mechanism. The loss does not grow with the "
            "distance of the guess from the truth, so Theorem 1 of paper 003 does not apply and "
            "another mechanism of the same epsilon may serve better: see best_mechanism."
        )
    if stated is not None and abs(rate - stated) > 1e-9 * stated:
        return False, "The matrix is geometric but for another epsilon than the one it states."
    return True, "No mechanism of the same epsilon serves this consumer better."
