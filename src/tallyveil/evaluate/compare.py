"""Compare mechanisms: their losses, their privacy and their properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tallyveil.errors import ArgumentError, describe_kind
from tallyveil.evaluate.comparison import Comparison, Row
from tallyveil.loss import Loss, loss_name
from tallyveil.matrix import check_confidence
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.prior import Prior, resolve_prior

__all__ = ["compare"]

Candidates: TypeAlias = Mapping[str, MechanismLike] | Iterable[MechanismLike] | MechanismLike


def compare(
    mechanisms: Candidates,
    losses: Mapping[str, Loss] | Iterable[Loss] | Loss = ("absolute",),
    priors: Mapping[str, Prior] | Iterable[Prior] | None = None,
    *,
    confidence: float = 0.95,
) -> Comparison:
    """Compare mechanisms for the same question under several losses and priors.

    All figures are exact up to the rounding of doubles: nothing is sampled. Costs O(n m) per
    row, and O(n^2 m) for the best response.

    Parameters
    ----------
    mechanisms : Mechanism, Design or certified mechanism, or several of them
        A mapping gives them names, else their own are used.
    losses : loss, iterable of losses or mapping
        As for `tallyveil.design`; a mapping gives them names.
    priors : iterable of priors, mapping or None
        Distributions on the true answers; a mapping gives them names. None is the uniform
        one alone.
    confidence : float
        The level of the intervals whose width is reported, strictly between 0 and 1.

    Returns
    -------
    Comparison
        A row for every mechanism, loss and prior.

    Examples
    --------
    >>> from tallyveil.mechanisms.geometric import geometric
    >>> from tallyveil.mechanisms.exponential import uniform
    >>> from tallyveil.query import Query
    >>> q = Query.count(4)
    >>> c = compare([geometric(q, 1.0), uniform(q, 1.0)], ["absolute", "zero_one"])
    >>> [(row.mechanism, row.loss, round(row.expected_loss, 3)) for row in c.rows]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('geometric', 'absolute', 0.584), ('geometric', 'zero_one', 0.43),
     ('uniform', 'absolute', 1.6), ('uniform', 'zero_one', 0.8)]
    """
    check_confidence(confidence)
    families, chosen = _name_mechanisms(mechanisms)
    names = _make_distinct(families, [mechanism.epsilon for mechanism in chosen])
    given = _name_losses(losses)
    named_priors = _name_priors(priors, len(chosen[0].query.inputs))
    rows = tuple(
        _make_row((name, family), mechanism, loss, prior, confidence)
        for name, family, mechanism in zip(names, families, chosen, strict=True)
        for loss in given
        for prior in named_priors
    )
    return Comparison(rows, tuple(chosen), tuple(names), given, confidence)


def _make_row(
    names: tuple[str, str],
    mechanism: Mechanism,
    loss: tuple[str, Loss],
    prior: tuple[str, Prior],
    confidence: float,
) -> Row:
    bias = mechanism.bias()
    largest = np.abs(bias).max() * (1 - 1e-9)  # the first of equals, whatever the rounding
    weights = resolve_prior(prior[1], len(bias))
    width = np.diff(mechanism.interval(confidence), axis=1)[:, 0]
    is_table = not (isinstance(loss[1], (str, tuple)) or callable(loss[1]))
    answerable = mechanism.query.is_square or not is_table
    return Row(
        *names,
        loss[0],
        prior[0],
        mechanism.expected_loss(loss[1], prior[1]),
        mechanism.worst_loss(loss[1]),
        mechanism.bayes_loss(loss[1], prior[1]) if answerable else float("nan"),
        float(bias[np.argmax(np.abs(bias) >= largest)]),
        mechanism.error_probability(prior[1]),
        float(weights @ width),
        mechanism.epsilon,
        mechanism.realised_epsilon(),
        tuple(known for known, holds in mechanism.properties().items() if holds),
    )


def _name_losses(
    losses: Mapping[str, Loss] | Iterable[Loss] | Loss,
) -> tuple[tuple[str, Loss], ...]:
    if isinstance(losses, Mapping):
        given = tuple(losses.items())
    else:
        one = isinstance(losses, str) or callable(losses)
        if isinstance(losses, tuple) and len(losses) == 2:
            one = isinstance(losses[1], (int, float))  # such as ("beyond", 2)
        listed: list[Any] = [losses] if one else _list(losses, "losses")
        given = tuple((loss_name(loss), loss) for loss in listed)
    if not given:
        raise ArgumentError("losses", "hold at least one loss", got="nothing")
    return given


def _list(given: Any, argument: str) -> list[Any]:
    """The members of `given`, or an `ArgumentError` if it is no list of anything."""
    try:
        return list(given)
    except TypeError:
        got = describe_kind(given)
        raise ArgumentError(argument, "be a list or a mapping", got=got) from None


def _name_mechanisms(mechanisms: Candidates) -> tuple[list[str], list[Mechanism]]:
    """The candidates and their names; all of them answer for the same true answers."""
    if isinstance(mechanisms, Mapping):
        names = [str(name) for name in mechanisms]
        chosen = [as_mechanism(one, "mechanisms") for one in mechanisms.values()]
    else:
        one = isinstance(mechanisms, (Mechanism, str)) or hasattr(mechanisms, "mechanism")
        listed: list[Any] = [mechanisms] if one else _list(mechanisms, "mechanisms")
        chosen = [as_mechanism(candidate, "mechanisms") for candidate in listed]
        names = [candidate.name for candidate in chosen]
    if not chosen:
        raise ArgumentError("mechanisms", "hold at least one mechanism", got="nothing")
    for candidate in chosen:
        if not np.array_equal(candidate.query.inputs, chosen[0].query.inputs):
            got = repr(candidate.query)
            raise ArgumentError("mechanisms", "have the same true answers", got=got)
    return names, chosen


def _make_distinct(names: Sequence[str], epsilons: Sequence[float | None]) -> list[str]:
    """The names; repeated ones get their epsilon, and a number if that is not enough."""
    labelled = [
        f"{name}, ε = {epsilon:g}" if names.count(name) > 1 and epsilon is not None else name
        for name, epsilon in zip(names, epsilons, strict=True)
    ]
    return [
        f"{name} ({labelled[: at + 1].count(name)})" if labelled[:at].count(name) else name
        for at, name in enumerate(labelled)
    ]


def _name_priors(
    priors: Mapping[str, Prior] | Iterable[Prior] | None, size: int
) -> list[tuple[str, Prior]]:
    if priors is None:
        return [("uniform", None)]
    if isinstance(priors, Mapping):
        return list(priors.items())
    named: list[tuple[str, Prior]] = []
    for at, prior in enumerate(_list(priors, "priors"), start=1):
        resolve_prior(prior, size)
        named.append((_prior_name(prior, at), prior))
    if not named:
        raise ArgumentError("priors", "hold at least one prior", got="nothing")
    return named


def _prior_name(prior: Prior, at: int) -> str:
    if prior is None:
        return "uniform"
    if isinstance(prior, str):
        return prior
    if isinstance(prior, tuple) and isinstance(prior[0], str):
        return " ".join(str(part) for part in prior)
    return f"prior {at}"
