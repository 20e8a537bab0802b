"""Six small experiments, each by the library's own functions on public or invented numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.budget.composition import compose, share_epsilon
from tallyveil.certified.certify import certify
from tallyveil.certified.ladder import Ladder
from tallyveil.documents.promise import promise
from tallyveil.evaluate import audit_mechanism, wasserstein
from tallyveil.exact import exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import design
from tallyveil.publish.demo_table import counts_of, demo_csv
from tallyveil.query import Query
from tallyveil.request.unit import PrivacyUnit
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.work_check import describe_matrix
from tallyveil.studio.workers import Say

__all__ = ["LESSONS", "learn"]

UPPER = 20
ROUGH = 1e-3
"""Probabilities below this the lesson rounds to 0, as a few printed digits would."""

Answer = dict[str, Any]


def learn(say: Say, *, lesson: str, epsilon: str, at: int) -> Answer:
    """What one of the six pages shows for these sliders."""
    if lesson not in LESSONS:
        raise RefusedError(404, "There is no such page.")
    return LESSONS[lesson](exact_epsilon(epsilon), at)


def _one_person(epsilon: Fraction, at: int) -> Answer:
    """The releases of two tables that differ by one person: how alike they are."""
    made = geometric(Query.count(UPPER), epsilon).matrix
    count = min(max(at, 0), UPPER - 1)
    factor = math.exp(epsilon)
    return {
        "without": made[count].tolist(),
        "with": made[count + 1].tolist(),
        "factor": factor,
        "certain": factor / (1 + factor),
        "promise": promise(epsilon, PrivacyUnit()),
    }


def _clamped(epsilon: Fraction, at: int) -> Answer:
    """The bias of noise that is cut off at the ends of the range, and of a fair mechanism."""
    made = geometric(Query.count(UPPER), epsilon)
    count = min(max(at, 0), UPPER)
    return {
        "chances": made.matrix[count].tolist(),
        "bias": made.bias().tolist(),
        "here": float(made.bias()[count]),
        "mean": float(made.bias()[count] + count),
    }


def _solver(epsilon: Fraction, at: int) -> Answer:
    """A matrix as solvers leave it, with zeros beside positives, and the one that was repaired."""
    size = 8
    best = design(Query.count(size), epsilon, loss="absolute", properties="fair", method="lp")
    rough = np.where(best.mechanism.matrix < ROUGH, 0.0, best.mechanism.matrix)
    rough = rough / rough.sum(axis=1, keepdims=True)
    loose = Mechanism(rough, Query.count(size), epsilon, name="a solver's")
    audit = audit_mechanism(loose)
    proved = certify(best.mechanism)
    return {
        "rough": describe_matrix(loose),
        "realised": audit.realised_epsilon if math.isfinite(audit.realised_epsilon) else None,
        "worst": audit.worst,
        "claimed": float(epsilon),
        "proved": float(proved.certificate["achieved_epsilon"]),
        "zeros": int((rough == 0).sum()),
    }


def _distribution(epsilon: Fraction, at: int) -> Answer:
    """An invented table's histogram, with plain noise and with the distribution kept."""
    from tallyveil.publish.privatize import privatize

    counts = np.minimum(counts_of(demo_csv()), UPPER)
    before = np.bincount(counts, minlength=UPPER + 1)
    answer: Answer = {"before": before.tolist()}
    for method in ("geometric", "preserve"):
        made = privatize(counts, upper=UPPER, epsilon=epsilon, method=method)
        after = np.bincount(np.asarray(made.table), minlength=UPPER + 1)
        answer[method] = after.tolist()
        shares = (before / before.sum(), after / after.sum())
        answer[f"{method}_distance"] = float(wasserstein(*shares))
    return answer


def _levels(epsilon: Fraction, at: int) -> Answer:
    """Two levels of one table: what readers of both learn together."""
    far = epsilon / 2
    ladder = Ladder(Query.count(UPPER), [epsilon, far])
    held = ladder.verify_coalitions()
    count = min(max(at, 0), UPPER)
    query = Query.count(UPPER)
    return {
        "near": geometric(query, epsilon).matrix[count].tolist(),
        "far": geometric(query, far).matrix[count].tolist(),
        "epsilons": [float(epsilon), float(far)],
        "together": float(epsilon),
        "apart": float(epsilon + far),
        "holds": all(held.values()),
    }


def _composition(epsilon: Fraction, at: int) -> Answer:
    """What many releases cost together: added up, and composed exactly at a small delta."""
    most, delta = 40, Fraction(1, 10**6)
    times = min(max(at, 1), most)
    several = [1, 2, 5, 10, 20, 30, 40]
    exact = [float(compose([epsilon] * n).epsilon(delta)) for n in several]
    return {
        "times": several,
        "added": [float(epsilon * n) for n in several],
        "exact": exact,
        "here": float(epsilon * times),
        "here_exact": float(compose([epsilon] * times).epsilon(delta)),
        "share": float(share_epsilon(times, Fraction(1), delta)),
        "chosen": times,
    }


LESSONS: Mapping[str, Callable[[Fraction, int], Answer]] = {
    "epsilon": _one_person,
    "bias": _clamped,
    "solvers": _solver,
    "distribution": _distribution,
    "levels": _levels,
    "composition": _composition,
}
