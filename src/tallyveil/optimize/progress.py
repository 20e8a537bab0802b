"""Show one line on the terminal while a long solve runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from tallyveil.optimize.solver import Watch

__all__ = ["Progress", "watch_solver"]

Progress: TypeAlias = bool | Callable[[int, float], object] | None
"""True shows a line, False nothing, None a line if standard error is a terminal and the solve
takes longer than a second; a function is called with (iteration, objective so far)."""

SECONDS_BEFORE_SHOWN = 1.0
"""Shorter solves show no line."""


@contextmanager
def watch_solver(progress: Progress, title: str) -> Iterator[Watch | None]:
    """Yield what the solver should call at every iteration, which never stops it, or None."""
    if callable(progress):
        report = progress

        def forward(iteration: int, objective: float) -> bool:
            report(iteration, objective)
            return False

        yield forward
    elif progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
    else:
        with _show_line(title) as watch:
            yield watch


@contextmanager
def _show_line(title: str) -> Iterator[Watch]:
    from rich.console import Console
    from rich.status import Status

    status = Status(title, console=Console(stderr=True))
    start = time.monotonic()

    def show(iteration: int, objective: float) -> bool:
        if time.monotonic() - start >= SECONDS_BEFORE_SHOWN:
            status.update(
                f"{title}: iteration {iteration}, objective {objective:.6g} (Ctrl-C stops)"
            )
            status.start()
        return False

    try:
        yield show
    finally:
        status.stop()
