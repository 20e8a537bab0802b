"""Private draws and rank matching: every draw is certified, the rest never sees the table."""

import inspect

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.papers.kohli.privatizers import cumulative
from tallyveil.release.methods.base import Plan, PlannedStage, Task
from tallyveil.release.methods.preserve import Preserve, RankedDraws
from tallyveil.release.methods.registry import METHODS
from tallyveil.request.budget_split import split_budget
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate

COUNTS = np.minimum(np.random.default_rng(0).geometric(0.2, size=400) - 1, 20)


def preserve(upper, budget):
    """The method for a split budget, everything certified."""
    noise = [tv.certify_noise(budget.epsilon1)] if budget.epsilon1 else []
    counts = tv.certify_geometric(tv.Query.count(upper), budget.epsilon2)
    parts = zip(("distribution", "counts")[-1 - len(noise) :], [*noise, counts], strict=True)
    stages = tuple(PlannedStage("n", kind, made, made.exact_epsilon) for kind, made in parts)
    task = Task("n", upper, budget.epsilon)
    return Plan(task, Preserve(), "", budget.epsilon, stages)


def draw_privately(counts, upper, budget, source):
    return preserve(upper, budget).draw(counts, source).private


def match_counts(draws, source):
    budget = split_budget(1, "1/2", records=9, size=9)
    (published,) = preserve(draws.size - 1, budget).publish(RankedDraws(draws), source)
    return published.counts, published.histogram.spread_out(draws.size)


def release(counts, upper, epsilon, split="predicted", entropy=None):
    source = Entropy() if entropy is None else entropy
    budget = split_budget(epsilon, split, records=len(counts), size=upper + 1)
    return match_counts(draw_privately(np.asarray(counts), upper, budget, source), source)


@pytest.mark.parametrize("split", ["predicted", "paper", "1/3", 0])
def test_table_and_published_histogram_agree_exactly(split):
    released, histogram = release(COUNTS, 20, "0.8", split)
    assert released.shape == COUNTS.shape
    assert released.dtype == np.int64
    assert (np.bincount(released, minlength=21) == histogram).all()


def test_every_draw_before_post_processing_is_certified():
    # the draws equal those of the certified distributions on the same words, one after the other
    budget = split_budget("0.9", "1/3", records=len(COUNTS), size=21)
    draws = draw_privately(COUNTS, 20, budget, SeededNotPrivate(8))
    again = SeededNotPrivate(8)
    values = tv.certify_geometric(tv.Query.count(20), budget.epsilon2).release(COUNTS, again)
    totals = cumulative(np.bincount(COUNTS, minlength=21), budget.epsilon1, again).draws
    assert (draws.values == values).all()
    assert (draws.totals == totals).all()


def test_numpys_random_numbers_are_never_used(monkeypatch):
    for name in ("default_rng", "random", "permutation", "geometric", "laplace", "choice"):
        monkeypatch.setattr(np.random, name, None)
    release(COUNTS, 20, 1)


def test_publishing_takes_private_draws_and_nothing_else():
    for method in METHODS.values():
        given = list(inspect.signature(method.publish).parameters)
        assert given == ["self", "plan", "draws", "entropy"]
    fields = set(PrivateDraws.__dataclass_fields__)
    assert fields == {"values", "epsilon2", "totals", "epsilon1", "size", "thresholds", "weights"}
    budget = split_budget(1, "1/2", records=len(COUNTS), size=21)
    draws = draw_privately(COUNTS, 20, budget, Entropy())
    assert not np.shares_memory(draws.values, COUNTS)
    assert not draws.values.flags.writeable
    assert not draws.totals.flags.writeable


def test_the_same_draws_give_the_same_release():
    # match_counts has no other argument, so the table can reach the release only through draws
    budget = split_budget(1, "1/2", records=len(COUNTS), size=21)
    draws = draw_privately(COUNTS, 20, budget, SeededNotPrivate(3))
    first, _ = match_counts(draws, SeededNotPrivate(4))
    second, _ = match_counts(draws, SeededNotPrivate(4))
    assert (first == second).all()


@pytest.mark.parametrize(
    "counts", [[7], [0], [20], [4] * 50, [0] * 50, [20] * 50, [0, 20], list(range(21))]
)
@pytest.mark.parametrize("epsilon", ["0.01", 1, 30])
@pytest.mark.parametrize("split", ["predicted", "1/2"])
def test_small_and_degenerate_tables(counts, epsilon, split):
    released, histogram = release(counts, 20, epsilon, split)
    assert len(released) == len(counts) == histogram.sum()
    assert ((released >= 0) & (released <= 20)).all()
    if epsilon == 30 and split == "predicted":
        assert released.tolist() == counts  # noise has odds of e^-30


def test_two_counts_only_and_wide_ranges():
    assert set(release([0, 1, 1, 0], 1, 1)[0]) <= {0, 1}
    released, histogram = release([0, 5, 99_999], 100_000, 2, "1/2")
    assert histogram.shape == (100_001,)
    assert released.max() <= 100_000
