"""Gupte and Sundararajan (2010): the pattern of Lemma 5, and refusals."""

import numpy as np
import pytest

import tallyveil as tv


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


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_optimum_of_a_minimax_consumer_has_the_pattern(loss):
    deployed = tv.geometric(tv.Query.count(4), "0.6931471805599453")
    induced = tv.Consumer(loss).respond(deployed).induced
    assert tv.papers.has_lemma_5_pattern(induced.matrix, 0.5)
    assert not tv.papers.has_lemma_5_pattern(np.full((3, 3), 1 / 3), 0.5)
