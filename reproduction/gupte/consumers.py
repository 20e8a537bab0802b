"""Gupte and Sundararajan (2010): what minimax and Bayesian consumers make of a release."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, product

import numpy as np

from reproduction.experiment import (
    Context,
    Experiment,
    Result,
    Table,
    check_claim,
    check_number,
    check_numbers,
)
from reproduction.matrices import parse_fractions, show_matrices
from reproduction.papers import epsilon_from_alpha
from tallyveil.figures import Curve, Panel, panels
from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import design
from tallyveil.papers.gupte import has_lemma_5_pattern, oblivious
from tallyveil.query import Query
from tallyveil.reading.consumer import Consumer

__all__ = ["EXPERIMENTS"]

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


def table_1(context: Context) -> Result:
    """The optimal mechanism of a minimax consumer, and its two factors."""
    query = Query.count(3)
    g = geometric(query, LN4)
    best = design(query, LN4, "absolute", worst_case=True)
    response = Consumer("absolute").respond(g)
    printed_loss = Mechanism(g.matrix @ TABLE_1C, query).worst_loss("absolute")
    scaled = g.matrix * 5 / 3
    findings = (
        check_numbers(
            "(a) the optimal mechanism, 16 entries",
            TABLE_1A,
            response.induced.matrix,
            1e-3,
            "The printed fractions are rounded: its rows sum to 1.011 and 1.003.",
        ),
        check_numbers(
            "(a) corrected: 272/415, 489/1660, ...",
            EXACT_1A,
            response.induced.matrix,
            1e-7,
        ),
        check_numbers(
            "(b) is (1+a)/(1-a) times the geometric mechanism at a = 1/4",
            TABLE_1B,
            scaled,
            1e-12,
        ),
        check_claim(
            "(b) carries the label a = 1/2",
            "it is a = 1/4",
            np.allclose(TABLE_1B, geometric(query, math.log(2)).matrix * 3),
            "The label should read 1/4.",
        ),
        check_numbers(
            "(c) the consumer's remap",
            TABLE_1C,
            response.remap,
            1e-3,
            "9/11 is rounded: exactly 68/83.",
        ),
        check_numbers(
            "(c) corrected: 68/83, 15/83",
            EXACT_1C,
            response.remap,
            1e-7,
        ),
        check_number("optimal loss, 168/415, over all mechanisms", 168 / 415, best.objective, 1e-7),
        check_number(
            "... and over remaps of the geometric mechanism", 168 / 415, response.loss, 1e-7
        ),
        check_number("loss of the printed remap, 357/880", 357 / 880, printed_loss, 1e-12),
        check_claim(
            "Lemma 5: between adjacent rows, columns fall by a, then at most one is free, then "
            "rise by 1/a",
            "every pair of rows",
            has_lemma_5_pattern(response.induced.matrix, 0.25),
        ),
    )
    shown = {"optimum": response.induced.matrix, "geometric": g.matrix, "remap": response.remap}
    return show_matrices(shown, findings, CELLS)


def theorem_1(context: Context) -> Result:
    """Every minimax consumer does as well with the geometric mechanism as with their own."""
    losses: dict[str, Loss] = {
        "absolute": "absolute",
        "squared": "squared",
        "zero-one": "zero_one",
        "beyond 1": ("beyond", 1),
    }
    settings = (
        [(3, 0.25), (5, 0.5)] if context.quick else [(3, 0.25), (5, 0.5), (8, 0.8), (12, 0.6)]
    )
    rows = []
    for (n, a), (name, loss) in product(settings, losses.items()):
        query, epsilon = Query.count(n), epsilon_from_alpha(a)
        for start in (0, n // 3):
            possible = range(start, n + 1)
            own = design(
                query, epsilon, loss, worst_case=True, side_information=possible, method="lp"
            )
            answer = Consumer(loss, side_information=possible).respond(geometric(query, epsilon))
            rows.append((n, a, name, start, own.objective, answer.loss))
    worst = max(abs(row[4] - row[5]) for row in rows)
    anchor = next(row for row in rows if row[:4] == (3, 0.25, "absolute", 0))
    findings = (
        check_number("tailored optimum minus remapped geometric; largest", 0.0, worst, 1e-6),
        check_number("n = 3, a = 1/4, absolute loss", 168 / 415, anchor[5], 1e-7),
    )
    x = list(range(len(rows)))
    part = Panel(
        f"{len(rows)} consumers",
        [
            Curve("own optimal mechanism", x, [row[4] for row in rows]),
            Curve("geometric, remapped", x, [row[5] for row in rows]),
        ],
        "consumer",
        "worst-case loss",
    )
    columns = ("n", "a", "loss", "side information from", "own optimum", "remapped geometric")
    return Result({"data": Table.of(columns, rows)}, partial(panels, [part]), findings)


def section_2_7(context: Context) -> Result:
    """Bayesian consumers remap deterministically, minimax ones at random (section 2.7)."""
    query = Query.count(3)
    g = geometric(query, LN4)
    minimax = Consumer("absolute").respond(g)
    bayes = Consumer("absolute", prior="uniform").respond(g)
    own = design(query, LN4, "absolute")
    findings = (
        check_claim(
            "a Bayesian's remap is deterministic",
            "entries 0 and 1",
            bool(np.isin(bayes.remap, (0, 1)).all()),
        ),
        check_claim(
            "a minimax consumer's is randomised",
            f"largest share {minimax.remap[0].max():.4f}",
            minimax.remap[0].max() < 0.99,
        ),
        check_number(
            "the geometric mechanism is optimal for the Bayesian too",
            own.objective,
            bayes.loss,
            1e-7,
        ),
    )
    shown = {"Bayesian": bayes.remap, "minimax": minimax.remap}
    return show_matrices(shown, findings, CELLS)


def appendix_a(context: Context) -> Result:
    """Averaging over databases with the same answer keeps privacy and loses nothing (Lemma 6)."""
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
        check_claim(
            "the average is as private as what was averaged",
            f"epsilon {averaged.realised_epsilon():.4f} <= {before:.4f}",
            averaged.realised_epsilon() <= before + 1e-12,
        ),
        check_claim(
            "its worst loss is no higher",
            f"{averaged.worst_loss('absolute'):.4f} <= {worst:.4f}",
            averaged.worst_loss("absolute") <= worst + 1e-12,
        ),
    )
    shown = {"per database": released, "oblivious": averaged.matrix}
    return show_matrices(shown, findings, CELLS)


EXPERIMENTS = (
    Experiment("gupte", "Table 1", "Optimal mechanism and its factors, n = 3", "2.5", table_1),
    Experiment("gupte", "Theorem 1", "Optimal for every minimax consumer", "4.2", theorem_1),
    Experiment("gupte", "Section 2.7", "Bayesian and minimax consumers", "2.7", section_2_7),
    Experiment("gupte", "Appendix A", "Oblivious mechanisms suffice", "A", appendix_a),
)
