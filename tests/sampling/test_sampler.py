"""The sampler: every word is tried, and the counts of outputs equal the weights."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.sampling import cores
from tallyveil.sampling.cores import CHUNK
from tallyveil.sampling.sampler import MANY_UNDECIDED, Sampler


class Scripted(tv.Entropy):
    """Hands the sampler chosen words: first their leading bits, then the rest where asked."""

    def __init__(self, sampler: Sampler, rows: np.ndarray, words: np.ndarray) -> None:
        super().__init__()
        self.sampler, self.rows, self.script, self.start = sampler, rows, words, 0
        self.rest = sampler.bits - sampler.first_bits
        self.open = np.empty(0, np.int64)  # words whose remaining bits will be asked for

    def octets(self, count: int, room: object = None) -> np.ndarray:
        part = slice(self.start, self.start + count // 2)
        self.start += count // 2
        words = self.script[part]
        leading = words >> self.rest
        place = (self.rows[part] << self.sampler.first_bits) + leading
        asked = self.sampler._lookup.table[place] == self.sampler.shape[1]
        self.open = np.concatenate([self.open, words[asked]])
        shift = 16 - self.sampler.first_bits
        return (leading << shift).astype(np.uint16).view(np.uint8)

    def words(self, count: int) -> np.ndarray:
        ending, self.open = self.open & ((1 << self.rest) - 1), np.empty(0, np.int64)
        assert len(ending) == count
        return ending.astype(np.uint64) << np.uint64(64 - self.rest)


def whole_weights(matrix: np.ndarray, bits: int) -> np.ndarray:
    """Rows rounded down to a total of 2^bits, the rest on the largest."""
    weights = np.floor(np.asarray(matrix) * 2**bits).astype(np.int64)
    weights[np.arange(len(weights)), weights.argmax(axis=1)] += 2**bits - weights.sum(axis=1)
    return weights


def check_every_word(weights: np.ndarray, bits: int, first_bits: int | None) -> None:
    n, m = weights.shape
    sampler = Sampler(weights, bits)
    if first_bits is not None:
        sampler.first_bits = first_bits
    rows = np.repeat(np.arange(n), 2**bits)
    words = np.tile(np.arange(2**bits), n)
    searched = sampler.outputs(rows, words)  # no table yet: the plain search
    drawn = sampler.draw(rows, Scripted(sampler, rows, words))
    assert np.array_equal(searched, drawn)
    counts = np.bincount(rows * m + drawn, minlength=n * m).reshape(n, m)
    assert np.array_equal(counts, weights)


@pytest.mark.parametrize("bits", range(8, 15))
@pytest.mark.parametrize("form", ["geometric", "fair", "uniform", "lp"])
@pytest.mark.parametrize("first_bits", [None, 5])
def test_every_word_of_every_form(form, bits, first_bits, solve_private):
    query = tv.Query.count(9)
    if form == "lp":  # the zero-one optimum with a skewed prior, zeros and all
        matrix = np.maximum(solve_private((1 - np.eye(10)) * np.arange(1, 11)[:, None], 0.8)[1], 0)
    else:
        matrix = getattr(tv, form)(query, 0.8).matrix
    check_every_word(whole_weights(matrix, bits), bits, first_bits)


@settings(max_examples=60, deadline=None)
@given(st.integers(8, 11), st.integers(1, 4), st.integers(1, 40), st.integers(2, 8), st.integers(0))
def test_every_word_of_any_table(bits, n, m, first_bits, seed):
    """Rows cut at random places: zero weights, single outputs and ties included."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, 2**bits + 1, (n, m - 1)), axis=1)
    ends = np.column_stack([np.zeros(n, np.int64), cuts, np.full(n, 2**bits)])
    check_every_word(np.diff(ends, axis=1), bits, first_bits)


def test_more_than_256_outputs_and_several_chunks():
    weights = whole_weights(tv.geometric(tv.Query.count(299), 0.01).matrix, 12)
    assert len(weights) << 12 > 2 * CHUNK
    check_every_word(weights, 12, 6)


def test_words_that_the_table_leaves_open_are_settled_over_several_chunks(monkeypatch):
    asked = []
    settle = Sampler._settle
    monkeypatch.setattr(
        Sampler, "_settle", lambda *given: (asked.append(len(given[2])), settle(*given))
    )
    weights = whole_weights(tv.geometric(tv.Query.count(80), 1.0).matrix, 14)
    check_every_word(weights, 14, 12)
    assert len(weights) << 14 > 5 * CHUNK
    assert len(asked) == 1
    assert 5 * 256 < asked[0] < MANY_UNDECIDED


def test_tables_stay_within_their_limit():
    assert Sampler(np.full((1, 1), 2**62)).first_bits == 12
    wide = Sampler(np.full((2048, 2048), 2**51))
    assert wide.first_bits == 13
    wide.draw(np.zeros(1 << 20, np.int64), tv.Entropy())
    assert wide._lookup.table.nbytes <= 1 << 25


def test_draws_do_not_depend_on_the_type_that_they_are_written_in():
    """Written straight into an array of the table's own type, or widened."""
    sampler = Sampler(tv.certify(tv.geometric(tv.Query.count(80), 0.3)).weights)
    rows = np.arange(600_000) % 81
    drawn = [sampler.draw(rows, tv.SeededNotPrivate(3))]
    for number, kind in ((np.uint8, np.uint8), (np.int64, np.int64), (np.int32, np.uint16)):
        drawn.append(np.empty(len(rows), kind))
        assert sampler.draw(rows.astype(number), tv.SeededNotPrivate(3), drawn[-1]) is drawn[-1]
    assert sampler.dtype == np.uint8
    assert all(np.array_equal(drawn[0], other) for other in drawn)
    strided = np.zeros(2 * len(rows), np.uint8)
    sampler.draw(rows, tv.SeededNotPrivate(3), strided[::2])
    assert np.array_equal(strided[::2], drawn[0])
    assert not strided[1::2].any()


class Watched(tv.Entropy):
    """Notes which thread used which cipher."""

    private = True

    def __init__(self) -> None:
        super().__init__()
        self.used = []

    def _cipher(self):
        cipher = super()._cipher()
        self.used.append((threading.get_ident(), cipher))
        return cipher


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_draws_under_a_key_of_its_own(monkeypatch, threads):
    monkeypatch.setattr(cores, "_count_cores", lambda: threads)
    for made in (
        tv.certify(tv.geometric(tv.Query.count(80), 50)),
        tv.certify_geometric(tv.Query.count(80), 50),
    ):
        entropy = Watched()
        rows = np.arange(2_000_000) % 81
        assert np.array_equal(made.draw_positions(rows, entropy), rows)  # 50: every draw is true
        of_thread = {}
        for thread, cipher in entropy.used:
            assert of_thread.setdefault(thread, cipher) is cipher
        ciphers = list(of_thread.values())
        assert len({id(cipher) for cipher in ciphers}) == len(of_thread) <= threads


def test_threads_do_not_change_the_distribution(monkeypatch):
    """The draws of two threads, part by part and jointly; false alarms once in 10^9 runs."""
    from scipy.stats import chi2

    monkeypatch.setattr(cores, "_count_cores", lambda: 2)
    made = tv.certify(tv.geometric(tv.Query.count(6), 0.5))
    rows = 2_000_000
    drawn = made.draw_positions(np.full(rows, 3), tv.Entropy())
    first, second = drawn[: rows // 2], drawn[rows // 2 :]
    expected = np.outer(made.mechanism.matrix[3], made.mechanism.matrix[3]) * (rows // 2)
    pairs = np.bincount(first.astype(int) * 7 + second, minlength=49).reshape(7, 7)
    assert ((pairs - expected) ** 2 / expected).sum() < chi2.isf(1e-9, 48)


def test_a_test_seed_is_drawn_in_order_by_one_thread(monkeypatch):
    made = tv.certify(tv.geometric(tv.Query.count(6), 0.5))
    rows = np.full(2_000_000, 3)
    alone = made.draw_positions(rows, tv.SeededNotPrivate(5))
    monkeypatch.setattr(cores, "_count_cores", lambda: 2)
    assert np.array_equal(alone, made.draw_positions(rows, tv.SeededNotPrivate(5)))


@pytest.mark.parametrize("count", [-1, 4, 10**30, True, 1.5])
def test_one_count_outside_the_range_is_refused(count):
    with pytest.raises(tv.errors.ArgumentError):
        tv.certify(tv.geometric(tv.Query.count(3), 1)).release(count)


def test_memory_beside_the_result_is_bounded():
    import tracemalloc

    sampler = Sampler(tv.certify(tv.geometric(tv.Query.count(80), 1.0)).weights)
    rows = np.zeros(8_000_000, dtype=np.uint8)
    sampler.draw(rows[:1_000_000], tv.Entropy())
    tracemalloc.start()
    drawn = sampler.draw(rows, tv.Entropy())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert drawn.nbytes == 8_000_000
    assert peak < drawn.nbytes + cores._count_cores() * 40 * CHUNK  # 40 bytes a row of a chunk


def test_ten_million_draws_follow_the_weights():
    """Chi-square on 10 million draws from five rows; false alarms once in 10^9 runs."""
    from scipy.stats import chi2

    certified = tv.certify(tv.geometric(tv.Query.count(40), 0.5))
    law = certified.mechanism.matrix
    rows = np.array([0, 7, 20, 33, 40])
    true = np.repeat(rows, 2_000_000)
    drawn = certified.release(true)
    seen = np.bincount(true * 41 + drawn, minlength=41 * 41).reshape(41, 41)[rows]
    expected = law[rows] * 2_000_000
    thick = expected >= 20  # thin cells are pooled, and left out where even that is thin
    statistic = ((seen - expected) ** 2 / np.where(thick, expected, 1.0))[thick].sum()
    pooled, thin = np.where(thick, 0, seen).sum(axis=1), np.where(thick, 0, expected).sum(axis=1)
    statistic += ((pooled - thin) ** 2 / np.maximum(thin, 1e-9))[thin >= 20].sum()
    freedom = thick.sum() + (thin >= 20).sum() - len(rows)
    assert statistic < chi2.isf(1e-9, freedom)


KINDS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
KINDS += [f"float{bits}" for bits in (16, 32, 64)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_type_is_drawn_right_and_released_exactly(kind):
    sure = 300  # an epsilon at which every draw is the truth
    for made in (
        tv.certify_geometric(tv.Query.count(100_000), sure),
        tv.certify(tv.geometric(tv.Query.count(120), sure)),
        tv.certify(tv.randomized_response(tv.Query.maximum(-100, 100), sure)),
    ):
        low, high = int(made.query.inputs[0]), int(made.query.inputs[-1])
        info = np.finfo(kind) if kind.startswith("f") else np.iinfo(kind)
        whole = 2048 if kind == "float16" else int(min(info.max, 2**31))
        values = np.array([max(low, int(max(info.min, -whole))), min(high, whole), 5], kind)
        assert made.release(values).tolist() == values.tolist()


def test_numbers_at_the_ends_of_their_types():
    made = tv.certify_geometric(tv.Query.count(100_000), "0.001")
    drawn = made.release(np.full(50, 2000, dtype=np.float16))
    assert drawn.dtype == np.float64
    assert (drawn == np.floor(drawn)).all()
    noise = tv.certify_noise(50)
    assert noise.release(np.array([3, 2**62], np.uint64)).tolist() == [3, 2**62]
    for values in (np.array([2**63], np.uint64), np.array([-(2**63)]), 2**62 + 1):
        with pytest.raises(tv.errors.ArgumentError, match=r"2\^62"):
            noise.release(values)
