"""Gupte and Sundararajan (2010): the geometric mechanism and its consumers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction import check
from reproduction.experiment import Context, Result, draw_values, experiment, plot, plot_values
from reproduction.matrices import parse_fractions, show_matrices, tabulate_cells
from reproduction.papers import epsilon_from_alpha
from tallyveil.certified.ladder import Ladder
from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import exact_geometric, geometric, remove_geometric
from tallyveil.optimize.design import design
from tallyveil.papers.gupte import has_lemma_5_pattern, oblivious
from tallyveil.query import Query
from tallyveil.reading.consumer import Consumer
from tallyveil.reading.derive import derivability
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sampling.noise import geometric_noise

CELLS = ("matrix", "row", "column", "value")
LN4 = "1.3862943611198906188"


TABLE_1A = parse_fractions(
    "2/3 5/17 1/25 1/98; 1/6 7/11 7/44 2/49; 2/49 7/44 7/11 1/6; 1/98 1/25 5/17 2/3"
).astype(float)
TABLE_1B = parse_fractions(
    "4/3 1/4 1/16 1/48; 1/3 1 1/4 1/12; 1/12 1/4 1 1/3; 1/48 1/16 1/4 4/3"
).astype(float)
TABLE_1C = parse_fractions("9/11 2/11 0 0; 0 1 0 0; 0 0 1 0; 0 0 2/11 9/11").astype(float)
EXACT_1A = parse_fractions(
    "272/415 489/1660 33/830 17/1660; 68/415 264/415 66/415 17/415;"
    "17/415 66/415 264/415 68/415; 17/1660 33/830 489/1660 272/415"
).astype(float)
EXACT_1C = parse_fractions("68/83 15/83 0 0; 0 1 0 0; 0 0 1 0; 0 0 15/83 68/83").astype(float)


@experiment("gupte", "Table 1", "2.5")
def table_1(context: Context) -> Result:
    """Optimal mechanism and its factors, n = 3."""
    query = Query.count(3)
    g = geometric(query, LN4)
    best = design(query, LN4, "absolute", worst_case=True)
    response = Consumer("absolute").respond(g)
    printed_loss = Mechanism(g.matrix @ TABLE_1C, query).worst_loss("absolute")
    scaled = g.matrix * 5 / 3
    findings = (
        check.numbers(
            "(a) the optimal mechanism, 16 entries",
            TABLE_1A,
            response.induced.matrix,
            1e-3,
            "The printed fractions are rounded: its rows sum to 1.011 and 1.003.",
        ),
        check.numbers(
            "(a) corrected: 272/415, 489/1660, ...", EXACT_1A, response.induced.matrix, 1e-7
        ),
        check.numbers(
            "(b) is (1+a)/(1-a) times the geometric mechanism at a = 1/4", TABLE_1B, scaled, 1e-12
        ),
        check.claim(
            "(b) carries the label a = 1/2",
            "it is a = 1/4",
            np.allclose(TABLE_1B, geometric(query, math.log(2)).matrix * 3),
            "The label should read 1/4.",
        ),
        check.numbers(
            "(c) the consumer's remap",
            TABLE_1C,
            response.remap,
            1e-3,
            "9/11 is rounded: exactly 68/83.",
        ),
        check.numbers("(c) corrected: 68/83, 15/83", EXACT_1C, response.remap, 1e-7),
        check.number("optimal loss, 168/415, over all mechanisms", 168 / 415, best.objective, 1e-7),
        check.number(
            "... and over remaps of the geometric mechanism", 168 / 415, response.loss, 1e-7
        ),
        check.number("loss of the printed remap, 357/880", 357 / 880, printed_loss, 1e-12),
        check.claim(
            "Lemma 5: between adjacent rows, columns fall by a, then at most one is free, then "
            "rise by 1/a",
            "every pair of rows",
            has_lemma_5_pattern(response.induced.matrix, 0.25),
        ),
    )
    shown = {"optimum": response.induced.matrix, "geometric": g.matrix, "remap": response.remap}
    return show_matrices(shown, findings, CELLS)


@experiment("gupte", "Theorem 1", "4.2")
def theorem_1(context: Context) -> Result:
    """Optimal for every minimax consumer."""
    losses: dict[str, Loss] = {
        "absolute": "absolute",
        "squared": "squared",
        "zero-one": "zero_one",
        "beyond 1": ("beyond", 1),
    }
    settings = (
        [(3, 0.25), (5, 0.5)] if context.quick else [(3, 0.25), (5, 0.5), (8, 0.8), (12, 0.6)]
    )
    rows: list[tuple[Any, ...]] = []
    for (n, a), (name, loss) in product(settings, losses.items()):
        query, epsilon = Query.count(n), epsilon_from_alpha(a)
        for start in (0, n // 3):
            possible = range(start, n + 1)
            options: dict[str, Any] = {"side_information": possible, "method": "lp"}
            tailored = design(query, epsilon, loss, worst_case=True, **options).objective
            answer = Consumer(loss, side_information=possible).respond(geometric(query, epsilon))
            rows.append((n, a, name, start, tailored, answer.loss))
    apart = [row[4] - row[5] for row in rows]
    anchor = next(row for row in rows if row[:4] == (3, 0.25, "absolute", 0))
    findings = (
        check.zero("tailored optimum minus remapped geometric; largest", apart, 1e-6),
        check.number("n = 3, a = 1/4, absolute loss", 168 / 415, anchor[5], 1e-7),
    )
    names = {"own optimal mechanism": 4, "geometric, remapped": 5}
    values = {(name, x): row[k] for name, k in names.items() for x, row in enumerate(rows)}
    parts = draw_values(values, f"{len(rows)} consumers", "consumer", "worst-case loss")
    columns = ("n", "a", "loss", "side information from", "own optimum", "remapped geometric")
    return plot(columns, rows, parts, findings)


@experiment("gupte", "Section 2.7", "2.7")
def section_2_7(context: Context) -> Result:
    """Bayesian and minimax consumers."""
    query = Query.count(3)
    g = geometric(query, LN4)
    minimax = Consumer("absolute").respond(g)
    bayes = Consumer("absolute", prior="uniform").respond(g)
    best = design(query, LN4, "absolute").objective
    findings = (
        check.claim(
            "a Bayesian's remap is deterministic",
            "entries 0 and 1",
            bool(np.isin(bayes.remap, (0, 1)).all()),
        ),
        check.span(
            "a minimax consumer's is randomised",
            minimax.remap[0].max(),
            "is the largest share",
            below=0.99,
        ),
        check.number(
            "the geometric mechanism is optimal for the Bayesian too", best, bayes.loss, 1e-7
        ),
    )
    shown = {"Bayesian": bayes.remap, "minimax": minimax.remap}
    return show_matrices(shown, findings, CELLS)


@experiment("gupte", "Appendix A", "A")
def appendix_a(context: Context) -> Result:
    """Oblivious mechanisms suffice."""
    bits = list(product((0, 1), repeat=3))
    answers = [sum(b) for b in bits]
    query, ratio = Query.count(3), 2.0
    tilt = {b: ratio ** (0.5 * b[0]) for b in bits}  # looks at who, not only at how many
    g = geometric(query, math.log(ratio) / 2).matrix
    rows = []
    for b, answer in zip(bits, answers, strict=True):
        weights = g[answer] * np.array([1.0, 1.0, tilt[b], tilt[b]])
        rows.append(weights / weights.sum())
    released = np.array(rows)
    pairs = [
        (i, j)
        for i, j in combinations(range(8), 2)
        if sum(x != y for x, y in zip(bits[i], bits[j], strict=True)) == 1
    ]
    before = max(float(np.abs(np.log(released[i] / released[j])).max()) for i, j in pairs)
    averaged = oblivious(released, answers, query)
    loss = np.abs(np.subtract.outer(answers, np.arange(4)))
    worst = float((released * loss).sum(axis=1).max())
    findings = (
        check.rises(
            "the average is as private as what was averaged",
            {"average": averaged.realised_epsilon(), "before": before},
            slack=1e-12,
        ),
        check.rises(
            "its worst loss is no higher",
            {"average": averaged.worst_loss("absolute"), "before": worst},
            slack=1e-12,
        ),
    )
    shown = {"per database": released, "oblivious": averaged.matrix}
    return show_matrices(shown, findings, CELLS)


APPENDIX_B = parse_fractions(
    "1/9 2/9 4/9 2/9; 2/9 1/9 2/9 4/9; 4/9 2/9 1/9 2/9; 13/18 1/9 1/18 1/9"
)


@experiment("gupte", "Figure 1", "2.1")
def figure_1(context: Context) -> Result:
    """The geometric mechanism at a = 0.2."""
    a, times = 0.2, 20_000 if context.quick else 400_000
    outputs = list(range(-1, 12))
    exact = (1 - a) / (1 + a) * a ** np.abs(np.array(outputs) - 5)
    drawn = 5 + geometric_noise(times, repr(epsilon_from_alpha(a)), SeededNotPrivate(context.seed))
    share = np.array([(drawn == v).mean() for v in outputs])
    sd = np.sqrt(exact * (1 - exact) / times)
    furthest = float((np.abs(share - exact) / np.maximum(sd, 1 / times)).max())
    findings = (
        check.number("Pr(5), (1-a)/(1+a)", 2 / 3, float(exact[6]), 1e-12),
        check.number("each step away is less likely by", 0.2, float(exact[8] / exact[7]), 1e-12),
        check.span("draws follow it", furthest, f"sd at most, {times:,} exact draws", below=5),
    )
    curves = {"distribution": exact, "drawn": share}
    bars = {(k, v): float(x) for k, y in curves.items() for v, x in zip(outputs, y, strict=True)}
    columns, title = ("which", "output", "probability"), "a = 0.2, true count 5"
    return plot_values(columns, bars, title, findings, kind="bar")


@experiment("gupte", "Table 2", "3")
def table_2(context: Context) -> Result:
    """G and G': determinant and inverse."""
    n, a = 6, Fraction(1, 3)
    G = exact_geometric(n + 1, a)
    scale = [(1 + a) if r in (0, n) else (1 + a) / (1 - a) for r in range(n + 1)]
    stretched = G * np.array(scale, dtype=object)
    powers = np.array([[a ** abs(i - j) for j in range(n + 1)] for i in range(n + 1)], dtype=object)
    identity = remove_geometric(G, a)
    det = _compute_determinant(stretched)
    findings = (
        check.equal("G' holds the powers a^|i-j|", stretched, powers),
        check.claim(
            "det G' = (1 - a^2)^(n-1), n the size of the matrix", f"{det}", det == (1 - a * a) ** n
        ),
        check.equal(
            "det G > 0 (Lemma 1); with n+1 answers (1-a)^(2n-1)/(1+a)",
            _compute_determinant(G),
            (1 - a) ** (2 * n - 1) / (1 + a),
        ),
        check.claim(
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


@experiment("gupte", "Appendix B", "B")
def appendix_b(context: Context) -> Result:
    """A mechanism that is not derivable."""
    query, matrix = Query.count(3), APPENDIX_B.astype(float)
    m = Mechanism(matrix, query)
    answer = derivability(m, geometric(query, math.log(2)))
    column = matrix[:3, 1]
    test = (1 + 0.25) * column[1] - 0.5 * (column[0] + column[2])
    findings = (
        check.number(
            "it is 1/2-private: tightest ratio", 0.5, math.exp(-m.realised_epsilon()), 1e-9
        ),
        check.number("the three-term test on column 1", -1 / 12, float(test), 1e-12),
        check.claim(
            "not derivable from the geometric mechanism at a = 1/2", "no remap exists", not answer
        ),
    )
    shown = {"M": matrix, "inverse of G times M": remove_geometric(matrix, 0.5)}
    return show_matrices({"M": m}, findings, CELLS, tabulate_cells(CELLS, shown).rows)


@experiment("gupte", "Lemma 3", "4.1")
def lemma_3(context: Context) -> Result:
    """Several privacy levels and collusion."""
    a, b, size = Fraction(1, 4), Fraction(1, 2), 4
    T = remove_geometric(exact_geometric(size, b), a)
    (first,) = parse_fractions("7/9 1/9 1/18 1/18")
    levels = [2.0, 1.0, 0.5]
    ladder = Ladder(Query.count(5 if context.quick else 8), levels)
    coalitions = ladder.verify_coalitions()
    rows = [
        ("+".join(str(levels[k]) for k in group), levels[group[0]], int(held))
        for group, held in coalitions.items()
    ]
    independent = sum(levels)
    findings = (
        check.claim(
            "G_b = G_a T with T stochastic (a = 1/4, b = 1/2)",
            "exactly, in fractions",
            (exact_geometric(size, a) @ T == exact_geometric(size, b)).all()
            and (T >= 0).all()
            and all(sum(row) == 1 for row in T),
        ),
        check.equal("first row of T: 7/9, 1/9, 1/18, 1/18", T[0], first),
        check.claim("every level has its own epsilon", "in exact integers", bool(ladder.verify())),
        check.claim(
            "every coalition is as private as its least private member",
            f"{len(coalitions)} coalitions, independent releases would cost {independent:g}",
            all(coalitions.values()),
        ),
    )
    shown = {"step from 1/4 to 1/2": T.astype(float)}
    shown |= {f"epsilon = {float(r.epsilon):g}": r.mechanism.matrix for r in ladder.rungs}
    return show_matrices(shown, findings, ("coalition", "epsilon", "holds"), rows)
