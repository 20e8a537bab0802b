"""Minimality of Definition 8: optima are minimal, what can be improved is not."""

import numpy as np
import pytest

import tallyveil as tv

QUERIES = [tv.Query.count(4), tv.Query.maximum(1, 5), tv.Query.mean(2, 0, 3)]


@pytest.mark.parametrize("query", QUERIES, ids=repr)
@pytest.mark.parametrize("loss", ["absolute", "squared", ("power", 0.5)])
def test_optima_of_increasing_losses_are_minimal(query, loss):
    """Corollary 1, with its missing conditions (errata, Croft 6)."""
    found = tv.design(query, 0.7, loss, prior=np.arange(1, len(query.inputs) + 1) ** 1.0)
    assert tv.papers.is_minimal(found.mechanism, "0.7")


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_what_a_smaller_mechanism_beats_is_not_minimal(query):
    best = tv.papers.variant1(query, 0.7).mechanism
    mixed = tv.Mechanism((best.matrix + tv.uniform(query).matrix) / 2, query, 0.7)
    assert not tv.papers.is_minimal(mixed)
    assert not tv.papers.is_minimal(tv.uniform(query), 0.7)


def test_minimal_at_one_epsilon_and_not_at_a_larger_one():
    m = tv.geometric(tv.Query.count(4), 0.5)
    assert tv.papers.is_minimal(m)
    assert not tv.papers.is_minimal(m, 0.8)


def test_the_class_must_hold_the_mechanism():
    with pytest.raises(tv.ArgumentError, match=r"'epsilon' must be at least 0\.5"):
        tv.papers.is_minimal(tv.geometric(tv.Query.count(4), 0.5), 0.1)
    with pytest.raises(tv.ArgumentError, match="'epsilon' must be given"):
        tv.papers.is_minimal(tv.uniform(tv.Query.count(4)))
