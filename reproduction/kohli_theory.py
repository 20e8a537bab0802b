"""Kohli and Laskowski (2026): Examples 1 and 2, the work of Algorithm 1, small formulas."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from reproduction import check
from reproduction.check import STANDARD_ERRORS, Finding, standard_error
from reproduction.experiment import Context, Result, experiment, plot_values
from reproduction.matrices import parse_fractions, show_matrices
from tallyveil.certified.certify import certify
from tallyveil.mechanisms.additive import staircase
from tallyveil.mechanisms.geometric import geometric
from tallyveil.mechanisms.transport import transport
from tallyveil.papers.kohli.greedy import greedy_run
from tallyveil.papers.kohli.pipeline import released_share_variance
from tallyveil.papers.kohli.polytope import (
    Matrix,
    exact_scales,
    extreme_mechanisms,
    extreme_representations,
    is_affinely_simplified,
    is_extreme,
    is_linearly_simplified,
    patterns,
    peak_weights,
)
from tallyveil.query import Query
from tallyveil.sampling.entropy import SeededNotPrivate

THIRD = [Fraction(1, 3)] * 3
GROWTH = 2  # e^epsilon at epsilon = ln 2


PSI = parse_fractions("4/7 2/5 1/4 1/7; 2/7 1/5 1/2 2/7; 1/7 2/5 1/4 4/7")
B1 = parse_fractions("0 0 0; 1 0 2/3; 0 1 1/3; 0 0 0")
B2 = parse_fractions("0 0 14/30; 1 0 0; 0 1 2/30; 0 0 14/30")
B3 = parse_fractions("5/6 0 1/3; 0 0 0; 0 0 2/3; 1/6 1 0")
B4 = parse_fractions("7/6 0 0; 0 0 0; 2/3 0 0; 7/6 0 0")
B5 = parse_fractions("0 0 0; 5/3 0 0; 4/3 0 0; 0 0 0")
B6 = parse_fractions("7/6 0 0; 0 0 0; 0 0 2/3; 7/6 0 0")


@experiment("kohli", "Example 1", "Appendix B")
def example_1(context: Context) -> Result:
    """Vertices of the fixed-point mechanisms."""
    vertices = extreme_mechanisms(3, GROWTH, THIRD)
    first, third = PSI @ B1, PSI @ B3
    findings = (
        check.number("vertices of F", 36, len(vertices), 0),
        check.number("vertices of R_F", 78, len(extreme_representations(3, GROWTH, THIRD)), 0),
        check.equal(
            "the four scales are those printed",
            sorted(map(tuple, exact_scales(3, GROWTH).T)),
            sorted(map(tuple, PSI.T)),
        ),
        check.claim(
            "B1 and B2 are vertices of R_F",
            "affinely simplified",
            is_affinely_simplified(B1, PSI, THIRD) and is_affinely_simplified(B2, PSI, THIRD),
        ),
        check.claim(
            "... with the same image, a vertex of F",
            "equal as fractions",
            (first == PSI @ B2).all() and is_extreme(first, GROWTH, THIRD),
        ),
        check.claim(
            "B3 is a vertex of R_F, its image none of F",
            "as stated",
            is_affinely_simplified(B3, PSI, THIRD) and not is_extreme(third, GROWTH, THIRD),
        ),
    )
    shown = {"image of B1: a vertex": first, "image of B3: none": third}
    return _show_vertices(vertices, shown, findings)


@experiment("kohli", "Example 2", "Appendix D")
def example_2(context: Context) -> Result:
    """Vertices of all private mechanisms."""
    vertices = extreme_mechanisms(3, GROWTH)
    fourth, sixth = PSI @ B4, PSI @ B6
    findings = (
        check.number("vertices of U", 27, len(vertices), 0),
        check.number("vertices of R_U", 36, len(extreme_representations(3, GROWTH)), 0),
        check.claim(
            "B4 and B5 are vertices of R_U with the same image, a vertex of U",
            "equal as fractions",
            is_linearly_simplified(B4, PSI)
            and is_linearly_simplified(B5, PSI)
            and (fourth == PSI @ B5).all()
            and is_extreme(fourth, GROWTH),
        ),
        check.claim(
            "B6 is a vertex of R_U, its image none of U",
            "as stated",
            is_linearly_simplified(B6, PSI) and not is_extreme(sixth, GROWTH),
        ),
    )
    shown = {"image of B4: a vertex": fourth, "image of B6: none": sixth}
    return _show_vertices(vertices, shown, findings)


def _show_vertices(
    vertices: list[Matrix], shown: dict[str, Matrix], findings: tuple[Finding, ...]
) -> Result:
    rows = [(k, i, j, str(p)) for k, T in enumerate(vertices) for (i, j), p in np.ndenumerate(T)]
    return show_matrices(shown, findings, ("vertex", "true", "released", "probability"), rows)


@experiment("kohli", "Table 2", "Appendix C")
def table_2(context: Context) -> Result:
    """Work of Algorithm 1."""
    sizes = [3, 10, 40, 100] if context.quick else [3, 10, 40, 100, 300, 1000]
    used = {("bound 2n - 1", n): 2 * n - 1 for n in sizes}
    for n, selector in product(sizes, ("max", "min", "sandwich")):
        weights = (0.93 ** np.arange(n)) + 0.02
        used[selector, n] = greedy_run(weights / weights.sum(), 0.5, selector).scales
    third = greedy_run([1 / 3] * 3, "0.6931471805599453", "sandwich").mechanism
    best = transport(Query.count(2), "0.6931471805599453", [1 / 3] * 3)
    expected = [4 / 7, 2 / 7, 1 / 7, 2 / 7, 3 / 7, 2 / 7, 1 / 7, 2 / 7, 4 / 7]
    findings = (
        check.claim(
            "at most 2n - 1 scales (Theorem 5)",
            ", ".join(f"{used['sandwich', n]} of {2 * n - 1}" for n in sizes),
            all(scales <= 2 * n - 1 for (_, n), scales in used.items()),
        ),
        check.numbers(
            "n = 3, uniform, ln 2: the sandwich selector's matrix", expected, third.matrix, 1e-12
        ),
        check.number(
            "... its count error, the optimum 4/7",
            4 / 7,
            best.expected_loss("absolute", [1 / 3] * 3),
            1e-12,
        ),
    )
    columns = ("selector", "n", "scales used")
    return plot_values(columns, used, "Algorithm 1", findings, log="xy")


@experiment("kohli", "Formulas", "4 and 5")
def formulas(context: Context) -> Result:
    """Observation 3, scales, staircase, footnote 1."""
    n, query = 5, Query.count(4)
    epsilon = "0.6931471805599453"
    omega = peak_weights(3, epsilon)
    printed = (-0.291667, 0.333333, -0.291667)  # the formula of Observation 3, letter by letter
    half = staircase(query, epsilon, gamma=0.5)
    z = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    t = transport(query, epsilon, z)
    records, times = 400, 300 if context.quick else 3000
    table = np.repeat(np.arange(n), (z * records).round().astype(int))
    certified, source = certify(t), SeededNotPrivate(context.seed)
    shares = np.array(
        [np.bincount(certified.release(table, source), minlength=n) / records for _ in range(times)]
    )
    formula = released_share_variance(t, z, records)
    squares = (shares - z) ** 2  # the mean of every share is known: transport keeps z
    errors = np.array([standard_error(column) for column in squares.T])
    off = float((np.abs(squares.mean(axis=0) - formula) / errors).max())
    findings = (
        check.numbers(
            "Observation 3 as printed gives omega at n = 3, ln 2",
            printed,
            omega,
            1e-9,
            "The factors print e^epsilon for e^-epsilon; as printed they do not even give "
            "positive weights.",
        ),
        check.numbers("corrected: 7/6, 2/3, 7/6", [7 / 6, 2 / 3, 7 / 6], omega, 1e-12),
        check.number("number of scales, 2^(n-1), n = 5", 16, len(patterns(n)), 0),
        check.zero(
            "staircase at gamma = 1/2 is the truncated geometric; largest difference",
            half.matrix - geometric(query, epsilon).matrix,
            1e-12,
        ),
        check.span(
            "footnote 1: variance of the released shares",
            off,
            f"standard errors at most, {times} releases",
            below=STANDARD_ERRORS,
        ),
    )
    variances = {"formula": formula, "simulated": shares.var(axis=0)}
    values = {(name, j): float(by[j]) for name, by in variances.items() for j in range(n)}
    title = "variance of the released share"
    return plot_values(("which", "count", "variance"), values, title, findings, kind="bar")
