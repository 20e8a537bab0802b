"""The two-stage pipeline: accounting, isolation of the table, bad input, the paper's variant."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError, TableError
from tallyveil.papers.kohli import pipeline
from tallyveil.papers.kohli.pipeline import CONSTRUCTORS, privatize_counts
from tallyveil.papers.kohli.privatizers import cumulative, noise_certificate
from tallyveil.proof.noise_law import GeometricLaw
from tallyveil.publish.budget_split import split_budget
from tallyveil.publish.estimate import PrivateDraws
from tallyveil.publish.methods import draw_privately, match_counts
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate

COUNTS = np.minimum(np.random.default_rng(0).geometric(0.2, size=400) - 1, 20)


def clamped(values, upper, epsilon, entropy=None):
    return tv.certify_geometric(tv.Query.count(upper), epsilon).release(np.asarray(values), entropy)


@pytest.mark.parametrize("split", [None, "paper", "distribution_first", "1/3", 0])
def test_table_and_published_distribution_agree_exactly(split):
    done = privatize_counts(COUNTS, 20, "0.8", split=split)
    assert done.counts.shape == COUNTS.shape
    assert done.counts.dtype == np.int64
    assert (tv.papers.distribution_of_counts(done.counts, 20) == done.distribution).all()
    assert done.target is done.distribution


# -- accounting ---------------------------------------------------------------------------


@pytest.mark.parametrize("split", [None, "paper", "distribution_first", "1/3", 0])
def test_the_receipt_adds_up_exactly(split):
    receipt = privatize_counts(COUNTS, 20, 0.1, split=split).receipt
    first, second = Fraction(receipt["epsilon1"]), Fraction(receipt["epsilon2"])
    assert first + second == Fraction(1, 10) == Fraction(receipt["epsilon"])
    assert sum(Fraction(stage["epsilon"]) for stage in receipt["stages"]) == Fraction(1, 10)
    assert receipt["delta"] == "0"
    assert receipt["private"] is True
    assert "mark" not in receipt


def test_the_receipt_is_made_of_public_things_only():
    secret = np.array([3, 3, 17])
    receipt = privatize_counts(secret, 20, 1).receipt
    assert set(receipt) == {
        "private", "epsilon", "epsilon1", "epsilon2", "split", "unit", "records", "upper",
        "above", "delta", "match", "stages", "postprocessing", "entropy",
    }  # fmt: skip
    assert receipt["records"] == 3
    same = privatize_counts(np.array([0, 9, 20]), 20, 1).receipt
    assert receipt == same  # nothing depends on the counts


def test_a_seeded_release_says_it_is_not_private():
    receipt = privatize_counts(COUNTS, 20, 1, entropy=SeededNotPrivate(5)).receipt
    assert receipt["private"] is False
    assert receipt["mark"].startswith("NOT PRIVATE")
    assert receipt["entropy"].startswith("NOT PRIVATE")


def test_every_draw_before_post_processing_is_certified():
    # the draws equal those of the certified laws on the same words, one after the other,
    # and the laws the receipt names are proved by integer comparisons
    budget = split_budget("0.9", "1/3", records=len(COUNTS), size=21)
    draws = draw_privately(COUNTS, 20, budget, SeededNotPrivate(8))
    again = SeededNotPrivate(8)
    values = clamped(COUNTS, 20, budget.epsilon2, again)
    totals = cumulative(np.bincount(COUNTS, minlength=21), budget.epsilon1, again).draws
    assert (draws.values == values).all()
    assert (draws.totals == totals).all()
    receipt = privatize_counts(COUNTS, 20, "0.9", split="1/3").receipt
    for stage in receipt["stages"]:
        law = GeometricLaw.of(Fraction(stage["epsilon"]))
        assert law.check() is None
        assert stage["certificate"] == noise_certificate(law.epsilon)


def test_numpys_random_numbers_are_never_used(monkeypatch):
    for name in ("default_rng", "random", "permutation", "geometric", "laplace", "choice"):
        monkeypatch.setattr(np.random, name, None)
    privatize_counts(COUNTS, 20, 1)
    privatize_counts(COUNTS, 20, 1, match=False, constructor="sandwich")


# -- post-processing never sees the table -------------------------------------------------


def test_publishing_takes_private_draws_and_nothing_else():
    assert list(inspect.signature(match_counts).parameters) == ["draws", "entropy"]
    fields = set(PrivateDraws.__dataclass_fields__)
    assert fields == {"values", "epsilon2", "totals", "epsilon1", "size"}
    budget = split_budget(1, "1/2", records=len(COUNTS), size=21)
    draws = draw_privately(COUNTS, 20, budget, Entropy())
    assert not np.shares_memory(draws.values, COUNTS)
    assert not draws.values.flags.writeable
    assert not draws.totals.flags.writeable


def test_the_same_draws_give_the_same_release_whatever_the_table(monkeypatch):
    budget = split_budget(1, "1/2", records=len(COUNTS), size=21)
    draws = draw_privately(COUNTS, 20, budget, SeededNotPrivate(3))
    monkeypatch.setattr(pipeline, "draw_privately", lambda *arguments: draws)
    releases = [
        privatize_counts(table, 20, 1, split="1/2", entropy=SeededNotPrivate(4)).counts
        for table in (COUNTS, np.zeros(400, dtype=int), np.full(400, 20))
    ]
    assert (releases[0] == releases[1]).all()
    assert (releases[0] == releases[2]).all()


# -- independent rows, as the paper has it ------------------------------------------------


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
@pytest.mark.parametrize("privatizer", ["cumulative", "cyclic_laplace", "wavelet"])
def test_independent_rows(constructor, privatizer):
    done = privatize_counts(
        COUNTS, 20, "0.8", match=False, constructor=constructor, privatizer=privatizer,
        postprocess="clip",
    )  # fmt: skip
    assert ((done.counts >= 0) & (done.counts <= 20)).all()
    assert (tv.papers.distribution_of_counts(done.counts, 20) == done.distribution).all()
    assert done.target.sum() == pytest.approx(1)
    receipt = done.receipt
    assert Fraction(receipt["epsilon1"]) + Fraction(receipt["epsilon2"]) == Fraction(4, 5)
    assert receipt["split"] == "paper"
    assert [stage["mechanism"] for stage in receipt["stages"]] == [privatizer, constructor]


def test_the_papers_five_steps_are_the_same_as_one_call():
    source, budget = SeededNotPrivate(6), split_budget(1, "paper", records=400, size=21)
    stage = tv.papers.privatize_distribution(
        COUNTS, 20, budget.epsilon1, "cyclic_laplace", entropy=source
    )  # steps 1 and 2
    law = stage.law("clip")
    mechanism = tv.papers.greedy_fixed_point(law, budget.epsilon2, "sandwich")  # step 3
    released = tv.certify(mechanism, target=law, prior=law).release(COUNTS, source)  # step 4
    shares = tv.papers.distribution_of_counts(released, 20)  # step 5
    done = privatize_counts(
        COUNTS, 20, 1, match=False, privatizer="cyclic_laplace", postprocess="clip",
        constructor="sandwich", entropy=SeededNotPrivate(6),
    )  # fmt: skip
    assert (done.counts == released).all()
    assert (done.distribution == shares).all()


def test_independent_rows_follow_the_target_in_the_mean():
    # footnote 1's variance, five fixed seeds; 5 standard deviations of each share
    for seed in range(5):
        done = privatize_counts(
            COUNTS, 20, 40, match=False, split="0.5", entropy=SeededNotPrivate(seed)
        )
        truth = tv.papers.distribution_of_counts(COUNTS, 20)
        T = tv.transport(tv.Query.count(20), 20, done.target)
        spread = np.sqrt(tv.papers.released_share_variance(T, done.target, 400))
        assert (np.abs(done.distribution - truth) <= 5 * spread + 1e-9).all()


def test_custom_constructor_must_keep_to_the_budget():
    def careless(law, epsilon):
        return tv.transport(tv.Query.count(len(law) - 1), 2 * epsilon, law)

    with pytest.raises(ArgumentError, match="as the budget says"):
        privatize_counts(COUNTS, 20, 1, match=False, constructor=careless)
    done = privatize_counts(
        COUNTS, 20, 1, match=False,
        constructor=lambda law, epsilon: tv.geometric(tv.Query.count(len(law) - 1), epsilon),
    )  # fmt: skip
    assert done.receipt["stages"][1]["mechanism"] == "custom"


def test_gaussian_first_stage_reports_its_delta():
    done = privatize_counts(COUNTS, 20, 1, match=False, privatizer="cyclic_gaussian", delta="1/401")
    assert done.receipt["delta"] == "1/401"
    assert done.receipt["stages"][0]["delta"] == "1/401"


# -- unusual tables -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts", [[7], [0], [20], [4] * 50, [0] * 50, [20] * 50, [0, 20], list(range(21))]
)
@pytest.mark.parametrize("epsilon", ["0.01", 1, 30])
@pytest.mark.parametrize("options", [{}, {"split": "1/2"}, {"match": False}])
def test_small_and_degenerate_tables(counts, epsilon, options):
    done = privatize_counts(counts, 20, epsilon, **options)
    assert len(done.counts) == len(counts)
    assert ((done.counts >= 0) & (done.counts <= 20)).all()
    assert done.distribution.sum() == pytest.approx(1)
    if epsilon == 30 and not options:
        assert done.counts.tolist() == counts  # noise has odds of e^-30


def test_two_counts_only_and_wide_ranges():
    assert set(privatize_counts([0, 1, 1, 0], 1, 1).counts) <= {0, 1}
    done = privatize_counts([0, 5, 99_999], 100_000, 2, split="1/2")
    assert done.distribution.shape == (100_001,)
    assert done.counts.max() <= 100_000


def test_counts_above_the_range():
    with pytest.raises(TableError, match="above upper=20"):
        privatize_counts([3, 21], 20, 1)
    done = privatize_counts([3, 21], 20, 60, above="top_code")
    assert done.counts.tolist() == [3, 20]
    assert done.receipt["above"] == "top_code"


def test_refusals():
    with pytest.raises(TableError, match="no rows"):
        privatize_counts([], 20, 1)
    with pytest.raises(ArgumentError, match=r"'split' must lie in \[0, 1\)"):
        privatize_counts(COUNTS, 20, 1, split=1)
    with pytest.raises(ArgumentError, match="'epsilon' must be greater than 0"):
        privatize_counts(COUNTS, 20, 0)
    with pytest.raises(ArgumentError, match="be 'cumulative' when ranks are matched"):
        privatize_counts(COUNTS, 20, 1, privatizer="wavelet")
    with pytest.raises(ArgumentError, match="be above 0 when rows are drawn independently"):
        privatize_counts(COUNTS, 20, 1, match=False, split=0)
    with pytest.raises(ArgumentError, match="'constructor' must be one of transport"):
        privatize_counts(COUNTS, 20, 1, match=False, constructor="simplex")
    with pytest.raises(ArgumentError, match="'privatizer' must be one of cumulative"):
        privatize_counts(COUNTS, 20, 1, match=False, privatizer="tree")
    with pytest.raises(ArgumentError, match="'postprocess' must be one of isotonic"):
        privatize_counts(COUNTS, 20, 1, match=False, postprocess="none")
