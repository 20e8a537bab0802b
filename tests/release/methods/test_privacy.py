"""The whole procedure on tiny tables, one person moved: every draw near the truth enumerated.

Noise is scripted. For a draw y and a table D the noise y - D is handed to the method, from the
true counts to what it publishes, and the certified chance of that noise is added to the output's.
So the same draws must give the same output whatever the table was, and the chances of every
output must be within a factor of e^epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tallyveil.certified import mechanism
from tallyveil.certified.certify import certify_geometric, certify_noise
from tallyveil.proof.rounding import TOTAL
from tallyveil.query import Query
from tallyveil.release.methods.base import Method, Plan, PlannedStage, Task
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.margins import Margins
from tallyveil.release.methods.preserve import Preserve
from tallyveil.release.methods.strata import Strata
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sums.grouping import Grouping, Tree
from tallyveil.sums.grouping import Margins as MarginGroups

EPSILON = Fraction(3, 2)


class Script:
    """What a method draws: true values, with scripted draws in place of noisy ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.draws: Iterator[int] | None = None
        self.truth: list[int] = []
        self.epsilons: list[Fraction] = []
        self.chance = 1.0

        def add(mine: Any, values: Any, entropy: Any = None) -> Any:
            findings = []
            for value in np.asarray(values).tolist():
                draw = value if self.draws is None else next(self.draws)
                self.truth.append(value)
                self.epsilons.append(mine.exact_epsilon)
                self.chance *= float(mine.noise.near[abs(draw - value)]) / TOTAL
                findings.append(draw)
            return np.array(findings, dtype=np.int64)

        monkeypatch.setattr(mechanism.CertifiedNoise, "release", add)
        monkeypatch.setattr(mechanism.CertifiedGeometric, "draw_unbounded", add)

    def run(self, plan: Plan, counts: Any, draws: tuple[int, ...] | None) -> tuple[Any, ...]:
        """Everything that is published, given the draws."""
        self.draws = None if draws is None else iter(draws)
        self.truth, self.epsilons, self.chance = [], [], 1.0
        entropy = SeededNotPrivate(3)
        (result,) = plan.publish(plan.draw(np.array(counts), entropy), entropy)
        levels = (*getattr(result, "sums", ()), *getattr(result, "estimates", ()))
        levels = (*levels, *([] if result.unbiased is None else [result.unbiased]))
        return (result.values.tolist(), *(np.round(level, 9).tolist() for level in levels))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return Script(monkeypatch)


def plan(method: Method, upper: int, groups: Any, free: Any = None, bounds: Any = None) -> Plan:
    rows = 4 if free is None else int(free.sum())
    return method.plan(Task("n", upper, EPSILON, rows, groups=groups, free=free, bounds=bounds))


def make_bounded() -> tuple[Plan, list[tuple[int, ...]]]:
    """Rows with bounds of their own, and their draws beside them."""
    groups = Grouping.of(Tree.of_columns([np.array([0, 0, 1, 1])]))
    method = Hierarchy(columns="g", unbiased=True)
    tables = [(1, 1, 0, 0), (2, 1, 0, 0), (1, 0, 0, 0), (1, 1, 0, 1)]
    return plan(method, 2, groups, bounds=np.array([2, 1, 0, 2])), tables


def make_tree(zeros: bool) -> tuple[Plan, list[tuple[int, ...]]]:
    free = np.array([True, True, not zeros, not zeros])
    groups = Grouping.of(Tree.of_columns([np.array([0, 0, 1, 1])]), free)
    method = Hierarchy(columns="g", weights=(1.0, 2.0, 1.0))
    return plan(method, 1, groups, free), [(0, 1, 0, 0), (1, 1, 0, 0), (0, 0, 0, 0)]


def make_crossed(zeros: bool) -> tuple[Plan, list[tuple[int, ...]]]:
    margins = MarginGroups((np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    free = np.array([True, True, True, not zeros])
    method = Margins(columns="a,b")
    return plan(method, 1, Grouping.of(margins, free), free), [(0, 1, 0, 0), (1, 1, 0, 0)]


def make_preserved() -> tuple[Plan, list[tuple[int, ...]]]:
    method = Preserve(unbiased=True)
    return split_evenly(plan(method, 1, None)), [(0, 1, 0, 0), (1, 1, 0, 0), (0, 0, 0, 0)]


def split_evenly(result: Plan) -> Plan:
    """Give the distribution a share, which so few rows would not get."""
    first = PlannedStage("n", "distribution", certify_noise(Fraction(1, 2)), Fraction(1, 2))
    counts = PlannedStage("n", "counts", certify_geometric(Query.count(1), 1), Fraction(1))
    return replace(result, stages=(first, counts))


def make_strata(zeros: bool) -> tuple[Plan, list[tuple[int, ...]]]:
    free = np.array([True, True, True, not zeros])
    result = split_evenly(plan(Strata(columns="g"), 1, np.array([0, 0, 1, 1]), free))
    return result, [(0, 1, 0, 0), (1, 1, 0, 0), (0, 1, 1, 0)]


CASES = {
    "preserve": make_preserved,
    "tree": lambda: make_tree(zeros=False),
    "tree with zeros": lambda: make_tree(zeros=True),
    "bounds": make_bounded,
    "margins": lambda: make_crossed(zeros=False),
    "margins with zeros": lambda: make_crossed(zeros=True),
    "strata": lambda: make_strata(zeros=False),
    "strata with zeros": lambda: make_strata(zeros=True),
}


@pytest.mark.parametrize("most", [40, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(CASES))
def test_one_person_moves_no_output_by_more_than_epsilon(
    name: str, script: Script, most: int
) -> None:
    """Up to so many draws near the truth; each is handed to every table."""
    result, tables = CASES[name]()
    truths = []
    for table in tables:
        script.run(result, table, None)
        truths.append(np.array(script.truth))
        epsilons = script.epsilons
    for truth in truths[1:]:  # what one person moves, at the price of each
        moved = np.abs(truth - truths[0]).tolist()
        assert sum(e * m for e, m in zip(epsilons, moved, strict=True)) <= EPSILON
    box = [sorted({t + d for t in column for d in (0, 1)}) for column in zip(*truths, strict=True)]
    every = list(itertools.product(*box))
    chosen = np.random.default_rng(1).permutation(len(every))[:most]
    findings: list[dict[str, float]] = [{} for _ in tables]
    for draws in (every[index] for index in chosen):
        outputs = []
        for table, seen in zip(tables, findings, strict=True):
            out = str(script.run(result, table, draws))
            seen[out] = seen.get(out, 0.0) + script.chance
            outputs.append(out)
        assert len(set(outputs)) == 1  # nothing but the draws tells what is published
    bound = math.exp(EPSILON) * (1 + 1e-9)
    assert len(findings[0]) > 3
    for other in findings[1:]:
        for out, chance in findings[0].items():
            assert other[out] / bound <= chance <= bound * other[out]
