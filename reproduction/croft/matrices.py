"""Croft et al. (2020): the four printed matrices (Tables 1 to 4)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from reproduction.experiment import (
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    check_claim,
    check_number,
    check_numbers,
)
from reproduction.optimal_face import bound_spread
from tallyveil.arrays import Floats
from tallyveil.figures import heatmaps
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.additive import laplace
from tallyveil.papers.croft import VARIANT_2, is_minimal, variant1, variant2
from tallyveil.query import Query

__all__ = ["EXPERIMENTS"]

HALF_DIGIT = 5.1e-4  # three printed decimals

# one released answer per row, as printed
TABLE_1 = (
    (0.559, 0.441, 0.344, 0.268, 0.208),
    (0.098, 0.118, 0.098, 0.076, 0.059),
    (0.076, 0.098, 0.118, 0.098, 0.076),
    (0.059, 0.076, 0.098, 0.118, 0.098),
    (0.208, 0.268, 0.344, 0.441, 0.559),
)
TABLE_2 = (
    (0.322, 0.322, 0.119, 0.119, 0.119),
    (0.322, 0.322, 0.220, 0.119, 0.119),
    (0.119, 0.119, 0.322, 0.119, 0.119),
    (0.119, 0.119, 0.220, 0.322, 0.322),
    (0.119, 0.119, 0.119, 0.322, 0.322),
)
TABLE_3 = (
    (0, 0, 0, 0, 0, 0),
    (0.771, 0.622, 0.378, 0.229, 0.139, 0.084),
    (0.090, 0.149, 0.245, 0.149, 0.091, 0.055),
    (0.055, 0.090, 0.149, 0.245, 0.149, 0.090),
    (0.084, 0.139, 0.229, 0.378, 0.622, 0.771),
    (0, 0, 0, 0, 0, 0),
)
TABLE_4 = (
    (0.315, 0.191, 0.116, 0.070, 0.043, 0.026),
    (0.315, 0.315, 0.191, 0.116, 0.070, 0.043),
    (0.231, 0.265, 0.315, 0.191, 0.116, 0.070),
    (0.070, 0.116, 0.191, 0.315, 0.265, 0.231),
    (0.043, 0.070, 0.116, 0.191, 0.315, 0.315),
    (0.026, 0.043, 0.070, 0.116, 0.191, 0.315),
)


def _show_printed(
    m: Mechanism, printed: object, title: str, findings: tuple[Finding, ...]
) -> Result:
    paper: Floats = np.array(printed, dtype=float).T
    rows = [
        (float(m.query.inputs[i]), float(m.query.outputs[j]), paper[i, j], float(p))
        for (i, j), p in np.ndenumerate(m.matrix)
    ]
    table = Table.of(("true", "released", "paper", "ours"), rows)
    draw = partial(heatmaps, [paper, m.matrix], [f"{title}, printed", "ours"])
    return Result({"data": table}, draw, findings)


def _check_entries(m: Mechanism, printed: object, claim: str, reason: str = "") -> Finding:
    paper = np.array(printed, dtype=float).T
    return check_numbers(claim, paper, m.matrix, HALF_DIGIT, reason)


def table_1(context: Context) -> Result:
    """Boundary-snapping Laplace on a five-point scale, epsilon = 1."""
    m = laplace(Query.maximum(1, 5), 1.0)
    outside = math.exp(-0.5)  # Laplace noise of scale 4 beyond 2
    findings = (
        _check_entries(m, TABLE_1, "25 probabilities"),
        check_number("true answer 3: share of the Laplace mass outside 1..5", 0.60, outside, 0.01),
        check_claim(
            "true answer 2: 5 is over twice as likely as 2",
            f"{m.matrix[1, 4] / m.matrix[1, 1]:.2f} times",
            m.matrix[1, 4] > 2 * m.matrix[1, 1],
        ),
        check_claim(
            "true answer 3: 1 and 5 nearly three times as likely as 3",
            f"{m.matrix[2, 0] / m.matrix[2, 2]:.2f} times",
            2.8 < m.matrix[2, 0] / m.matrix[2, 2] < 3.05,
        ),
    )
    return _show_printed(m, TABLE_1, "Table 1", findings)


def table_2(context: Context) -> Result:
    """LP Variant 2 on the same query: one of several optima."""
    query = Query.maximum(1, 5)
    d = variant2(query, 1.0)
    printed = np.array(TABLE_2).T
    cost = float((printed * np.abs(np.subtract.outer(query.inputs, query.outputs))).sum() / 5)
    findings = (
        check_number(
            "expected error of the printed matrix (3 digits, so within 0.0005 sum |i-j| / 5)",
            d.objective,
            cost,
            4e-3,
        ),
        check_number("optimal value of an independent solver", 1.151924198, d.objective, 1e-6),
        _check_entries(
            d.mechanism,
            TABLE_2,
            "25 probabilities",
            "The optimum is not unique: entries vary by up to 0.2 at the same expected "
            "error; ours is another of them.",
        ),
        check_number(
            "entries of two optima differ by up to (errata, Croft 7)",
            0.2037,
            bound_spread(query, 1.0, "absolute", VARIANT_2),
            5e-5,
        ),
        check_claim(
            "monotone in rows and columns, symmetric, fair",
            "all hold",
            all(d.mechanism.has(p, 1e-7) for p in VARIANT_2),
        ),
        check_number(
            "probability of the truth", 0.322, float(d.mechanism.matrix[2, 2]), HALF_DIGIT
        ),
    )
    return _show_printed(d.mechanism, TABLE_2, "Table 2", findings)


def table_3(context: Context) -> Result:
    """LP Variant 1 for a count from 0 to 5, epsilon = 0.5: unique."""
    d = variant1(Query.count(5), 0.5)
    corrected = tuple(tuple(0.090 if x == 0.091 else x for x in row) for row in TABLE_3)
    findings = (
        _check_entries(
            d.mechanism,
            TABLE_3,
            "36 probabilities",
            "One entry is misprinted: 0.091 should be 0.090.",
        ),
        _check_entries(d.mechanism, corrected, "36 probabilities, with 0.090 for 0.091"),
        check_number("optimal value of an independent solver", 1.0605371965, d.objective, 1e-6),
        check_number("never reports 0 or 5", 0.0, float(d.mechanism.matrix[:, [0, 5]].max()), 1e-7),
        check_number(
            "unique: entries of two optima differ by at most",
            0.0,
            bound_spread(d.mechanism.query, 0.5, "absolute"),
            1e-5,
        ),
        check_claim(
            "Corollary 1: no private mechanism is smaller (Definition 8)",
            "none is",
            is_minimal(d.mechanism),
        ),
        check_claim(
            "... while snapped Laplace at the same epsilon is not minimal",
            "a smaller one exists",
            not is_minimal(laplace(d.mechanism.query, 0.5)),
        ),
    )
    return _show_printed(d.mechanism, TABLE_3, "Table 3", findings)


def table_4(context: Context) -> Result:
    """LP Variant 2 for a count from 0 to 5, epsilon = 0.5: unique."""
    d = variant2(Query.count(5), 0.5)
    findings = (
        _check_entries(d.mechanism, TABLE_4, "36 probabilities"),
        check_number("optimal value of an independent solver", 1.1381033484, d.objective, 1e-6),
        check_number(
            "unique: entries of two optima differ by at most",
            0.0,
            bound_spread(d.mechanism.query, 0.5, "absolute", VARIANT_2),
            1e-5,
        ),
    )
    return _show_printed(d.mechanism, TABLE_4, "Table 4", findings)


EXPERIMENTS = (
    Experiment("croft", "Table 1", "Boundary-snapping Laplace, range 1 to 5", "1.1", table_1),
    Experiment("croft", "Table 2", "LP Variant 2, range 1 to 5", "1.1", table_2),
    Experiment("croft", "Table 3", "LP Variant 1, count 0 to 5", "3.4", table_3),
    Experiment("croft", "Table 4", "LP Variant 2, count 0 to 5", "3.4", table_4),
)
