"""Kohli and Laskowski (2026), section 6: the simulation behind Figures 5 and 6.

Every cell averages repetitions of the whole release. The count errors of a repetition are
expectations over stage two (exact sums); the distribution errors need the draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from reproduction.data import draw_binomial
from reproduction.experiment import Context, standard_error
from reproduction.kohli.distributions import load_datasets
from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify
from tallyveil.evaluate import (
    count_errors,
    kolmogorov_smirnov,
    total_variation,
    wasserstein,
)
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.additive import discrete_gaussian, staircase
from tallyveil.mechanisms.geometric import geometric
from tallyveil.mechanisms.transport import transport
from tallyveil.papers.kohli.greedy import greedy_fixed_point, unfixed_optimum
from tallyveil.papers.kohli.pipeline import split_budget
from tallyveil.papers.kohli.privatizers import PRIVATIZERS, distribution_of_counts
from tallyveil.publish.privatize import privatize
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate

__all__ = [
    "EPSILONS",
    "METRICS",
    "Cells",
    "Errors",
    "measure_release",
    "measure_table_spread",
    "release_two_stage",
    "simulate",
]

Build: TypeAlias = Callable[[Floats, Fraction], Mechanism]

EPSILONS = (0.1, 0.15, 0.22, 0.32, 0.48, 0.71, 1.05, 1.55, 2.29, 3.38, 5.0)
"""The 11 budgets as the paper prints them."""

GRID = dict(zip(EPSILONS, np.geomspace(0.1, 5, len(EPSILONS)).round(4).tolist(), strict=True))
"""The same before rounding, evenly spaced on a logarithmic scale (errata, Kohli 17)."""
BEST = "fixed-point optimum (transport)"
OURS = "combined, ranks matched (ours)"
UNFIXED, UNFIXED_SQUARED = "two-stage unfixed", "two-stage unfixed, squared error"
GEOMETRIC = "truncated geometric"
HEURISTICS = ("heuristic, sandwich", "heuristic, max", "heuristic, min")
TWO_STAGE: dict[str, Build] = {
    "heuristic, sandwich": lambda z, e: greedy_fixed_point(z, e, "sandwich"),
    "heuristic, max": lambda z, e: greedy_fixed_point(z, e, "max"),
    "heuristic, min": lambda z, e: greedy_fixed_point(z, e, "min"),
    BEST: lambda z, e: transport(Query.count(len(z) - 1), e, z),
    UNFIXED: unfixed_optimum,
    UNFIXED_SQUARED: lambda z, e: unfixed_optimum(z, e, "squared"),
}
ONE_STAGE = (GEOMETRIC, "staircase", "discrete Gaussian")


METRICS = ("W1", "KS", "TV", "absolute", "squared")
"""Distance of the distributions in three ways, mean absolute and mean squared count error."""

PRINTED = {("binomial", 0.48), ("crime", 0.1), ("crime", 0.48), ("crime", 1.0), ("crime", 1.05)}
"""The cells of which the paper prints values; they are repeated more often."""


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of every repetition of one cell, shape (repetitions, metrics)."""

    runs: Floats

    def mean(self, metric: str) -> float:
        """The mean over the repetitions."""
        return float(self.runs[:, METRICS.index(metric)].mean())

    def error(self, metric: str) -> float:
        """The standard error of that mean."""
        return standard_error(self.runs[:, METRICS.index(metric)])

    def exceeds(self, other: Errors, metric: str) -> float:
        """By how many standard errors of the difference this mean lies above the other one.

        Repetition by repetition, since both were made from the same private distribution.
        """
        k = METRICS.index(metric)
        apart = self.runs[:, k] - other.runs[:, k]
        return float(apart.mean()) / max(standard_error(apart), 1e-300)


def measure_release(
    table: Integers, truth: Floats, mechanism: Mechanism, entropy: Entropy
) -> tuple[float, ...]:
    """Measure one release of `table` in all `METRICS`."""
    drawn = certify(mechanism).release(table, entropy)
    share = np.bincount(drawn, minlength=len(truth)) / len(table)
    return (
        *_measure_distances(truth, share),
        mechanism.expected_loss("absolute", truth),
        mechanism.expected_loss("squared", truth),
    )


def _measure_distances(truth: Floats, share: Floats) -> tuple[float, float, float]:
    return (
        wasserstein(truth, share),
        kolmogorov_smirnov(truth, share),
        total_variation(truth, share),
    )


def release_two_stage(
    table: Integers,
    truth: Floats,
    epsilon: float,
    source: Entropy,
    *,
    privatizer: str,
    builders: dict[str, Build],
) -> dict[str, tuple[float, ...]]:
    """Run the pipeline once with any privatizer, all builders on its private distribution."""
    budget = split_budget(epsilon, "paper")
    histogram = np.bincount(table, minlength=len(truth))
    private = PRIVATIZERS[privatizer](histogram, budget.epsilon1, source).distribution("clip")
    return {
        name: measure_release(table, truth, build(private, budget.epsilon2), source)
        for name, build in builders.items()
    }


def measure_table_spread(size: int = 10_000, tables: int = 20) -> float:
    """Measure how far W1 of two-stage unfixed varies between tables of binomial draws, at 0.48.

    The paper's draws are not ours. For each of some tables: W1 between its distribution and the
    expected released one, without the noise of either stage; the standard deviation of those.
    """
    found = []
    for seed in range(tables):
        truth = distribution_of_counts(draw_binomial(20, size, seed), 20)
        mechanism = unfixed_optimum(truth, split_budget(GRID[0.48], "paper").epsilon2)
        found.append(wasserstein(truth, truth @ mechanism.matrix))
    return float(np.std(found, ddof=1))


def _build_one_stage(truth: Floats, records: int, epsilon: float) -> dict[str, Mechanism]:
    query = Query.count(len(truth) - 1)
    return {
        GEOMETRIC: geometric(query, epsilon),
        "staircase": staircase(query, epsilon),
        "discrete Gaussian": discrete_gaussian(query, epsilon, Fraction(1, records + 1)),
    }


def _release_ours(
    table: Integers, truth: Floats, epsilon: float, source: Entropy
) -> tuple[float, ...]:
    """Release the table once with `tallyveil.privatize`, measured in all `METRICS`."""
    done = privatize(
        table, upper=len(truth) - 1, epsilon=epsilon, method="preserve", entropy=source
    )
    errors = count_errors(table, done.table)
    return (*_measure_distances(truth, done.distribution), errors.absolute, errors.squared)


Cells: TypeAlias = dict[tuple[str, float, str], Errors]
_kept: dict[tuple[object, ...], tuple[Cells, dict[str, bool], str]] = {}


def simulate(context: Context) -> tuple[Cells, dict[str, bool], str]:
    """Simulate all cells of Figures 5 and 6; cached, because both figures need them.

    Cells are named by the printed budgets and simulated at those of `GRID`.
    """
    key = (context.quick, context.data, context.seed)
    if key in _kept:
        return _kept[key]
    epsilons = (0.1, 0.48, 1.0, 1.05) if context.quick else (*EPSILONS, 1.0)
    tables = load_datasets(context)
    cells: Cells = {}
    for name, label in [(d, e) for d in tables for e in epsilons]:
        sample, top = tables[name]
        epsilon = GRID.get(label, label)
        table, truth = sample.values, distribution_of_counts(sample.values, top)
        source = SeededNotPrivate(context.seed)
        times = 4 if context.quick else 100 if (name, label) in PRINTED else 20
        found: dict[str, list[tuple[float, ...]]] = {}
        alone = _build_one_stage(truth, len(table), epsilon)
        for _ in range(times):
            both = release_two_stage(
                table, truth, epsilon, source, privatizer="cyclic_laplace", builders=TWO_STAGE
            )
            both |= {k: measure_release(table, truth, m, source) for k, m in alone.items()}
            both[OURS] = _release_ours(table, truth, epsilon, source)
            for method, errors in both.items():
                found.setdefault(method, []).append(errors)
        cells |= {(name, label, method): Errors(np.array(runs)) for method, runs in found.items()}
    real = {name: sample.real for name, (sample, _) in tables.items()}
    described = "; ".join(sample.label for sample, _ in tables.values())
    _kept[key] = cells, real, described
    return _kept[key]
