"""The only source of random bits: AES-256 in counter mode, keyed by the operating system.

A call that draws a few bytes and nothing else takes them from the operating system itself.

A draw is epsilon-private for ideal random words. With a cipher the promise is computational:
whoever cannot tell AES-256-CTR from random words cannot tell the released answers from
those of an exactly epsilon-private mechanism.
"""

from __future__ import annotations

import hashlib
import os
import threading
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.answers import read_whole
from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError, TallyveilError, describe_kind

__all__ = ["Entropy", "SeededNotPrivate"]

PIECE = 1 << 20
"""Bytes encrypted at once."""

ZEROS = bytes(PIECE)
BLOCK = 16
"""Bytes of one AES block."""

SHORT = 1024
"""So many bytes cost less from the operating system than a cipher's start does."""

_forks = [0]  # how many forks lie between this process and the first one


def _count_fork() -> None:
    _forks[0] += 1


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_count_fork)


class Entropy:
    """Random bits from AES-256-CTR under a key that only the operating system knows.

    Every thread of every process has its own key: a thread that finds no key of its own, or
    one from before a fork, takes a new one, so no stream is ever repeated. Nothing about
    the key is stored, shown or logged. A call of `release` that brings no source takes a few
    bytes from the operating system itself: that is faster than starting a cipher.

    Examples
    --------
    >>> source = Entropy()
    >>> source.private, source.words(3).dtype.name, len(source.words(3))
    (True, 'uint64', 3)
    """

    _serves_one_call = False

    def __init__(self) -> None:
        self._own = threading.local()

    @property
    def private(self) -> bool:
        """Whether these are the operating system's bits: False for every kind derived from this."""
        return type(self) is Entropy

    @staticmethod
    def fresh(given: Entropy | None) -> Entropy:
        """Return the source for one release: `given` with a new key, or a new source if None.

        >>> Entropy.fresh(None).private
        True
        """
        if given is None:
            return Entropy()
        if not isinstance(given, Entropy):
            got = describe_kind(given)
            raise ArgumentError("entropy", "be an Entropy, or None for a new one", got=got)
        given.rekey()
        return given

    @staticmethod
    def for_one_call(given: Entropy | None) -> Entropy:
        """Like `fresh`, but a new source asks the operating system itself for a few bytes.

        >>> Entropy.for_one_call(None).private
        True
        """
        source = Entropy.fresh(given)
        source._serves_one_call = given is None
        return source

    def rekey(self) -> None:
        """Forget this thread's key; the next draw takes a new one."""
        self._own = threading.local()

    def _cipher(self) -> Any:
        own, process = self._own, (os.getpid(), _forks[0])
        if getattr(own, "process", None) != process:
            own.cipher = _start_stream(os.urandom(32), os.urandom(BLOCK))
            own.process = process
        return own.cipher

    def octets(self, count: int, room: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """Return `count` uniform random bytes, in `room` if it is given: `count` + 16 bytes."""
        if self._serves_one_call and room is None and count <= SHORT:
            return np.frombuffer(bytearray(os.urandom(count)), np.uint8)
        cipher = self._cipher()
        if room is None:
            room = np.empty(count + BLOCK, dtype=np.uint8)  # the cipher wants one block more
        view = memoryview(room.data)
        for start in range(0, count, PIECE):
            length = min(PIECE, count - start)
            written = cipher.update_into(memoryview(ZEROS)[:length], view[start:])
            if written != length:  # the rest of `room` would be whatever was in memory before
                raise TallyveilError("The cipher wrote fewer bytes than asked. Nothing was drawn.")
        return room[:count]

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` uniform 64-bit words."""
        return self.octets(8 * count).view(np.uint64)

    def numbers(self, count: int, bits: int) -> Integers:
        """Return `count` whole numbers, uniform on 0..2^bits-1, for bits up to 63."""
        return (self.words(count) >> np.uint64(64 - bits)).view(np.int64)

    def below(self, bound: int, size: int) -> Integers:
        """Return `size` whole numbers, exactly uniform on 0..bound-1.

        Words in the last, incomplete multiple of `bound` are thrown away, which leaves the
        others exactly uniform.

        Parameters
        ----------
        bound : int
            In 1..2^63.
        size : int
            How many, at least 0.

        Examples
        --------
        >>> bool((Entropy().below(6, 100) < 6).all())
        True
        """
        bound = read_whole(bound, "bound", 1, ArgumentError)
        size = read_whole(size, "size", 0, ArgumentError)
        if bound > 1 << 63:
            raise ArgumentError("bound", "be at most 2^63", bound)
        last = np.uint64((1 << 64) // bound * bound - 1)
        found = np.empty(0, dtype=np.int64)
        while len(found) < size:
            words = self.words(size - len(found))
            kept = words[words <= last] % np.uint64(bound)
            found = np.concatenate([found, kept.astype(np.int64)])
        return found

    def permutation(self, size: int) -> Integers:
        """Return a permutation of 0..size-1, every one exactly equally likely.

        The order of independent words, drawn again in the rare case that two are equal.

        >>> sorted(Entropy().permutation(5).tolist())
        [0, 1, 2, 3, 4]
        """
        size = read_whole(size, "size", 0, ArgumentError)
        while True:
            words = self.words(size)
            order = np.argsort(words)
            ranked = words[order]
            if not (ranked[1:] == ranked[:-1]).any():
                return order.astype(np.int64)


class SeededNotPrivate(Entropy):
    """A repeatable stream for tests. ANYONE WHO KNOWS THE SEED CAN UNDO THE NOISE.

    `private` is False, and what is drawn from it is marked NOT PRIVATE: arrays and numbers when
    they are printed, copied or pickled, tables where their kind has room for it, releases,
    receipts and pages. `tallyveil check` refuses such a folder. Meant for one thread.

    Parameters
    ----------
    seed : int
        The same seed gives the same stream.

    Examples
    --------
    >>> SeededNotPrivate(7).below(100, 3).tolist() == SeededNotPrivate(7).below(100, 3).tolist()
    True
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        seed = read_whole(seed, "seed", error=ArgumentError)
        key = hashlib.sha256(f"tallyveil, not private, {seed}".encode()).digest()
        self._seeded = _start_stream(key, bytes(BLOCK))

    def rekey(self) -> None:
        """Do nothing: the stream goes on, so that a test can repeat a series of releases."""

    def _cipher(self) -> Any:
        return self._seeded


def _start_stream(key: bytes, nonce: bytes) -> Any:
    """Return an AES-256-CTR cipher at its first block."""
    cipher, aes, counter = _load_cipher()
    return cipher(aes(key), counter(nonce)).encryptor()


@cache
def _load_cipher() -> tuple[Any, Any, Any]:
    """The three classes that make a stream; looking them up anew takes longer than a draw."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher, algorithms.AES, modes.CTR
