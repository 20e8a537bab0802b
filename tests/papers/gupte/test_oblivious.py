"""Averaging over databases (Gupte and Sundararajan 2010, Appendix A)."""

import itertools

import numpy as np
import pytest

import tallyveil as tv


def test_the_average_over_databases_is_oblivious_and_private():
    # Lemma 6, on all databases of three bits
    q = tv.Query.count(3)
    databases = list(itertools.product((0, 1), repeat=3))
    base = tv.geometric(q, 0.9)
    twisted = [base.matrix[sum(d)] * 0.9 + base.matrix[3 * d[0]] * 0.1 for d in databases]
    m = tv.papers.oblivious(twisted, [sum(d) for d in databases], q, 2.7)
    assert m.realised_epsilon() <= 2.7
    assert m.matrix.sum(axis=1) == pytest.approx(np.ones(4))


@pytest.mark.parametrize("answers", [[0], [0, 7], [0, 0]])
def test_bad_answers_are_named(answers):
    with pytest.raises(tv.ArgumentError, match="'answers' must"):
        tv.papers.oblivious(np.eye(2), answers, tv.Query.count(1))


def test_a_query_is_needed():
    with pytest.raises(tv.QueryError, match="'query' must"):
        tv.papers.oblivious(np.eye(2), [0, 1], 1)
