"""Show one line on the terminal or in a notebook while a long solve runs."""

from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from tallyveil.optimize.solver import Watch

__all__ = ["Progress", "watch_solver"]

Progress: TypeAlias = bool | Callable[[int, float], object] | None
"""True shows a line, False nothing, None a line if somebody sees standard error, on a terminal or
in a notebook; only a solve that takes longer than a second shows it. A function is called with
(iteration, objective so far)."""

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
    elif progress is False or (progress is None and not (sys.stderr.isatty() or _in_notebook())):
        yield None
    else:
        with _show_in_notebook(title) if _in_notebook() else _show_line(title) as watch:
            yield watch


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    find_shell = getattr(builtins, "get_ipython", None)
    return find_shell is not None and hasattr(find_shell(), "kernel")


@contextmanager
def _show_in_notebook(title: str) -> Iterator[Watch]:
    """One line written over itself, as notebooks show it without widgets, and then removed."""
    start, width = time.monotonic(), 0

    def show(iteration: int, objective: float) -> bool:
        nonlocal width
        if time.monotonic() - start >= SECONDS_BEFORE_SHOWN:
            line = f"{title}: iteration {iteration}, objective {objective:.6g}"
            print("\r" + line.ljust(width), end="", file=sys.stderr, flush=True)
            width = len(line)
        return False

    try:
        yield show
    finally:
        if width:
            print("\r" + " " * width + "\r", end="", file=sys.stderr, flush=True)


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
