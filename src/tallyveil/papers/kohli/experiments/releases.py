"""Kohli and Laskowski (2026), section 6: errors of whole releases (Figures 5 and 6)."""

from __future__ import annotations

from functools import partial

import numpy as np

from tallyveil.figures import Curve, Panel, panels
from tallyveil.mechanisms.transport import transport
from tallyveil.optimize.design import design
from tallyveil.papers.harness.experiment import (
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    check_claim,
    check_improvement,
    check_number,
    skip_check,
)
from tallyveil.papers.kohli.experiments.distributions import load_datasets
from tallyveil.papers.kohli.experiments.simulation import (
    BEST,
    GEOMETRIC,
    HEURISTICS,
    ONE_STAGE,
    OURS,
    UNFIXED,
    Cells,
    simulate,
)
from tallyveil.papers.kohli.histogram import distribution_of_counts
from tallyveil.query import Query

__all__ = ["EXPERIMENTS"]

SANDWICH = HEURISTICS[0]
GRID_POINT = (
    "The paper says 1, but its grid of 11 budgets has no 1: its three values are those at 1.05."
)


def _plot_cells(cells: Cells, methods: list[str], part: str, what: str) -> list[Panel]:
    parts = []
    for name in dict.fromkeys(key[0] for key in cells):
        epsilons = sorted({key[1] for key in cells if key[0] == name})
        curves = [
            Curve(
                method,
                epsilons,
                [getattr(cells[name, e, method], part) for e in epsilons],
                [getattr(cells[name, e, method], f"{part}_se") for e in epsilons],
                strong=method == OURS,
            )
            for method in methods
        ]
        parts.append(Panel(name, curves, "total epsilon", what, log="xy"))
    return parts


def _tabulate_cells(cells: Cells) -> Table:
    columns = (
        "dataset",
        "epsilon",
        "method",
        "W1",
        "standard error",
        "mean absolute error",
        "its standard error",
    )
    return Table.of(
        columns,
        [
            (*key, e.distribution, e.distribution_se, e.counts, e.counts_se)
            for key, e in cells.items()
        ],
    )


def _check_printed(
    claim: str,
    paper: float,
    got: float,
    error: float,
    *,
    real: bool,
    rounding: float = 0.005,
    reason: str = "",
) -> Finding:
    """Compare a simulated value with the print: within 4 standard errors of the difference."""
    if not real:
        return skip_check(claim, f"{paper:g}", f"{got:.3g}", "Not the paper's data.")
    return check_number(claim, paper, got, 4 * np.sqrt(2) * error + rounding, reason)


def figure_5(context: Context) -> Result:
    """Distribution error against the total budget."""
    cells, real, label = simulate(context)
    methods = [SANDWICH, UNFIXED, GEOMETRIC, "discrete Gaussian", OURS]
    parts = _plot_cells(cells, methods, "distribution", "Wasserstein-1")
    findings = (*_check_printed_w1(cells, real), *_check_w1(cells))
    return Result({"data": _tabulate_cells(cells)}, partial(panels, parts), findings, label)


def _check_printed_w1(cells: Cells, real: dict[str, bool]) -> list[Finding]:
    """Compare the values of W1 that section 6.1 prints."""
    crime = real["crime"]
    baselines = (UNFIXED, *ONE_STAGE)
    drop = {
        name: 100
        * (
            1
            - cells[name, 0.48, SANDWICH].distribution
            / min(cells[name, 0.48, k].distribution for k in baselines)
        )
        for name in real
    }
    unfixed = cells["binomial", 0.48, UNFIXED].distribution
    findings = [
        _check_printed("binomial, 0.48: W1 of the best baseline", 0.64, unfixed, 0.02, real=True)
    ]
    printed = (
        ("binomial", 0.48, SANDWICH, "the fixed-point method", 0.04, True, 0.005),
        ("crime", 0.1, UNFIXED, "two-stage unfixed", 1.44, crime, 0.1),
        ("crime", 0.1, SANDWICH, "the fixed-point method", 2.17, crime, 0.1),
        ("schools", 0.1, SANDWICH, "the fixed-point method", 0.06, False, 0.005),
        ("schools", 0.1, GEOMETRIC, "the truncated geometric", 2.60, False, 0.005),
    )
    for name, epsilon, method, words, value, comparable, rounding in printed:
        cell = cells[name, epsilon, method]
        claim = f"{name}, {epsilon:g}: W1 of {words}"
        got, error = cell.distribution, cell.distribution_se
        findings.append(
            _check_printed(claim, value, got, error, real=comparable, rounding=rounding)
        )
    return [
        *findings[:2],
        check_number("binomial, 0.48: decrease in per cent", 94, drop["binomial"], 2),
        _check_decrease("crime", 74, drop["crime"], crime, 5),
        _check_decrease("schools", 87, drop["schools"], False, 5),
        *findings[2:],
    ]


def _check_w1(cells: Cells) -> list[Finding]:
    """Compare the constructors with each other, and ours with them."""
    keys = {(name, e) for name, e, _ in cells}
    best, sandwich = ({key: cells[*key, k] for key in keys} for k in (BEST, SANDWICH))
    spread = max(
        abs(best[key].distribution - sandwich[key].distribution)
        / (
            best[key].distribution_se
            + sandwich[key].distribution_se
            + 0.02 * sandwich[key].distribution
        )
        for key in keys
    )
    gain = [best[key].distribution / cells[*key, OURS].distribution for key in keys]
    return [
        check_claim(
            "all fixed-point constructors overlap",
            f"optimum against sandwich at most {spread:.1f} standard errors (+2 %)",
            spread < 4,
        ),
        check_improvement(
            "combined estimate and matched ranks: W1 against the fixed-point optimum",
            "1",
            f"{min(gain):.2f} to {max(gain):.1f} times lower",
            min(gain) > 1,
        ),
    ]


def _check_decrease(
    name: str, paper: float, got: float, comparable: bool, within: float
) -> Finding:
    claim = f"{name}, 0.48: decrease in per cent"
    if not comparable:
        return skip_check(claim, f"{paper:g}", f"{got:.0f}", "Not the paper's data.")
    return check_number(claim, paper, got, within)


def figure_6(context: Context) -> Result:
    """Count error against the total budget."""
    cells, real, label = simulate(context)
    methods = [BEST, *HEURISTICS, UNFIXED, GEOMETRIC, "discrete Gaussian", OURS]
    parts = _plot_cells(cells, methods, "counts", "mean absolute error")
    gap = _measure_program_gap(context)
    findings = (*_check_printed_errors(cells, real["crime"]), *_check_errors(cells, gap))
    return Result({"data": _tabulate_cells(cells)}, partial(panels, parts), findings, label)


def _check_printed_errors(cells: Cells, crime: bool) -> tuple[Finding, ...]:
    """Compare the count errors that section 6.2 prints; `crime` says whether the data are real."""

    def off(name: str, epsilon: float, method: str) -> float:
        return cells[name, epsilon, method].counts

    return (
        _check_printed(
            "crime, 0.48: error of two-stage unfixed",
            1.27,
            off("crime", 0.48, UNFIXED),
            0.01,
            real=crime,
        ),
        _check_printed(
            "crime, 0.48: error of the fixed-point optimum",
            1.32,
            off("crime", 0.48, BEST),
            0.01,
            real=crime,
        ),
        _check_printed(
            "crime, 0.48: increase from two-stage unfixed to the optimum, in per cent",
            5.7,
            100 * (off("crime", 0.48, BEST) / off("crime", 0.48, UNFIXED) - 1),
            0.0,
            real=crime,
            rounding=0.5,
            reason="The printed 1.27 and 1.32 are 3.9 % apart.",
        ),
        *(
            _check_printed(
                f"crime, {epsilon:g}: {method}",
                value,
                off("crime", epsilon, method),
                0.0 if method == GEOMETRIC else 0.001,
                real=crime,
                reason=reason,
            )
            for epsilon, reason in ((1.0, GRID_POINT), (1.05, ""))
            for method, value in ((GEOMETRIC, 0.55), (BEST, 0.64), (SANDWICH, 0.66))
        ),
    )


def _check_errors(cells: Cells, gap: float) -> tuple[Finding, ...]:
    """Compare the methods with each other; `gap` is that of the optimum to the program."""

    def off(name: str, epsilon: float, method: str) -> float:
        return cells[name, epsilon, method].counts

    keys = {(name, e) for name, e, _ in cells}
    behind = min(min(off(*key, k) for k in HEURISTICS) - off(*key, BEST) for key in keys)
    ratio = {key: off(*key, OURS) / off(*key, BEST) for key in keys}
    best = {key: min(off(*key, k) for k in HEURISTICS) / off(*key, BEST) for key in keys}
    return (
        check_claim(
            "two-stage unfixed always below the fixed-point methods",
            "in every cell",
            all(off(*key, UNFIXED) <= off(*key, BEST) + 1e-9 for key in keys),
        ),
        check_claim(
            "heuristics at or above the optimum", f"least difference {behind:.1e}", behind > -1e-9
        ),
        check_number(
            "transport's closed form against the linear program; largest relative gap",
            0.0,
            gap,
            1e-6,
        ),
        check_improvement(
            "the optimum in closed form: error against the best heuristic",
            "1",
            f"{min(1 / v for v in best.values()):.3f} to {max(1 / v for v in best.values()):.3f}",
            min(best.values()) > 1 - 1e-9,
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
    return worst


EXPERIMENTS = (
    Experiment("kohli", "Figure 5", "Distribution error against the budget", "6.1", figure_5),
    Experiment("kohli", "Figure 6", "Count error against the budget", "6.2", figure_6),
)
