"""Gupte and Sundararajan (2010): the geometric mechanism and its privacy levels."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.experiment import (
    Context,
    Experiment,
    Result,
    Table,
    check_claim,
    check_number,
)
from reproduction.matrices import parse_fractions, show_matrices, tabulate_cells
from reproduction.papers import epsilon_from_alpha
from tallyveil.certified.ladder import Ladder
from tallyveil.figures import Curve, Panel, heatmaps, panels
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import (
    exact_geometric,
    exact_step,
    geometric,
    remove_geometric,
)
from tallyveil.query import Query
from tallyveil.reading.derive import derivability
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sampling.noise import geometric_noise

__all__ = ["EXPERIMENTS"]

CELLS = ("matrix", "row", "column", "value")
LN4 = "1.3862943611198906188"


APPENDIX_B = parse_fractions(
    "1/9 2/9 4/9 2/9; 2/9 1/9 2/9 4/9; 4/9 2/9 1/9 2/9; 13/18 1/9 1/18 1/9"
).astype(float)


def figure_1(context: Context) -> Result:
    """The unbounded geometric mechanism at a = 0.2, true count 5."""
    a, times = 0.2, 20_000 if context.quick else 400_000
    values = np.arange(-1, 12)
    exact = (1 - a) / (1 + a) * a ** np.abs(values - 5)
    drawn = 5 + geometric_noise(times, repr(epsilon_from_alpha(a)), SeededNotPrivate(context.seed))
    share = np.array([(drawn == v).mean() for v in values])
    sd = np.sqrt(exact * (1 - exact) / times)
    furthest = float((np.abs(share - exact) / np.maximum(sd, 1 / times)).max())
    findings = (
        check_number("Pr(5), (1-a)/(1+a)", 2 / 3, float(exact[6]), 1e-12),
        check_number("each step away is less likely by", 0.2, float(exact[8] / exact[7]), 1e-12),
        check_claim(
            "draws follow it", f"{times:,} exact draws, furthest {furthest:.1f} sd", furthest < 5
        ),
    )
    curves = [Curve("distribution", values, exact), Curve("drawn", values, share)]
    part = Panel("a = 0.2, true count 5", curves, "output", "probability", kind="bar")
    table = Table.of(
        ("output", "probability", "share drawn"),
        zip(values.tolist(), exact.tolist(), share.tolist(), strict=True),
    )
    return Result({"data": table}, partial(panels, [part]), findings)


def table_2(context: Context) -> Result:
    """The range-restricted geometric mechanism, its determinant and its inverse, in fractions."""
    n, a = 6, Fraction(1, 3)
    G = exact_geometric(n + 1, a)
    scale = [(1 + a) if r in (0, n) else (1 + a) / (1 - a) for r in range(n + 1)]
    stretched = G * np.array(scale, dtype=object)
    powers = np.array([[a ** abs(i - j) for j in range(n + 1)] for i in range(n + 1)], dtype=object)
    identity = remove_geometric(G, a)
    det = _compute_determinant(stretched)
    findings = (
        check_claim(
            "G' holds the powers a^|i-j|", "equal as fractions", (stretched == powers).all()
        ),
        check_claim(
            "det G' = (1 - a^2)^(n-1), n the size of the matrix", f"{det}", det == (1 - a * a) ** n
        ),
        check_claim(
            "det G > 0 (Lemma 1); with n+1 answers (1-a)^(2n-1)/(1+a)",
            "equal as fractions",
            _compute_determinant(G) == (1 - a) ** (2 * n - 1) / (1 + a),
        ),
        check_claim(
            "the inverse is tridiagonal: applied to G it gives the identity",
            "exactly",
            (identity == np.eye(n + 1, dtype=int)).all(),
        ),
    )
    shown = {"G": G.astype(float), "G'": stretched.astype(float)}
    return show_matrices(shown, findings, CELLS)


def _compute_determinant(matrix: NDArray[Any]) -> Fraction:
    """Compute the determinant by exact elimination; all pivots here are positive."""
    work, total = matrix.copy(), Fraction(1)
    for k in range(len(work)):
        total *= work[k, k]
        for i in range(k + 1, len(work)):
            work[i] = work[i] - work[i, k] / work[k, k] * work[k]
    return total


def appendix_b(context: Context) -> Result:
    """A private mechanism that cannot be derived from the geometric one."""
    query = Query.count(3)
    m = Mechanism(APPENDIX_B, query)
    answer = derivability(m, geometric(query, math.log(2)))
    column = APPENDIX_B[:3, 1]
    test = (1 + 0.25) * column[1] - 0.5 * (column[0] + column[2])
    findings = (
        check_number(
            "it is 1/2-private: tightest ratio", 0.5, math.exp(-m.realised_epsilon()), 1e-9
        ),
        check_number("the three-term test on column 1", -1 / 12, float(test), 1e-12),
        check_claim(
            "not derivable from the geometric mechanism at a = 1/2", "no remap exists", not answer
        ),
    )
    raw = remove_geometric(APPENDIX_B, 0.5)
    shown = {"M": APPENDIX_B, "inverse of G times M": raw}
    return Result(
        {"data": tabulate_cells(CELLS, shown)}, partial(heatmaps, [APPENDIX_B], ["M"]), findings
    )


def lemma_3(context: Context) -> Result:
    """From less to more private, and releases at three levels that withstand collusion."""
    a, b, size = Fraction(1, 4), Fraction(1, 2), 4
    T = exact_step(size, a, b)
    first = ("7/9", "1/9", "1/18", "1/18")
    levels = [2.0, 1.0, 0.5]
    ladder = Ladder(Query.count(5 if context.quick else 8), levels)
    coalitions = ladder.verify_coalitions()
    rows = [
        ("+".join(str(levels[k]) for k in group), levels[group[0]], int(held))
        for group, held in coalitions.items()
    ]
    independent = sum(levels)
    findings = (
        check_claim(
            "G_b = G_a T with T stochastic (a = 1/4, b = 1/2)",
            "exactly, in fractions",
            (exact_geometric(size, a) @ T == exact_geometric(size, b)).all()
            and (T >= 0).all()
            and all(sum(row) == 1 for row in T),
        ),
        check_claim(
            "first row of T: 7/9, 1/9, 1/18, 1/18",
            "equal as fractions",
            tuple(str(x) for x in T[0]) == first,
        ),
        check_claim("every level has its own epsilon", "in exact integers", bool(ladder.verify())),
        check_claim(
            "every coalition is as private as its least private member",
            f"{len(coalitions)} coalitions, independent releases would cost {independent:g}",
            all(coalitions.values()),
        ),
    )
    shown = {"step from 1/4 to 1/2": T.astype(float)}
    shown |= {f"epsilon = {float(r.epsilon):g}": r.mechanism.matrix for r in ladder.rungs}
    tables = {
        "data": Table.of(("coalition", "epsilon", "holds"), rows),
        "matrices": tabulate_cells(CELLS, shown),
    }
    return Result(tables, partial(heatmaps, list(shown.values()), list(shown)), findings)


EXPERIMENTS = (
    Experiment("gupte", "Figure 1", "The geometric mechanism at a = 0.2", "2.1", figure_1),
    Experiment("gupte", "Table 2", "G and G': determinant and inverse", "3", table_2),
    Experiment("gupte", "Lemma 3", "Several privacy levels and collusion", "4.1", lemma_3),
    Experiment("gupte", "Appendix B", "A mechanism that is not derivable", "B", appendix_b),
)
