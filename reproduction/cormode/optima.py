"""Cormode et al. (2018): optima of the linear programs (Figures 1, 2 and 5, Theorem 3)."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from reproduction.cormode.compared import WM_MONOTONE, WM_WEAK, build_compared, solve_program
from reproduction.experiment import (
    Context,
    Experiment,
    Result,
    Table,
    check_claim,
    check_number,
)
from reproduction.matrices import show_matrices
from reproduction.optimal_face import bound_over_optima, bound_spread
from reproduction.papers import epsilon_from_alpha
from tallyveil.arrays import Floats
from tallyveil.figures import Curve, Panel, heatmaps, panels
from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import design
from tallyveil.papers.cormode import choose, rescaled_loss
from tallyveil.papers.croft import VARIANT_2
from tallyveil.properties import SEVEN
from tallyveil.query import Query
from tallyveil.reading.derive import derivability

__all__ = ["EXPERIMENTS"]

HEATMAPS: tuple[tuple[int, Loss, str], ...] = (
    (5, "absolute", "L1, n = 5"),
    (7, "absolute", "L1, n = 7"),
    (4, "squared", "L2, n = 4"),
    (5, ("beyond", 1), "L0,1, n = 5"),
)


def bound_least_mass(n: int, loss: Loss, outputs: tuple[int, ...], ratio: float) -> float:
    """Bound from above the least probability of these outputs over every optimal mechanism.

    The weight goes to the input that releases them least often in one of them.
    """
    query, epsilon = Query.count(n), epsilon_from_alpha(ratio)
    plain = design(query, epsilon, loss).mechanism.matrix[:, list(outputs)]
    weights = np.zeros(query.shape)
    weights[int(plain.sum(axis=1).argmin()), list(outputs)] = 1.0
    return bound_over_optima(query, epsilon, loss, weights)


def figure_1(context: Context) -> Result:
    """Unconstrained optima have gaps and spikes at a = 0.62."""
    a = 0.62
    epsilon = epsilon_from_alpha(a)
    found = [design(Query.count(n), epsilon, loss).mechanism for n, loss, _ in HEATMAPS]
    bounds = {
        "L1": bound_least_mass(7, "absolute", (2, 5), a),
        "L2": bound_least_mass(4, "squared", (2,), a),
        "L0,1": bound_least_mass(5, ("beyond", 1), (1, 4), a),
    }
    gaps = [int((m.matrix.max(axis=0) < 1e-7).sum()) for m in found]
    constant = design(Query.count(4), epsilon_from_alpha(0.8), "squared").objective
    why = "At the stated a = 0.62 no optimal mechanism does this: ours bounds all of them."
    findings = (
        check_claim("every one of them never reports some outputs", f"gaps: {gaps}", min(gaps) > 0),
        check_number("L1, n = 7: Pr(2 or 5) at least", 0.7, bounds["L1"], 0.005, why),
        check_number("L2, n = 4: Pr(2) at least", 1.0, bounds["L2"], 0.005, why),
        check_number("L0,1, n = 5: Pr(1 or 4) at least", 0.9, bounds["L0,1"], 0.005, why),
        check_number("corrected, L1: at most", 0.11166, bounds["L1"], 1e-4),
        check_number("corrected, L2: at most", 0.29150, bounds["L2"], 1e-4),
        check_number("corrected, L0,1: at most (it is a itself)", 0.62, bounds["L0,1"], 1e-4),
        check_number(
            "L2, n = 4, stronger privacy a = 0.8: always reporting 2 is optimal, loss",
            2.0,
            constant,
            1e-6,
        ),
    )
    return show_matrices(_name_matrices(found), findings)


def figure_2(context: Context) -> Result:
    """With all seven properties the gaps and spikes are gone."""
    epsilon = epsilon_from_alpha(0.62)
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
        check_claim(
            "no gaps: every output has positive probability",
            f"least {min(float(m.matrix.min()) for m in found):.3f}",
            min(float(m.matrix.min()) for m in found) > 1e-3,
        ),
        check_claim(
            "no spikes: no output is likelier than the truth", f"excess {spikes:.1e}", spikes < 1e-7
        ),
        check_number(
            "L2, n = 4: within 1 of the truth with probability at least",
            2 / 3,
            within,
            1e-3,
            "The exact probability is 0.6647, two thousandths below 2/3.",
        ),
        check_number("corrected: within 1 with probability at least", 0.6647, within, 2e-4),
        *(
            check_number(f"optimum of an independent solver, {title}", want, got, 1e-6)
            for want, got, (_, _, title) in zip(optima, values, HEATMAPS, strict=True)
        ),
    )
    return show_matrices(_name_matrices(found), findings)


def _name_matrices(found: list[Mechanism]) -> dict[str, Floats]:
    return {title: m.matrix for m, (_, _, title) in zip(found, HEATMAPS, strict=True)}


def figure_5(context: Context) -> Result:
    """All 128 sets of properties need only four mechanisms under the zero-one loss."""
    settings = [(4, 0.62), (4, 0.9)] if context.quick else [(4, 0.62), (4, 0.9), (7, 0.9)]
    subsets = [s for k in range(8) for s in combinations(SEVEN, k)]
    rows, worst, distinct = [], 0.0, {}
    for n, a in settings:
        costs = []
        for subset in subsets:
            choice = choose(Query.count(n), epsilon_from_alpha(a), subset)
            best = solve_program(n, a, "zero_one", subset)
            chosen = choice.mechanism or solve_program(n, a, "zero_one", choice.properties)
            gap = rescaled_loss(chosen) - rescaled_loss(best)
            worst = max(worst, abs(gap))
            costs.append(round(rescaled_loss(best), 6))
            rows.append(
                (
                    n,
                    a,
                    "+".join(subset) or "none",
                    choice.method,
                    "+".join(choice.properties),
                    rescaled_loss(best),
                    gap,
                )
            )
        distinct[n, a] = sorted(set(costs))
    findings = (
        check_claim(
            "at most four behaviours among 128 sets",
            ", ".join(f"{len(v)} at n = {n}, a = {a:g}" for (n, a), v in distinct.items()),
            all(len(v) <= 4 for v in distinct.values()),
        ),
        check_number(
            "flowchart's mechanism costs more than the program's optimum by", 0.0, worst, 1e-6
        ),
        check_number("cheapest at n = 4, a = 0.62", 0.7654320988, distinct[4, 0.62][0], 1e-6),
        check_number("dearest at n = 4, a = 0.62", 0.8345519809, distinct[4, 0.62][-1], 1e-6),
    )
    columns = ("n", "a", "properties", "method", "program with", "L0", "chosen minus best")
    parts = [
        Panel(
            f"n = {n}, a = {a:g}",
            [
                Curve(
                    "optimal cost of each of the 128 sets, sorted",
                    list(range(128)),
                    sorted(row[5] for row in rows if row[:2] == (n, a)),
                )
            ],
            "property sets",
            "rescaled zero-one loss",
        )
        for n, a in settings
    ]
    return Result({"data": Table.of(columns, rows)}, partial(panels, parts), findings)


def theorem_3(context: Context) -> Result:
    """One bit: randomized response is optimal while the prior odds lie between a and 1/a."""
    a = 0.6
    odds = np.geomspace(0.3, 3.4, 9 if context.quick else 25)
    rows, wrong, printed_wrong = [], 0, 0
    for ratio in odds:
        prior = np.array([1, ratio]) / (1 + ratio)
        m = design(Query.count(1), epsilon_from_alpha(a), "zero_one", prior=prior).mechanism.matrix
        responds = abs(m[0, 0] - 1 / (1 + a)) < 1e-6 and abs(m[1, 1] - 1 / (1 + a)) < 1e-6
        trivial = m[0, 0] > 1 - 1e-6 if ratio < a else m[1, 1] > 1 - 1e-6
        wrong += not (responds if a <= ratio <= 1 / a else trivial)
        printed_wrong += ratio < 1 / a and m[0, 0] < 1 - 1e-6
        rows.append((float(ratio), float(m[0, 0]), float(m[1, 1])))
    findings = (
        check_claim(
            "randomized response inside [a, 1/a], a constant answer outside",
            f"{len(odds)} priors, {wrong} exceptions",
            wrong == 0,
        ),
        check_claim(
            "the proof's condition for always answering 0: w1/w0 < 1/a",
            f"false for {printed_wrong} of the priors",
            printed_wrong == 0,
            "A slip in the proof; the theorem holds. The condition is w1/w0 < a (always 0) or "
            "> 1/a (always 1).",
        ),
    )
    columns = ("odds w1/w0", "Pr(0 | 0)", "Pr(1 | 1)")
    curves = [
        Curve(columns[1], odds, [row[1] for row in rows]),
        Curve(columns[2], odds, [row[2] for row in rows]),
    ]
    part = Panel("a = 0.6", curves, "prior odds", "probability", log="x", marks=(a, 1 / a))
    return Result({"data": Table.of(columns, rows)}, partial(panels, [part]), findings)


def theorem_5(context: Context) -> Result:
    """GM is the optimum under the zero-one loss, and the only one."""
    settings = [(1, 0.62), (3, 0.9)] if context.quick else [(1, 0.3), (1, 0.9), (3, 0.62), (5, 0.9)]
    rows = []
    for n, a in settings:
        query, epsilon = Query.count(n), epsilon_from_alpha(a)
        program = design(query, epsilon, "zero_one", method="lp")
        gm = geometric(query, epsilon)
        apart = float(np.abs(program.mechanism.matrix - gm.matrix).max())
        spread = bound_spread(query, epsilon, "zero_one")
        rows.append((n, a, program.objective, gm.expected_loss("zero_one"), apart, spread))
    findings = (
        check_number(
            "the program's optimum costs what GM does; largest difference",
            0.0,
            max(abs(row[2] - row[3]) for row in rows),
            1e-7,
        ),
        check_number(
            "... and is GM; largest difference of an entry", 0.0, max(r[4] for r in rows), 1e-5
        ),
        check_number(
            "unique: two optimal mechanisms differ in an entry by at most",
            0.0,
            max(row[5] for row in rows),
            1e-5,
        ),
        check_number(
            "... where the optimum is not unique the same measure sees it (Croft et al., Table 2)",
            0.2037,
            bound_spread(Query.maximum(1, 5), 1.0, "absolute", VARIANT_2),
            5e-5,
        ),
    )
    columns = ("n", "a", "optimum", "GM", "largest difference", "spread of all optima")
    shown = geometric(Query.count(5), epsilon_from_alpha(0.9)).matrix
    draw = partial(heatmaps, [shown], ["GM, n = 5, a = 0.9"])
    return Result({"data": Table.of(columns, rows)}, draw, findings)


def section_6_3(context: Context) -> Result:
    """EM and WM cannot be derived from GM by processing its output."""
    sizes = [2, 3, 8] if context.quick else [2, 3, 5, 8, 12]
    rows = []
    for n, a in [(n, a) for n in sizes for a in (0.3, 0.62, 0.9)]:
        compared = build_compared(n, a)
        for name in ("EM", WM_MONOTONE, WM_WEAK):
            answer = derivability(compared[name], compared["GM"])
            same = compared[name].isclose(compared["GM"], 1e-6)
            rows.append((name, n, a, int(bool(answer)), int(same)))

    def list_derivable(name: str) -> list[str]:
        return [f"n = {n}, a = {a:g}" for which, n, a, yes, _ in rows if which == name and yes]

    only_gm = all(row[3] == row[4] for row in rows)
    why = (
        "WM is GM itself for a <= 1/2, and with weak honesty alone for n >= 2a/(1-a); elsewhere "
        "the statement holds."
    )
    findings = (
        check_claim(
            "EM not derivable from GM for n > 1",
            f"derivable in {len(list_derivable('EM'))} of {len(rows) // 3} settings",
            not list_derivable("EM"),
        ),
        *(
            check_claim(
                f"{name} not derivable from GM for n > 1",
                f"derivable at {'; '.join(list_derivable(name)) or 'no setting'}",
                not list_derivable(name),
                why,
            )
            for name in (WM_MONOTONE, WM_WEAK)
        ),
        check_claim("corrected: derivable only where it is GM itself", "at every setting", only_gm),
    )
    columns = ("mechanism", "n", "a", "derivable", "equals GM")
    shown = build_compared(5, 0.9)
    draw = partial(heatmaps, [m.matrix for m in shown.values()], list(shown))
    return Result({"data": Table.of(columns, rows)}, draw, findings)


EXPERIMENTS = (
    Experiment("cormode", "Figure 1", "Unconstrained optima at a = 0.62", "1", figure_1),
    Experiment("cormode", "Figure 2", "Optima with all seven properties", "1", figure_2),
    Experiment(
        "cormode", "Figure 5", "Flowchart: 128 property sets, four mechanisms", "6.3", figure_5
    ),
    Experiment("cormode", "Theorem 3", "Randomized response for one bit", "5.1", theorem_3),
    Experiment("cormode", "Theorem 5", "GM is the only optimum", "5.3", theorem_5),
    Experiment("cormode", "Section 6.3", "EM and WM are not derivable from GM", "6.3", section_6_3),
)
