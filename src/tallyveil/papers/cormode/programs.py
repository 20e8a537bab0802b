"""Paper 000: what the linear programs find (Figures 1, 2, 5, 8 and 9, Theorem 3)."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from tallyveil.figures import Curve, Panel, heatmaps, panels
from tallyveil.loss import Loss, loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.fair import fair
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import design
from tallyveil.papers.cormode.choose import choose
from tallyveil.papers.harness.experiment import (
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    holds,
    number,
)
from tallyveil.papers.harness.paper_terms import epsilon_at, named, program, rescaled_loss
from tallyveil.properties import SEVEN
from tallyveil.query import Query

__all__ = ["EXPERIMENTS"]

HEATMAPS: tuple[tuple[int, Loss, str], ...] = (
    (5, "absolute", "L1, n = 5"),
    (7, "absolute", "L1, n = 7"),
    (4, "squared", "L2, n = 4"),
    (5, ("beyond", 1), "L0,1, n = 5"),
)
CELLS = ("mechanism", "true", "released", "probability")
SHORT = {
    "row_honest": "RH",
    "row_monotone": "RM",
    "column_honest": "CH",
    "column_monotone": "CM",
}
WITH_WEAK_HONESTY = (  # section 7.1: the nine combinations
    (), ("row_honest",), ("row_monotone",), ("column_honest",), ("column_monotone",),
    ("row_honest", "column_honest"), ("row_honest", "column_monotone"),
    ("row_monotone", "column_honest"), ("row_monotone", "column_monotone"),
)  # fmt: skip


def largest_least_mass(n: int, loss: Loss, outputs: tuple[int, ...], ratio: float) -> float:
    """An upper bound, over every optimal mechanism, on its least chance of these outputs.

    For a mechanism M optimal for the loss and any weights w on the inputs,
    min_i M(outputs | i) <= sum_i w_i M(outputs | i) <= (best - best of loss - d w 1) / d.
    The weight goes to the input that releases them least often.
    """
    query, epsilon, step = Query.count(n), epsilon_at(ratio), 1e-3
    table = loss_table(query, loss)
    plain = design(query, epsilon, table)
    least = int(plain.mechanism.matrix[:, list(outputs)].sum(axis=1).argmin())
    bent = table.copy()
    bent[least, list(outputs)] -= step * (n + 1)
    bent += step * (n + 1)  # losses must not be negative; a constant changes no optimum
    lowest = design(query, epsilon, bent).lower_bound - step * (n + 1)
    return (plain.objective - lowest) / step


def figure_1(context: Context) -> Result:
    """Unconstrained optima have gaps and spikes at a = 0.62."""
    a = 0.62
    epsilon = epsilon_at(a)
    found = [design(Query.count(n), epsilon, loss).mechanism for n, loss, _ in HEATMAPS]
    bounds = {
        "L1": largest_least_mass(7, "absolute", (2, 5), a),
        "L2": largest_least_mass(4, "squared", (2,), a),
        "L0,1": largest_least_mass(5, ("beyond", 1), (1, 4), a),
    }
    gaps = [int((m.matrix.max(axis=0) < 1e-7).sum()) for m in found]
    constant = design(Query.count(4), epsilon_at(0.8), "squared").objective
    why = "At the stated a = 0.62 no optimal mechanism does this: ours bounds all of them."
    findings = (
        holds("every one of them never reports some outputs", f"gaps: {gaps}", min(gaps) > 0),
        number("L1, n = 7: Pr(2 or 5) at least", 0.7, bounds["L1"], 0.005, why),
        number("L2, n = 4: Pr(2) at least", 1.0, bounds["L2"], 0.005, why),
        number("L0,1, n = 5: Pr(1 or 4) at least", 0.9, bounds["L0,1"], 0.005, why),
        number("corrected, L1: at most", 0.112, bounds["L1"], 0.003),
        number("corrected, L2: at most", 0.29, bounds["L2"], 0.008),
        number("corrected, L0,1: at most (it is a itself)", 0.62, bounds["L0,1"], 0.003),
        number("L2, n = 4, stronger privacy a = 0.8: always reporting 2 is optimal, loss", 2.0,
               constant, 1e-6),
    )  # fmt: skip
    return _heatmap_result(found, [title for _, _, title in HEATMAPS], findings)


def figure_2(context: Context) -> Result:
    """With all seven properties the gaps and spikes are gone."""
    epsilon = epsilon_at(0.62)
    found = [
        design(Query.count(n), epsilon, loss, properties=SEVEN).mechanism for n, loss, _ in HEATMAPS
    ]
    within = 1 - found[2].loss_by_input(("beyond", 1)).max()
    spikes = max(float((m.matrix - np.diag(m.matrix)[:, None]).max()) for m in found)
    optima = (1.1648251059192412, 1.356323799159234, 2.024225514490827, 0.3726058670923965)
    values = [
        m.expected_loss(loss) * ((n + 1) / n if title.startswith("L0") else 1)
        for m, (n, loss, title) in zip(found, HEATMAPS, strict=True)
    ]
    findings = (
        holds("no gaps: every output has positive probability",
              f"least {min(float(m.matrix.min()) for m in found):.3f}",
              min(float(m.matrix.min()) for m in found) > 1e-3),
        holds("no spikes: no output is likelier than the truth", f"excess {spikes:.1e}",
              spikes < 1e-7),
        number("L2, n = 4: within 1 of the truth with probability at least", 2 / 3, within, 1e-3,
               "The exact probability is 0.6647, two thousandths below 2/3."),
        number("corrected: within 1 with probability at least", 0.6647, within, 2e-4),
        *(number(f"optimum of an independent solver, {title}", want, got, 1e-6)
          for want, got, (_, _, title) in zip(optima, values, HEATMAPS, strict=True)),
    )  # fmt: skip
    return _heatmap_result(found, [title for _, _, title in HEATMAPS], findings)


def _heatmap_result(
    found: list[Mechanism], titles: list[str], findings: tuple[Finding, ...]
) -> Result:
    cells = [
        (title, i, j, float(p))
        for m, title in zip(found, titles, strict=True)
        for (i, j), p in np.ndenumerate(m.matrix)
    ]
    draw = partial(heatmaps, [m.matrix for m in found], titles)
    return Result({"data": Table.of(CELLS, cells)}, draw, tuple(findings))


def figure_5(context: Context) -> Result:
    """All 128 sets of properties need only four mechanisms under the zero-one loss."""
    settings = [(4, 0.62), (4, 0.9)] if context.quick else [(4, 0.62), (4, 0.9), (7, 0.9)]
    subsets = [s for k in range(8) for s in combinations(SEVEN, k)]
    rows, worst, distinct = [], 0.0, {}
    for n, a in settings:
        costs = []
        for subset in context.track(subsets):
            choice = choose(Query.count(n), epsilon_at(a), subset)
            best = program(n, a, "zero_one", subset)
            chosen = choice.mechanism or program(n, a, "zero_one", choice.properties)
            gap = rescaled_loss(chosen) - rescaled_loss(best)
            worst = max(worst, abs(gap))
            costs.append(round(rescaled_loss(best), 6))
            rows.append((n, a, "+".join(subset) or "none", choice.method,
                         "+".join(choice.properties), rescaled_loss(best), gap))  # fmt: skip
        distinct[n, a] = sorted(set(costs))
    findings = (
        holds("at most four behaviours among 128 sets",
              ", ".join(f"{len(v)} at n = {n}, a = {a:g}" for (n, a), v in distinct.items()),
              all(len(v) <= 4 for v in distinct.values())),
        number("flowchart's mechanism costs more than the program's optimum by", 0.0, worst, 1e-6),
        number("cheapest at n = 4, a = 0.62", 0.7654320988, distinct[4, 0.62][0], 1e-6),
        number("dearest at n = 4, a = 0.62", 0.8345519809, distinct[4, 0.62][-1], 1e-6),
    )  # fmt: skip
    columns = ("n", "a", "properties", "method", "program with", "L0", "chosen minus best")
    parts = [
        Panel(f"n = {n}, a = {a:g}", [Curve("optimal cost of each of the 128 sets, sorted",
              list(range(128)), sorted(row[5] for row in rows if row[:2] == (n, a)))],
              "property sets", "rescaled zero-one loss")
        for n, a in settings
    ]  # fmt: skip
    return Result({"data": Table.of(columns, rows)}, partial(panels, parts), findings)


def _combination_costs(n: int, a: float) -> dict[str, float]:
    costs = {
        "WH" + "".join("+" + SHORT[p] for p in extra): rescaled_loss(
            program(n, a, "zero_one", ("weakly_honest", *extra))
        )
        for extra in WITH_WEAK_HONESTY
    }
    costs["GM"] = rescaled_loss(geometric(Query.count(n), epsilon_at(a)))
    costs["EM"] = rescaled_loss(fair(Query.count(n), epsilon_at(a)))
    return costs


def figure_8(context: Context) -> Result:
    """Nine combinations with weak honesty fall into two groups."""
    a, n = 0.76, 8
    sizes = [2, 4, 6, 7, 8, 12, 16] if context.quick else list(range(2, 21))
    ratios = [0.5, 0.62, 0.76, 0.9, 0.99] if context.quick else [
        0.5, 0.55, 0.6, 0.62, 0.67, 0.72, 0.76, 0.8, 0.85, 0.9, 0.95, 0.99]  # fmt: skip
    points = [(size, a) for size in sizes] + [(n, ratio) for ratio in ratios]
    costs = {point: _combination_costs(*point) for point in context.track(points)}
    rows = [(*point, name, cost) for point, by in costs.items() for name, cost in by.items()]
    spread = max(_group_spread(by) for by in costs.values())
    beyond = [abs(costs[size, a]["WH"] - 2 * a / (1 + a)) for size in sizes if size >= 7]
    high = costs[n, 0.99]
    findings = (
        holds("row properties come free, column properties cost the same whichever",
              f"largest spread inside a group {spread:.1e}", spread < 1e-6),
        number("a = 0.76, n > 6.33: cost of WH alone", 0.864, costs[8, a]["WH"], 5e-4),
        number("... which is GM's, at every such n", 0.0, max(beyond), 1e-6),
        number("a = 0.99: all combinations cost the same as EM; spread", 0.0,
               max(high.values()) - min(v for k, v in high.items() if k != "GM"), 1e-6,
               "They agree only to about 5e-5: EM costs a little more for every a < 1."),
        number("corrected, a = 0.99, n = 8: WH", 0.997137, high["WH"], 2e-6),
        number("corrected, a = 0.99, n = 8: CM", 0.997166, high["WH+CM"], 2e-6),
        number("corrected, a = 0.99, n = 8: EM", 0.997188, high["EM"], 2e-6),
    )  # fmt: skip
    names = list(high)
    parts = [
        Panel("(a) a = 0.76", [Curve(k, sizes, [costs[s, a][k] for s in sizes]) for k in names],
              "group size n", "rescaled zero-one loss", marks=(2 * a / (1 - a),)),
        Panel("(b) n = 8", [Curve(k, ratios, [costs[n, r][k] for r in ratios]) for k in names],
              "a = exp(-epsilon)", "rescaled zero-one loss"),
    ]  # fmt: skip
    table = Table.of(("n", "a", "properties", "L0"), rows)
    return Result({"data": table}, partial(panels, parts, columns=2), findings)


def _group_spread(costs: dict[str, float]) -> float:
    """The two groups of section 7.1: without and with a column property."""
    columns = [v for k, v in costs.items() if "CH" in k or "CM" in k]
    rest = [v for k, v in costs.items() if k.startswith("WH") and "CH" not in k and "CM" not in k]
    return max(max(columns) - min(columns), max(rest) - min(rest))


def figure_9(context: Context) -> Result:
    """The cost of GM, WM, EM and UM against the group size, at three levels of privacy."""
    ratios = {"2/3": 2 / 3, "10/11": 10 / 11, "99/100": 0.99}
    sizes = [2, 4, 8, 12, 16, 20, 24] if context.quick else list(range(2, 25))
    cost = {
        (label, n): {k: rescaled_loss(m) for k, m in named(n, ratios[label]).items()}
        for label, n in context.track([(label, n) for label in ratios for n in sizes])
    }
    names = list(cost["2/3", sizes[0]])
    rows = [(label, n, *by.values()) for (label, n), by in cost.items()]
    weak, tight = "WM (weak honesty)", "WM (column monotone)"
    met = max(
        abs(by[weak] - by["GM"])
        for (label, n), by in cost.items()
        if n >= 2 * ratios[label] / (1 - ratios[label]) - 1e-9
    )
    short = cost["10/11", 16]
    why = "Section 7.1 renames WM to WH+RM+CM; only weak honesty alone converges to GM."
    honest = all(1 - by["EM"] * n / (n + 1) > 1 / (n + 1) for (_, n), by in cost.items())
    falling = [cost["2/3", n]["EM"] for n in sizes if n >= 6]
    findings: tuple[Finding, ...] = (
        number("n >= 2a/(1-a): WM (weak honesty) meets GM; largest distance", 0.0, met, 1e-6),
        holds("a = 10/11: not yet met at n = 16 < 20", f"{short[weak] - short['GM']:.5f} apart",
              short[weak] - short["GM"] > 1e-4),
        number("a = 10/11, n = 20: WM of section 7.1 (WH+RM+CM) costs GM's", 20 / 21,
               cost["10/11", 20][tight], 1e-4, why),
        number("corrected: WH+RM+CM there", 0.96414, cost["10/11", 20][tight], 2e-5),
        number("corrected: WH+RM+CM at a = 2/3, n = 20: 0.8 + 0.1/n", 0.8 + 0.1 / 20,
               cost["2/3", 20][tight], 1e-6),
        number("a = 99/100, n = 24: WM costs the same as EM", cost["99/100", 24]["EM"],
               cost["99/100", 24][weak], 1e-6,
               "Only to 1.6e-4: both WM readings stay below EM for every a < 1."),
        number("corrected: EM minus WM (weak honesty) there", 1.6e-4,
               cost["99/100", 24]["EM"] - cost["99/100", 24][weak], 2e-5),
        holds("EM tells the truth more often than guessing, at every n and a",
              "holds for every a < 1", honest),
        holds("a = 2/3: EM costs more than GM, less and less from n = 6 on",
              f"{falling[0]:.4f} falls to {falling[-1]:.4f}",
              (np.diff(falling) < 0).all() and falling[-1] > 0.8),
    )  # fmt: skip
    parts = [
        Panel(f"a = {label}", [Curve(k, sizes, [cost[label, n][k] for n in sizes]) for k in names],
              "group size n", "rescaled zero-one loss",
              marks=[t for t in (2 * a / (1 - a),) if t <= 24])
        for label, a in ratios.items()
    ]  # fmt: skip
    table = Table.of(("a", "n", *names), rows)
    return Result({"data": table}, partial(panels, parts), findings)


def theorem_3(context: Context) -> Result:
    """One bit: randomized response is optimal while the prior odds lie between a and 1/a."""
    a = 0.6
    odds = np.geomspace(0.3, 3.4, 9 if context.quick else 25)
    rows, wrong, printed_wrong = [], 0, 0
    for ratio in odds:
        prior = np.array([1, ratio]) / (1 + ratio)
        m = design(Query.count(1), epsilon_at(a), "zero_one", prior=prior).mechanism.matrix
        responds = abs(m[0, 0] - 1 / (1 + a)) < 1e-6 and abs(m[1, 1] - 1 / (1 + a)) < 1e-6
        trivial = m[0, 0] > 1 - 1e-6 if ratio < a else m[1, 1] > 1 - 1e-6
        wrong += not (responds if a <= ratio <= 1 / a else trivial)
        printed_wrong += ratio < 1 / a and m[0, 0] < 1 - 1e-6
        rows.append((float(ratio), float(m[0, 0]), float(m[1, 1])))
    findings = (
        holds("randomized response inside [a, 1/a], a constant answer outside",
              f"{len(odds)} priors, {wrong} exceptions", wrong == 0),
        holds("the proof's condition for always answering 0: w1/w0 < 1/a",
              f"false for {printed_wrong} of the priors", printed_wrong == 0,
              "The condition is w1/w0 < a (always 0) or > 1/a (always 1)."),
    )  # fmt: skip
    columns = ("odds w1/w0", "Pr(0 | 0)", "Pr(1 | 1)")
    curves = [
        Curve(columns[1], odds, [row[1] for row in rows]),
        Curve(columns[2], odds, [row[2] for row in rows]),
    ]
    part = Panel("a = 0.6", curves, "prior odds", "probability", log="x", marks=(a, 1 / a))
    return Result({"data": Table.of(columns, rows)}, partial(panels, [part]), findings)


EXPERIMENTS = (
    Experiment("000-figure-1", "000", "Figure 1", "Unconstrained optima at a = 0.62", "1",
               figure_1),
    Experiment("000-figure-2", "000", "Figure 2", "Optima with all seven properties", "1",
               figure_2),
    Experiment("000-figure-5", "000", "Figure 5", "Flowchart: 128 property sets, four mechanisms",
               "6.3", figure_5),
    Experiment("000-figure-8", "000", "Figure 8", "Combinations of properties with weak honesty",
               "7.1", figure_8),
    Experiment("000-figure-9", "000", "Figure 9", "Cost of GM, WM, EM and UM against group size",
               "7.1", figure_9),
    Experiment("000-theorem-3", "000", "Theorem 3", "Randomized response for one bit", "5.1",
               theorem_3),
)  # fmt: skip
