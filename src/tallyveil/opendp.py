"""Certified mechanisms as OpenDP measurements, and the privacy maps of OpenDP's own.

Needs the extra ``tallyveil[opendp]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tallyveil.certified.base import Certified
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedNoise
from tallyveil.errors import ArgumentError, MissingExtraError, describe_kind
from tallyveil.exact import Epsilon, exact_delta, exp_upper
from tallyveil.query import Query

if TYPE_CHECKING:
    from opendp.mod import Measurement

__all__ = ["PrivacyClaim", "as_measurement", "read_privacy_map"]


@dataclass(frozen=True)
class PrivacyClaim:
    """The claim of a privacy map: (`epsilon`, `delta`)-privacy, in exact numbers."""

    epsilon: Fraction
    delta: Fraction


def as_measurement(certified: Certified, *, vector: bool = False) -> Measurement:
    """Turn a certified mechanism into an OpenDP measurement with its privacy map.

    It draws what `certified.release` draws, exactly and with fresh randomness. Counts outside the
    query's range are clamped to it first, which brings no two counts further apart. Counts at
    distance d are h neighbours apart, and the map is (h epsilon, delta (1 + e^epsilon + ... +
    e^((h - 1) epsilon))), rounded up.

    Parameters
    ----------
    certified : CertifiedMechanism, CertifiedGeometric or CertifiedNoise
        What `tv.certify`, `tv.certify_geometric`, `tv.certify_noise` or `tv.load` gave, for a
        query whose true answers are consecutive whole numbers.
    vector : bool
        Whether it takes a list of counts, at an L1 distance, instead of one.

    Returns
    -------
    opendp.mod.Measurement
        From ``AtomDomain(i32)`` and ``AbsoluteDistance(i32)``, or their vectors, to
        ``MaxDivergence``; to ``Approximate(MaxDivergence)`` where delta is not 0. OpenDP's
        compositors keep its budget, not a Tallyveil ledger.

    Examples
    --------
    >>> import tallyveil as tv
    >>> noise = as_measurement(tv.certify_noise(epsilon="1/2"))
    >>> noise.map(3)
    1.5
    """
    dp = _import_opendp()
    query = _read_query(certified)
    count_hops = _hops_on_grid(query) if query is not None and not vector else int
    pure = certified.exact_delta == 0

    def privacy_map(distance: int) -> Any:
        if distance < 0:
            raise ArgumentError("distance", "be at least 0", distance)
        hops = count_hops(distance)
        epsilon = _round_up(hops * certified.exact_epsilon)
        return epsilon if pure else (epsilon, _round_up(min(Fraction(1), _add_deltas(hops))))

    def _add_deltas(hops: int) -> Fraction:
        grow = exp_upper(certified.exact_epsilon)
        return sum((certified.exact_delta * grow**step for step in range(hops)), Fraction(0))

    def release(count: Any) -> Any:
        counts = np.asarray(count, dtype=np.int64)
        if query is not None:
            counts = np.clip(counts, query.inputs[0], query.inputs[-1])
        drawn = certified.release(counts if vector else int(counts))
        return drawn.tolist() if vector else drawn

    domain, metric = dp.atom_domain(T="i32"), dp.absolute_distance(T="i32")
    is_whole = query is None or np.issubdtype(query.outputs.dtype, np.integer)
    released = "i64" if is_whole else "f64"
    if vector:
        domain, metric = dp.vector_domain(domain), dp.l1_distance("i32")
        released = f"Vec<{released}>"
    measure = dp.max_divergence()
    with _allow_features(dp, "contrib", "honest-but-curious"):
        measurement: Measurement = dp.m.make_user_measurement(
            domain,
            metric,
            output_measure=measure if pure else dp.approximate(measure),
            function=release,
            privacy_map=privacy_map,
            TO=released,
        )
    return measurement


def read_privacy_map(
    measurement: Any, distance: Any = 1, delta: Epsilon | None = None
) -> PrivacyClaim:
    """Read the claim of an OpenDP measurement for inputs at `distance`.

    Parameters
    ----------
    measurement : opendp.mod.Measurement
        Any measurement that is pure, approximate, zero-concentrated or has a privacy profile.
    distance : int or float
        The distance of neighbouring inputs, in the measurement's own metric.
    delta : exact number, optional
        The delta to ask for where the measurement has an epsilon for every delta.

    Returns
    -------
    PrivacyClaim
        The doubles of the map as exact rationals, so that a ledger debits no less than is
        claimed. It is a claim: nothing was proved here.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> claim = read_privacy_map(dp.m.make_laplace(*space, scale=2.0), distance=3)
    >>> claim.epsilon, claim.delta
    (Fraction(3, 2), Fraction(0, 1))
    """
    dp = _import_opendp()
    if not isinstance(measurement, dp.Measurement):
        rule = "be an OpenDP measurement"
        raise ArgumentError("measurement", rule, got=describe_kind(measurement))
    kind = str(measurement.output_measure)
    if kind == "ZeroConcentratedDivergence":
        with _allow_features(dp, "contrib"):
            measurement = dp.c.make_zCDP_to_approxDP(measurement)
    claimed = measurement.map(distance)
    if isinstance(claimed, float):
        claimed = claimed, 0.0
    if hasattr(claimed, "epsilon"):
        if delta is None:
            raise ArgumentError("delta", f"be given for a measurement in {kind}")
        slack = float(exact_delta(delta))
        claimed = claimed.epsilon(slack), slack
    if not isinstance(claimed, tuple) or not all(map(math.isfinite, claimed)):
        raise ArgumentError("measurement", "claim a finite epsilon and delta", got=kind)
    return PrivacyClaim(Fraction(claimed[0]), Fraction(claimed[1]))


def _read_query(certified: Certified) -> Query | None:
    """Return the query of `certified`, None for noise on all whole numbers."""
    if isinstance(certified, CertifiedNoise):
        return None
    if not isinstance(certified, CertifiedAnswers):
        rule = "be a certified mechanism or certified noise"
        hint = "Make one with tv.certify(mechanism)."
        raise ArgumentError("certified", rule, hint=hint, got=describe_kind(certified))
    query, neighbours = certified.query, certified.query.neighbours
    is_whole = np.issubdtype(query.inputs.dtype, np.integer) and (np.diff(query.inputs) == 1).all()
    if not is_whole or (neighbours.kind == "explicit" and not neighbours.is_path):
        rule = "answer a query whose true answers are consecutive whole numbers, with neighbours "
        rule += "by distance"
        raise ArgumentError("certified", rule, got=repr(query))
    return query


def _hops_on_grid(query: Query) -> Callable[[int], int]:
    """Return the function from a distance to the most neighbour steps it can take."""
    width, furthest = query.neighbours.width, len(query.inputs) - 1
    return lambda distance: -(-min(distance, furthest) // width)


def _round_up(value: Fraction) -> float:
    """Return the smallest double that is not below `value`."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


@contextmanager
def _allow_features(dp: Any, *features: str) -> Iterator[None]:
    """Enable OpenDP's `features` inside the block: here the guarantee is proved."""
    from opendp.mod import GLOBAL_FEATURES

    added = set(features) - GLOBAL_FEATURES
    dp.enable_features(*added)
    try:
        yield
    finally:
        dp.disable_features(*added)


def _import_opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError as missing:
        raise MissingExtraError("opendp", "opendp") from missing
    return dp
