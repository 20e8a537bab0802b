"""Kohli and Laskowski (2026), section 6: errors of whole releases (Figures 5 and 6).

The paper does not say how many simulations it averaged. A printed value is therefore compared
within four standard errors of ours, and its rounding; its own error is not known.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from reproduction.experiment import (
    STANDARD_ERRORS,
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    check_claim,
    check_estimate,
    check_improvement,
    check_number,
    skip_check,
    standard_error,
)
from reproduction.kohli.distributions import load_datasets
from reproduction.kohli.simulation import (
    BEST,
    GEOMETRIC,
    HEURISTICS,
    METRICS,
    ONE_STAGE,
    OURS,
    UNFIXED,
    UNFIXED_SQUARED,
    Cells,
    measure_table_spread,
    simulate,
)
from tallyveil.figures import Curve, Panel, panels
from tallyveil.mechanisms.transport import transport
from tallyveil.optimize.design import design
from tallyveil.papers.kohli.privatizers import distribution_of_counts
from tallyveil.query import Query

__all__ = ["EXPERIMENTS"]

SANDWICH = HEURISTICS[0]
BASELINES = (UNFIXED, *ONE_STAGE)
OTHER_DATA = "Not the paper's data."
GRID_POINT = (
    "The paper says 1, but its grid of 11 budgets has no 1: its three values are those at 1.05."
)
FEW_RUNS = (
    "chance. The paper does not say how many simulations it averaged; with 100, as we make, its "
    "own standard error would be like ours, and the two together would cover the difference."
)


def _plot_cells(cells: Cells, methods: list[str], metric: str, what: str) -> list[Panel]:
    parts = []
    for name in dict.fromkeys(key[0] for key in cells):
        epsilons = sorted({key[1] for key in cells if key[0] == name})
        curves = [
            Curve(
                method,
                epsilons,
                [cells[name, e, method].mean(metric) for e in epsilons],
                [cells[name, e, method].error(metric) for e in epsilons],
                strong=method == OURS,
            )
            for method in methods
        ]
        parts.append(Panel(f"{name}, {what}", curves, "total epsilon", what, log="xy"))
    return parts


def _tabulate_cells(cells: Cells) -> Table:
    columns = ["dataset", "epsilon", "method", "repetitions"]
    for metric in METRICS:
        columns += [metric, f"standard error of {metric}"]
    rows = [
        (*key, len(e.runs), *(x for metric in METRICS for x in (e.mean(metric), e.error(metric))))
        for key, e in cells.items()
    ]
    return Table.of(columns, rows)


def _check_printed(
    cells: Cells,
    key: tuple[str, float, str],
    paper: float,
    comparable: bool,
    metric: str,
    *,
    beside: float = 0.0,
    reason: str = "",
    guess: str = "",
) -> Finding:
    """Compare a simulated mean with the two decimals printed.

    `beside` is a further standard error, of what the paper drew anew: its table.
    """
    cell = cells[key]
    claim = f"{key[0]}, {key[1]:g}: {metric} of {key[2]}"
    if not comparable:
        return skip_check(claim, f"{paper:g}", f"{cell.mean(metric):.3g}", OTHER_DATA)
    return check_estimate(
        claim,
        paper,
        cell.mean(metric),
        math.hypot(cell.error(metric), beside),
        rounding=0.005,
        reason=reason,
        guess=guess,
    )


def figure_5(context: Context) -> Result:
    """Distribution error against the total budget."""
    cells, real, label = simulate(context)
    methods = [SANDWICH, UNFIXED, GEOMETRIC, "discrete Gaussian", OURS]
    parts = [part for metric in METRICS[:3] for part in _plot_cells(cells, methods, metric, metric)]
    findings = (
        *_check_printed_w1(cells, real, context.quick),
        *_check_decreases(cells, real, context.quick),
        *_check_w1(cells),
    )
    return Result({"data": _tabulate_cells(cells)}, partial(panels, parts), findings, label)


def _check_printed_w1(cells: Cells, real: dict[str, bool], quick: bool) -> list[Finding]:
    """Compare the values of W1 that section 6.1 prints."""
    crime = real["crime"]
    chance = "" if quick else FEW_RUNS
    return [
        _check_printed(
            cells, ("binomial", 0.48, UNFIXED), 0.64, True, "W1", beside=measure_table_spread()
        ),
        _check_printed(cells, ("binomial", 0.48, SANDWICH), 0.04, True, "W1"),
        _check_printed(cells, ("crime", 0.1, UNFIXED), 1.44, crime, "W1", guess=chance),
        _check_printed(cells, ("crime", 0.1, SANDWICH), 2.17, crime, "W1"),
        _check_printed(cells, ("schools", 0.1, SANDWICH), 0.06, False, "W1"),
        _check_printed(cells, ("schools", 0.1, GEOMETRIC), 2.60, False, "W1"),
    ]


def _check_decreases(cells: Cells, real: dict[str, bool], quick: bool) -> list[Finding]:
    """Compare the decrease from the best baseline to the fixed-point method, in per cent."""
    findings = []
    for name, paper in (("binomial", 94), ("crime", 74), ("schools", 87)):
        claim = f"{name}, 0.48: decrease of W1 in per cent"
        fixed = cells[name, 0.48, SANDWICH]
        best = min((cells[name, 0.48, k] for k in BASELINES), key=lambda cell: cell.mean("W1"))
        ratio = fixed.mean("W1") / best.mean("W1")
        spread = fixed.runs[:, 0] / fixed.mean("W1") - best.runs[:, 0] / best.mean("W1")
        error = 100 * ratio * standard_error(spread)  # delta method
        chance = FEW_RUNS if name == "binomial" and not quick else ""
        if real[name] and name != "schools":
            findings.append(
                check_estimate(claim, paper, 100 * (1 - ratio), error, rounding=0.5, guess=chance)
            )
        else:
            findings.append(skip_check(claim, f"{paper}", f"{100 * (1 - ratio):.0f}", OTHER_DATA))
    return findings


def _check_w1(cells: Cells) -> list[Finding]:
    """Compare the constructors with each other, and ours with them."""
    keys = sorted({(name, e) for name, e, _ in cells})
    apart = {
        key: cells[*key, BEST].mean("W1") / cells[*key, SANDWICH].mean("W1") - 1 for key in keys
    }
    gain = [cells[*key, BEST].mean("W1") / cells[*key, OURS].mean("W1") for key in keys]
    middle = [(name, e) for name, e in keys if e == 0.48]
    ahead = {
        metric: min(
            cells[*key, k].exceeds(cells[*key, SANDWICH], metric)
            for key in middle
            for k in BASELINES
        )
        for metric in ("KS", "TV")
    }
    lower = {
        metric: {
            key
            for key in keys
            if cells[*key, SANDWICH].mean(metric)
            < min(cells[*key, k].mean(metric) for k in BASELINES)
        }
        for metric in METRICS[:3]
    }
    exception = cells["crime", 0.1, SANDWICH].exceeds(cells["crime", 0.1, UNFIXED], "W1")
    return [
        check_claim(
            "exceptions exist: crime, 0.1: two-stage unfixed has the lower W1",
            f"by {exception:.1f} standard errors",
            exception > (0 if len(cells["crime", 0.1, UNFIXED].runs) < 20 else STANDARD_ERRORS),
        ),
        skip_check(
            "all fixed-point constructors overlap visually",
            "stated",
            f"W1 of the optimum is {100 * min(apart.values()):+.0f} % to "
            f"{100 * max(apart.values()):+.0f} % of the sandwich's away",
            "Visually has no measure.",
        ),
        *(
            check_claim(
                f"{metric} distance: the fixed-point method below every baseline at 0.48",
                f"by at least {least:.0f} standard errors, in all three data sets",
                least > STANDARD_ERRORS,
            )
            for metric, least in ahead.items()
        ),
        skip_check(
            "the plots for KS and TV distance are similar",
            "stated",
            f"of {len(keys)} cells the fixed-point method is below every baseline in "
            + ", ".join(f"{len(cells_below)} by {k}" for k, cells_below in lower.items()),
            "Similar has no measure.",
        ),
        check_improvement(
            "combined estimate and matched ranks: W1 against the fixed-point optimum",
            "1",
            f"{min(gain):.2f} to {max(gain):.1f} times lower",
            min(gain) > 1,
        ),
    ]


def figure_6(context: Context) -> Result:
    """Count error against the total budget."""
    cells, real, label = simulate(context)
    methods = [BEST, *HEURISTICS, UNFIXED, GEOMETRIC, "discrete Gaussian", OURS]
    squared = [UNFIXED_SQUARED if method == UNFIXED else method for method in methods]
    parts = _plot_cells(cells, methods, "absolute", "mean absolute error")
    parts += _plot_cells(cells, squared, "squared", "mean squared error")
    findings = (
        *_check_printed_errors(cells, real["crime"]),
        *_check_errors(cells, "absolute", UNFIXED),
        *_check_errors(cells, "squared", UNFIXED_SQUARED),
        *_check_ours(cells, _measure_program_gap(context)),
    )
    return Result({"data": _tabulate_cells(cells)}, partial(panels, parts), findings, label)


def _check_printed_errors(cells: Cells, crime: bool) -> list[Finding]:
    """Compare the count errors that section 6.2 prints; `crime` says whether the data are real."""
    best, unfixed = cells["crime", 0.48, BEST], cells["crime", 0.48, UNFIXED]
    ratio = best.mean("absolute") / unfixed.mean("absolute")
    claim = "crime, 0.48: increase from two-stage unfixed to the optimum, in per cent"
    apart = best.runs[:, 3] / best.mean("absolute") - unfixed.runs[:, 3] / unfixed.mean("absolute")
    findings = [
        _check_printed(cells, ("crime", 0.48, UNFIXED), 1.27, crime, "absolute"),
        _check_printed(cells, ("crime", 0.48, BEST), 1.32, crime, "absolute"),
        check_estimate(
            claim,
            5.7,
            100 * (ratio - 1),
            100 * ratio * standard_error(apart),
            rounding=0.05,
            reason="The printed 1.27 and 1.32 are 3.9 % apart.",
        )
        if crime
        else skip_check(claim, "5.7", f"{100 * (ratio - 1):.1f}", OTHER_DATA),
    ]
    for epsilon, reason in ((1.0, GRID_POINT), (1.05, "")):
        for method, value in ((GEOMETRIC, 0.55), (BEST, 0.64), (SANDWICH, 0.66)):
            key = ("crime", epsilon, method)
            findings.append(_check_printed(cells, key, value, crime, "absolute", reason=reason))
    return findings


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
        check_claim(
            f"{metric} error: two-stage unfixed always below the fixed-point methods",
            f"the optimum has {below:.4f} times its error, or more",
            below > 1,
        ),
        check_claim(
            f"{metric} error: heuristics at or above the optimum (a theorem: a check of both)",
            f"the best has {behind:.4f} times its error, or more",
            behind > 1 - 1e-9,
        ),
        check_claim(
            f"{metric} error: the fixed-point optimum is never the lowest curve",
            f"lowest in {lowest} of {len(keys)} cells",
            lowest == 0,
        ),
    )


def _check_ours(cells: Cells, gap: float) -> tuple[Finding, ...]:
    """What goes beyond the paper; `gap` is that of the closed form to the program."""
    keys = {(name, e) for name, e, _ in cells}

    def off(key: tuple[str, float], method: str) -> float:
        return cells[*key, method].mean("absolute")

    ratio = {key: off(key, OURS) / off(key, BEST) for key in keys}
    best = {key: off(key, BEST) / min(off(key, k) for k in HEURISTICS) for key in keys}
    return (
        check_number(
            "transport's closed form against the linear program; largest relative gap",
            0.0,
            gap,
            1e-6,
        ),
        check_improvement(
            "the optimum in closed form: error against the best heuristic",
            "1",
            f"{min(best.values()):.3f} to {max(best.values()):.3f}",
            max(best.values()) < 1 + 1e-9,
        ),
        check_improvement(
            "combined estimate and matched ranks: error against the optimum",
            "1",
            f"{min(ratio.values()):.2f} to {max(ratio.values()):.2f}",
            max(ratio.values()) < 1,
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


EXPERIMENTS = (
    Experiment("kohli", "Figure 5", "Distribution error against the budget", "6.1", figure_5),
    Experiment("kohli", "Figure 6", "Count error against the budget", "6.2", figure_6),
)
