"""Consumers of a release, and the best answer for each one's purpose.

A consumer has a loss, perhaps a prior, perhaps side information. With a prior they are
Bayesian and make the guess that is best on average; without one they are minimax agents and guard
against the worst true answer they hold possible (Gupte and Sundararajan 2010, sections 2.3 to
2.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Floats, Mask
from tallyveil.errors import ArgumentError, describe_kind
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, loss_name, loss_table
from tallyveil.matrix import FrozenArrays, posterior_costs
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.mechanisms.geometric import geometric, geometric_rate
from tallyveil.prior import Prior, mark_possible_answers, resolve_prior
from tallyveil.query import Query, require_query
from tallyveil.reading.minimax import minimax_remap


@dataclass(frozen=True, eq=False, repr=False)
class BoundCertificate(FrozenArrays):
    """A prior that proves a response (almost) optimal, by weak duality.

    The worst-case loss of every response is at least its mean under `prior`, and no
    response has a smaller mean than ``mechanism.bayes_loss(loss, prior)``. So anybody can
    check `lower_bound` with one call, trusting neither the solver nor this object.

    Attributes
    ----------
    prior : array of float, shape (n,)
        Distribution on the true answers: the least favourable one for a minimax consumer,
        the consumer's for a Bayesian.
    lower_bound : float
        No response to the mechanism has a smaller loss (floats; rounding allowed for).
    gap : float
        Loss of the response minus `lower_bound`.
    """

    prior: Floats
    lower_bound: float
    gap: float

    def __repr__(self) -> str:
        return f"<BoundCertificate: no response loses less than {self.lower_bound:.6g}>"


@dataclass(frozen=True)
class Tie:
    """A released answer after which several guesses are equally good."""

    released: float
    guesses: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Response(FrozenArrays):
    """The best use of a mechanism by one consumer.

    Attributes
    ----------
    remap : array of float, shape (released, guesses)
        What to report instead of a release; rows sum to one. Guesses are the true answers.
        Deterministic for a Bayesian, randomised for a minimax consumer.
    induced : Mechanism
        The mechanism that results, ``matrix @ remap``: post-processing, so as private.
    loss : float
        Expected loss (Bayesian) or largest expected loss (minimax).
    certificate : BoundCertificate
        The proof that no response loses less.
    ties : tuple of Tie
        Where a Bayesian could as well guess otherwise; the lowest guess is in `remap`.
    universal : bool
        True where the mechanism is geometric and the loss unimodal on a count: then no
        mechanism of the same epsilon serves this consumer better (Gupte and Sundararajan
        2010, Theorem 1).
    note : str
        A sentence on what `universal` means here.
    """

    remap: Floats
    induced: Mechanism
    loss: float
    certificate: BoundCertificate
    ties: tuple[Tie, ...]
    universal: bool
    note: str

    def __repr__(self) -> str:
        released, guesses = self.remap.shape
        universal = ", universal" if self.universal else ""
        return (
            f"<Response: loss {self.loss:.6g}, proved within {self.certificate.gap:.1e} of the "
            f"best, remap {released} x {guesses}{universal}>"
        )


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Consumer:
    """Someone with a loss, and a prior (Bayesian) or none (minimax).

    Parameters
    ----------
    loss : str, tuple, callable or array of float, shape (n, n)
        As everywhere: "absolute", "squared", "zero_one", ("beyond", d), a function of
        (true, guess), or a table of shape (true answers, true answers).
    prior : "uniform", ("binomial", p), array of float, shape (n,), or None
        Given, the consumer is Bayesian. None: minimax.
    side_information : iterable of float, optional
        The true answers held possible; None for all. A Bayesian's prior is conditioned on
        them. Guesses may lie anywhere in the range.

    Examples
    --------
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
        possible = None if side_information is None else _list_answers(side_information)
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "side_information", possible)

    @property
    def is_bayesian(self) -> bool:
        """True if the consumer has a prior."""
        return self.prior is not None

    def respond(self, mechanism: MechanismLike) -> Response:
        """Find the remap that serves this consumer best, for any mechanism, rectangular or not.

        Bayesian: after output r the guess that minimises
        sum_i prior[i] M[i, r] loss[i, guess], in O(m n^2). Minimax: the program of Gupte and
        Sundararajan (2010), section 2.4.3, in the space of remaps
        (`tallyveil.reading.minimax`), to a certified relative gap of about 1e-8; 1001 answers
        take seconds.

        The remap is the best response for every loss. Only the further claim that no
        other mechanism would serve better needs a unimodal loss; see `Response.universal`.
        """
        mechanism = as_mechanism(mechanism)
        query = mechanism.query.to_guesses()
        losses = loss_table(query, self.loss)
        possible = mark_possible_answers(mechanism.query, self.side_information)
        if self.is_bayesian:
            prior = self._condition_prior(possible)
            remap, ties, bound = _bayes_remap(mechanism, losses, prior)
        else:
            saddle = minimax_remap(mechanism.matrix[possible], losses[possible])
            remap, ties, bound = saddle.remap, (), saddle.lower_bound
            prior = np.zeros(len(possible))
            prior[possible] = saddle.prior
        matrix = mechanism.matrix @ remap
        name = f"{mechanism.name}, reinterpreted for {loss_name(self.loss)} loss"
        induced = Mechanism(
            matrix, query, mechanism.exact_epsilon, delta=mechanism.exact_delta, name=name
        )
        by_truth = (matrix * losses).sum(axis=1)
        loss = float(prior @ by_truth) if self.is_bayesian else float(by_truth[possible].max())
        bound = min(bound, loss)
        universal, note = _judge_universality(mechanism, losses)
        certificate = BoundCertificate(prior, bound, loss - bound)
        return Response(remap, induced, loss, certificate, ties, universal, note)

    def best_mechanism(self, query: Query, epsilon: Epsilon) -> Mechanism:
        """Find the mechanism made for this consumer alone.

        For a unimodal loss on a count it is derived from the geometric mechanism, which no
        mechanism beats (docs/theory.md has the proof). For any other loss or neighbour
        relation it is the optimum of the full design program, `tallyveil.design`, and may
        be strictly better than every response to the geometric mechanism (Gupte and
        Sundararajan 2010, section 2.5).

        >>> best = Consumer("zero_one", "uniform").best_mechanism(Query.count(1), epsilon=1.0)
        >>> round(float(best.matrix[0, 0]), 6)
        0.731059
        """
        require_query(query)
        guesses = query.to_guesses()
        losses = loss_table(guesses, self.loss)
        if guesses.neighbours.is_path and is_unimodal(losses):
            return self.respond(geometric(guesses, epsilon)).induced
        from tallyveil.optimize.design import design

        possible = mark_possible_answers(query, self.side_information)
        optimum = design(
            guesses,
            exact_epsilon(epsilon),
            losses,
            prior=self._condition_prior(possible) if self.is_bayesian else None,
            worst_case=not self.is_bayesian,
            side_information=self.side_information,
        )
        return optimum.mechanism

    def _condition_prior(self, possible: Mask) -> Floats:
        """Return the prior given that the true answer is a possible one."""
        weights = np.where(possible, resolve_prior(self.prior, len(possible)), 0.0)
        if weights.sum() <= 0:
            rule = "give weight to some answer in the side information"
            raise ArgumentError("prior", rule, got="none")
        conditional: Floats = weights / weights.sum()
        return conditional

    def __repr__(self) -> str:
        kind = "Bayesian" if self.is_bayesian else "minimax"
        possible = self.side_information
        side = "" if possible is None else f", {len(possible)} possible answers"
        return f"<Consumer: {kind}, {loss_name(self.loss)} loss{side}>"


def is_unimodal(losses: Floats) -> bool:
    """Decide whether every true answer's loss grows (or stays) as the guess moves away from it.

    This is what universality needs. A loss that does not decrease in |i - r| (Gupte and
    Sundararajan 2010, section 2.3) is unimodal; so are some that punish overestimates more.

    >>> is_unimodal(np.array([[0.0, 1.0], [5.0, 0.0]])), is_unimodal(np.array([[1.0, 0], [0, 1]]))
    (True, False)
    """
    index = np.arange(len(losses))
    rising = np.diff(losses, axis=1)
    slack = 1e-12 * float(np.abs(losses).max())
    right = index[None, :-1] >= index[:, None]
    return bool((np.where(right, rising, -rising) >= -slack).all())


def _list_answers(side_information: Iterable[float]) -> tuple[float, ...]:
    """Return the possible true answers as a tuple of numbers, at least one."""
    try:
        answers = tuple(float(answer) for answer in side_information)
    except (TypeError, ValueError):
        got = describe_kind(side_information)
        raise ArgumentError("side_information", "list true answers", got=got) from None
    if not answers:
        raise ArgumentError("side_information", "hold at least one true answer", got="nothing")
    return answers


def _bayes_remap(
    mechanism: Mechanism, losses: Floats, prior: Floats
) -> tuple[Floats, tuple[Tie, ...], float]:
    """Return each output's best guess, the ties, and the Bayesian loss.

    After an output that the prior rules out, the guess is the nearest true answer.
    """
    costs = posterior_costs(mechanism.matrix, losses, prior)
    best = costs.argmin(axis=1)
    released = mechanism.query.outputs.astype(float)
    guesses = mechanism.query.inputs.astype(float)
    reach = prior @ mechanism.matrix
    nearest = np.abs(released[:, None] - guesses[None, :]).argmin(axis=1)
    best = np.where(reach <= 0, nearest, best)
    slack = 1e-12 * reach[:, None] * float(np.abs(losses).max())
    equal = costs <= costs[np.arange(len(best)), best][:, None] + slack
    ties = tuple(
        Tie(float(released[r]), tuple(guesses[equal[r]].tolist()))
        for r in np.flatnonzero(equal.sum(axis=1) > 1)
    )
    remap = np.zeros(costs.shape)
    remap[np.arange(len(best)), best] = 1.0
    return remap, ties, float(costs.min(axis=1).sum())


def _judge_universality(mechanism: Mechanism, losses: Floats) -> tuple[bool, str]:
    """Decide whether Theorem 1 of Gupte and Sundararajan applies, as extended in docs/theory.md."""
    rate = geometric_rate(mechanism)
    stated = mechanism.epsilon
    if rate is None or not mechanism.query.neighbours.is_path:
        return False, (
            "This is the best response to this mechanism. It is not a geometric mechanism of a "
            "count, so another mechanism of the same epsilon may serve better."
        )
    if not is_unimodal(losses):
        return False, (
            "This is the best response to this mechanism. The loss does not grow with the "
            "distance of the guess from the truth, so Theorem 1 of Gupte and Sundararajan (2010) "
            "does not apply and another mechanism of the same epsilon may serve better: see "
            "best_mechanism."
        )
    if stated is not None and abs(rate - stated) > 1e-9 * stated:
        return False, "The matrix is geometric but for another epsilon than the one it states."
    return True, "No mechanism of the same epsilon serves this consumer better."
