"""Integer weights: totals, support, exact ratios, and how little they cost."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.proof.ratios import check_weights
from tallyveil.proof.weights import approximate_weights, pure_weights
from tests.contracts.test_constructors import BUILD

FORMS = sorted(set(BUILD) - {"discrete_gaussian", "canonical", "oblivious"})
EPSILONS = ["1e-4", "1e-3", "0.01", "0.1", "1", "5", "20"]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("upper", [1, 2, 9, 60])
def test_every_closed_form_certifies(form, upper, epsilon, private):
    query = tv.Query.count(upper)
    certified = tv.certify(BUILD[form](query, epsilon))
    assert tv.verify(certified)
    assert private(certified.weights.tolist(), query.neighbours.pairs.tolist(), Fraction(epsilon))
    loss = certified.certificate["loss"]
    assert loss["after"] <= loss["before"] * (1 + 1e-6) + 1e-15


def test_underflowed_tails_get_weight_one():
    mechanism = tv.geometric(tv.Query.count(1000), 1.0)
    assert mechanism.realised_epsilon() == np.inf
    certified = tv.certify(mechanism)
    assert certified.weights.min() >= 1
    assert tv.verify(certified)


def test_outputs_never_reported_stay_never_reported():
    matrix = [[0.5, 0.0, 0.5], [0.4, 0.0, 0.6]]
    query = tv.Query.custom([0, 1], [0, 1, 2], "path")
    weights = pure_weights(np.array(matrix), query, Fraction(1))
    assert weights[:, 1].tolist() == [0, 0]
    assert (weights[:, [0, 2]] > 0).all()


def test_unconnected_inputs_keep_their_own_outputs():
    query = tv.Query.custom(range(4), range(4), [(0, 1), (2, 3)])
    matrix = np.kron(np.eye(2), np.full((2, 2), 0.5))
    certified = tv.certify(tv.Mechanism(matrix, query, 1.0))
    assert np.array_equal(certified.weights > 0, matrix > 0)
    assert tv.verify(certified)


@given(
    st.integers(2, 12), st.integers(2, 12), st.sampled_from(["1/100", "1/2", "1", "3", "30"]),
    st.sampled_from(["path", "complete"]), st.integers(0, 2**32),
)  # fmt: skip
def test_repaired_random_matrices_certify(n, m, epsilon, graph, seed):
    query = tv.Query.custom(range(n), range(m), graph)
    matrix = np.random.default_rng(seed).dirichlet(np.full(m, 0.3), size=n)
    mended = tv.repair(tv.Mechanism(matrix, query), epsilon).mechanism
    certified = tv.certify(mended)
    assert tv.verify(certified)
    assert certified.certificate["loss"]["mass_moved"] < 1e-9


def test_a_matrix_that_is_not_private_is_refused_by_name():
    with pytest.raises(tv.CertificationError, match="output 0, inputs 0 and 1"):
        tv.certify(tv.Mechanism(np.eye(3), tv.Query.count(2)), epsilon=1.0)
    mechanism = tv.geometric(tv.Query.count(5), 1.0)
    with pytest.raises(tv.CertificationError, match="Not private at epsilon 9/10"):
        tv.certify(mechanism, epsilon=0.9)
    assert tv.certify(mechanism, epsilon=2).exact_epsilon == 2
    with pytest.raises(tv.CertificationError, match="too small"):
        tv.certify(tv.geometric(tv.Query.count(2000), "1e-12"))


def test_delta_is_kept_exactly():
    query = tv.Query.count(20)
    mechanism = tv.discrete_gaussian(query, 1.0, 1e-6)
    certified = tv.certify(mechanism)
    verdict = tv.verify(certified)
    assert verdict.ok
    assert verdict.delta == Fraction(1, 10**6)
    assert Fraction(9, 10**7) < verdict.achieved_delta <= verdict.delta
    assert verdict.achieved_epsilon > 1


def test_a_delta_just_too_small_is_met_by_mixing_and_a_far_smaller_one_is_refused():
    query = tv.Query.count(20)
    matrix = tv.discrete_gaussian(query, 1.0, 1e-6).matrix
    certified = tv.certify(tv.Mechanism(matrix, query, 1.0, delta="0.9995e-6"))
    assert tv.verify(certified).achieved_delta <= Fraction("0.9995e-6")
    matrix = tv.discrete_gaussian(query, 1.0, 1e-3).matrix
    with pytest.raises(tv.CertificationError, match="would move"):
        tv.certify(tv.Mechanism(matrix, query, 1.0, delta=1e-6))


def test_impossible_entries_may_stay_impossible_under_delta():
    query = tv.Query.count(1)
    matrix = np.array([[0.5, 0.5], [0.4999, 0.5001]])
    sure = np.array([[1.0, 0.0], [0.999, 0.001]])
    for table in (matrix, sure):
        weights = approximate_weights(table, query, Fraction(1), Fraction(1, 100))
        assert np.array_equal(weights > 0, table > 0)
        assert check_weights(weights, query.neighbours, Fraction(1), Fraction(1, 100))
