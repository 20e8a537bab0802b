"""Gupte and Sundararajan (2010): averages over databases (Appendix A) and Lemma 5."""

import itertools

import numpy as np
import pytest

import tallyveil as tv
from reproduction.gupte import EXACT_1A

BIT = tv.Query.count(1)


def test_the_average_over_databases_is_oblivious_and_private():
    # Lemma 6, on all databases of three bits
    q = tv.Query.count(3)
    databases = list(itertools.product((0, 1), repeat=3))
    base = tv.geometric(q, 0.9)
    twisted = [base.matrix[sum(d)] * 0.9 + base.matrix[3 * d[0]] * 0.1 for d in databases]
    m = tv.papers.oblivious(twisted, [sum(d) for d in databases], q, 2.7)
    assert m.realised_epsilon() <= 2.7
    assert m.matrix.sum(axis=1) == pytest.approx(np.ones(4))


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        (tv.ArgumentError, lambda: tv.papers.oblivious(np.eye(2), [0], BIT), "'answers' must"),
        (tv.ArgumentError, lambda: tv.papers.oblivious(np.eye(2), [0, 7], BIT), "'answers' must"),
        (tv.ArgumentError, lambda: tv.papers.oblivious(np.eye(2), [0, 0], BIT), "'answers' must"),
        (tv.QueryError, lambda: tv.papers.oblivious(np.eye(2), [0, 1], 1), "'query' must"),
        (
            tv.ArgumentError,
            lambda: tv.papers.has_lemma_5_pattern([0.5, 0.5], 0.5),
            "'matrix' must have two dim",
        ),
        (
            tv.ArgumentError,
            lambda: tv.papers.has_lemma_5_pattern(np.eye(2), 1.0),
            "'alpha' must lie strictly",
        ),
    ],
)
def test_refusals(kind, call, message):
    with pytest.raises(kind, match=message):
        call()


def test_the_optimum_of_table_1_has_the_pattern():
    assert tv.papers.has_lemma_5_pattern(EXACT_1A, 0.25)
    assert not tv.papers.has_lemma_5_pattern(np.full((3, 3), 1 / 3), 0.25)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_optimum_of_a_minimax_consumer_has_the_pattern(loss):
    deployed = tv.geometric(tv.Query.count(4), "0.6931471805599453")
    induced = tv.Consumer(loss).respond(deployed).induced
    assert tv.papers.has_lemma_5_pattern(induced.matrix, 0.5)
