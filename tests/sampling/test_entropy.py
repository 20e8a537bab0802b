"""Random bits: fresh after a fork, per thread and per release; seeded only by a loud name."""

import itertools
import json
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.sampling.entropy import PIECE, SHORT

FORK = """
import json, os, sys
import tallyveil as tv
source = tv.Entropy()
source.words(4)
streams = []
for _ in range(3):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, json.dumps(source.words(8).tolist()).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    streams.append(json.loads(os.read(read, 65536)))
streams.append(source.words(8).tolist())
print(json.dumps(streams))
"""


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout


RELEASE_FORK = FORK.replace("source.words(8)", "c.release([20] * 64, source)").replace(
    "source.words(4)",
    "c = tv.certify(tv.uniform(tv.Query.count(40), 1)); c.release([20] * 64, source)",
)


@pytest.mark.parametrize("script", [FORK, RELEASE_FORK], ids=["words", "releases"])
def test_children_never_repeat_each_other_or_their_parent(script):
    streams = json.loads(run(script))
    assert len({tuple(stream) for stream in streams}) == 4
    words = list(itertools.chain.from_iterable(streams))
    assert script is RELEASE_FORK or len(set(words)) == len(words)


def test_threads_have_streams_of_their_own():
    source, found = tv.Entropy(), []
    threads = [
        threading.Thread(target=lambda: found.append(source.words(1000).tolist())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({word for words in found for word in words}) == 4000


def test_a_fresh_source_is_the_given_one_with_a_new_key():
    source = tv.Entropy()
    source.words(1)
    before = source._own.cipher
    assert tv.Entropy.fresh(source) is source
    source.words(1)
    assert source._own.cipher is not before
    before, certified = source._own.cipher, tv.certify(tv.uniform(tv.Query.count(3), 1.0))
    certified.release([1, 2], source)  # every release takes a new key
    assert source._own.cipher is not before
    assert type(tv.Entropy.fresh(None)) is tv.Entropy
    seeded = tv.SeededNotPrivate(5)
    first = seeded.words(3).tolist()
    assert tv.Entropy.fresh(seeded).words(3).tolist() != first  # the stream goes on


def test_the_source_works_where_processes_cannot_fork():
    probe = (
        "import os; del os.register_at_fork\n"
        "import tallyveil as tv; print(len(tv.Entropy().words(3)))"
    )
    assert run(probe) == "3\n"


def test_only_a_source_made_for_one_call_asks_the_system_for_few_bytes():
    """What may draw for a folder, and what somebody brings along, always draws from the cipher."""
    source = tv.Entropy.for_one_call(None)
    assert source.private
    assert len({source.octets(SHORT).tobytes() for _ in range(100)}) == 100
    assert not hasattr(source._own, "cipher")
    source.octets(SHORT + 1)
    assert hasattr(source._own, "cipher")
    for other in (tv.Entropy(), tv.Entropy.fresh(None), tv.Entropy.for_one_call(tv.Entropy())):
        other.octets(1)
        assert hasattr(other._own, "cipher")
    seeded = tv.Entropy.for_one_call(tv.SeededNotPrivate(5))
    assert not seeded.private
    assert np.array_equal(seeded.octets(16), tv.SeededNotPrivate(5).octets(16))


def test_seeded_streams_repeat_and_say_they_are_not_private():
    first, second, other = (tv.SeededNotPrivate(seed).words(100).tolist() for seed in (5, 5, 6))
    assert first == second != other
    assert not tv.SeededNotPrivate(5).private
    assert tv.Entropy().private


def test_long_requests_are_one_stream():
    """Crossing the cipher's pieces changes nothing: no bytes repeat or go missing."""
    whole = tv.SeededNotPrivate(1).octets(2 * PIECE + 48)
    source = tv.SeededNotPrivate(1)
    parts = np.concatenate([source.octets(n) for n in (PIECE - 16, 32, PIECE + 32)])
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**62 + 1, 2**63])
def test_below_is_in_range(bound):
    values = tv.Entropy().below(bound, 1000)
    assert values.min() >= 0
    assert values.max() < bound
    assert len(values) == 1000


def test_below_throws_incomplete_multiples_away(scripted):
    """With bound 2^63 - 1 the words 2^64 - 2 and 2^64 - 1 would favour 0 and 1."""
    assert scripted([2**64 - 1, 5], [7]).below(2**63 - 1, 2).tolist() == [5, 7]


@pytest.mark.parametrize("bound", [0, -1, 2**63 + 1])
def test_below_refuses_other_bounds(bound):
    with pytest.raises(tv.ArgumentError, match="bound"):
        tv.Entropy().below(bound, 1)


def test_permutations_are_uniform():
    """Chi-square over the 24 orders of four; false alarms once in 10^9 runs."""
    from scipy.stats import chi2

    source = tv.Entropy()
    seen = Counter(tuple(source.permutation(4).tolist()) for _ in range(12_000))
    assert len(seen) == 24
    statistic = sum((count - 500) ** 2 / 500 for count in seen.values())
    assert statistic < chi2.isf(1e-9, 23)


def test_permutation_draws_again_on_ties(scripted):
    assert scripted([3, 3, 1], [9, 4, 7]).permutation(3).tolist() == [1, 2, 0]
