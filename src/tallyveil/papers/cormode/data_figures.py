"""Paper 000: error on groups of people (Figures 10 to 14).

Expectations are sums over the matrix and the law of the true count, without sampling error.
Where the paper repeats an experiment, the spread of one repetition is computed as well.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tallyveil.certified.certify import certify
from tallyveil.figures import Curve, Panel, panels
from tallyveil.mechanism import Mechanism
from tallyveil.papers.harness.data import adult
from tallyveil.papers.harness.experiment import (
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    holds,
    number,
)
from tallyveil.papers.harness.paper_terms import named
from tallyveil.sampling.entropy import SeededNotPrivate

__all__ = ["EXPERIMENTS"]

TARGETS = ("income", "gender", "young")
RATIOS = {"0.91": 10 / 11, "0.67": 2 / 3}
PEOPLE = 10_000
TIGHT, WEAK = "WM (column monotone)", "WM (weak honesty)"


def group_counts(bits: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Ones in consecutive groups of `size`; the rest that fills no group is left out."""
    groups = len(bits) // size
    counts: NDArray[np.int64] = bits[: groups * size].reshape(groups, size).sum(axis=1)
    return counts


def figure_10(context: Context) -> Result:
    """How often a group's released count is wrong, on the Adult data, a = 0.9."""
    bits, label, _ = adult(context.data, context.seed)
    sizes = [2, 4, 7, 8, 12] if context.quick else list(range(2, 15))
    repetitions = 10 if context.quick else 50
    rows = []
    for target, n in context.track([(t, n) for t in TARGETS for n in sizes]):
        counts = group_counts(bits[target], n)
        for name, m in named(n, 0.9).items():
            wrong = 1 - np.diag(m.matrix)[counts]
            expected = float(wrong.mean())
            spread = float(np.sqrt((wrong * (1 - wrong)).sum())) / len(counts)
            drawn = _drawn_errors(m, counts, repetitions, context.seed)
            rows.append((target, n, name, expected, spread, drawn, spread / math.sqrt(repetitions)))
    table = Table.of(("target", "n", "mechanism", "expected error", "sd of one repetition",
                      f"mean of {repetitions} draws", "sd of that mean"), rows)  # fmt: skip
    error = {(target, n, name): value for target, n, name, value, *_ in rows}
    surprise = max(abs(row[5] - row[3]) / max(row[6], 1e-12) for row in rows)
    drawn_too = holds(f"{repetitions} repetitions: exact draws lie within 5 sd of the expectation",
                      f"furthest {surprise:.1f} sd", surprise < 5)  # fmt: skip
    parts = [
        Panel(target, [
            Curve(name, sizes, [error[target, n, name] for n in sizes],
                  [r[6] for r in rows if r[0] == target and r[2] == name])
            for name in named(2, 0.9)
        ], "group size n", "error probability")
        for target in TARGETS
    ]  # fmt: skip
    findings = (*_figure_10_claims(error, sizes), drawn_too)
    return Result({"data": table}, partial(panels, parts), findings, label)


def _figure_10_claims(
    error: dict[tuple[str, int, str], float], sizes: list[int]
) -> tuple[Finding, ...]:
    cells = [(t, n) for t in TARGETS for n in sizes]
    rivals = ("GM", WEAK, "UM")
    best = sum(error[*c, "EM"] <= min(error[*c, k] for k in rivals) + 1e-9 for c in cells)
    best_of_all = sum(error[*c, "EM"] <= error[*c, TIGHT] + 1e-9 for c in cells)
    worse = [c for c in cells if error[*c, "GM"] > error[*c, "UM"]]
    near = max(abs(error[*c, WEAK] - error[*c, "UM"]) for c in cells)
    return (
        number("UM: correct with chance 1 - 1/(n+1), at n = 4", 0.8, 1 - error["income", 4, "UM"],
               1e-9, "That is UM's chance of a wrong answer."),
        number("corrected: UM's chance of a wrong answer at n = 4", 0.8,
               error["income", 4, "UM"], 1e-9),
        holds("GM does worse than guessing", f"in {len(worse)} of {len(cells)} cells",
              len(worse) == len(cells), "Small groups with a rare attribute (high income) often "
              "count 0, where GM does well; from n = 7 it is worse on every target."),
        holds("GM does worse than guessing from n = 7", "in every cell",
              all(c in worse for c in cells if c[1] >= 7)),
        holds("WM (weak honesty) tracks UM closely", f"at most {near:.3f} apart", near < 0.03),
        holds("EM fares best of GM, WM (weak honesty), EM, UM",
              f"in {best} of {len(cells)} cells", best == len(cells)),
        holds("EM also beats the WM of section 7.1 (WH+RM+CM)",
              f"in {best_of_all} of {len(cells)} cells", best_of_all == len(cells),
              "Only weak honesty alone tracks UM as Figure 10's WM does; the WM of section 7.1 "
              "is a little better than EM on high income."),
    )  # fmt: skip


def _drawn_errors(m: Mechanism, counts: NDArray[np.int64], times: int, seed: int) -> float:
    """The share of wrong answers in `times` releases of every group, by exact draws."""
    labelled = Mechanism(m.matrix, m.query, m.exact_epsilon or "0.1053605156578263", name=m.name)
    certified = certify(labelled)
    source = SeededNotPrivate(seed)
    repeated = np.tile(counts, times)
    return float((certified.release(repeated, entropy=source) != repeated).mean())


def _binomial_cells(context: Context) -> list[tuple[str, int, float]]:
    shares = [0.1, 0.3, 0.5, 0.7, 0.9] if context.quick else [k / 20 for k in range(1, 20)]
    return [(label, n, p) for label in RATIOS for n in (4, 8, 12) for p in shares]


def figure_11(context: Context) -> Result:
    """The chance of missing by more than one, for Binomial groups."""
    cells = _binomial_cells(context)
    miss = {
        (label, n, p, name): m.expected_loss(("beyond", 1), ("binomial", p))
        for label, n, p in context.track(cells)
        for name, m in named(n, RATIOS[label]).items()
    }
    rows = [(*key, value, math.sqrt(value * (1 - value) / (PEOPLE // key[1])))
            for key, value in miss.items()]  # fmt: skip
    middle = [c for c in cells if 0.3 <= c[2] <= 0.7]
    best = sum(miss[*c, "EM"] <= miss[*c, "GM"] + 1e-12 for c in middle)
    edge = [c for c in cells if c[2] in (0.1, 0.9) and c[0] == "0.67" and c[1] == 4]
    span = {
        name: np.ptp(
            [miss["0.91", 8, p, name] for label, n, p in middle if (label, n) == ("0.91", 8)]
        )
        for name in ("GM", "EM")
    }
    merged = [abs(miss[*c, WEAK] - miss[*c, "GM"]) for c in cells if c[0] == "0.67"]
    worst = [c for c in middle if c[0] == "0.91" and miss[*c, "GM"] > miss[*c, "UM"]]
    findings = (
        holds("spread-out inputs (0.3 <= p <= 0.7): EM at least as good as GM",
              f"in {best} of {len(middle)} cells", best == len(middle)),
        holds("a = 0.91: GM often worse than guessing there", f"in {len(worst)} cells",
              len(worst) > 0),
        holds("very biased inputs (p = 0.1, 0.9; n = 4, a = 0.67): GM does well",
              "GM at most EM's error", all(miss[*c, "GM"] <= miss[*c, "EM"] for c in edge)),
        holds("EM is less sensitive to the input distribution than GM (a = 0.91, n = 8)",
              f"range {span['EM']:.3f} against {span['GM']:.3f}", span["EM"] < span["GM"]),
        number("a = 0.67: WM and GM converge, n >= 4; largest difference", 0.0, max(merged), 1e-7),
    )  # fmt: skip
    table = Table.of(("a", "n", "p", "mechanism", "Pr(error > 1)", "sd of one repetition"), rows)
    return Result({"data": table}, partial(panels, _by_share(miss, cells, "Pr(error > 1)")),
                  findings)  # fmt: skip


def _by_share(
    values: dict[tuple[str, int, float, str], float], cells: list[tuple[str, int, float]], what: str
) -> list[Panel]:
    names = list(dict.fromkeys(key[3] for key in values))
    shares = sorted({p for _, _, p in cells})
    return [
        Panel(f"a = {label}, n = {n}", [
            Curve(name, shares, [values[label, n, p, name] for p in shares]) for name in names
        ], "p", what)
        for label, n in dict.fromkeys((label, n) for label, n, _ in cells)
    ]  # fmt: skip


def figure_12(context: Context) -> Result:
    """The chance of missing by more than d, n = 8."""
    shares, distances = (0.5, 0.3, 0.1), list(range(7))
    tail = {
        (label, p, name, d): m.expected_loss(("beyond", d), ("binomial", p))
        for label in RATIOS
        for p in shares
        for name, m in named(8, RATIOS[label]).items()
        for d in distances
    }
    names = list(named(8, 2 / 3))
    far = [d for d in distances if d <= 3]
    even = [(label, d) for label in RATIOS for d in far]
    behind = {p: max(tail[k, p, "EM", d] - tail[k, p, "GM", d] for k, d in even) for p in shares}
    margin = [tail["0.91", 0.5, "GM", d] / tail["0.91", 0.5, "EM", d] for d in (0, 1, 2, 3)]
    findings = (
        holds("p = 0.5: EM below every other mechanism, d <= 3",
              "at both a", all(tail[label, 0.5, "EM", d] <= tail[label, 0.5, name, d] + 1e-9
                               for label, d in even for name in names)),
        holds("p = 0.5: GM's tail over EM's grows with d (a = 0.91)",
              " ".join(f"{x:.2f}" for x in margin), (np.diff(margin) > 0).all()),
        holds("p = 0.5, a = 0.91: GM worse than guessing", "for d = 0..3",
              all(tail["0.91", 0.5, "GM", d] > tail["0.91", 0.5, "UM", d] for d in far)),
        holds("p = 0.5, a = 0.67: GM much better than at 0.91, still worse than EM", "for d = 0..3",
              all(tail["0.67", 0.5, "EM", d] < tail["0.67", 0.5, "GM", d]
                  < tail["0.91", 0.5, "GM", d] for d in far)),
        holds("skewed input (p = 0.1): EM not substantially worse than GM, d <= 3",
              f"up to {behind[0.1]:.3f} more", behind[0.1] < 0.05,
              "At p = 0.1 EM's tail is up to twice GM's; the statement holds from p = 0.3."),
        holds("... at p = 0.3", f"up to {behind[0.3]:.3f} more", behind[0.3] < 0.05),
        holds("WM tends to fall between GM and EM (p = 0.5, d <= 3)", "at both a",
              all(tail[k, 0.5, "EM", d] - 1e-9 <= tail[k, 0.5, TIGHT, d]
                  <= tail[k, 0.5, "GM", d] + 1e-9 for k, d in even)),
    )  # fmt: skip
    rows = [(*key, value) for key, value in tail.items()]
    parts = [
        Panel(f"a = {label}, p = {p}", [
            Curve(name, distances, [tail[label, p, name, d] for d in distances]) for name in names
        ], "d", "Pr(error > d)", kind="bar")
        for p in shares for label in RATIOS
    ]  # fmt: skip
    table = Table.of(("a", "p", "mechanism", "d", "Pr(error > d)"), rows)
    return Result({"data": table}, partial(panels, parts, columns=2), findings)


def rmse_with_spread(m: Mechanism, p: float) -> tuple[float, float]:
    """Root mean squared error on Binomial groups, and the sd of one repetition's estimate.

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
    cells = _binomial_cells(context)
    both = {
        (label, n, p, name): rmse_with_spread(m, p)
        for label, n, p in context.track(cells)
        for name, m in named(n, RATIOS[label]).items()
    }
    root = {key: value for key, (value, _) in both.items()}
    high = [c for c in cells if c[0] == "0.91"]
    wins = sum(root[*c, "EM"] < min(root[*c, "GM"], root[*c, "UM"]) for c in high)
    lowest = sum(root[*c, "EM"] <= min(root[*c, TIGHT], root[*c, WEAK]) for c in high)
    losing = sum(root[*c, "GM"] > root[*c, "UM"] for c in high)
    growth = all(
        root[label, 4, p, name] < root[label, 12, p, name]
        for label, n, p in cells if n == 4 for name in ("GM", "EM", "UM")
    )  # fmt: skip
    middle = root["0.91", 8, 0.5, "EM"] < root["0.91", 8, 0.1, "EM"]
    findings = (
        holds("a = 0.91: EM tends to have lower error than GM and UM",
              f"in {wins} of {len(high)} cells", wins >= 0.8 * len(high)),
        holds("a = 0.91: EM tends to have lower error than WM too",
              f"in {lowest} of {len(high)} cells", lowest > 0.5 * len(high),
              "Away from p = 0.5 the WM of section 7.1 has a slightly lower error than EM."),
        holds("a = 0.91: many cases where GM is worse than guessing",
              f"{losing} of {len(high)} cells", losing > len(high) / 2),
        holds("larger groups have larger error", "n = 12 above n = 4 everywhere", growth),
        holds("p near 0.5 is easier (EM, a = 0.91, n = 8)",
              f"{root['0.91', 8, 0.5, 'EM']:.3f} against {root['0.91', 8, 0.1, 'EM']:.3f}", middle),
    )  # fmt: skip
    rows = [(*key, *value) for key, value in both.items()]
    table = Table.of(("a", "n", "p", "mechanism", "RMSE", "sd of one repetition"), rows)
    parts = _by_share(root, cells, "root mean squared error")
    return Result({"data": table}, partial(panels, parts), findings)


def figure_14(context: Context) -> Result:
    """How far the released count is off, in groups of 8."""
    shares = (0.1, 0.7)
    histograms = {
        (label, p, name): m.error_histogram(("binomial", p))
        for label in RATIOS for p in shares for name, m in named(8, RATIOS[label]).items()
        if name != "UM"
    }  # fmt: skip
    at = {key: dict(zip(errors.tolist(), mass.tolist(), strict=True))
          for key, (errors, mass) in histograms.items()}  # fmt: skip
    gm = at["0.91", 0.1, "GM"]
    dip = at["0.91", 0.7, "GM"]
    smooth = at["0.91", 0.7, "EM"]
    findings = (
        holds("p = 0.1: no error is the likeliest for every mechanism", "at both a",
              all(max(by, key=by.__getitem__) == 0 for key, by in at.items() if key[1] == 0.1)),
        holds("p = 0.1, a = 0.91: GM has a second peak from releasing n",
              f"Pr(+7) = {gm[7.0]:.3f} above Pr(+4) = {gm[4.0]:.3f}", gm[7.0] > 2 * gm[4.0]),
        holds("p = 0.7, a = 0.91: GM dips at zero error",
              f"Pr(0) = {dip[0.0]:.3f}, Pr(+2) = {dip[2.0]:.3f}, Pr(-6) = {dip[-6.0]:.3f}",
              dip[0.0] < dip[2.0] and dip[0.0] < dip[-6.0]),
        holds("EM has one smooth peak at zero (p = 0.7, a = 0.91)", "unimodal",
              _unimodal(list(smooth.values()))),
        number("a = 0.67: WM (weak honesty) looks like GM; largest difference", 0.0,
               max(abs(at["0.67", p, WEAK][e] - at["0.67", p, "GM"][e])
                   for p in shares for e in at["0.67", p, "GM"]), 1e-7),
    )  # fmt: skip
    rows = [(*key, error, mass) for key, by in at.items() for error, mass in by.items()]
    names = [name for name in named(8, 2 / 3) if name != "UM"]
    parts = [
        Panel(f"a = {label}, p = {p}", [
            Curve(name, *histograms[label, p, name]) for name in names
        ], "released minus true", "probability", kind="bar")
        for p in shares for label in RATIOS
    ]  # fmt: skip
    table = Table.of(("a", "p", "mechanism", "error", "probability"), rows)
    return Result({"data": table}, partial(panels, parts, columns=2), findings)


def _unimodal(values: list[float]) -> bool:
    peak = int(np.argmax(values))
    steps = np.diff(values)
    return bool((steps[:peak] >= -1e-12).all() and (steps[peak:] <= 1e-12).all())


EXPERIMENTS = (
    Experiment("000-figure-10", "000", "Figure 10", "Error probability on the Adult data",
               "7.2", figure_10),
    Experiment("000-figure-11", "000", "Figure 11", "Chance of missing by more than 1, Binomial",
               "7.3", figure_11),
    Experiment("000-figure-12", "000", "Figure 12", "Chance of missing by more than d, Binomial",
               "7.3", figure_12),
    Experiment("000-figure-13", "000", "Figure 13", "Root mean squared error, Binomial", "7.3",
               figure_13),
    Experiment("000-figure-14", "000", "Figure 14", "Error histograms for groups of 8", "7.3",
               figure_14),
)  # fmt: skip
