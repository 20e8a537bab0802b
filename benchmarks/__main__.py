"""`python -m benchmarks [--quick]`: run every benchmark of the suite, one after another."""

from __future__ import annotations

import sys
from importlib import import_module

SUITE = ("sampling", "certification")
"""Modules of this folder whose `main(arguments)` runs without files of the user's."""


def run(arguments: list[str]) -> int:
    """The number of benchmarks that missed a bar."""
    missed = 0
    for name in SUITE:
        print(f"== {name}", flush=True)
        missed += bool(import_module(f"benchmarks.{name}").main(arguments))
    return missed


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
