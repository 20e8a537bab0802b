"""The paper's pipeline: exact accounting, independent rows, bad input, footnote 1."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError, MechanismError, TableError
from tallyveil.papers.kohli.pipeline import CONSTRUCTORS, privatize_counts
from tallyveil.sampling.entropy import SeededNotPrivate

COUNTS = np.minimum(np.random.default_rng(0).geometric(0.2, size=400) - 1, 20)


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
@pytest.mark.parametrize("privatizer", ["cumulative", "cyclic_laplace", "wavelet"])
def test_every_pair_of_stages_releases_counts_in_range(constructor, privatizer):
    done = privatize_counts(COUNTS, 20, "0.8", constructor=constructor, privatizer=privatizer)
    assert done.counts.shape == COUNTS.shape
    assert done.counts.dtype == np.int64
    assert ((done.counts >= 0) & (done.counts <= 20)).all()
    assert (tv.papers.distribution_of_counts(done.counts, 20) == done.distribution).all()
    assert done.target.sum() == pytest.approx(1)


@pytest.mark.parametrize("split", ["paper", "1/3", 0.25])
def test_the_stages_add_up_exactly(split):
    done = privatize_counts(COUNTS, 20, 0.1, split=split)
    assert done.epsilon1 + done.epsilon2 == Fraction(1, 10)
    assert done.epsilon1 > 0
    assert done.delta == 0
    done = privatize_counts(COUNTS, 20, 1, privatizer="cyclic_gaussian", delta="1/401")
    assert done.delta == Fraction(1, 401)


def test_the_papers_five_steps_are_the_same_as_one_call():
    source, budget = SeededNotPrivate(6), tv.papers.split_budget(1)
    stage = tv.papers.privatize_distribution(
        COUNTS, 20, budget.epsilon1, "cyclic_laplace", entropy=source
    )  # steps 1 and 2
    target = stage.distribution("clip")
    mechanism = tv.papers.greedy_fixed_point(target, budget.epsilon2, "sandwich")  # step 3
    certified = tv.certify(mechanism, target=target, prior=target)
    released = certified.release(COUNTS, source)  # step 4
    shares = tv.papers.distribution_of_counts(released, 20)  # step 5
    done = privatize_counts(COUNTS, 20, 1, entropy=SeededNotPrivate(6))
    assert (done.counts == released).all()
    assert (done.distribution == shares).all()


def test_independent_rows_follow_the_target_in_the_mean():
    # footnote 1's variance, five fixed seeds; 5 standard deviations of each share
    for seed in range(5):
        stages = {"split": "0.5", "privatizer": "cumulative", "constructor": "transport"}
        done = privatize_counts(COUNTS, 20, 40, **stages, entropy=SeededNotPrivate(seed))
        truth = tv.papers.distribution_of_counts(COUNTS, 20)
        T = tv.transport(tv.Query.count(20), 20, done.target)
        spread = np.sqrt(tv.papers.released_share_variance(T, done.target, 400))
        assert (np.abs(done.distribution - truth) <= 5 * spread + 1e-9).all()


def test_custom_constructor_must_keep_to_the_budget():
    def build_careless(target, epsilon):
        return tv.transport(tv.Query.count(len(target) - 1), 2 * epsilon, target)

    def build_geometric(target, epsilon):
        return tv.geometric(tv.Query.count(len(target) - 1), epsilon)

    with pytest.raises(ArgumentError, match="as the budget says"):
        privatize_counts(COUNTS, 20, 1, constructor=build_careless)
    done = privatize_counts(COUNTS, 20, 1, constructor=build_geometric)
    assert len(done.counts) == len(COUNTS)


@pytest.mark.parametrize(
    "counts", [[7], [0], [20], [4] * 50, [0] * 50, [20] * 50, [0, 20], list(range(21))]
)
@pytest.mark.parametrize("epsilon", ["0.01", 1, 30])
def test_small_and_degenerate_tables(counts, epsilon):
    done = privatize_counts(counts, 20, epsilon, privatizer="cumulative", postprocess="isotonic")
    assert len(done.counts) == len(counts)
    assert ((done.counts >= 0) & (done.counts <= 20)).all()
    assert done.distribution.sum() == pytest.approx(1)


def test_counts_above_the_range():
    with pytest.raises(TableError, match="above upper=20"):
        privatize_counts([3, 21], 20, 1)
    with pytest.raises(TableError, match="no rows"):
        privatize_counts([], 20, 1)
    done = privatize_counts([3, 21], 20, 200, above="top_code")
    assert done.counts.tolist() == [3, 20]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": 1}, r"'split' must lie in \[0, 1\)"),
        ({"split": 0}, "'split' must be greater than 0"),
        ({"split": "combined"}, "'split' must be 'paper' or a number"),
        ({"epsilon": 0}, "'epsilon' must be greater than 0"),
        ({"constructor": "simplex"}, "'constructor' must be one of transport"),
        ({"privatizer": "tree"}, "'privatizer' must be one of cumulative"),
        ({"postprocess": "none"}, "'postprocess' must be one of isotonic"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(ArgumentError, match=message):
        privatize_counts(COUNTS, 20, **{"epsilon": 1, **changes})


def test_footnote_1_variance_by_enumeration():
    # two rows with true counts 0 and 1: every pair of outputs, weighted by its probability
    mechanism = tv.Mechanism([[0.7, 0.3], [0.2, 0.8]], tv.Query.count(1))
    shares, weights = [], []
    for first in (0, 1):
        for second in (0, 1):
            shares.append(((first == 1) + (second == 1)) / 2)
            weights.append(mechanism.matrix[0, first] * mechanism.matrix[1, second])
    mean = np.average(shares, weights=weights)
    variance = np.average((np.array(shares) - mean) ** 2, weights=weights)
    found = tv.papers.released_share_variance(mechanism, [0.5, 0.5], records=2)
    np.testing.assert_allclose(found, [variance, variance], atol=1e-15)


def test_footnote_1_needs_records_and_a_mechanism():
    with pytest.raises(ArgumentError, match="at least 1"):
        tv.papers.released_share_variance(tv.geometric(tv.Query.count(1), 1.0), [0.5, 0.5], 0)
    with pytest.raises(MechanismError, match="'mechanism' must be a Mechanism"):
        tv.papers.released_share_variance("geometric", [0.5, 0.5], 1)
