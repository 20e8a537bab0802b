"""Kohli and Laskowski (2026), section 6: errors of whole releases (Figures 5 and 6).

Every cell averages repetitions of the release. The count errors of a repetition are expectations
over stage two (exact sums); the distribution errors need the draws. The paper does not say how
many simulations it averaged. A printed value is therefore compared within four standard errors of
ours, and its rounding; its own error is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np

from reproduction import check
from reproduction.check import STANDARD_ERRORS, Finding, standard_error
from reproduction.data import draw_binomial
from reproduction.experiment import Context, Result, draw_values, experiment, plot, plot_values
from reproduction.kohli_distributions import load_datasets
from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify
from tallyveil.evaluate import count_errors, kolmogorov_smirnov, total_variation, wasserstein
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.additive import discrete_gaussian, staircase
from tallyveil.mechanisms.geometric import geometric
from tallyveil.mechanisms.transport import transport
from tallyveil.notebook import Panel
from tallyveil.optimize.design import design
from tallyveil.papers.kohli.greedy import greedy_fixed_point, unfixed_optimum
from tallyveil.papers.kohli.pipeline import split_budget
from tallyveil.papers.kohli.privatizers import distribution_of_counts, privatize_histogram
from tallyveil.query import Query
from tallyveil.release.privatize import privatize
from tallyveil.release.split import Split
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate

Build: TypeAlias = Callable[[Floats, Fraction], Mechanism]

EPSILONS = (0.1, 0.15, 0.22, 0.32, 0.48, 0.71, 1.05, 1.55, 2.29, 3.38, 5.0)
"""The 11 budgets as the paper prints them."""

GRID = dict(zip(EPSILONS, np.geomspace(0.1, 5, len(EPSILONS)).round(4).tolist(), strict=True))
"""The same before rounding, evenly spaced on a logarithmic scale (errata, Kohli 17)."""
BEST = "fixed-point optimum (transport)"
OURS = "combined, ranks matched (ours)"
UNFIXED, UNFIXED_SQUARED = "two-stage unfixed", "two-stage unfixed, squared error"
GEOMETRIC = "truncated geometric"
SANDWICH = "heuristic, sandwich"
HEURISTICS = (SANDWICH, "heuristic, max", "heuristic, min")
TWO_STAGE: dict[str, Build] = {
    SANDWICH: lambda z, e: greedy_fixed_point(z, e, "sandwich"),
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
"""The cells with printed values; they are repeated more often."""


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of every repetition of one cell, shape (repetitions, metrics)."""

    runs: Floats

    def mean(self, metric: str) -> float:
        """Return the mean over the repetitions."""
        return float(self.runs[:, METRICS.index(metric)].mean())

    def error(self, metric: str) -> float:
        """Return the standard error of that mean."""
        return standard_error(self.runs[:, METRICS.index(metric)])

    def exceeds(self, other: Errors, metric: str) -> float:
        """Return by how many standard errors of the difference this mean exceeds the other one.

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
    budget: Split,
    source: Entropy,
    builders: dict[str, Build],
    *,
    privatizer: str = "cyclic_laplace",
) -> dict[str, tuple[float, ...]]:
    """Run the pipeline once with any privatizer, all builders on its private distribution."""
    histogram = np.bincount(table, minlength=len(truth))
    stage = privatize_histogram(histogram, budget.epsilon1, privatizer, entropy=source)
    private = stage.distribution("clip")
    return {
        name: measure_release(table, truth, build(private, budget.epsilon2), source)
        for name, build in builders.items()
    }


def measure_table_spread(size: int = 10_000, tables: int = 20) -> float:
    """Measure how far W1 of two-stage unfixed varies between tables of binomial draws, at 0.48.

    The paper's draws are not ours. For each of some tables: W1 between its distribution and the
    expected released one, without the noise of either stage; the standard deviation of those.
    """
    distances = []
    for seed in range(tables):
        truth = distribution_of_counts(draw_binomial(20, size, seed), 20)
        mechanism = unfixed_optimum(truth, split_budget(GRID[0.48]).epsilon2)
        distances.append(wasserstein(truth, truth @ mechanism.matrix))
    return float(np.std(distances, ddof=1))


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
    release = privatize(
        table, upper=len(truth) - 1, epsilon=epsilon, method="preserve", entropy=source
    )
    errors = count_errors(table, release.table)
    return (*_measure_distances(truth, release.distribution), errors.absolute, errors.squared)


Cells: TypeAlias = dict[tuple[str, float, str], Errors]
_cache: dict[tuple[object, ...], tuple[Cells, dict[str, bool], str]] = {}


def simulate(context: Context) -> tuple[Cells, dict[str, bool], str]:
    """Simulate all cells of Figures 5 and 6; cached, because both figures need them.

    Cells are named by the printed budgets and simulated at those of `GRID`.
    """
    key = (context.quick, context.data, context.seed)
    if key in _cache:
        return _cache[key]
    epsilons = (0.1, 0.48, 1.0, 1.05) if context.quick else (*EPSILONS, 1.0)
    tables = load_datasets(context)
    cells: Cells = {}
    for name, label in product(tables, epsilons):
        sample, top = tables[name]
        epsilon = GRID.get(label, label)
        table, truth = sample.values, distribution_of_counts(sample.values, top)
        source = SeededNotPrivate(context.seed)
        times = 4 if context.quick else 100 if (name, label) in PRINTED else 20
        errors: dict[str, list[tuple[float, ...]]] = {}
        alone, budget = _build_one_stage(truth, len(table), epsilon), split_budget(epsilon)
        for _ in range(times):
            both = release_two_stage(table, truth, budget, source, TWO_STAGE)
            both |= {k: measure_release(table, truth, m, source) for k, m in alone.items()}
            both[OURS] = _release_ours(table, truth, epsilon, source)
            for method, measured in both.items():
                errors.setdefault(method, []).append(measured)
        cells |= {(name, label, method): Errors(np.array(runs)) for method, runs in errors.items()}
    real = {name: sample.real for name, (sample, _) in tables.items()}
    described = "; ".join(sample.label for sample, _ in tables.values())
    _cache[key] = cells, real, described
    return _cache[key]


BASELINES = (UNFIXED, *ONE_STAGE)
OTHER_DATA = "Not the paper's data."
GRID_POINT = (
    "The paper says 1, but its grid of 11 budgets has no 1: its three values are those at 1.05."
)
FEW_RUNS = (
    "chance. The paper does not say how many simulations it averaged; with 100, as we make, its "
    "own standard error would be like ours, and the two together would cover the difference."
)


def _draw_cells(cells: Cells, methods: list[str], metric: str, what: str) -> list[Panel]:
    values = {
        (name, method, e): (
            cells[name, e, method].mean(metric),
            cells[name, e, method].error(metric),
        )
        for method in methods
        for name, e in dict.fromkeys(key[:2] for key in cells)
    }
    title = "{}, " + what
    return draw_values(values, title, "total epsilon", what, error=True, strong=OURS, log="xy")


def _plot_cells(cells: Cells, parts: list[Panel], findings: list[Finding], label: str) -> Result:
    columns = ["dataset", "epsilon", "method", "repetitions"]
    for metric in METRICS:
        columns += [metric, f"standard error of {metric}"]
    rows = [
        (*key, len(e.runs), *(x for metric in METRICS for x in (e.mean(metric), e.error(metric))))
        for key, e in cells.items()
    ]
    return plot(columns, rows, parts, findings, label)


def _check_printed(
    cells: Cells,
    key: tuple[str, float, str],
    paper: float,
    comparable: bool,
    metric: str,
    *,
    further: float = 0.0,
    reason: str = "",
    guess: str = "",
) -> Finding:
    """Compare a simulated mean with the two decimals printed.

    `further` is the standard error of what the paper drew anew: its table.
    """
    mean, error = cells[key].mean(metric), math.hypot(cells[key].error(metric), further)
    claim = f"{key[0]}, {key[1]:g}: {metric} of {key[2]}"
    finding = check.estimate(claim, paper, mean, error, rounding=0.005, reason=reason, guess=guess)
    return check.judge_if(comparable, finding, OTHER_DATA)


@experiment("kohli", "Figure 5", "6.1")
def figure_5(context: Context) -> Result:
    """Distribution error against the budget."""
    cells, real, label = simulate(context)
    methods = [SANDWICH, UNFIXED, GEOMETRIC, "discrete Gaussian", OURS]
    parts = [part for metric in METRICS[:3] for part in _draw_cells(cells, methods, metric, metric)]
    findings = [
        *_check_printed_w1(cells, real, "" if context.quick else FEW_RUNS),
        *_check_w1(cells),
    ]
    return _plot_cells(cells, parts, findings, label)


def _check_printed_w1(cells: Cells, real: dict[str, bool], chance: str) -> list[Finding]:
    """Compare what section 6.1 prints: W1, and its decrease from the best baseline in per cent.

    `chance` is a guess at why a value differs.
    """
    crime, further = real["crime"], measure_table_spread()
    findings = [
        _check_printed(cells, ("binomial", 0.48, UNFIXED), 0.64, True, "W1", further=further),
        _check_printed(cells, ("binomial", 0.48, SANDWICH), 0.04, True, "W1"),
        _check_printed(cells, ("crime", 0.1, UNFIXED), 1.44, crime, "W1", guess=chance),
        _check_printed(cells, ("crime", 0.1, SANDWICH), 2.17, crime, "W1"),
        _check_printed(cells, ("schools", 0.1, SANDWICH), 0.06, False, "W1"),
        _check_printed(cells, ("schools", 0.1, GEOMETRIC), 2.60, False, "W1"),
    ]
    for name, paper in (("binomial", 94), ("crime", 74), ("schools", 87)):
        fixed = cells[name, 0.48, SANDWICH]
        best = min((cells[name, 0.48, k] for k in BASELINES), key=lambda cell: cell.mean("W1"))
        ratio = fixed.mean("W1") / best.mean("W1")
        spread = fixed.runs[:, 0] / fixed.mean("W1") - best.runs[:, 0] / best.mean("W1")
        finding = check.estimate(
            f"{name}, 0.48: decrease of W1 in per cent",
            paper,
            100 * (1 - ratio),
            100 * ratio * standard_error(spread),  # delta method
            rounding=0.5,
            guess=chance if name == "binomial" else "",
        )
        findings.append(check.judge_if(real[name] and name != "schools", finding, OTHER_DATA))
    return findings


def _check_w1(cells: Cells) -> list[Finding]:
    """Compare the constructors with each other, and ours with them."""
    keys = sorted({(name, e) for name, e, _ in cells})

    def mean(key: tuple[str, float], method: str, metric: str = "W1") -> float:
        return cells[*key, method].mean(metric)

    apart = [mean(key, BEST) / mean(key, SANDWICH) - 1 for key in keys]
    gain = [mean(key, BEST) / mean(key, OURS) for key in keys]
    middle = [key for key in keys if key[1] == 0.48]
    ahead = {
        metric: min(
            cells[*key, k].exceeds(cells[*key, SANDWICH], metric)
            for key in middle
            for k in BASELINES
        )
        for metric in ("KS", "TV")
    }
    lower = {
        metric: sum(
            mean(key, SANDWICH, metric) < min(mean(key, k, metric) for k in BASELINES)
            for key in keys
        )
        for metric in METRICS[:3]
    }
    exception = cells["crime", 0.1, SANDWICH].exceeds(cells["crime", 0.1, UNFIXED], "W1")
    return [
        check.claim(
            "exceptions exist: crime, 0.1: two-stage unfixed has the lower W1",
            f"by {exception:.1f} standard errors",
            exception > (0 if len(cells["crime", 0.1, UNFIXED].runs) < 20 else STANDARD_ERRORS),
        ),
        check.skip(
            "all fixed-point constructors overlap visually",
            "stated",
            f"W1 of the optimum is {100 * min(apart):+.0f} % to {100 * max(apart):+.0f} % of the "
            "sandwich's away",
            "Visually has no measure.",
        ),
        *(
            check.span(
                f"{metric} distance: the fixed-point method below every baseline at 0.48",
                least,
                "standard errors at least, in all three data sets",
                above=STANDARD_ERRORS,
            )
            for metric, least in ahead.items()
        ),
        check.skip(
            "the plots for KS and TV distance are similar",
            "stated",
            f"of {len(keys)} cells the fixed-point method is below every baseline in "
            + ", ".join(f"{count} by {metric}" for metric, count in lower.items()),
            "Similar has no measure.",
        ),
        check.span(
            "combined estimate and matched ranks: W1 against the fixed-point optimum",
            gain,
            "times lower",
            above=1,
            beats="1",
        ),
    ]


@experiment("kohli", "Figure 6", "6.2")
def figure_6(context: Context) -> Result:
    """Count error against the budget."""
    cells, real, label = simulate(context)
    methods = [BEST, *HEURISTICS, UNFIXED, GEOMETRIC, "discrete Gaussian", OURS]
    squared = [UNFIXED_SQUARED if method == UNFIXED else method for method in methods]
    parts = _draw_cells(cells, methods, "absolute", "mean absolute error")
    parts += _draw_cells(cells, squared, "squared", "mean squared error")
    findings = [
        *_check_printed_errors(cells, real["crime"]),
        *_check_errors(cells, "absolute", UNFIXED),
        *_check_errors(cells, "squared", UNFIXED_SQUARED),
        *_check_ours(cells, _measure_program_gap(context)),
    ]
    return _plot_cells(cells, parts, findings, label)


def _check_printed_errors(cells: Cells, crime: bool) -> list[Finding]:
    """Compare the count errors that section 6.2 prints; `crime` says whether the data are real."""
    best, unfixed = cells["crime", 0.48, BEST], cells["crime", 0.48, UNFIXED]
    ratio = best.mean("absolute") / unfixed.mean("absolute")
    apart = best.runs[:, 3] / best.mean("absolute") - unfixed.runs[:, 3] / unfixed.mean("absolute")
    increase = check.estimate(
        "crime, 0.48: increase from two-stage unfixed to the optimum, in per cent",
        5.7,
        100 * (ratio - 1),
        100 * ratio * standard_error(apart),
        rounding=0.05,
        reason="The printed 1.27 and 1.32 are 3.9 % apart.",
    )
    return [
        _check_printed(cells, ("crime", 0.48, UNFIXED), 1.27, crime, "absolute"),
        _check_printed(cells, ("crime", 0.48, BEST), 1.32, crime, "absolute"),
        check.judge_if(crime, increase, OTHER_DATA),
        *(
            _check_printed(cells, ("crime", e, method), value, crime, "absolute", reason=reason)
            for e, reason in ((1.0, GRID_POINT), (1.05, ""))
            for method, value in ((GEOMETRIC, 0.55), (BEST, 0.64), (SANDWICH, 0.66))
        ),
    ]


def _check_errors(cells: Cells, metric: str, unfixed: str) -> tuple[Finding, ...]:
    """Compare the methods with each other; these are exact sums on the same distributions."""
    keys = sorted({(name, e) for name, e, _ in cells})

    def off(key: tuple[str, float], method: str) -> float:
        return cells[*key, method].mean(metric)

    below = min(off(key, BEST) / off(key, unfixed) for key in keys)
    behind = min(min(off(key, k) for k in HEURISTICS) / off(key, BEST) for key in keys)
    lowest = sum(
        off(key, BEST) < min(off(key, k) for k in (unfixed, *ONE_STAGE, *HEURISTICS))
        for key in keys
    )
    return (
        check.span(
            f"{metric} error: two-stage unfixed always below the fixed-point methods",
            below,
            "times its error at least",
            above=1,
        ),
        check.span(
            f"{metric} error: heuristics at or above the optimum (a theorem: a check of both)",
            behind,
            "times its error at least",
            above=1 - 1e-9,
        ),
        check.claim(
            f"{metric} error: the fixed-point optimum is never the lowest curve",
            f"lowest in {lowest} of {len(keys)} cells",
            lowest == 0,
        ),
    )


def _check_ours(cells: Cells, gap: float) -> tuple[Finding, ...]:
    """Check what goes beyond the paper; `gap` is that of the closed form to the program."""
    off = {key: cell.mean("absolute") for key, cell in cells.items()}
    keys = {(name, e) for name, e, _ in cells}
    ratio = [off[*key, OURS] / off[*key, BEST] for key in keys]
    best = [off[*key, BEST] / min(off[*key, k] for k in HEURISTICS) for key in keys]
    return (
        check.zero(
            "transport's closed form against the linear program; largest relative gap", gap, 1e-6
        ),
        check.span(
            "the optimum in closed form: error against the best heuristic",
            best,
            below=1 + 1e-9,
            beats="1",
        ),
        check.span(
            "combined estimate and matched ranks: error against the optimum",
            ratio,
            below=1,
            beats="1",
        ),
    )


def _measure_program_gap(context: Context) -> float:
    """Measure the relative gap between the transport optimum and the program's lower bound."""
    table = load_datasets(context)["crime"][0].values
    worst = 0.0
    for n, epsilon in ((11, 0.48), (21, 1.0)) if context.quick else ((21, 0.1), (51, 0.48)):
        z = distribution_of_counts(table, n - 1, "top_code")
        query = Query.count(n - 1)
        program = design(query, epsilon, "absolute", fixed_point=z, method="lp")
        ours = transport(query, epsilon, z).expected_loss("absolute", z)
        worst = max(worst, (ours - program.lower_bound) / ours)
    return float(np.abs(worst))


OTHERS = {
    "classic_laplace": "classic Laplace",
    "wavelet": "Privelet",
    "hierarchical": "QYL hierarchy",
}
BUILDERS = {name: TWO_STAGE[name] for name in (SANDWICH, BEST, UNFIXED)}
SHOWN = ("binomial", "crime")
MIDDLE = 0.48


@experiment("kohli", "Section 6", "6")
def section_6(context: Context) -> Result:
    """Other distribution privatizers."""
    tables = load_datasets(context)
    epsilons = (MIDDLE,) if context.quick else (0.22, MIDDLE, 1.05)
    simulated: dict[str, Cells] = {key: {} for key in OTHERS}
    for privatizer, name, epsilon in product(OTHERS, SHOWN, epsilons):
        sample, top = tables[name]
        times = 12 if epsilon != MIDDLE else 24 if context.quick else 60
        truth = distribution_of_counts(sample.values, top)
        source, budget = SeededNotPrivate(context.seed), split_budget(epsilon)
        runs = [
            release_two_stage(sample.values, truth, budget, source, BUILDERS, privatizer=privatizer)
            for _ in range(times)
        ]
        for method in BUILDERS:
            cell = Errors(np.array([run[method] for run in runs]))
            simulated[privatizer][name, epsilon, method] = cell
    values = {
        (name, OTHERS[privatizer], method, e): [cell.mean(metric) for metric in METRICS]
        for privatizer, cells in simulated.items()
        for (name, e, method), cell in cells.items()
    }
    findings = [
        finding
        for privatizer, cells in simulated.items()
        for finding in _check_trends(OTHERS[privatizer], cells)
    ]
    columns = ("dataset", "privatizer", "method", "total epsilon", *METRICS)
    label = "; ".join(tables[name][0].label for name in SHOWN)
    return plot_values(columns, values, "{}, {}", findings, label, across=2, log="xy")


def _check_trends(privatizer: str, cells: Cells) -> tuple[Finding, ...]:
    """Check the two trends: the fixed point lowers W1, and costs a little count error."""
    drop = [
        cells[name, MIDDLE, UNFIXED].exceeds(cells[name, MIDDLE, SANDWICH], "W1") for name in SHOWN
    ]
    cost = [
        cells[name, e, BEST].mean("absolute") / cells[name, e, UNFIXED].mean("absolute")
        for name, e, method in cells
        if method == BEST
    ]
    return (
        check.span(
            f"{privatizer}: the fixed point lowers W1 at {MIDDLE}",
            drop,
            "standard errors",
            above=STANDARD_ERRORS,
        ),
        check.span(
            f"{privatizer}: two-stage unfixed always has the lower count error",
            cost,
            "times its error",
            above=1,
        ),
    )
