"""One thread for small linear algebra, where several would wait for each other.

Distributing a matrix of a few hundred rows over threads takes longer than the work itself, and on a
busy machine each thread waits for the slowest. OpenBLAS, which NumPy and SciPy ship with, accepts a
number of threads. It holds for the whole process, so the first computation sets it and the last
restores it. Where another
library does the work, nothing changes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

SUFFIXES = ("64_", "")
FOLDERS = ("{}.libs", "{}/.dylibs")
"""Where wheels keep the libraries of a package, next to it or inside."""

Setter = Callable[[int], object]
Getter = Callable[[], int]


_LOCK = Lock()
_running: list[list[tuple[Setter, int]]] = []
"""For every running computation the numbers of threads to put back; none but for the first."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let OpenBLAS use one thread inside the block, and as many as before after it.

    Blocks may overlap, in one thread or in several: the last to end puts the number back.
    """
    with _LOCK:
        if not _running:
            _running.append([(put, get()) for put, get in _find_pools()])
            for put, _ in _running[0]:
                put(1)
        else:
            _running.append([])
    try:
        yield
    finally:
        with _LOCK:
            before = _running.pop()
            for put, number in before:
                put(number)


@cache
def _find_pools() -> tuple[tuple[Setter, Getter], ...]:
    """Find the setters and getters of the number of threads in NumPy's and SciPy's OpenBLAS."""
    pools: list[tuple[Setter, Getter]] = []
    for package in ("numpy", "scipy"):
        spec = find_spec(package)
        home = Path(spec.origin).parents[1] if spec is not None and spec.origin else Path()
        for folder in FOLDERS:
            for path in sorted((home / folder.format(package)).glob("*openblas*")):
                pools += _read_pool(path)
    return tuple(pools)


def _read_pool(path: Path) -> list[tuple[Setter, Getter]]:
    """Return the two functions of a library; none if it cannot be opened or lacks them."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return []
    for suffix in SUFFIXES:
        names = [f"scipy_openblas_{word}_num_threads{suffix}" for word in ("set", "get")]
        if all(hasattr(library, name) for name in names):
            return [(getattr(library, names[0]), getattr(library, names[1]))]
    return []
