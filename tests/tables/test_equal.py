"""Equal hashes are found among many, whatever their order and number."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tallyveil.tables.hashes import hash_numbers, mix_hashes

from tallyveil.tables import distinct, equal
from tallyveil.tables.read import read_table


def find_by_sorting(values):
    found, times = np.unique(values, return_counts=True)
    return found[times > 1]


def mark(hashes, step=700):
    stems = equal.Stems(len(hashes))
    for start in range(0, len(hashes), step):
        stems.add(hashes[start : start + step])
    return stems.mark_repeated()


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(equal, "BLOCK", 1000)
    monkeypatch.setattr(equal, "MOST_SORTED", 1000)


@pytest.mark.parametrize("rows", [1001, 2000, 20_001])
@pytest.mark.parametrize("different", [0, 50, 10**6, 2**64 - 1])
def test_all_equal_hashes_are_marked_and_few_others(small_blocks, rows, different):
    generator = np.random.default_rng(rows)
    hashes = mix_hashes(generator.integers(0, different, rows, np.uint64, endpoint=True))
    repeated = find_by_sorting(hashes)
    assert equal.find_equal(hashes).tolist() == repeated.tolist()
    marked = mark(hashes)
    assert equal.find_marked(repeated, marked).all()
    assert marked.sum() <= len(repeated)
    assert len(marked) >= 8 * len(repeated)


def test_three_members_of_one_address_are_told_apart(small_blocks):
    """The last to write is not the one that the first equals."""
    head = np.uint64(0xABCDEF01) << np.uint64(32)
    tails = np.array([5, 5, 9], np.uint64) << np.uint64(16)
    for order in ([0, 1, 2], [0, 2, 1], [2, 0, 1]):
        assert mark((head | tails)[order]).sum() == 1
    assert not mark(head | tails[1:]).any()


def test_only_the_leading_bits_count(small_blocks):
    """Hashes that differ in their last 16 bits have one stem, and are told apart later."""
    hashes = np.arange(1500, dtype=np.uint64) + (np.uint64(7) << np.uint64(40))
    assert mark(hashes).sum() == 1
    assert equal.find_equal(hashes).tolist() == []


@pytest.mark.parametrize("key", [3 << 24 | 1, 0x9E3779B97F4A7C15])
def test_numbers_in_equal_steps_are_told_apart_under_any_key(monkeypatch, key):
    """Also under one that gives many of them the same head."""
    monkeypatch.setattr("tallyveil.tables.hashes._key", [np.uint64(key)])
    numbers = np.arange(equal.BLOCK + 10) << 20
    assert not mark(hash_numbers(numbers), 1 << 16).any()
    numbers[-1] = numbers[5]
    assert mark(hash_numbers(numbers), 1 << 16).sum() == 1


@pytest.mark.parametrize("row", [None, 1, 90_000])
def test_equal_stems_of_different_labels_are_no_repetition(tmp_path, monkeypatch, row):
    """Under the key 1 small numbers have only two stems."""
    codes = np.arange(100_000)
    if row:
        codes[row] = codes[0]
    pq.write_table(pa.table({"code": codes}), tmp_path / "codes.parquet")
    monkeypatch.setattr(distinct, "MOST_HELD", 5000)
    monkeypatch.setattr("tallyveil.tables.hashes._key", [np.uint64(1)])
    assert distinct.find_repeat(read_table(tmp_path / "codes.parquet"), ["code"]) == row


def test_a_group_of_very_many_is_suspected_as_a_whole(small_blocks, monkeypatch):
    """So that a table of one label takes no more memory than any other."""
    monkeypatch.setattr(equal, "MOST_MEMBERS", 1000)
    head = np.uint64(5) << np.uint64(52)
    hashes = head | np.arange(1001, dtype=np.uint64) << np.uint64(16)
    assert equal.find_marked(hashes, mark(hashes)).all()
    assert equal.find_equal(hashes).tolist() == []
    assert equal.find_equal(np.full(5000, head)).tolist() == [head]


@pytest.mark.parametrize("buckets", [1, 3, 64])
def test_hashes_are_shared_out_whole_and_equal_ones_together(buckets):
    hashes = mix_hashes(np.arange(10_000, dtype=np.uint64) // np.uint64(2))
    parts = equal.share_out(hashes, buckets)
    assert len(parts) == buckets
    assert sorted(np.concatenate(parts).tolist()) == sorted(hashes.tolist())
    assert sum(len(np.unique(part)) for part in parts) == 5000
    assert max(map(len, parts)) < 10_000 / buckets * 1.2 + 100


@pytest.mark.parametrize("repeats", ["none", "one", "all alike", "second half", "pairs"])
def test_rows_of_which_many_repeat_others_are_compared_part_by_part(monkeypatch, tmp_path, repeats):
    codes = np.arange(6000)
    first = {"none": None, "one": 5000, "all alike": 1, "second half": 3000, "pairs": 1}[repeats]
    if repeats == "one":
        codes[5000] = 17
    elif first is not None:
        codes = {"all alike": codes * 0, "second half": codes % 3000, "pairs": codes // 2}[repeats]
    monkeypatch.setattr(distinct, "MOST_HELD", 1000)
    monkeypatch.setattr(distinct, "MOST_COLLECTED", 100)
    pq.write_table(pa.table({"code": codes}), tmp_path / "codes.parquet")
    found = distinct.find_repeat(read_table(tmp_path / "codes.parquet"), ["code"])
    assert (found is None) == (first is None)
    assert found is None or (found >= first and codes[found] in codes[:found])
