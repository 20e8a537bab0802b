"""Kohli and Laskowski (2026), section 6: the simulation behind Figures 5 and 6.

Every cell averages repetitions of the whole release. The count error of a repetition is the
expectation over stage two (an exact sum); the distribution error needs the draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify
from tallyveil.evaluate.distances import wasserstein
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.additive import discrete_gaussian, staircase
from tallyveil.mechanisms.geometric import geometric
from tallyveil.mechanisms.transport import transport
from tallyveil.papers.harness.experiment import (
    Context,
)
from tallyveil.papers.kohli.budget import split_budget
from tallyveil.papers.kohli.experiments.distributions import load_datasets
from tallyveil.papers.kohli.greedy import greedy_fixed_point
from tallyveil.papers.kohli.histogram import distribution_of_counts
from tallyveil.papers.kohli.privatizers import cyclic_laplace
from tallyveil.papers.kohli.unfixed import unfixed_optimum
from tallyveil.publish.privatize import privatize
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate

__all__ = ["EPSILONS", "Cells", "Errors", "measure_release", "simulate"]

Build: TypeAlias = Callable[[Floats, Fraction], Mechanism]

EPSILONS = (0.1, 0.15, 0.22, 0.32, 0.48, 0.71, 1.05, 1.55, 2.29, 3.38, 5.0)
BEST = "fixed-point optimum (transport)"
OURS = "combined, ranks matched (ours)"
UNFIXED, GEOMETRIC = "two-stage unfixed", "truncated geometric"
HEURISTICS = ("heuristic, sandwich", "heuristic, max", "heuristic, min")
TWO_STAGE: dict[str, Build] = {
    "heuristic, sandwich": lambda z, e: greedy_fixed_point(z, e, "sandwich"),
    "heuristic, max": lambda z, e: greedy_fixed_point(z, e, "max"),
    "heuristic, min": lambda z, e: greedy_fixed_point(z, e, "min"),
    BEST: lambda z, e: transport(Query.count(len(z) - 1), e, z),
    UNFIXED: unfixed_optimum,
}
ONE_STAGE = (GEOMETRIC, "staircase", "discrete Gaussian")


@dataclass(frozen=True)
class Errors:
    """Means over repetitions, with standard errors: of the distribution and of the counts."""

    distribution: float
    distribution_se: float
    counts: float
    counts_se: float

    @classmethod
    def of(cls, pairs: list[tuple[float, float]]) -> Errors:
        """Average (W1, mean absolute error) over every repetition."""
        table = np.array(pairs)
        spread = table.std(axis=0) / np.sqrt(max(len(pairs) - 1, 1))
        mean = table.mean(axis=0)
        return cls(float(mean[0]), float(spread[0]), float(mean[1]), float(spread[1]))


def measure_release(
    table: Integers, truth: Floats, mechanism: Mechanism, entropy: Entropy
) -> tuple[float, float]:
    """Measure W1 of one release of `table`, and the expected absolute error of its counts."""
    drawn = certify(mechanism).release(table, entropy)
    share = np.bincount(drawn, minlength=len(truth)) / len(table)
    return wasserstein(truth, share), mechanism.expected_loss("absolute", truth)


def _release_two_stage(
    table: Integers, truth: Floats, epsilon: float, source: Entropy
) -> dict[str, tuple[float, float]]:
    """Run the paper's pipeline once, every constructor on the same private distribution."""
    budget = split_budget(epsilon, "paper")
    histogram = np.bincount(table, minlength=len(truth))
    private = cyclic_laplace(histogram, budget.epsilon1, source).distribution("clip")
    return {
        name: measure_release(table, truth, build(private, budget.epsilon2), source)
        for name, build in TWO_STAGE.items()
    }


def _build_one_stage(truth: Floats, records: int, epsilon: float) -> dict[str, Mechanism]:
    query = Query.count(len(truth) - 1)
    return {
        GEOMETRIC: geometric(query, epsilon),
        "staircase": staircase(query, epsilon),
        "discrete Gaussian": discrete_gaussian(query, epsilon, Fraction(1, records + 1)),
    }


def _release_ours(
    table: Integers, truth: Floats, epsilon: float, source: Entropy
) -> tuple[float, float]:
    """Release the table once with `tallyveil.privatize`; W1 and mean absolute error."""
    done = privatize(
        table, upper=len(truth) - 1, epsilon=epsilon, method="preserve", entropy=source
    )
    return wasserstein(truth, done.distribution), float(np.abs(done.table - table).mean())


Cells: TypeAlias = dict[tuple[str, float, str], Errors]
_kept: dict[tuple[object, ...], tuple[Cells, dict[str, bool], str]] = {}


def simulate(context: Context) -> tuple[Cells, dict[str, bool], str]:
    """Simulate all cells of Figures 5 and 6; cached, because both figures need them."""
    key = (context.quick, context.data, context.seed)
    if key in _kept:
        return _kept[key]
    epsilons = (0.1, 0.48, 1.0, 1.05) if context.quick else (*EPSILONS, 1.0)
    times = 4 if context.quick else 20
    tables = load_datasets(context)
    cells: Cells = {}
    for name, epsilon in context.track([(d, e) for d in tables for e in epsilons]):
        sample, top = tables[name]
        table, truth = sample.values, distribution_of_counts(sample.values, top)
        source = SeededNotPrivate(context.seed)
        found: dict[str, list[tuple[float, float]]] = {}
        alone = _build_one_stage(truth, len(table), epsilon)
        for _ in range(times):
            both = _release_two_stage(table, truth, epsilon, source)
            both |= {k: measure_release(table, truth, m, source) for k, m in alone.items()}
            both[OURS] = _release_ours(table, truth, epsilon, source)
            for method, errors in both.items():
                found.setdefault(method, []).append(errors)
        cells |= {(name, epsilon, method): Errors.of(pairs) for method, pairs in found.items()}
    real = {name: sample.real for name, (sample, _) in tables.items()}
    label = "; ".join(sample.label for sample, _ in tables.values())
    _kept[key] = cells, real, label
    return _kept[key]
