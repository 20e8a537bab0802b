"""From a matrix, or a rate of noise, to something that may release.

`certify` makes a certified mechanism from a matrix, `certify_geometric` one for ranges too
wide for a matrix, `certify_noise` noise for whole numbers without a range.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Integers
from tallyveil.certified.base import seal_claim
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedMechanism, CertifiedNoise
from tallyveil.errors import ArgumentError, CertificationError, QueryError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, loss_name
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.prior import Prior
from tallyveil.proof import certificate as document
from tallyveil.proof.costs import count_characters, require_few_comparisons
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.proof.ratios import Verdict, check_weights
from tallyveil.proof.repair import Repair, mass_moved, repair
from tallyveil.proof.rounding import TOTAL
from tallyveil.proof.weights import approximate_weights, pure_weights
from tallyveil.query import Query, require_query

__all__ = ["certify", "certify_geometric", "certify_noise", "make_weights"]

LARGEST_REPAIR = 5e-3
"""How much of a row's probability `certify` moves at the very most before it refuses."""

SOLVER_NOISE = 2e-6
"""The error of single entries that `certify` takes for a solver's round-off."""


def certify(
    mechanism: MechanismLike,
    epsilon: Epsilon | None = None,
    *,
    target: ArrayLike | None = None,
    loss: Loss = "absolute",
    prior: Prior = None,
) -> CertifiedMechanism:
    """Integer weights for a matrix, proved private in exact arithmetic, with a certificate.

    The matrix is repaired (`tallyveil.repair`), rounded to integers that total 2^62 per row,
    and checked by the same code that `tallyveil.verify` runs. Outputs that no row reports
    stay unreported; every other output gets at least weight 1 in every row, which also mends
    the tails that underflow in doubles.

    **What is mended and what is refused.** Errors of up to 2e-6 in every entry are taken for a
    solver's round-off: they may move 2e-6 m (1 + 1/epsilon) of a row's probability, and at
    most 0.005. A matrix further from private than that is a mistake, not round-off, and
    raises a `CertificationError` that names its worst cell. Use `tallyveil.repair` first to
    mend it on purpose.

    Parameters
    ----------
    mechanism : Mechanism, Design or certified mechanism
        A matrix with the epsilon (and delta) it was made for.
    epsilon : number, optional
        Certify at this exact epsilon instead.
    target : array of float, shape (m,), optional
        Where moved mass goes if an output distribution is to be kept.
    loss, prior
        What the certificate's loss before and after is measured in.

    Returns
    -------
    CertifiedMechanism
        Guaranteed exactly: w[i, j] <= e^epsilon w[k, j] for all neighbours i, k and outputs
        j; or, with delta > 0, every hockey-stick sum is at most delta. Costs O(w n m) for a
        band of width w: about a second for 2001 answers.

    Examples
    --------
    >>> import tallyveil as tv
    >>> c = tv.certify(tv.geometric(tv.Query.count(1), epsilon=1.0))
    >>> c.exact_epsilon, round(c.certificate["achieved_epsilon"], 12)
    (Fraction(1, 1), 1.0)
    """
    mechanism = as_mechanism(mechanism)
    exact = mechanism.exact_epsilon if epsilon is None else exact_epsilon(epsilon)
    if exact is None:
        raise ArgumentError("epsilon", "be given, because the mechanism states none")
    query, delta = mechanism.query, mechanism.exact_delta
    weights, verdict = make_weights(mechanism, exact, target, loss, prior)
    drawn = Mechanism(weights / TOTAL, query, exact, delta=delta, name=mechanism.name)
    moved = mass_moved(mechanism.matrix, drawn.matrix)
    if moved > LARGEST_REPAIR:
        raise CertificationError(
            f"Certifying at epsilon {exact}, delta {delta} would move {moved:.3g} of a row's "
            f"probability; at most {LARGEST_REPAIR:g} is allowed. {_worst(mechanism)}"
        )
    before, after = mechanism.expected_loss(loss, prior), drawn.expected_loss(loss, prior)
    losses = Repair(drawn, moved, loss_name(loss), before, after)
    sha256 = document.weights_sha256(weights)
    written = count_characters(weights)
    require_few_comparisons(query.neighbours, query.shape[1], delta, written)
    claim = seal_claim(
        mechanism.name,
        verdict,
        query=query.to_dict(),
        neighbours=query.neighbours.to_dict(),
        shape=query.shape,
        kind="weights",
        sha256=sha256,
        loss=_describe_loss(losses),
    )
    return CertifiedMechanism(claim, query, weights)


def make_weights(
    mechanism: Mechanism,
    epsilon: Fraction,
    target: ArrayLike | None = None,
    loss: Loss = "absolute",
    prior: Prior = None,
) -> tuple[Integers, Verdict]:
    """Integer weights for a matrix, and the verdict that proves them private."""
    query, delta = mechanism.query, mechanism.exact_delta
    if delta:
        weights = approximate_weights(mechanism.matrix, query, epsilon, delta)
    else:
        mended = repair(mechanism, epsilon, target=target, loss=loss, prior=prior)
        _refuse_large_repair(mended, mechanism, epsilon, _largest_round_off(query, epsilon))
        weights = pure_weights(mended.mechanism.matrix, query, epsilon)
    verdict = check_weights(weights, query.neighbours, epsilon, delta)
    if not verdict.ok:
        raise CertificationError(verdict.reason)
    return weights, verdict


def certify_geometric(query: Query, epsilon: Epsilon) -> CertifiedGeometric:
    """The truncated geometric mechanism for any range, certified without a matrix.

    Two-sided geometric noise on all the whole numbers, whose integers are proved by
    finitely many comparisons (`tallyveil.proof.geometric_noise`), then a clamp to the range,
    which is post-processing. Memory is O(1/epsilon), at most a few megabytes, whatever
    the range.

    Parameters
    ----------
    query : Query
        Inputs must be consecutive outputs (a count, mean, maximum ... with ``categories=1``).
    epsilon : number
        The privacy loss, at least 1e-9. Where neighbours lie up to w steps apart the noise is
        made for epsilon / w.

    Returns
    -------
    CertifiedGeometric
        Verified.

    Examples
    --------
    >>> c = certify_geometric(Query.count(1_000_000), epsilon=1.0)
    >>> c.verify().ok, c.exact_epsilon
    (True, Fraction(1, 1))
    """
    require_query(query)
    exact = exact_epsilon(epsilon)
    n = query.shape[0]
    if query.step is None or not np.array_equal(query.home, query.home[0] + np.arange(n)):
        rule = "have consecutive outputs as inputs for geometric noise"
        raise QueryError("query", rule, repr(query), "Use certify on a matrix.")
    noise = GeometricNoise.of(exact / query.neighbours.width)
    claim = seal_claim(
        "geometric",
        _proved(exact),
        query=query.to_dict(),
        neighbours=query.neighbours.to_dict(),
        shape=query.shape,
        kind="geometric",
        sha256=document.digest(noise.to_dict()),
    )
    made = CertifiedGeometric(claim, query, noise)
    _require_verified(made)
    return made


def certify_noise(epsilon: Epsilon) -> CertifiedNoise:
    """Two-sided geometric noise for whole numbers of which one person moves one by one.

    Pr(k) is close to (1 - a)/(1 + a) a^|k| with a = e^-epsilon, on all the whole numbers.
    Adding it to every entry of a vector, one entry of which moves by one, is
    epsilon-private: a cumulative histogram, group totals, sums of disjoint cells.

    Parameters
    ----------
    epsilon : number
        The privacy loss, at least 1e-9.

    Returns
    -------
    CertifiedNoise
        The noise with its certificate, verified.

    Examples
    --------
    >>> certify_noise("1/2").exact_epsilon
    Fraction(1, 2)
    """
    exact = exact_epsilon(epsilon)
    noise = GeometricNoise.of(exact)
    claim = seal_claim(
        "geometric noise",
        _proved(exact),
        query=document.INTEGERS,
        neighbours=document.ONE_STEP,
        shape=(),
        kind="noise",
        sha256=document.digest(noise.to_dict()),
    )
    made = CertifiedNoise(claim, noise)
    _require_verified(made)
    return made


def _proved(epsilon: Fraction) -> Verdict:
    return Verdict(True, epsilon, Fraction(0), float(epsilon), None, None, "")


def _require_verified(made: CertifiedGeometric | CertifiedNoise) -> None:
    verdict = made.verify()
    if not verdict.ok:
        raise CertificationError(verdict.reason)


def _describe_loss(losses: Repair) -> dict[str, Any]:
    return {
        "name": losses.loss,
        "before": losses.loss_before,
        "after": losses.loss_after,
        "mass_moved": losses.mass_moved,
    }


def _largest_round_off(query: Query, epsilon: Fraction) -> float:
    """What round-off in every one of m entries can make it necessary to move.

    Rows must be brought level, and at a small epsilon level rows need 1/epsilon as much.
    """
    return min(LARGEST_REPAIR, SOLVER_NOISE * query.shape[1] * float(1 + 1 / epsilon))


def _refuse_large_repair(
    mended: Repair, mechanism: Mechanism, epsilon: Fraction, allowed: float
) -> None:
    if mended.mass_moved > allowed:
        raise CertificationError(
            f"Not private at epsilon {epsilon}: repairing it would move {mended.mass_moved:.3g} "
            f"of a row's probability; at most {allowed:.2g} is taken for round-off. "
            f"{_worst(mechanism)} Use tv.repair to mend it on purpose."
        )


def _worst(mechanism: Mechanism) -> str:
    worst = mechanism.worst_pair()
    first = mechanism.matrix[worst.likelier, worst.output]
    second = mechanism.matrix[worst.rarer, worst.output]
    return (
        f"Worst cell: output {worst.output}, inputs {worst.likelier} and {worst.rarer}, "
        f"probabilities {first:.6g} and {second:.6g} (epsilon {worst.epsilon:.6g})."
    )
