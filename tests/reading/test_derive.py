import math
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from reproduction.gupte import APPENDIX_B
from tallyveil.reading.derive import Separation

NOT_DERIVABLE = tv.Mechanism(APPENDIX_B, tv.Query.count(3), repr(math.log(2)), name="appendix B")


def test_appendix_b_is_refused_with_its_three_entries_exactly():
    with pytest.raises(tv.InfeasibleError, match=r"-1/12 is below 0") as refusal:
        tv.papers.exact_derivation(APPENDIX_B, Fraction(1, 2))
    assert refusal.value.conflict == ("(0, 1)", "(1, 1)", "(2, 1)")


def test_appendix_b_is_refused_in_floats():
    source = tv.geometric(tv.Query.count(3), repr(math.log(2)))
    assert not tv.is_derivable(NOT_DERIVABLE, source)
    obstacle = tv.derivability(NOT_DERIVABLE, source).obstacle
    assert (obstacle.column, obstacle.rows) == (1, (0, 1, 2))
    assert obstacle.entries == pytest.approx((2 / 9, 1 / 9, 2 / 9))
    assert obstacle.value == pytest.approx(-1 / 12)
    with pytest.raises(tv.InfeasibleError, match=r"appendix B cannot be derived") as refusal:
        tv.derivation(NOT_DERIVABLE, source)
    assert refusal.value.conflict == ("(0, 1)", "(1, 1)", "(2, 1)")
    assert NOT_DERIVABLE.realised_epsilon() == pytest.approx(math.log(2))


@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_more_private_from_less_private_and_never_back(n):
    q = tv.Query.count(n)
    less, more = tv.geometric(q, 1.0), tv.geometric(q, 0.4)
    T = tv.derivation(more, source=less)
    assert T.min() >= 0
    assert np.abs(T.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(less.matrix @ T - more.matrix).max() < 1e-12
    obstacle = tv.derivability(less, source=more).obstacle
    assert obstacle.value < 0


def test_random_post_processing_is_found_again():
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = int(rng.integers(2, 12))
        q = tv.Query.count(n)
        g = tv.geometric(q, 0.8)
        T = rng.dirichlet(np.full(n + 1, 0.3), size=n + 1)
        found = tv.derivation(tv.Mechanism(g.matrix @ T, q, 0.8), source=g)
        assert np.abs(found - T).max() < 1e-10


def test_any_source_square_or_rectangular():
    q = tv.Query.count(4)
    wide = tv.geometric(tv.Query.count(4, extend=3), 1.0)
    g, fair = tv.geometric(q, 1.0), tv.fair(q, 1.0)
    for source, made in ((wide, g), (fair, tv.uniform(q, 1.0)), (fair, fair)):
        T = tv.derivation(made, source=source)
        assert np.abs(source.matrix @ T - made.matrix).max() < 1e-9
        assert T.min() >= 0


@pytest.mark.parametrize("source", ["fair", "wide"])
def test_refusal_by_any_source_is_a_decision_problem_that_anyone_can_check(source):
    q = tv.Query.count(4)
    target = tv.geometric(q, 1.0) if source == "fair" else tv.fair(q, 1.0)
    made = tv.fair(q, 1.0) if source == "fair" else tv.geometric(tv.Query.count(4, extend=3), 1.0)
    problem = tv.derivability(target, source=made).obstacle
    assert isinstance(problem, Separation)
    assert (problem.losses * target.matrix).sum() == pytest.approx(problem.by_m)
    best = (made.matrix.T @ problem.losses).min(axis=1).sum()
    assert best == pytest.approx(problem.from_source, abs=1e-12)
    assert problem.by_m < best - 1e-3
    with pytest.raises(tv.InfeasibleError, match="decision problem"):
        tv.derivation(target, source=made)


def test_refusals():
    with pytest.raises(tv.ArgumentError, match="summing to exactly 1"):
        tv.papers.exact_derivation([["1/2", "1/3"], ["1/2", "1/2"]], Fraction(1, 2))
    with pytest.raises(tv.ArgumentError, match="same true answers"):
        tv.is_derivable(
            tv.geometric(tv.Query.count(3), 1), source=tv.geometric(tv.Query.count(4), 1)
        )
