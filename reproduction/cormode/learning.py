"""Cormode et al. (2018), section 8: a classifier and a tree from private group counts.

People are put into small groups; for every pair of binary columns each group releases how
many of its members fall into each of the four cells. Summed over the groups these are noisy
marginals, from which a naive Bayes classifier and a Chow-Liu tree are built.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, product

import numpy as np

from reproduction.cormode.adult_groups import count_by_group
from reproduction.cormode.classifiers import build_tree, classify, mutual_information
from reproduction.cormode.compared import WM_MONOTONE, WM_WEAK, build_compared
from reproduction.data import load_adult
from reproduction.experiment import (
    STANDARD_ERRORS,
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    check_claim,
    skip_check,
    standard_error,
)
from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify
from tallyveil.figures import Curve, Panel, panels
from tallyveil.mechanism import Mechanism
from tallyveil.sampling.entropy import SeededNotPrivate

__all__ = ["EXPERIMENTS"]

Bits = dict[str, Integers]
Cells = Floats
TARGET = "income"
NAMES = ("GM", WM_MONOTONE, WM_WEAK, "EM")
SIZE = 8
HALF = 0.5  # added to every cell of a table that may be empty


def count_jointly(
    bits: Bits, first: str, second: str, release: Mechanism | None, seed: int
) -> Cells:
    """Count two columns jointly, summed over groups, exactly or released group by group."""
    cells = np.zeros((2, 2))
    certified = None if release is None else certify(release)
    source = SeededNotPrivate(seed)
    for i, j in product((0, 1), (0, 1)):
        inside = ((bits[first] == i) & (bits[second] == j)).astype(np.int64)
        counts = count_by_group(inside, SIZE)
        if certified is not None:
            counts = certified.release(counts, entropy=source)
        cells[i, j] = counts.sum()
    return cells


def section_8(context: Context) -> Result:
    """How well the models do when learnt from GM, WM or EM counts, against no privacy."""
    bits, label, _ = load_adult(context.data, context.seed)
    pairs = list(combinations(bits, 2))
    true = {pair: count_jointly(bits, *pair, None, 0) for pair in pairs}
    worth = {pair: mutual_information(cells + HALF) for pair, cells in true.items()}
    best_tree = sum(worth[pair] for pair in build_tree(worth))
    plain = _measure_accuracy(true, bits)
    ratios = [0.1, 2 / 3, 0.9] if context.quick else [0.1, 0.2, 0.4, 2 / 3, 0.8, 0.9, 0.95]
    runs = 3 if context.quick else 10
    rows = []
    jobs = [(a, name, run) for a in ratios for name in NAMES for run in range(runs)]
    for a, name, run in jobs:
        first = context.seed + run * len(pairs)
        noisy = {
            pair: count_jointly(bits, *pair, build_compared(SIZE, a)[name], first + k)
            for k, pair in enumerate(pairs)
        }
        learnt = {pair: mutual_information(cells + HALF) for pair, cells in noisy.items()}
        share = sum(worth[pair] for pair in build_tree(learnt)) / best_tree
        rows.append((name, a, run, _measure_accuracy(noisy, bits), share))
    score = {
        (name, a): np.array([row[3:] for row in rows if row[:2] == (name, a)])
        for name in NAMES
        for a in ratios
    }
    parts = [
        Panel(
            title,
            [_draw_runs(name, ratios, score, k) for name in NAMES]
            + [Curve("no privacy", ratios, [level] * len(ratios))],
            "a = exp(-epsilon)",
            what,
        )
        for k, (title, what, level) in enumerate(
            (
                ("naive Bayes", "share classified correctly", plain),
                ("Chow-Liu tree", "information kept by the tree", 1.0),
            )
        )
    ]
    columns = ("mechanism", "a", "run", "accuracy", "tree's share of the information")
    findings = _check_section_8({key: found[:, 0] for key, found in score.items()}, plain)
    return Result(
        {"data": Table.of(columns, rows)}, partial(panels, parts, columns=2), findings, label
    )


def _draw_runs(
    name: str, ratios: list[float], score: dict[tuple[str, float], Floats], which: int
) -> Curve:
    found = [score[name, a][:, which] for a in ratios]
    return Curve(name, ratios, [x.mean() for x in found], [standard_error(x) for x in found])


def _check_section_8(
    accuracy: dict[tuple[str, float], Floats], plain: float
) -> tuple[Finding, ...]:
    """Check what section 8 says; `plain` is the accuracy without privacy."""
    mean = {key: float(runs.mean()) for key, runs in accuracy.items()}
    error = {key: standard_error(runs) for key, runs in accuracy.items()}
    said = {key: f"{key[0]} {mean[key]:.3f} (se {error[key]:.3f})" for key in mean}
    ratios = sorted({a for _, a in mean})
    middle, high, low = 2 / 3, 0.9, 0.1
    weaker = [
        mean[name, middle] - mean["EM", middle]
        > STANDARD_ERRORS * math.hypot(error[name, middle], error["EM", middle])
        for name in NAMES[:3]
    ]
    best = max(NAMES, key=lambda name: mean[name, high])
    listed = "; ".join(
        f"a = {a:.2g}: " + ", ".join(said[name, a] for name in NAMES) for a in (middle, high)
    )
    return (
        skip_check(
            "GM and WM give results of similar quality",
            "stated",
            listed,
            "Similar has no measure, and the text gives neither a nor the size of groups (8 here).",
        ),
        check_claim(
            "EM weaker than GM and WM (a = 2/3), by more than 4 standard errors",
            ", ".join(said[name, middle] for name in NAMES),
            all(weaker),
        ),
        check_claim(
            "weaker than without privacy (a = 0.9), by more than 4 standard errors",
            f"no privacy {plain:.3f}; best {said[best, high]}",
            plain - mean[best, high] > STANDARD_ERRORS * error[best, high],
        ),
        check_claim(
            "... unless a is set very low: GM at a = 0.1 is nearer to no privacy than at a = 2/3",
            f"no privacy {plain:.3f}; GM "
            + ", ".join(f"{mean['GM', a]:.3f} at a = {a:.2g}" for a in ratios if a <= middle),
            abs(plain - mean["GM", low]) < abs(plain - mean["GM", middle]),
        ),
    )


def _measure_accuracy(tables: dict[tuple[str, str], Cells], bits: Bits) -> float:
    """Measure the share classified correctly, mean over both classes: guessing gets 1/2."""
    given = {name: tables[TARGET, name] for name in bits if name != TARGET}
    right = classify(given, bits) == bits[TARGET]
    return float(np.mean([right[bits[TARGET] == value].mean() for value in (0, 1)]))


EXPERIMENTS = (
    Experiment(
        "cormode", "Section 8", "Naive Bayes and Chow-Liu from group counts", "8", section_8
    ),
)
