"""What a matrix of doubles gives in truth: an audit, where only a certificate is a proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import MechanismLike, as_mechanism

__all__ = ["Audit", "audit_mechanism"]

AUDIT_SLACK = 1e-9
"""By how much, relatively, a realised epsilon may exceed the claimed one: decimals are rounded."""


@dataclass(frozen=True)
class Audit:
    """How private a matrix is, measured in floating point.

    Attributes
    ----------
    private : bool
        Whether the realised epsilon is finite and at most the claimed one.
    epsilon : Fraction or None
        The epsilon that was claimed or asked for.
    realised_epsilon : float
        ln of the largest ratio between neighbours; infinite where a zero stands beside a
        positive probability.
    delta : float or None
        The smallest delta that goes with the claimed epsilon, if one was claimed.
    worst : str
        The cell that tells two neighbours apart best, in words.
    properties : dict of str to bool
        The named properties.
    """

    private: bool
    epsilon: Fraction | None
    realised_epsilon: float
    delta: float | None
    worst: str
    properties: dict[str, bool]


def audit_mechanism(mechanism: MechanismLike, epsilon: Epsilon | None = None) -> Audit:
    """Measure a mechanism against the epsilon it claims, or against `epsilon`."""
    matrix = as_mechanism(mechanism)
    wanted = matrix.exact_epsilon if epsilon is None else exact_epsilon(epsilon)
    realised = float(matrix.realised_epsilon())
    limit = math.inf if wanted is None else float(wanted) * (1 + AUDIT_SLACK)
    found = matrix.worst_pair()
    inputs, outputs = matrix.query.inputs, matrix.query.outputs
    first = matrix.matrix[found.likelier, found.output]
    second = matrix.matrix[found.rarer, found.output]
    worst = (
        f"released {outputs[found.output]}: true {inputs[found.likelier]} has {first:.6g}, "
        f"true {inputs[found.rarer]} has {second:.6g}"
    )
    private = math.isfinite(realised) and realised <= limit
    delta = None if wanted is None else float(matrix.privacy_profile([float(wanted)])[0])
    return Audit(private, wanted, realised, delta, worst, matrix.properties())
