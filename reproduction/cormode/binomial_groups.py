"""Cormode et al. (2018), section 7.3: error on groups with Binomial counts (Figures 11 to 14).

Expectations are sums over the matrix and the distribution of the true count, without sampling
error.
Where the paper repeats an experiment, the spread of one repetition is computed as well.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from reproduction.cormode.compared import WM_MONOTONE, WM_WEAK, build_compared
from reproduction.experiment import (
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    check_claim,
    check_number,
    skip_check,
)
from tallyveil.figures import Curve, Panel, panels
from tallyveil.mechanism import Mechanism

__all__ = ["EXPERIMENTS"]

TARGETS = ("income", "gender", "young")
RATIOS = {"0.91": 10 / 11, "0.67": 2 / 3}
PEOPLE = 10_000
VALLEY = (3.0, 4.0, 5.0, 6.0)
"""Errors between the two peaks of GM in Figure 14."""


def _list_cells(context: Context) -> list[tuple[str, int, float]]:
    shares = [0.1, 0.3, 0.5, 0.7, 0.9] if context.quick else [k / 20 for k in range(1, 20)]
    return [(label, n, p) for label in RATIOS for n in (4, 8, 12) for p in shares]


def figure_11(context: Context) -> Result:
    """The chance of missing by more than one, for Binomial groups."""
    cells = _list_cells(context)
    miss = {
        (label, n, p, name): m.expected_loss(("beyond", 1), ("binomial", p))
        for label, n, p in cells
        for name, m in build_compared(n, RATIOS[label]).items()
    }
    rows = [
        (*key, value, math.sqrt(value * (1 - value) / (PEOPLE // key[1])))
        for key, value in miss.items()
    ]
    middle = [c for c in cells if 0.3 <= c[2] <= 0.7]
    best = sum(miss[*c, "EM"] <= miss[*c, "GM"] + 1e-12 for c in middle)
    edge = [c for c in cells if c[2] in (0.1, 0.9) and c[0] == "0.67" and c[1] == 4]
    span = {
        name: np.ptp(
            [miss["0.91", 8, p, name] for label, n, p in middle if (label, n) == ("0.91", 8)]
        )
        for name in ("GM", "EM")
    }
    merged = [abs(miss[*c, WM_WEAK] - miss[*c, "GM"]) for c in cells if c[0] == "0.67"]
    private = [c for c in middle if c[0] == "0.91"]
    worst = [c for c in private if miss[*c, "GM"] > miss[*c, "UM"]]
    findings = (
        check_claim(
            "spread-out inputs (0.3 <= p <= 0.7): EM at least as good as GM",
            f"in {best} of {len(middle)} cells",
            best == len(middle),
        ),
        check_claim(
            "a = 0.91: GM often worse than guessing there (in more than half of the cells)",
            f"in {len(worst)} of {len(private)} cells",
            len(worst) > len(private) / 2,
        ),
        check_claim(
            "very biased inputs (p = 0.1, 0.9; n = 4, a = 0.67): GM does well",
            "GM at most EM's error",
            all(miss[*c, "GM"] <= miss[*c, "EM"] for c in edge),
        ),
        check_claim(
            "EM is less sensitive to the input distribution than GM (a = 0.91, n = 8)",
            f"range {span['EM']:.3f} against {span['GM']:.3f}",
            span["EM"] < span["GM"],
        ),
        check_number(
            "a = 0.67: WM and GM converge, n >= 4; largest difference", 0.0, max(merged), 1e-7
        ),
    )
    table = Table.of(("a", "n", "p", "mechanism", "Pr(error > 1)", "sd of one repetition"), rows)
    return Result(
        {"data": table}, partial(panels, _plot_by_share(miss, cells, "Pr(error > 1)")), findings
    )


def _plot_by_share(
    values: dict[tuple[str, int, float, str], float], cells: list[tuple[str, int, float]], what: str
) -> list[Panel]:
    names = list(dict.fromkeys(key[3] for key in values))
    shares = sorted({p for _, _, p in cells})
    return [
        Panel(
            f"a = {label}, n = {n}",
            [Curve(name, shares, [values[label, n, p, name] for p in shares]) for name in names],
            "p",
            what,
        )
        for label, n in dict.fromkeys((label, n) for label, n, _ in cells)
    ]


def figure_12(context: Context) -> Result:
    """The chance of missing by more than d, n = 8."""
    shares, distances = (0.5, 0.3, 0.1), list(range(7))
    tail = {
        (label, p, name, d): m.expected_loss(("beyond", d), ("binomial", p))
        for label in RATIOS
        for p in shares
        for name, m in build_compared(8, RATIOS[label]).items()
        for d in distances
    }
    names = list(build_compared(8, 2 / 3))
    rows = [(*key, value) for key, value in tail.items()]
    parts = [
        Panel(
            f"a = {label}, p = {p}",
            [
                Curve(name, distances, [tail[label, p, name, d] for d in distances])
                for name in names
            ],
            "d",
            "Pr(error > d)",
            kind="bar",
        )
        for p in shares
        for label in RATIOS
    ]
    table = Table.of(("a", "p", "mechanism", "d", "Pr(error > d)"), rows)
    return Result({"data": table}, partial(panels, parts, columns=2), _check_figure_12(tail))


def _check_figure_12(tail: dict[tuple[str, float, str, int], float]) -> tuple[Finding, ...]:
    """Check what section 7.3 says of the tails."""
    names = {name for _, _, name, _ in tail}
    far = range(4)
    even = [(label, d) for label in RATIOS for d in far]
    behind = {
        p: max(tail[k, p, "EM", d] - tail[k, p, "GM", d] for k, d in even) for p in (0.3, 0.1)
    }
    margin = [tail["0.91", 0.5, "GM", d] / tail["0.91", 0.5, "EM", d] for d in (0, 1, 2, 3)]
    return (
        check_claim(
            "p = 0.5: EM below every other mechanism, d <= 3",
            "at both a",
            all(
                tail[label, 0.5, "EM", d] <= tail[label, 0.5, name, d] + 1e-9
                for label, d in even
                for name in names
            ),
        ),
        check_claim(
            "p = 0.5: GM's tail over EM's grows with d (a = 0.91)",
            " ".join(f"{x:.2f}" for x in margin),
            (np.diff(margin) > 0).all(),
        ),
        check_claim(
            "p = 0.5, a = 0.91: GM worse than guessing",
            "for d = 0..3",
            all(tail["0.91", 0.5, "GM", d] > tail["0.91", 0.5, "UM", d] for d in far),
        ),
        check_claim(
            "p = 0.5, a = 0.67: GM much better than at 0.91, still worse than EM",
            "for d = 0..3",
            all(
                tail["0.67", 0.5, "EM", d] < tail["0.67", 0.5, "GM", d] < tail["0.91", 0.5, "GM", d]
                for d in far
            ),
        ),
        skip_check(
            "skewed input: EM not substantially worse than GM",
            "stated",
            f"d <= 3: EM's tail is above GM's by up to {behind[0.3]:.3f} at p = 0.3 and "
            f"{behind[0.1]:.3f} at p = 0.1",
            "The text gives no p, and no measure of substantial.",
        ),
        check_claim(
            "WM tends to fall between GM and EM (p = 0.5, d <= 3)",
            "at both a",
            all(
                tail[k, 0.5, "EM", d] - 1e-9
                <= tail[k, 0.5, WM_MONOTONE, d]
                <= tail[k, 0.5, "GM", d] + 1e-9
                for k, d in even
            ),
        ),
    )


def compute_rmse(m: Mechanism, p: float) -> tuple[float, float]:
    """Compute the RMSE on Binomial groups, and the sd of one repetition's estimate of it.

    The sd of a root is that of the mean square over twice the root (delta method), with
    10,000 people in groups of n.
    """
    prior = ("binomial", p)
    second, fourth = m.expected_loss("squared", prior), m.expected_loss(("power", 4), prior)
    root = math.sqrt(second)
    groups = PEOPLE // (len(m.query.inputs) - 1)
    return root, math.sqrt((fourth - second**2) / groups) / (2 * root)


def figure_13(context: Context) -> Result:
    """Root mean squared error on Binomial groups."""
    cells = _list_cells(context)
    both = {
        (label, n, p, name): compute_rmse(m, p)
        for label, n, p in cells
        for name, m in build_compared(n, RATIOS[label]).items()
    }
    root = {key: value for key, (value, _) in both.items()}
    high = [c for c in cells if c[0] == "0.91"]
    wins = sum(root[*c, "EM"] < min(root[*c, "GM"], root[*c, "UM"]) for c in high)
    lowest = sum(root[*c, "EM"] <= min(root[*c, WM_MONOTONE], root[*c, WM_WEAK]) for c in high)
    losing = sum(root[*c, "GM"] > root[*c, "UM"] for c in high)
    growth = all(
        root[label, 4, p, name] < root[label, 12, p, name]
        for label, n, p in cells
        if n == 4
        for name in ("GM", "EM", "UM")
    )
    middle = root["0.91", 8, 0.5, "EM"] < root["0.91", 8, 0.1, "EM"]
    findings = (
        check_claim(
            "a = 0.91: EM tends to have lower error than GM and UM",
            f"in {wins} of {len(high)} cells",
            wins > len(high) / 2,
        ),
        check_claim(
            "a = 0.91: EM tends to have lower error than WM too",
            f"in {lowest} of {len(high)} cells",
            lowest > 0.5 * len(high),
            "Away from p = 0.5 the WM of section 7.1 has a slightly lower error than EM.",
        ),
        check_claim(
            "a = 0.91: many cases where GM is worse than guessing",
            f"{losing} of {len(high)} cells",
            losing > len(high) / 2,
        ),
        check_claim("larger groups have larger error", "n = 12 above n = 4 everywhere", growth),
        check_claim(
            "p near 0.5 is easier (EM, a = 0.91, n = 8)",
            f"{root['0.91', 8, 0.5, 'EM']:.3f} against {root['0.91', 8, 0.1, 'EM']:.3f}",
            middle,
        ),
    )
    rows = [(*key, *value) for key, value in both.items()]
    table = Table.of(("a", "n", "p", "mechanism", "RMSE", "sd of one repetition"), rows)
    parts = _plot_by_share(root, cells, "root mean squared error")
    return Result({"data": table}, partial(panels, parts), findings)


def figure_14(context: Context) -> Result:
    """How far the released count is off, in groups of 8."""
    shares = (0.1, 0.7)
    histograms = {
        (label, p, name): m.error_histogram(("binomial", p))
        for label in RATIOS
        for p in shares
        for name, m in build_compared(8, RATIOS[label]).items()
        if name != "UM"
    }
    at = {
        key: dict(zip(errors.tolist(), mass.tolist(), strict=True))
        for key, (errors, mass) in histograms.items()
    }
    gm = at["0.91", 0.1, "GM"]
    dip = at["0.91", 0.7, "GM"]
    smooth = at["0.91", 0.7, "EM"]
    findings = (
        check_claim(
            "p = 0.1: no error is the likeliest for every mechanism",
            "at both a",
            all(max(by, key=by.__getitem__) == 0 for key, by in at.items() if key[1] == 0.1),
        ),
        check_claim(
            "p = 0.1, a = 0.91: GM has a second peak from releasing n",
            f"Pr(+7) = {gm[7.0]:.3f} above Pr(+3 to +6) = {max(gm[e] for e in VALLEY):.3f}",
            gm[7.0] > max(gm[e] for e in VALLEY),
        ),
        check_claim(
            "p = 0.7, a = 0.91: GM dips at zero error",
            f"Pr(0) = {dip[0.0]:.3f}, Pr(+2) = {dip[2.0]:.3f}, Pr(-6) = {dip[-6.0]:.3f}",
            dip[0.0] < dip[2.0] and dip[0.0] < dip[-6.0],
        ),
        check_claim(
            "EM has one smooth peak at zero (p = 0.7, a = 0.91)",
            "unimodal",
            _is_unimodal(list(smooth.values())),
        ),
        check_number(
            "a = 0.67: WM (weak honesty) looks like GM; largest difference",
            0.0,
            max(
                abs(at["0.67", p, WM_WEAK][e] - at["0.67", p, "GM"][e])
                for p in shares
                for e in at["0.67", p, "GM"]
            ),
            1e-7,
        ),
    )
    rows = [(*key, error, mass) for key, by in at.items() for error, mass in by.items()]
    names = [name for name in build_compared(8, 2 / 3) if name != "UM"]
    parts = [
        Panel(
            f"a = {label}, p = {p}",
            [Curve(name, *histograms[label, p, name]) for name in names],
            "released minus true",
            "probability",
            kind="bar",
        )
        for p in shares
        for label in RATIOS
    ]
    table = Table.of(("a", "p", "mechanism", "error", "probability"), rows)
    return Result({"data": table}, partial(panels, parts, columns=2), findings)


def _is_unimodal(values: list[float]) -> bool:
    peak = int(np.argmax(values))
    steps = np.diff(values)
    return bool((steps[:peak] >= -1e-12).all() and (steps[peak:] <= 1e-12).all())


EXPERIMENTS = (
    Experiment(
        "cormode", "Figure 11", "Chance of missing by more than 1, Binomial", "7.3", figure_11
    ),
    Experiment(
        "cormode", "Figure 12", "Chance of missing by more than d, Binomial", "7.3", figure_12
    ),
    Experiment("cormode", "Figure 13", "Root mean squared error, Binomial", "7.3", figure_13),
    Experiment("cormode", "Figure 14", "Error histograms for groups of 8", "7.3", figure_14),
)
