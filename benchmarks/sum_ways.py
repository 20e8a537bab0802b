"""Ways to release a table whose groups are added up, for `benchmarks.sums`.

`--hierarchy`, the default without a hierarchy (`preserve`), clamped noise added up, a b-ary tree
over the sorted rows with consistency (as OpenDP builds one: it does not know the groups), and a
pass from the top down without an estimate from below, once with our share for the states and once
with 5, 20 and 75 % for the levels. "default" is the release as it was before there were
hierarchies: ranks matched to the direct estimate of the distribution. "states first" is a
hierarchy with the level weights 1,40,1, for who publishes states more than rows; "states 20 %" one
whose states have the share of the fixed pass, so that the two differ by nothing but the method.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from tallyveil.certified.certify import certify_noise
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_directly
from tallyveil.estimate.ranks import match_ranks, round_histogram
from tallyveil.release.methods.base import COUNTS, DISTRIBUTION, Plan, PlannedStage, Task
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.sums import PublishedSums, level_stage
from tallyveil.request.budget_split import Split, rows_tell, rule_of_thumb
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.noise import geometric_noise
from tallyveil.sums.combine import combine, noise_variance
from tallyveil.sums.grouping import Grouping, Tree
from tallyveil.sums.rounding import round_family

__all__ = ["RELEASES", "RIVALS", "Counts", "publish_hierarchy", "read_tables"]

RIVALS = ("clamped", "b-ary tree", "top down", "top down 5/20/75")
"""What must be further from the truth, any pass from the top down among them."""

FIXED = (0.05, 0.20, 0.75)
"""Shares of total, states and rows in the fixed pass."""

Counts = np.ndarray


def read_tables(folder: Path) -> dict[str, tuple[Counts, Counts, int]]:
    """Counts, state numbers and the public upper bound of each table."""
    plans = {
        "homicides": ("homicides_by_county.csv", "MURDER", "FIPS_ST", 600),
        "lyme 2018": ("lyme_by_county_2000_2018.csv", "Cases2018", "STCODE", 600),
        "lyme 2005": ("lyme_by_county_2000_2018.csv", "Cases2005", "STCODE", 600),
        "schools": ("private_schools_2017_18.csv", "FT_TEACHER", "STATE", 80),
    }
    found = {}
    for name, (file, count, state, upper) in plans.items():
        with open(folder / file, encoding="utf-8", newline="") as text:
            rows = [
                r for r in csv.DictReader(text) if r[count].strip() and r.get("is_county") != "0"
            ]
        values = np.minimum([int(float(row[count])) for row in rows], upper)
        states = np.unique([row[state] for row in rows], return_inverse=True)[1]
        found[name] = values, states, upper
    return found


STATES_FIRST = (1.0, 40.0, 1.0)
"""Level weights of who cares for states."""


def publish_hierarchy(
    counts: Counts,
    states: Counts,
    upper: int,
    epsilon: float,
    weights: tuple[float, ...] | None = None,
) -> PublishedSums:
    plan, entropy = _plan(states, upper, epsilon, weights), Entropy()
    return plan.publish(plan.draw(counts, entropy), entropy)[0]


def _plan(
    states: Counts, upper: int, epsilon: float, weights: tuple[float, ...] | None = None
) -> Plan:
    groups = Grouping.of(Tree.of_columns([states]))
    task = Task("cases", upper, Fraction(str(epsilon)), len(states), groups=groups)
    return Hierarchy(columns=("state",), weights=weights).plan(task)


def release_hierarchy(counts: Counts, states: Counts, upper: int, epsilon: float) -> Counts:
    return publish_hierarchy(counts, states, upper, epsilon).counts


def release_states_first(counts: Counts, states: Counts, upper: int, epsilon: float) -> Counts:
    return publish_hierarchy(counts, states, upper, epsilon, STATES_FIRST).counts


def release_at_share(counts: Counts, states: Counts, upper: int, epsilon: float) -> Counts:
    """A hierarchy whose states have the share of the fixed pass, its distribution the usual one."""
    whole, plan = Fraction(str(epsilon)), _plan(states, upper, epsilon)
    of_states = whole * Fraction(str(FIXED[1]))
    first = [stage for stage in plan.stages if stage.kind == DISTRIBUTION]
    rows = whole - of_states - sum(stage.epsilon for stage in first)
    measured = [(level_stage("state"), of_states), (COUNTS, rows)]
    drawn = [PlannedStage("cases", kind, certify_noise(part), part) for kind, part in measured]
    plan, entropy = replace(plan, stages=(drawn[0], *first, drawn[1])), Entropy()
    return plan.publish(plan.draw(counts, entropy), entropy)[0].counts


def release_default(counts: Counts, states: Counts, upper: int, epsilon: float) -> Counts:
    """Rank matching with the direct estimate of the distribution, as it was before hierarchies."""
    size, rows = upper + 1, len(counts)
    whole, share = Fraction(str(epsilon)), Fraction(0)
    if not rows_tell(whole, rows, size):
        share = Fraction(round(0.85 * rule_of_thumb(epsilon) * 10**6), 10**6)
    split = Split(whole * share, whole * (1 - share), "before hierarchies")
    values = np.clip(counts + geometric_noise(rows, split.epsilon2), 0, upper)
    totals = None
    if split.epsilon1:
        cumulative = np.cumsum(np.bincount(counts, minlength=size))[:-1]
        totals = cumulative + geometric_noise(upper, split.epsilon1)
    draws = PrivateDraws(values, split.epsilon2, totals, split.epsilon1, size)
    found = estimate_directly(draws)
    histogram = round_histogram(found.histogram, rows)
    return match_ranks(draws, found.cells, histogram, Entropy().permutation(rows))


def release_clamped(counts: Counts, states: Counts, upper: int, epsilon: float) -> Counts:
    return np.clip(counts + geometric_noise(len(counts), epsilon), 0, upper)


def release_b_ary(
    counts: Counts, states: Counts, upper: int, epsilon: float, b: int = 16
) -> Counts:
    """Equal shares for the levels of a complete tree over rows sorted by state; not rounded."""
    order = np.argsort(states, kind="stable")
    sizes = [len(counts)]
    while sizes[0] > 1:
        sizes.insert(0, -(-sizes[0] // b))
    tree = Tree(tuple(np.arange(size) // b for size in sizes[1:]))
    share = epsilon / len(sizes)
    sums = tree.sum_up(counts[order].astype(np.int64))
    noisy = [level + geometric_noise(len(level), share) for level in sums]
    made = combine(tree, noisy, [noise_variance(share)] * len(sizes))
    released = np.empty(len(counts))
    released[order] = made.estimates[-1]
    return released


def release_top_down(counts: Counts, states: Counts, upper: int, epsilon: float) -> Counts:
    """The same share for the states as `hierarchy`, the rest for the rows; nothing from below."""
    tree = Tree.of_columns([states])
    budget = Hierarchy(columns=("state",)).split(tree.sizes, Fraction(str(epsilon)), upper)
    shares = [0.02 * epsilon, float(budget.levels[1]) or 0.02 * epsilon]
    return _pass_down(counts, tree, upper, [*shares, epsilon - sum(shares)])


def release_fixed(counts: Counts, states: Counts, upper: int, epsilon: float) -> Counts:
    """5, 20 and 75 % of the budget, whatever it is."""
    shares = [epsilon * part for part in FIXED]
    return _pass_down(counts, Tree.of_columns([states]), upper, shares)


def _pass_down(counts: Counts, tree: Tree, upper: int, shares: list[float]) -> Counts:
    """Every level fitted to the one above."""
    order = np.random.default_rng().permutation(len(counts))
    sums = tree.sum_up(counts.astype(np.int64))
    noisy = [s + geometric_noise(len(s), e) for s, e in zip(sums, shares, strict=True)]
    uppers = tree.sum_up(np.full(len(counts), upper))
    found = np.clip(noisy[0], 0, uppers[0])
    for level in (1, 2):
        size = tree.sizes[level]
        found = round_family(
            noisy[level].astype(float),
            np.ones(size),
            tree.parents[level - 1],
            found,
            uppers=uppers[level],
            order=order[order < size],
        )
    return found


RELEASES: dict[str, Callable[[Counts, Counts, int, float], Counts]] = {
    "hierarchy": release_hierarchy,
    "states first": release_states_first,
    "states 20 %": release_at_share,
    "default": release_default,
    "clamped": release_clamped,
    "b-ary tree": release_b_ary,
    "top down": release_top_down,
    "top down 5/20/75": release_fixed,
}
