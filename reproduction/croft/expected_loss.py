"""Croft et al. (2020), section 4.3: loss of range-adherent mechanisms (Figures 1 to 5).

"face value" takes the released answer as it is (equations 23 and 24); "post-processed" is the loss
of a Bayesian with a uniform prior who remaps it (equations 25 and 26 corrected: errata, Croft 2).
The programs minimise the absolute error, as in the paper; the squared error is measured as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from reproduction.experiment import (
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    check_claim,
    check_improvement,
    check_number,
)
from tallyveil.figures import Curve, Panel, panels
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.additive import laplace, staircase
from tallyveil.mechanisms.exponential import uniform
from tallyveil.papers.croft import variant1, variant2
from tallyveil.query import Query

__all__ = ["BUILDERS", "EXPERIMENTS", "measure_losses", "plot_losses", "tabulate_losses"]

Builder = Callable[[Query, float], Mechanism]
Losses = dict[tuple[float, str], tuple[float, ...]]
Printed = dict[float, tuple[float, ...]]

BUILDERS: dict[str, Builder] = {
    "LP variant 1": lambda query, epsilon: variant1(query, epsilon).mechanism,
    "LP variant 2": lambda query, epsilon: variant2(query, epsilon).mechanism,
    "Laplace, snapped": laplace,
    "staircase, snapped": staircase,
    "Laplace, normalized": lambda query, epsilon: laplace(query, epsilon, "normalize"),
    "Laplace, calibrated (ours)": lambda query, epsilon: laplace(query, epsilon, "calibrate"),
}
NOISE = ("Laplace, snapped", "staircase, snapped", "Laplace, normalized")
ONE, TWO = "LP variant 1", "LP variant 2"
EPSILONS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0)
SLACK = 1e-7  # of the programs
FACE, SQUARED, AFTER, AFTER_SQUARED = range(4)
"""The four measures of `Mechanism.usability`, in its order."""

MEASURES = (
    "absolute, face value",
    "squared, face value",
    "absolute, post-processed",
    "squared, post-processed",
)


def measure_losses(
    context: Context,
    points: Sequence[float],
    at: Callable[[float], tuple[Query, float]],
    builders: dict[str, Builder],
) -> Losses:
    """Measure the four expected errors of every mechanism at every point."""
    found = {}
    for point in points:
        query, epsilon = at(point)
        for name, build in builders.items():
            found[point, name] = tuple(build(query, epsilon).usability().values())
    return found


def plot_losses(found: Losses, x_label: str, log: str = "", strong: str = ONE) -> list[Panel]:
    """Draw the four measures of every mechanism, one panel each."""
    points = sorted({point for point, _ in found})
    names = list(dict.fromkeys(name for _, name in found))
    return [
        Panel(
            title,
            [
                Curve(name, points, [found[p, name][k] for p in points], strong=name == strong)
                for name in names
            ],
            x_label,
            "expected error",
            log=log,
        )
        for k, title in enumerate(MEASURES)
    ]


def tabulate_losses(found: Losses, what: str) -> Table:
    """Tabulate the four measures of every mechanism at every point."""
    columns = (what, "mechanism", *MEASURES)
    return Table.of(columns, [(*key, *value) for key, value in found.items()])


def _check_best(
    found: Losses,
    name: str,
    others: Sequence[str],
    claim: str,
    *,
    measure: int = FACE,
    reason: str = "",
) -> Finding:
    """Check that no other mechanism has a lower error anywhere, by more than the solver's slack."""
    points = sorted({point for point, _ in found})
    ahead = {p: found[p, name][measure] / min(found[p, k][measure] for k in others) for p in points}
    failed = [p for p in points if ahead[p] > 1 + SLACK]
    got = f"{min(ahead.values()):.3f} to {max(ahead.values()):.3f} of the next lowest error"
    if failed:
        got += ", not lower at " + ", ".join(f"{p:g}" for p in failed)
    return check_claim(claim, got, not failed, reason)


def _check_squared(found: Losses, reason: str = "") -> tuple[Finding, ...]:
    """Check the same relations under squared error, which no program here minimises."""
    return (
        _check_best(
            found,
            ONE,
            (*NOISE, TWO),
            "squared error: variant 1 best at face value",
            measure=SQUARED,
        ),
        _check_best(
            found,
            TWO,
            NOISE,
            "squared error: variant 2 better than the noise mechanisms",
            measure=SQUARED,
        ),
        _check_best(
            found,
            ONE,
            (*NOISE, TWO),
            "squared error, post-processed: variant 1 matches or beats the others",
            measure=AFTER_SQUARED,
            reason=reason,
        ),
    )


def _plot_sizes(context: Context, epsilon: float) -> Result:
    """Figures 1 and 2: mean of values 0..4 against the number of records."""
    sizes = [2, 5, 10] if context.quick else [2, 3, 4, 5, 6, 8, 10, 12, 15, 20]
    found = measure_losses(context, sizes, lambda n: (Query.mean(int(n), 0, 4), epsilon), BUILDERS)
    ratio = {n: found[n, NOISE[0]][0] / found[n, ONE][0] for n in sizes}
    first, last = sizes[0], sizes[-1]
    at_two = "With 2 records snapping is about 1 % ahead: the programs minimise the absolute error."
    findings = (
        _check_best(
            found,
            ONE,
            [k for k in BUILDERS if k != ONE],
            "variant 1 best at face value (true by construction: a check of the solver)",
        ),
        _check_best(found, TWO, NOISE, "variant 2 better than the noise mechanisms"),
        check_claim(
            "the improvement is largest for small databases",
            f"snapped Laplace over variant 1: {ratio[first]:.2f} at {first} records, "
            f"{ratio[last]:.2f} at {last}",
            ratio[first] > ratio[last],
        ),
        _check_best(
            found, ONE, NOISE, "post-processing: variant 1 matches or beats snapping", measure=AFTER
        ),
        *_check_squared(found, at_two if epsilon == 0.5 else ""),
        _check_calibrated(found),
    )
    parts = plot_losses(found, "records")
    return Result(
        {"data": tabulate_losses(found, "records")}, partial(panels, parts, columns=2), findings
    )


def _check_calibrated(found: Losses) -> Finding:
    points = sorted({point for point, _ in found})
    ratios = [found[p, "Laplace, calibrated (ours)"][0] / found[p, NOISE[2]][0] for p in points]
    return check_improvement(
        "normalized Laplace at its calibrated scale: lower error at the same epsilon",
        "1 (scale 2D/epsilon)",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        max(ratios) < 1,
    )


def tile_range(scale: float) -> Query:
    """Build the mean of 10 records of 0..4 with categories `scale` times the usual width.

    They tile the range that the 41 usual categories cover (-0.05 to 4.05), so that coarse end
    categories have their midpoints inside it, as in the paper's explanation of Figure 3.

    >>> tile_range(5).shape
    (41, 8)
    """
    usual = Query.mean(10, 0, 4)
    edges = np.linspace(-0.05, 4.05, round(41 / scale) + 1)
    intervals = np.column_stack([edges[:-1], edges[1:]])
    return Query.custom(usual.inputs, intervals, usual.neighbours)


def figure_3(context: Context) -> Result:
    """The width of the response categories, mean of 10 records."""
    scales = (0.5, 1, 2, 5) if context.quick else (0.25, 0.5, 1, 2, 5, 10)
    epsilons = (0.05, 0.2, 0.5, 1.0) if context.quick else EPSILONS[:7]
    snap, error = "Laplace, snapped", {}
    for scale, epsilon in [(s, e) for s in scales for e in epsilons]:
        query = tile_range(scale)
        error[snap, scale, epsilon] = laplace(query, epsilon).expected_loss()
        error[ONE, scale, epsilon] = variant1(query, epsilon).objective
    level = uniform(tile_range(1)).expected_loss()
    low = epsilons[0]
    fine = [s for s in scales if s <= 1]
    spread = max(
        abs(error[ONE, s, e] - error[ONE, 1, e]) / error[ONE, 1, e] for s in fine for e in epsilons
    )
    coarse = [error[snap, s, low] for s in scales]
    loss = [error[ONE, scales[-1], e] / error[ONE, 1, e] for e in epsilons]
    findings = (
        check_claim(
            f"snapping: coarser categories have lower error at high privacy (epsilon = {low})",
            " > ".join(f"{x:.3f}" for x in coarse),
            (np.diff(coarse) < 0).all(),
        ),
        check_claim(
            f"snapping: worse than the uniform mechanism there (epsilon = {low})",
            f"{error[snap, 1, low]:.3f} against {level:.3f}",
            error[snap, 1, low] > level,
        ),
        check_claim(
            f"variant 1: coarser categories ({scales[-1]} times) have higher error",
            f"{min(loss):.3f} to {max(loss):.3f} times",
            min(loss) > 1,
        ),
        check_claim(
            "variant 1: almost no difference between the finest categories",
            f"at most {100 * spread:.2f} %",
            spread < 0.02,
        ),
    )
    rows = [(*key, value) for key, value in error.items()]
    parts = [
        Panel(
            kind,
            [
                Curve(f"categories x {s:g}", epsilons, [error[kind, s, e] for e in epsilons])
                for s in scales
            ]
            + [Curve("uniform", epsilons, [level] * len(epsilons))],
            "epsilon",
            "expected absolute error",
            log="x",
        )
        for kind in (snap, ONE)
    ]
    table = Table.of(("mechanism", "category scale", "epsilon", "face value"), rows)
    return Result({"data": table}, partial(panels, parts, columns=2), findings)


def _plot_epsilons(context: Context, query: Query, printed: Printed) -> Result:
    """Figures 4 and 5: expected loss against epsilon."""
    epsilons = (0.05, 0.2, 0.5, 1.0, 2.0) if context.quick else EPSILONS
    found = measure_losses(context, epsilons, lambda e: (query, e), BUILDERS)
    small = epsilons[0]
    gain = {e: found[e, NOISE[0]][0] / found[e, ONE][0] for e in epsilons}
    order = ("Laplace, snapped", "staircase, snapped", "Laplace, normalized", ONE, TWO)
    findings = [
        _check_best(
            found,
            ONE,
            [k for k in BUILDERS if k != ONE],
            "variant 1 best at face value (true by construction: a check of the solver)",
        ),
        _check_best(found, TWO, NOISE, "variant 2 better than the noise mechanisms"),
        check_claim(
            "greatest improvement at high privacy",
            f"snapped Laplace over variant 1: {gain[small]:.2f} at epsilon {small}, "
            f"{gain[epsilons[-1]]:.2f} at {epsilons[-1]}",
            gain[small] > gain[epsilons[-1]],
        ),
        _check_best(
            found,
            ONE,
            [k for k in BUILDERS if k != ONE],
            "post-processing: variant 1 best",
            measure=AFTER,
        ),
        *_check_squared(found),
        _check_calibrated(found),
    ]
    for e, values in printed.items():
        findings.extend(
            check_number(
                f"independent solver, epsilon = {e:g}: {name}", value, found[e, name][0], 1e-5
            )
            for name, value in zip(order, values, strict=True)
        )
    parts = plot_losses(found, "epsilon", "x")
    return Result(
        {"data": tabulate_losses(found, "epsilon")},
        partial(panels, parts, columns=2),
        tuple(findings),
    )


def figure_4(context: Context) -> Result:
    """Mean of 10 records of 0..4 against epsilon."""
    return _plot_epsilons(context, Query.mean(10, 0, 4), {})


def figure_5(context: Context) -> Result:
    """Maximum of values 0..9 against epsilon."""
    printed: Printed = {0.5: (3.801948086, 3.762776779, 3.162108803, 2.377540669, 2.834654541)}
    return _plot_epsilons(context, Query.maximum(0, 9), printed)


EXPERIMENTS = (
    Experiment(
        "croft",
        "Figure 1",
        "Database size, mean, epsilon = 0.2",
        "4.3.1",
        partial(_plot_sizes, epsilon=0.2),
    ),
    Experiment(
        "croft",
        "Figure 2",
        "Database size, mean, epsilon = 0.5",
        "4.3.1",
        partial(_plot_sizes, epsilon=0.5),
    ),
    Experiment("croft", "Figure 3", "Width of the response categories", "4.3.2", figure_3),
    Experiment("croft", "Figure 4", "Expected loss against epsilon, mean", "4.3.3", figure_4),
    Experiment("croft", "Figure 5", "Expected loss against epsilon, maximum", "4.3.3", figure_5),
)
