"""Gupte and Sundararajan (2010): averages over databases (Appendix A) and Lemma 5."""

import itertools

import numpy as np
import pytest

import tallyveil as tv
from reproduction.gupte import EXACT_1A


def test_the_average_over_databases_is_oblivious_and_private():
    # Lemma 6, on all databases of three bits
    q = tv.Query.count(3)
    databases = list(itertools.product((0, 1), repeat=3))
    base = tv.geometric(q, 0.9)
    twisted = [base.matrix[sum(d)] * 0.9 + base.matrix[3 * d[0]] * 0.1 for d in databases]
    m = tv.papers.oblivious(twisted, [sum(d) for d in databases], q, 2.7)
    assert m.realised_epsilon() <= 2.7
    assert m.matrix.sum(axis=1) == pytest.approx(np.ones(4))


def test_refusals():
    for answers in ([0], [0, 7], [0, 0]):
        with pytest.raises(tv.ArgumentError, match="'answers' must"):
            tv.papers.oblivious(np.eye(2), answers, tv.Query.count(1))
    with pytest.raises(tv.QueryError, match="'query' must"):
        tv.papers.oblivious(np.eye(2), [0, 1], 1)
    with pytest.raises(tv.ArgumentError, match="'matrix' must have two dimensions"):
        tv.papers.has_lemma_5_pattern([0.5, 0.5], 0.5)
    with pytest.raises(tv.ArgumentError, match="'alpha' must lie strictly"):
        tv.papers.has_lemma_5_pattern(np.eye(2), 1.0)


def test_the_optimum_of_table_1_has_the_pattern():
    assert tv.papers.has_lemma_5_pattern(EXACT_1A, 0.25)
    assert not tv.papers.has_lemma_5_pattern(np.full((3, 3), 1 / 3), 0.25)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_optimum_of_a_minimax_consumer_has_the_pattern(loss):
    deployed = tv.geometric(tv.Query.count(4), "0.6931471805599453")
    induced = tv.Consumer(loss).respond(deployed).induced
    assert tv.papers.has_lemma_5_pattern(induced.matrix, 0.5)
