"""Share long draws between the cores; every thread draws under a key of its own."""

from __future__ import annotations

import os
from collections.abc import Callable

from tallyveil.sampling.entropy import Entropy

__all__ = ["CHUNK", "share_rows"]

CHUNK = 1 << 18
"""Rows whose first bits are drawn at once: a few megabytes of working memory."""

FEWEST_SHARED = 4 * CHUNK
"""Fewer rows than this are drawn faster by one thread."""


def share_rows(rows: int, entropy: Entropy, work: Callable[[int, int], None]) -> None:
    """Call `work(start, stop)` for consecutive parts of `rows` rows, one part for each core.

    `Entropy` gives every thread its own key, so the draws of the parts are independent and their
    distribution is that of a single thread. Bits from a test seed are drawn in order by one thread.
    """
    cores = _count_cores() if entropy.private and rows >= FEWEST_SHARED else 1
    if cores == 1:
        work(0, rows)
        return
    from concurrent.futures import ThreadPoolExecutor

    cuts = [rows * part // cores for part in range(cores + 1)]
    with ThreadPoolExecutor(cores) as pool:
        for _ in pool.map(work, cuts[:-1], cuts[1:]):
            pass


def _count_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
