"""Kohli and Laskowski (2026), section 6: the key comparisons with the other privatizers."""

from __future__ import annotations

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
)
from reproduction.kohli.distributions import load_datasets
from reproduction.kohli.simulation import (
    BEST,
    HEURISTICS,
    METRICS,
    TWO_STAGE,
    UNFIXED,
    Cells,
    Errors,
    release_two_stage,
)
from tallyveil.figures import Curve, Panel, panels
from tallyveil.papers.kohli.privatizers import distribution_of_counts
from tallyveil.sampling.entropy import SeededNotPrivate

__all__ = ["EXPERIMENTS"]

SANDWICH = HEURISTICS[0]
PRIVATIZERS = {
    "classic_laplace": "classic Laplace",
    "wavelet": "Privelet",
    "hierarchical": "QYL hierarchy",
}
BUILDERS = {name: TWO_STAGE[name] for name in (SANDWICH, BEST, UNFIXED)}
SHOWN = ("binomial", "crime")
MIDDLE = 0.48


def section_6(context: Context) -> Result:
    """The comparison of Figures 5 and 6 with each of the other three privatizers."""
    tables = load_datasets(context)
    epsilons = (MIDDLE,) if context.quick else (0.22, MIDDLE, 1.05)
    found: dict[str, Cells] = {key: {} for key in PRIVATIZERS}
    jobs = [(p, name, e) for p in PRIVATIZERS for name in SHOWN for e in epsilons]
    for privatizer, name, epsilon in jobs:
        sample, top = tables[name]
        times = 12 if epsilon != MIDDLE else 24 if context.quick else 60
        truth = distribution_of_counts(sample.values, top)
        source = SeededNotPrivate(context.seed)
        runs = [
            release_two_stage(
                sample.values, truth, epsilon, source, privatizer=privatizer, builders=BUILDERS
            )
            for _ in range(times)
        ]
        for method in BUILDERS:
            found[privatizer][name, epsilon, method] = Errors(np.array([r[method] for r in runs]))
    rows = [
        (PRIVATIZERS[privatizer], *key, *(cell.mean(metric) for metric in METRICS))
        for privatizer, cells in found.items()
        for key, cell in cells.items()
    ]
    parts = [
        Panel(
            f"{name}, {PRIVATIZERS[privatizer]}",
            [
                Curve(k, epsilons, [cells[name, e, k].mean("W1") for e in epsilons])
                for k in BUILDERS
            ],
            "total epsilon",
            "Wasserstein-1",
            log="xy",
        )
        for privatizer, cells in found.items()
        for name in SHOWN
    ]
    findings = tuple(
        finding
        for privatizer, cells in found.items()
        for finding in _check_trends(PRIVATIZERS[privatizer], cells)
    )
    table = Table.of(("privatizer", "dataset", "epsilon", "method", *METRICS), rows)
    label = "; ".join(tables[name][0].label for name in SHOWN)
    return Result({"data": table}, partial(panels, parts, columns=2), findings, label)


def _check_trends(privatizer: str, cells: Cells) -> tuple[Finding, ...]:
    """The two trends: the fixed point lowers W1, and costs a little count error."""
    drop = {
        name: cells[name, MIDDLE, UNFIXED].exceeds(cells[name, MIDDLE, SANDWICH], "W1")
        for name in SHOWN
    }
    cost = [
        cells[name, e, BEST].mean("absolute") / cells[name, e, UNFIXED].mean("absolute")
        for name, e, method in cells
        if method == BEST
    ]
    return (
        check_claim(
            f"{privatizer}: the fixed point lowers W1 at {MIDDLE}",
            ", ".join(f"{name} by {x:.0f} standard errors" for name, x in drop.items()),
            min(drop.values()) > STANDARD_ERRORS,
        ),
        check_claim(
            f"{privatizer}: two-stage unfixed always has the lower count error",
            f"the fixed-point optimum has {min(cost):.3f} to {max(cost):.3f} times its error",
            min(cost) > 1,
        ),
    )


EXPERIMENTS = (Experiment("kohli", "Section 6", "Other distribution privatizers", "6", section_6),)
