"""Cormode et al. (2018), sections 7.2 to 7.4: errors on groups of people (Figures 10 to 18).

Groups come from the Adult data (7.2) or have Binomial counts (7.3 and 7.4). Expectations are sums
over the matrix and the distribution of the true count, without sampling error. Where the paper
repeats an experiment, the spread of one repetition is computed as well.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reproduction import check
from reproduction.check import Finding
from reproduction.cormode_optima import WM_MONOTONE, WM_WEAK, build_compared, solve_program
from reproduction.data import load_adult
from reproduction.experiment import Context, Result, draw_values, experiment, plot, plot_values
from reproduction.matrices import bound_over_optima
from reproduction.papers import epsilon_from_alpha
from tallyveil.arrays import Integers
from tallyveil.certified.certify import certify
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.exponential import uniform
from tallyveil.papers.cormode import paper_loss
from tallyveil.prior import resolve_prior
from tallyveil.properties import SEVEN
from tallyveil.query import Query
from tallyveil.sampling.entropy import SeededNotPrivate

TARGETS = ("income", "gender", "young")
RATIOS = {"0.91": 10 / 11, "0.67": 2 / 3}
SIZES = (4, 8, 12)
PEOPLE = 10_000
VALLEY = (3, 4, 5, 6)
"""Errors between the two peaks of GM in Figure 14."""


def count_by_group(bits: Integers, size: int) -> Integers:
    """Count the ones in consecutive groups of `size`; an incomplete last group is left out."""
    groups = len(bits) // size
    counts: Integers = bits[: groups * size].reshape(groups, size).sum(axis=1)
    return counts


@experiment("cormode", "Figure 10", "7.2")
def figure_10(context: Context) -> Result:
    """Error probability on the Adult data."""
    bits, label, _ = load_adult(context.data, context.seed)
    sizes = [2, 4, 7, 8, 12] if context.quick else list(range(2, 15))
    repetitions = 10 if context.quick else 50
    values = {}
    for target, n in [(t, n) for t in TARGETS for n in sizes]:
        counts = count_by_group(bits[target], n)
        for name, m in build_compared(n, 0.9).items():
            wrong = 1 - np.diag(m.matrix)[counts]
            spread = float(np.sqrt((wrong * (1 - wrong)).sum())) / len(counts)
            several = spread / math.sqrt(repetitions)
            drawn = _draw_errors(m, counts, repetitions, context.seed)
            values[target, name, n] = float(wrong.mean()), several, drawn, spread
    error = {(target, n, name): value[0] for (target, name, n), value in values.items()}
    surprise = max(abs(drawn - x) / max(sd, 1e-12) for x, sd, drawn, _ in values.values())
    beaten = _count_beaten(bits, error, sizes)
    findings = (
        *_check_figure_10(error, sizes),
        check.claim(
            "... whichever of WM's optima is taken",
            f"another of them beats EM in {beaten} of {len(TARGETS) * len(sizes)} cells",
            beaten == 0,
            "The optimum with weak honesty is not unique; the symmetric one is not the best of "
            "them for these data.",
        ),
        check.span(
            f"{repetitions} repetitions: exact draws lie within 5 sd of the expectation",
            surprise,
            "sd",
            below=5,
        ),
    )
    columns = ["target", "mechanism", "n", "expected error", "sd of the mean of draws"]
    columns += [f"mean of {repetitions} draws", "sd of one repetition"]
    rows = [(*key, *value) for key, value in values.items()]
    parts = draw_values(values, "{}", "group size n", "error probability", error=True)
    return plot(columns, rows, parts, findings, label)


def _check_figure_10(
    error: dict[tuple[str, int, str], float], sizes: list[int]
) -> tuple[Finding, ...]:
    cells = [(t, n) for t in TARGETS for n in sizes]
    rivals = ("GM", WM_WEAK, "UM")
    near = {
        name: float(np.mean([abs(error[*c, name] - error[*c, "UM"]) for c in cells]))
        for name in (WM_WEAK, "GM", "EM")
    }
    guess = error["income", 4, "UM"]
    why = "That is UM's chance of a wrong answer."
    return (
        check.number("UM: correct with chance 1 - 1/(n+1), at n = 4", 0.8, 1 - guess, 1e-9, why),
        check.number("corrected: UM's chance of a wrong answer at n = 4", 0.8, guess, 1e-9),
        check.cells(
            "GM does worse than guessing",
            [error[*c, "GM"] > error[*c, "UM"] for c in cells],
            "Small groups with a rare attribute (high income) often "
            "count 0, where GM does well; from n = 7 it is worse on every target.",
        ),
        check.cells(
            "GM does worse than guessing from n = 7",
            [error[*c, "GM"] > error[*c, "UM"] for c in cells if c[1] >= 7],
        ),
        check.claim(
            "WM (weak honesty) tracks UM: nearer to it than GM and EM are, mean over cells",
            ", ".join(f"{name} {apart:.3f} from UM" for name, apart in near.items()),
            near[WM_WEAK] < min(near["GM"], near["EM"]),
        ),
        check.cells(
            "EM fares best of GM, WM (weak honesty, our symmetric optimum), EM, UM",
            [error[*c, "EM"] <= min(error[*c, k] for k in rivals) + 1e-9 for c in cells],
        ),
        check.cells(
            "EM also beats the WM of section 7.1 (WH+RM+CM)",
            [error[*c, "EM"] <= error[*c, WM_MONOTONE] + 1e-9 for c in cells],
            "Only weak honesty alone tracks UM as Figure 10's WM does; the WM of section 7.1 "
            "is a little better than EM on high income.",
        ),
    )


def _count_beaten(
    bits: dict[str, Integers], error: dict[tuple[str, int, str], float], sizes: list[int]
) -> int:
    """Count the cells where some optimum with weak honesty errs less often than EM."""
    beaten = 0
    for target, n in ((t, n) for t in TARGETS for n in sizes):
        counts = count_by_group(bits[target], n)
        truth = np.diag(np.bincount(counts, minlength=n + 1) / len(counts))
        epsilon = epsilon_from_alpha(0.9)
        right = bound_over_optima(Query.count(n), epsilon, "zero_one", truth, ("weakly_honest",))
        beaten += 1 - right < error[target, n, "EM"] - 1e-6
    return beaten


def _draw_errors(m: Mechanism, counts: Integers, times: int, seed: int) -> float:
    """Draw `times` releases of every group exactly; return the share of wrong answers."""
    labelled = Mechanism(m.matrix, m.query, m.exact_epsilon or "0.1053605156578263", name=m.name)
    repeated = np.tile(counts, times)
    released = certify(labelled).release(repeated, entropy=SeededNotPrivate(seed))
    return float((released != repeated).mean())


def _list_shares(context: Context) -> list[float]:
    return [0.1, 0.3, 0.5, 0.7, 0.9] if context.quick else [k / 20 for k in range(1, 20)]


def _list_cells(context: Context) -> list[tuple[str, int, float]]:
    return [(label, n, p) for label in RATIOS for n in SIZES for p in _list_shares(context)]


@experiment("cormode", "Figure 11", "7.3")
def figure_11(context: Context) -> Result:
    """Chance of missing by more than 1, Binomial."""
    cells = _list_cells(context)
    miss = {
        (label, n, p, name): m.expected_loss(("beyond", 1), ("binomial", p))
        for label, n, p in cells
        for name, m in build_compared(n, RATIOS[label]).items()
    }
    middle = [c for c in cells if 0.3 <= c[2] <= 0.7]
    edge = [c for c in cells if c[2] in (0.1, 0.9) and c[0] == "0.67" and c[1] == 4]
    span = {
        name: np.ptp([miss[*c, name] for c in middle if c[:2] == ("0.91", 8)])
        for name in ("GM", "EM")
    }
    merged = [miss[*c, WM_WEAK] - miss[*c, "GM"] for c in cells if c[0] == "0.67"]
    findings = (
        check.cells(
            "spread-out inputs (0.3 <= p <= 0.7): EM at least as good as GM",
            [miss[*c, "EM"] <= miss[*c, "GM"] + 1e-12 for c in middle],
        ),
        check.cells(
            "a = 0.91: GM often worse than guessing there (in more than half of the cells)",
            [miss[*c, "GM"] > miss[*c, "UM"] for c in middle if c[0] == "0.91"],
            most=True,
        ),
        check.cells(
            "very biased inputs (p = 0.1, 0.9; n = 4, a = 0.67): GM does well",
            [miss[*c, "GM"] <= miss[*c, "EM"] for c in edge],
        ),
        check.falls(
            "EM is less sensitive to the input distribution than GM (a = 0.91, n = 8)", span
        ),
        check.zero("a = 0.67: WM and GM converge, n >= 4; largest difference", merged, 1e-7),
    )
    values = {
        (label, n, name, p): (x, math.sqrt(x * (1 - x) / (PEOPLE // n)))
        for (label, n, p, name), x in miss.items()
    }
    columns = ("a", "n", "mechanism", "p", "Pr(error > 1)", "sd of one repetition")
    return plot_values(columns, values, "a = {}, n = {}", findings)


@experiment("cormode", "Figure 12", "7.3")
def figure_12(context: Context) -> Result:
    """Chance of missing by more than d, Binomial."""
    tail = {
        (label, p, name, d): m.expected_loss(("beyond", d), ("binomial", p))
        for p in (0.5, 0.3, 0.1)
        for label in RATIOS
        for name, m in build_compared(8, RATIOS[label]).items()
        for d in range(7)
    }
    columns = ("a", "p", "mechanism", "d", "Pr(error > d)")
    names = {name for _, _, name, _ in tail}
    far = range(4)
    even = [(label, d) for label in RATIOS for d in far]
    behind = {
        p: max(tail[k, p, "EM", d] - tail[k, p, "GM", d] for k, d in even) for p in (0.3, 0.1)
    }
    margin = [tail["0.91", 0.5, "GM", d] / tail["0.91", 0.5, "EM", d] for d in far]
    findings = (
        check.cells(
            "p = 0.5: EM below every other mechanism, d <= 3",
            [tail[k, 0.5, "EM", d] <= tail[k, 0.5, x, d] + 1e-9 for k, d in even for x in names],
        ),
        check.rises("p = 0.5: GM's tail over EM's grows with d (a = 0.91)", margin),
        check.cells(
            "p = 0.5, a = 0.91: GM worse than guessing",
            [tail["0.91", 0.5, "GM", d] > tail["0.91", 0.5, "UM", d] for d in far],
        ),
        check.cells(
            "p = 0.5, a = 0.67: GM much better than at 0.91, still worse than EM",
            [
                tail["0.67", 0.5, "EM", d] < tail["0.67", 0.5, "GM", d] < tail["0.91", 0.5, "GM", d]
                for d in far
            ],
        ),
        check.skip(
            "skewed input: EM not substantially worse than GM",
            "stated",
            f"d <= 3: EM's tail is above GM's by up to {behind[0.3]:.3f} at p = 0.3 and "
            f"{behind[0.1]:.3f} at p = 0.1",
            "The text gives no p, and no measure of substantial.",
        ),
        check.cells(
            "WM tends to fall between GM and EM (p = 0.5, d <= 3)",
            [
                tail[k, 0.5, "EM", d] - 1e-9
                <= tail[k, 0.5, WM_MONOTONE, d]
                <= tail[k, 0.5, "GM", d] + 1e-9
                for k, d in even
            ],
        ),
    )
    return plot_values(columns, tail, "a = {}, p = {}", findings, across=2, kind="bar")


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


RMSE_COLUMNS = ("a", "n", "mechanism", "p", "root mean squared error", "sd of one repetition")


@experiment("cormode", "Figure 13", "7.3")
def figure_13(context: Context) -> Result:
    """Root mean squared error, Binomial."""
    cells = _list_cells(context)
    values = {
        (label, n, name, p): compute_rmse(m, p)
        for label, n, p in cells
        for name, m in build_compared(n, RATIOS[label]).items()
    }
    root = {(label, n, p, name): value for (label, n, name, p), (value, _) in values.items()}
    high = [c for c in cells if c[0] == "0.91"]
    growth = [
        root[label, 4, p, name] < root[label, 12, p, name]
        for label, n, p in cells
        if n == 4
        for name in ("GM", "EM", "UM")
    ]
    eased = {f"p = {p}": root["0.91", 8, p, "EM"] for p in (0.5, 0.1)}
    findings = (
        check.cells(
            "a = 0.91: EM tends to have lower error than GM and UM",
            [root[*c, "EM"] < min(root[*c, "GM"], root[*c, "UM"]) for c in high],
            most=True,
        ),
        check.cells(
            "a = 0.91: EM tends to have lower error than WM too",
            [root[*c, "EM"] <= min(root[*c, WM_MONOTONE], root[*c, WM_WEAK]) for c in high],
            "Away from p = 0.5 the WM of section 7.1 has a slightly lower error than EM.",
            most=True,
        ),
        check.cells(
            "a = 0.91: many cases where GM is worse than guessing",
            [root[*c, "GM"] > root[*c, "UM"] for c in high],
            most=True,
        ),
        check.cells("larger groups have larger error: n = 12 above n = 4", growth),
        check.rises("p near 0.5 is easier (EM, a = 0.91, n = 8)", eased),
    )
    return plot_values(RMSE_COLUMNS, values, "a = {}, n = {}", findings)


@experiment("cormode", "Figure 14", "7.3")
def figure_14(context: Context) -> Result:
    """Error histograms for groups of 8."""
    shares = (0.1, 0.7)
    prior = {p: resolve_prior(("binomial", p), 9)[:, None] for p in shares}
    histograms = {
        (label, p, name): {e: float(np.trace(prior[p] * m.matrix, e)) for e in range(-8, 9)}
        for p in shares
        for label in RATIOS
        for name, m in build_compared(8, RATIOS[label]).items()
        if name != "UM"
    }
    peaked, dip = histograms["0.91", 0.1, "GM"], histograms["0.91", 0.7, "GM"]
    valley = max(peaked[e] for e in VALLEY)
    smooth = list(histograms["0.91", 0.7, "EM"].values())
    peak, steps = int(np.argmax(smooth)), np.diff(smooth)
    low = {name: [histograms["0.67", p, name] for p in shares] for name in (WM_WEAK, "GM")}
    findings = (
        check.cells(
            "p = 0.1: no error is the likeliest for every mechanism",
            [max(by, key=by.__getitem__) == 0 for k, by in histograms.items() if k[1] == 0.1],
        ),
        check.rises(
            "p = 0.1, a = 0.91: GM has a second peak from releasing n",
            {"Pr(+3 to +6)": valley, "Pr(+7)": peaked[7]},
        ),
        check.claim(
            "p = 0.7, a = 0.91: GM dips at zero error",
            f"Pr(0) = {dip[0]:.3f}, Pr(+2) = {dip[2]:.3f}, Pr(-6) = {dip[-6]:.3f}",
            dip[0] < dip[2] and dip[0] < dip[-6],
        ),
        check.claim(
            "EM has one smooth peak at zero (p = 0.7, a = 0.91)",
            "unimodal",
            (steps[:peak] >= -1e-12).all() and (steps[peak:] <= 1e-12).all(),
        ),
        check.zero(
            "a = 0.67: WM (weak honesty) looks like GM; largest difference",
            [w[e] - g[e] for w, g in zip(*low.values(), strict=True) for e in g],
            1e-7,
        ),
    )
    values = {(*key, e): mass for key, by in histograms.items() for e, mass in by.items()}
    columns = ("a", "p", "mechanism", "released minus true", "probability")
    return plot_values(columns, values, "a = {}, p = {}", findings, across=2, kind="bar")


PROPERTY_SETS: dict[str, tuple[str, ...]] = {
    "UCM": (),
    "WM": ("weakly_honest",),
    "FM": ("fair",),
    "AM": SEVEN,
}
NAMES = (*PROPERTY_SETS, "UM")


@lru_cache(maxsize=64)
def build_designed(n: int, label: str, loss: str) -> dict[str, Mechanism]:
    """Build UCM, WM, FM and AM for a loss, and UM."""
    designed = {
        name: solve_program(n, RATIOS[label], loss, properties)
        for name, properties in PROPERTY_SETS.items()
    }
    return {**designed, "UM": uniform(Query.count(n))}


@experiment("cormode", "Figure 15", "7.4", "RMSE of mechanisms designed for L1", loss="absolute")
@experiment("cormode", "Figure 16", "7.4", "RMSE of mechanisms designed for L2", loss="squared")
def plot_errors(context: Context, loss: str) -> Result:
    """Plot the root mean squared error of mechanisms designed for `loss`."""
    shares = _list_shares(context)
    cells = [(label, n) for label in RATIOS for n in SIZES]
    values = {
        (label, n, name, p): compute_rmse(m, p)
        for label, n in cells
        for name, m in build_designed(n, label, loss).items()
        for p in shares
    }
    root = {key: value for key, (value, _) in values.items()}
    mean = {(*c, k): np.mean([root[*c, k, p] for p in shares]) for c in cells for k in NAMES}
    expected = [
        {name: m.expected_loss(loss) for name, m in build_designed(n, label, loss).items()}
        for label, n in cells
    ]
    ratio = {(*c, name): mean[*c, name] / mean[*c, "UCM"] for c in cells for name in NAMES}
    near, far = ([ratio[*c, name] for c in cells] for name in ("WM", "AM"))
    fairer = {label: [ratio[label, n, "FM"] for n in SIZES] for label in RATIOS}
    findings = (
        check.cells(
            "UCM has the lowest expected loss it was designed for, at every setting (true by "
            "construction: a check of the solver)",
            [losses["UCM"] <= min(losses.values()) + 1e-9 for losses in expected],
        ),
        check.cells(
            "UCM among the best for RMSE: the best of all, averaged over p",
            [mean[*c, "UCM"] <= min(mean[*c, k] for k in NAMES) for c in cells],
        ),
        check.skip(
            "WM provides a similar level of accuracy",
            "stated",
            f"RMSE {min(near):.2f} to {max(near):.2f} times UCM's; AM {min(far):.2f} to "
            f"{max(far):.2f} times",
            "Similar has no measure.",
        ),
        check.claim(
            "FM does better as the group size increases: RMSE over UCM's falls",
            "; ".join(
                f"a = {label}: " + " ".join(f"{x:.2f}" for x in falling)
                for label, falling in fairer.items()
            ),
            all((np.diff(falling) < 0).all() for falling in fairer.values()),
        ),
        check.cells(
            "AM does well near p = 0.5 and worse at p = 0.1",
            [root[*c, "AM", 0.5] < root[*c, "AM", 0.1] for c in cells],
        ),
    )
    return plot_values(RMSE_COLUMNS, values, "a = {}, n = {}", findings)


@experiment("cormode", "Figure 17", "7.4", "L1,d of mechanisms designed for L1", power=1)
@experiment("cormode", "Figure 18", "7.4", "L2,d of mechanisms designed for L2", power=2)
def plot_distances(context: Context, power: int) -> Result:
    """Plot the part of the loss that comes from errors of more than d."""
    n, loss = 8, ("absolute", "squared")[power - 1]
    query = Query.count(n)
    values = {
        (label, p, name, d): m.expected_loss(paper_loss(query, f"L{power},{d}"), ("binomial", p))
        for p in (0.1, 0.6)
        for label in RATIOS
        for name, m in build_designed(n, label, loss).items()
        for d in range(7)
    }
    strict = build_designed(n, "0.91", loss)
    shares, distances = (0.1, 0.6), range(7)
    rest = ("WM", "FM", "AM")
    skewed = {name: [values["0.91", 0.1, name, d] for d in distances] for name in NAMES}
    others = [[skewed[name][d] for name in rest] for d in distances]
    balanced = [
        values[label, 0.6, "UCM", d] <= min(values[label, 0.6, k, d] for k in rest) + 1e-9
        for label in RATIOS
        for d in distances
    ]
    spread = {
        label: max(
            np.ptp([values[label, p, k, d] for k in rest]) for p in shares for d in distances
        )
        / max(values[label, p, "UM", 0] for p in shares)
        for label in RATIOS
    }
    home = strict["UCM"].matrix[:, 3:6].sum(axis=1).min()
    chance = {k: m.expected_loss(("beyond", 0), ("binomial", 0.1)) for k, m in strict.items()}
    most = max(chance[k] for k in rest)
    findings = (
        check.rises(
            "p = 0.1, larger a, small d: UCM performs worst, by probability mass (the chance of "
            "an error)",
            {"others up to": most, "UCM": chance["UCM"]},
            slack=1e-12,
        ),
        check.skip(
            f"... by L{power},0, read as the mean of |error|^{power}",
            "",
            f"UCM {skewed['UCM'][0]:.3f}, others up to {max(others[0]):.3f}",
            f"The paper does not define L{power},d; its sentence speaks of probability mass.",
        ),
        check.rises(
            "... and this reverses as d grows (d = 5)",
            {"UCM": skewed["UCM"][5], "others from": min(others[5])},
            slack=1e-12,
        ),
        check.span(
            "UCM maps most inputs close to n/2 (a = 0.91)",
            home,
            "is the least probability of outputs 3 to 5",
            above=0.5,
        ),
        check.cells("UCM preferred for balanced inputs (p = 0.6)", balanced),
        check.skip(
            "AM, FM and WM behave similarly, and almost overlap for the smaller a",
            "stated",
            "largest spread over UM's loss: "
            + ", ".join(f"{share:.3f} at a = {label}" for label, share in spread.items()),
            "Almost has no measure.",
        ),
    )
    columns = ("a", "p", "mechanism", "d", f"L{power},d")
    return plot_values(columns, values, "a = {}, p = {}", findings, across=2)
