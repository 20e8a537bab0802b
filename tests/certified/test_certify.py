"""Certified mechanisms: what goes in, what comes out, and what is refused undrawn."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv


class Silent(tv.Entropy):
    """Fails the test if anything is drawn."""

    def octets(self, count):
        raise AssertionError("something was drawn")


@pytest.fixture(scope="module")
def certified():
    return tv.certify(tv.geometric(tv.Query.count(40), 1.0))


@pytest.fixture(scope="module")
def wide():
    return tv.certify_geometric(tv.Query.count(1_000_000), "0.1")


BAD = {
    "negative": [-1], "above": [3, 1_987_654], "fraction": [1.5], "nan": [np.nan],
    "infinite": [np.inf], "none": [None], "none alone": None, "strings": ["3"], "string": "3",
    "two-dimensional": [[1, 2]], "ragged": [[1], [2, 3]], "booleans": [True, False],
    "mixed": [1, "2"], "complex": [1j], "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "empty strings": np.array([], dtype="U1"), "huge": np.array([2**64 - 1], dtype=np.uint64),
    "a negative byte": np.array([-1], np.int8), "big-endian": np.array([10**7], ">i8"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_counts_are_refused_before_anything_is_drawn(kind, certified, wide):
    for mechanism in (certified, wide):
        with pytest.raises(tv.ArgumentError, match="'counts' must") as caught:
            mechanism.release(BAD[kind], entropy=Silent())
        assert "Nothing was drawn" in str(caught.value)
        assert "987654" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integer_types_come_back(dtype, certified):
    counts = np.arange(41, dtype=dtype)
    released = certified.release(counts)
    assert released.dtype == counts.dtype
    assert released.shape == counts.shape
    assert released.min() >= 0
    assert released.max() <= 40
    assert np.array_equal(counts, np.arange(41))  # the input is untouched


def test_scalars_lists_floats_and_nothing(certified):
    assert type(certified.release(3)) is int
    assert type(certified.release(np.int16(3))) is int
    assert certified.release([3, 4]).dtype == np.int64
    assert certified.release(np.array([3.0, 4.0])).dtype == np.float64
    assert certified.release([]).shape == (0,)
    assert certified.release(np.array([], dtype=np.uint8)).dtype == np.uint8


def test_outputs_that_do_not_fit_widen_the_type():
    certified = tv.certify(tv.geometric(tv.Query.count(200, extend=3), 0.01))
    released = certified.release(np.full(100_000, 100, dtype=np.uint8))
    assert released.dtype == np.float64 or np.iinfo(released.dtype).min < 0
    assert released.min() < 0


def test_other_queries_release_their_own_answers():
    mean = tv.certify(tv.exponential(tv.Query.mean(records=3, lower=0, upper=2), 1.0))
    released = mean.release(mean.query.inputs)
    assert set(released.tolist()) <= set(mean.query.outputs.tolist())
    with pytest.raises(tv.ArgumentError, match="true answers of the query"):
        mean.release([0.5], entropy=Silent())
    shifted = tv.certify(tv.exponential(tv.Query.maximum(5, 9), 1.0))
    many = shifted.release(np.full(1000, 7, dtype=np.int8))
    assert many.dtype == np.int8
    assert set(many.tolist()) <= {5, 6, 7, 8, 9}


def test_draws_are_fresh_and_seeded_draws_repeat(certified):
    counts, seeds = np.full(1000, 20), [tv.SeededNotPrivate(1) for _ in range(2)]
    assert not np.array_equal(certified.release(counts), certified.release(counts))
    assert np.array_equal(*(certified.release(counts, entropy=seed) for seed in seeds))


def test_attributes_and_immutability(certified):
    assert certified.total == 2**62
    assert (certified.weights.sum(axis=1) == certified.total).all()
    assert certified.exact_epsilon == Fraction(1)
    assert certified.exact_delta == 0
    assert certified.mechanism.expected_loss() == pytest.approx(
        tv.geometric(tv.Query.count(40), 1.0).expected_loss(), rel=1e-12
    )
    with pytest.raises(ValueError, match="read-only"):
        certified.weights[0, 0] = 1
    with pytest.raises(AttributeError):
        certified.query = None
    assert repr(certified) == "<certified geometric: 41 x 41, epsilon=1>"


def test_loading_reads_once_and_refuses_what_does_not_hold(certified, tmp_path):
    path = certified.save(tmp_path / "mechanism.json")
    assert tv.load(path) == certified
    path.write_text(path.read_text(encoding="utf-8")[:-2], encoding="utf-8")
    with pytest.raises(tv.VerificationError, match="not JSON"):
        tv.load(path)
    path.write_text(certified.to_json().replace("\n", "\n "), encoding="utf-8")
    with pytest.raises(tv.VerificationError, match="canonical"):
        tv.load(path)


def test_wide_range_without_a_matrix(wide, tmp_path):
    assert tv.verify(wide)
    path = wide.save(tmp_path / "mechanism.json")
    again = tv.load(path)
    assert again == wide
    assert path.stat().st_size < 100_000
    released = again.release(np.array([0, 500_000, 1_000_000], dtype=np.int32))
    assert released.dtype == np.int32
    assert released.min() >= 0
    assert released.max() <= 1_000_000
    with pytest.raises(tv.ArgumentError, match="at most 4001"):
        wide.mechanism  # noqa: B018


def test_wide_law_is_the_truncated_geometric():
    """Chi-square against the matrix on 2 million draws; false alarms once in 10^9 runs."""
    from scipy.stats import chi2

    query = tv.Query.count(12)
    law = tv.certify_geometric(query, 0.4).mechanism.matrix
    certified = tv.certify_geometric(query, 0.4)
    for true in (0, 5, 12):
        seen = np.bincount(certified.release(np.full(700_000, true)), minlength=13)
        statistic = ((seen - law[true] * 700_000) ** 2 / (law[true] * 700_000)).sum()
        assert statistic < chi2.isf(1e-9 / 3, 12)


def test_wide_range_of_a_mean_spends_epsilon_over_the_width():
    certified = tv.certify_geometric(tv.Query.mean(records=4, lower=0, upper=5), 1.0)
    assert certified.noise.epsilon == Fraction(1, 5)
    assert certified.mechanism.realised_epsilon() == pytest.approx(1.0)
    assert tv.verify(certified)
    with pytest.raises(tv.QueryError, match="consecutive outputs"):
        tv.certify_geometric(tv.Query.count(10, categories=2), 1.0)


def test_a_matrix_made_for_another_epsilon_is_not_taken_for_round_off():
    q = tv.Query.count(8)
    with pytest.raises(tv.CertificationError, match="Worst cell"):
        tv.certify(tv.Mechanism(tv.geometric(q, "1.01").matrix, q, epsilon=1))
    assert tv.certify(tv.Mechanism(tv.geometric(q, "1.000001").matrix, q, epsilon=1))


def test_an_unknown_epsilon_must_be_given():
    with pytest.raises(tv.ArgumentError, match=r"tallyveil\.Mechanism"):
        tv.certify(np.eye(2), epsilon=1.0)
    half = tv.Mechanism(np.full((2, 2), 0.5), tv.Query.count(1))
    with pytest.raises(tv.ArgumentError, match="epsilon"):
        tv.certify(half)
    assert tv.certify(half, epsilon=0.5).exact_epsilon == Fraction(1, 2)
