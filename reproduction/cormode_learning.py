"""Cormode et al. (2018), section 8: a classifier and a tree from private group counts.

People are put into small groups; for every pair of binary columns each group releases how
many of its members fall into each of the four cells. Summed over the groups these are noisy
marginals, the input of a naive Bayes classifier and a Chow-Liu tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations, product

import numpy as np

from reproduction import check
from reproduction.check import STANDARD_ERRORS, standard_error
from reproduction.cormode_groups import count_by_group
from reproduction.cormode_optima import WM_MONOTONE, WM_WEAK, build_compared
from reproduction.data import load_adult
from reproduction.experiment import Context, Result, draw_values, experiment, plot
from tallyveil.arrays import Floats, Integers
from tallyveil.certified.certify import certify
from tallyveil.mechanism import Mechanism
from tallyveil.sampling.entropy import SeededNotPrivate

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


@experiment("cormode", "Section 8", "8")
def section_8(context: Context) -> Result:
    """Naive Bayes and Chow-Liu from group counts."""
    bits, label, _ = load_adult(context.data, context.seed)
    pairs = list(combinations(bits, 2))
    true = {pair: count_jointly(bits, *pair, None, 0) for pair in pairs}
    worth = {pair: mutual_information(cells + HALF) for pair, cells in true.items()}
    best_tree = sum(worth[pair] for pair in build_tree(worth))
    plain = _measure_accuracy(true, bits)
    ratios = [0.1, 2 / 3, 0.9] if context.quick else [0.1, 0.2, 0.4, 2 / 3, 0.8, 0.9, 0.95]
    runs = 3 if context.quick else 10
    score: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for a, name, run in product(ratios, NAMES, range(runs)):
        first = context.seed + run * len(pairs)
        noisy = {
            pair: count_jointly(bits, *pair, build_compared(SIZE, a)[name], first + k)
            for k, pair in enumerate(pairs)
        }
        learnt = {pair: mutual_information(cells + HALF) for pair, cells in noisy.items()}
        share = sum(worth[pair] for pair in build_tree(learnt)) / best_tree
        score.setdefault((name, a), []).append((_measure_accuracy(noisy, bits), share))
    both = {key: np.array(values) for key, values in score.items()}
    parts = []
    for k, (title, what, level) in enumerate(
        (
            ("naive Bayes", "share classified correctly", plain),
            ("Chow-Liu tree", "information kept by the tree", 1.0),
        )
    ):
        values = {key: (x[:, k].mean(), standard_error(x[:, k])) for key, x in both.items()}
        values |= {("no privacy", a): (level, 0.0) for a in ratios}
        parts += draw_values(values, title, "a = exp(-epsilon)", what, error=True)
    columns = ("mechanism", "a", "run", "accuracy", "tree's share of the information")
    rows = [(*key, run, *pair) for key, x in score.items() for run, pair in enumerate(x)]
    accuracy = {key: x[:, 0] for key, x in both.items()}
    mean = {key: float(runs.mean()) for key, runs in accuracy.items()}
    error = {key: standard_error(runs) for key, runs in accuracy.items()}
    words = {key: f"{key[0]} {mean[key]:.3f} (se {error[key]:.3f})" for key in mean}
    ratios = sorted({a for _, a in mean})
    middle, high, low = 2 / 3, 0.9, 0.1
    weaker = [
        mean[name, middle] - mean["EM", middle]
        > STANDARD_ERRORS * math.hypot(error[name, middle], error["EM", middle])
        for name in NAMES[:3]
    ]
    best = max(NAMES, key=lambda name: mean[name, high])
    listed = "; ".join(
        f"a = {a:.2g}: " + ", ".join(words[name, a] for name in NAMES) for a in (middle, high)
    )
    findings = (
        check.skip(
            "GM and WM give results of similar quality",
            "stated",
            listed,
            "Similar has no measure, and the text gives neither a nor the size of groups (8 here).",
        ),
        check.claim(
            "EM weaker than GM and WM (a = 2/3), by more than 4 standard errors",
            ", ".join(words[name, middle] for name in NAMES),
            all(weaker),
        ),
        check.claim(
            "weaker than without privacy (a = 0.9), by more than 4 standard errors",
            f"no privacy {plain:.3f}; best {words[best, high]}",
            plain - mean[best, high] > STANDARD_ERRORS * error[best, high],
        ),
        check.claim(
            "... unless a is set very low: GM at a = 0.1 is nearer to no privacy than at a = 2/3",
            f"no privacy {plain:.3f}; GM "
            + ", ".join(f"{mean['GM', a]:.3f} at a = {a:.2g}" for a in ratios if a <= middle),
            abs(plain - mean["GM", low]) < abs(plain - mean["GM", middle]),
        ),
    )
    return plot(columns, rows, parts, findings, label, across=2)


def _measure_accuracy(tables: dict[tuple[str, str], Cells], bits: Bits) -> float:
    """Measure the share classified correctly, mean over both classes: guessing gets 1/2."""
    learnt = {name: tables[TARGET, name] for name in bits if name != TARGET}
    right = classify(learnt, bits) == bits[TARGET]
    return float(np.mean([right[bits[TARGET] == value].mean() for value in (0, 1)]))


def mutual_information(table: Floats) -> float:
    """Compute the mutual information of two attributes from their table of counts, in nats.

    sum_ij p_ij ln(p_ij / (p_i. p_.j)) over the cells that are not empty (Chow and Liu 1968).

    >>> round(mutual_information(np.array([[5.0, 0.0], [0.0, 5.0]])), 3)
    0.693
    """
    joint = table / table.sum()
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def build_tree(information: Mapping[tuple[str, str], float]) -> list[tuple[str, str]]:
    """Build the Chow-Liu tree: largest total mutual information, by Kruskal's algorithm.

    Returns its edges, most informative first.

    >>> build_tree({("a", "b"): 3.0, ("b", "c"): 2.0, ("a", "c"): 1.0})
    [('a', 'b'), ('b', 'c')]
    """
    part = {name: name for pair in information for name in pair}
    tree = []
    for pair in sorted(information, key=lambda pair: (-information[pair], pair)):
        first, second = part[pair[0]], part[pair[1]]
        if first != second:
            tree.append(pair)
            part = {name: first if home == second else home for name, home in part.items()}
    return tree


def classify(
    tables: Mapping[str, Floats], attributes: Mapping[str, Integers], smoothing: float = 0.5
) -> Integers:
    """Predict the class of every person with naive Bayes, from tables of class by attribute.

    The attributes are taken as independent given the class. `smoothing` is added to every cell,
    so that a value that was never seen is not impossible.

    >>> cells = np.array([[8.0, 2.0], [1.0, 9.0]])
    >>> classify({"sign": cells}, {"sign": np.array([0, 1])}).tolist()
    [0, 1]
    """
    totals = np.array([cells.sum(axis=1) for cells in tables.values()]).sum(axis=0) + smoothing
    people = len(next(iter(attributes.values())))
    score = np.tile(np.log(totals / totals.sum()), (people, 1))
    for name, cells in tables.items():
        shares = (cells + smoothing) / (cells + smoothing).sum(axis=1, keepdims=True)
        score += np.log(shares[:, attributes[name]]).T
    likeliest: Integers = score.argmax(axis=1)
    return likeliest
