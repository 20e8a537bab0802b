"""Cormode et al. (2018): the closed forms as printed (Example 1, Figures 3, 4, 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np

from reproduction.cormode.compared import WM_WEAK, build_compared, fair_diagonal
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
from reproduction.matrices import show_matrices
from reproduction.papers import epsilon_from_alpha
from tallyveil.figures import heatmaps
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.exponential import fair
from tallyveil.mechanisms.geometric import exact_geometric, geometric
from tallyveil.papers.cormode import rescaled_loss
from tallyveil.properties import SEVEN
from tallyveil.query import Query

__all__ = ["EXPERIMENTS"]

Settings: TypeAlias = dict[tuple[int, float], dict[str, Mechanism]]
Test: TypeAlias = Callable[[int, float, dict[str, Mechanism]], bool]

FIGURE_4 = (  # powers of a, released answer per row as printed
    (0, 1, 2, 3, 4, 4, 4, 4),
    (1, 0, 1, 2, 3, 3, 3, 3),
    (1, 1, 0, 1, 2, 3, 3, 3),
    (2, 2, 1, 0, 1, 2, 2, 2),
    (2, 2, 2, 1, 0, 1, 2, 2),
    (3, 3, 3, 2, 1, 0, 1, 1),
    (3, 3, 3, 3, 2, 1, 0, 1),
    (4, 4, 4, 4, 3, 2, 1, 0),
)


def example_1(context: Context) -> Result:
    """Two people, a = 9/10: the geometric mechanism seldom tells the truth about 1."""
    m = geometric(Query.count(2), epsilon_from_alpha(0.9)).matrix
    findings = (
        check_number("Pr(0 | 1)", 0.47, m[1, 0], 0.005),
        check_number("Pr(2 | 1)", 0.47, m[1, 2], 0.005),
        check_number("Pr(1 | 1), the truth", 0.05, m[1, 1], 0.005),
        check_number("Pr(0 | 0)", 0.53, m[0, 0], 0.005),
        check_number(
            "a wrong answer is how many times likelier", 18, (1 - m[1, 1]) / m[1, 1], 1e-9
        ),
    )
    return show_matrices({"GM": m}, findings)


def figure_3(context: Context) -> Result:
    """The geometric mechanism's matrix, entry by entry, and the noise it comes from."""
    n, a = 6, Fraction(9, 10)
    exact = exact_geometric(n + 1, a)
    x, y = 1 / (1 + a), (1 - a) / (1 + a)
    printed = [
        [(x if r in (0, n) else y) * a ** abs(i - r) for r in range(n + 1)] for i in range(n + 1)
    ]
    m = geometric(Query.count(n), epsilon_from_alpha(0.9)).matrix
    misprint = float((1 + 2 * (1 - a) / a) / (1 + a))  # sum of (1-a)^|d| / (1+a) over all d
    findings = (
        check_claim(
            "entries are x a^|i-j| and y a^|i-j|", "equal as fractions", exact.tolist() == printed
        ),
        check_numbers(
            "the same in doubles",
            [float(p) for row in printed for p in row],
            m,
            1e-15,
        ),
        check_number(
            "Definition 4's noise sums to",
            1.0,
            misprint,
            1e-9,
            "In the text we have, Definition 4 reads (1-a)^|d|/(1+a); the noise is (1-a)/(1+a) "
            "a^|d|. A symbol may have been lost when the text was extracted.",
        ),
        check_number(
            "rescaled zero-one loss, 2a/(1+a)",
            2 * 0.9 / 1.9,
            rescaled_loss(geometric(Query.count(n), epsilon_from_alpha(0.9))),
            1e-12,
        ),
    )
    return show_matrices({"GM, n = 6, a = 0.9": m}, findings)


def figure_4(context: Context) -> Result:
    """The explicit fair mechanism for seven people: powers of a, all seven properties."""
    a = 0.9
    m = fair(Query.count(7), epsilon_from_alpha(a))
    y = fair_diagonal(7, a)
    printed = [y * a**power for row in FIGURE_4 for power in row]
    even_rule = (1 - a) / (1 + a - 2 * a ** (7 / 2 + 1))
    total = even_rule * sum(a ** row[0] for row in FIGURE_4)
    findings = (
        check_numbers("the powers of a", printed, m.matrix.T, 1e-14),
        check_claim("all seven properties hold", "all hold", all(m.has(name) for name in SEVEN)),
        check_number(
            "probabilities sum to, with the printed y",
            1.0,
            total,
            1e-9,
            "The printed y = (1-a)/(1+a-2a^(n/2+1)) is for even n; for odd n it is "
            "(1-a)/((1+a)(1-a^((n+1)/2))).",
        ),
    )
    return show_matrices({"EM, n = 7, a = 0.9": m.matrix}, findings)


def figure_6(context: Context) -> Result:
    """Which named mechanism has which property, and what it costs."""
    settings = [(5, 0.4), (5, 2 / 3), (5, 0.9), (24, 2 / 3)]
    found = {setting: build_compared(*setting) for setting in settings}
    rows = [
        (n, a, name, *(int(m.has(key, 1e-7)) for key in SEVEN), rescaled_loss(m))
        for (n, a), ms in found.items()
        for name, m in ms.items()
    ]
    far = found[24, 2 / 3]
    em, near = rescaled_loss(far["EM"]), rescaled_loss(far["GM"]) * 25 / 24
    findings = (
        *(_check_everywhere(claim, found, test) for claim, test in FIGURE_6.items()),
        check_number("EM costs about 2a/(1+a) (n+1)/n, at n = 24, a = 2/3", near, em, 2e-3),
    )
    table = Table.of(("n", "a", "mechanism", *SEVEN, "L0"), rows)
    shown = found[5, 0.9]
    draw = partial(heatmaps, [m.matrix for m in shown.values()], list(shown))
    return Result({"data": table}, draw, findings)


def _check_everywhere(claim: str, found: Settings, test: Test) -> Finding:
    failed = [f"n = {n}, a = {a:.3g}" for (n, a), ms in found.items() if not test(n, a, ms)]
    got = f"holds at all {len(found)} settings" if not failed else "fails at " + "; ".join(failed)
    return check_claim(claim, got, not failed)


FIGURE_6: dict[str, Test] = {
    "GM: symmetric and row monotone, not fair": lambda n, a, ms: (
        ms["GM"].has("symmetric") and ms["GM"].has("row_monotone") and not ms["GM"].has("fair")
    ),
    "GM: column monotone iff a <= 1/2 (Lemma 4)": lambda n, a, ms: (
        ms["GM"].has("column_monotone") == (a <= 0.5)
    ),
    "GM: weakly honest iff n >= 2a/(1-a) (Lemma 3)": lambda n, a, ms: (
        ms["GM"].has("weakly_honest") == (n >= 2 * a / (1 - a))
    ),
    "WM: weakly honest": lambda n, a, ms: ms[WM_WEAK].has("weakly_honest", 1e-7),
    "EM and UM: every property": lambda n, a, ms: all(
        ms["EM"].has(p) and ms["UM"].has(p) for p in SEVEN
    ),
    "GM costs 2a/(1+a), UM costs 1": lambda n, a, ms: (
        abs(rescaled_loss(ms["GM"]) - 2 * a / (1 + a)) < 1e-12
        and abs(rescaled_loss(ms["UM"]) - 1) < 1e-12
    ),
    "WM costs at least GM's and at most EM's": lambda n, a, ms: (
        rescaled_loss(ms["GM"]) - 1e-9
        <= rescaled_loss(ms[WM_WEAK])
        <= rescaled_loss(ms["EM"]) + 1e-9
    ),
}


def figure_7(context: Context) -> Result:
    """Heatmaps for four people, and how often each tells the truth."""
    shown = build_compared(4, 0.9)
    other = build_compared(4, 10 / 11)
    truth = {name: 1 - m.error_probability() for name, m in shown.items()}
    truth_other = {name: 1 - m.error_probability() for name, m in other.items()}
    why = "The printed 0.224 and 0.238 belong to a = 10/11, not to the stated a = 0.9."
    gm, em = shown["GM"].matrix, shown["EM"].matrix
    findings = (
        check_number("EM tells the truth, a = 0.9", 0.224, truth["EM"], 5e-4, why),
        check_number("GM tells the truth, a = 0.9", 0.238, truth["GM"], 5e-4, why),
        check_number("EM tells the truth, a = 10/11", 0.224, truth_other["EM"], 5e-4),
        check_number("GM tells the truth, a = 10/11", 0.238, truth_other["GM"], 5e-4),
        check_claim(
            "GM puts most mass on 0 and 4 whatever the input",
            f"at least {gm[:, [0, 4]].sum(axis=1).min():.3f}",
            gm[:, [0, 4]].sum(axis=1).min() > 0.5,
        ),
        check_claim(
            "EM has a uniform diagonal, the likeliest output",
            f"{em[0, 0]:.4f} everywhere",
            np.ptp(np.diag(em)) < 1e-12 and (em.argmax(axis=1) == np.arange(5)).all(),
        ),
        check_claim(
            "WM lies between the two",
            f"{truth['EM']:.4f} <= {truth[WM_WEAK]:.4f} <= {truth['GM']:.4f}",
            truth["EM"] <= truth[WM_WEAK] + 1e-9 <= truth["GM"] + 2e-9,
        ),
    )
    return show_matrices({name: m.matrix for name, m in shown.items()}, findings)


EXPERIMENTS = (
    Experiment("cormode", "Example 1", "GM for two people at a = 9/10", "2.2", example_1),
    Experiment("cormode", "Figure 3", "Structure of GM", "5.3", figure_3),
    Experiment("cormode", "Figure 4", "Explicit fair mechanism for n = 7", "6.2", figure_4),
    Experiment(
        "cormode", "Figure 6", "Properties and cost of the named mechanisms", "6.3", figure_6
    ),
    Experiment("cormode", "Figure 7", "Heatmaps of GM, WM and EM for n = 4", "6.3", figure_7),
)
