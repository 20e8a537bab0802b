"""Run the benchmarks one after another: python -m benchmarks [--quick] [--out DIR] [NAME ...]

Every module of the suite answers one question, prints its tables and keeps its numbers in
DIR/NAME.json. Ends with 1 if a bar was missed. `python -m benchmarks.page DIR docs` makes the
page from the numbers.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from benchmarks import SUITE

REAL = ("accuracy", "sums")
"""Benchmarks that also measure on real tables, where there are any."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(SUITE)}")
    parser.add_argument("--quick", action="store_true", help="small sizes; installs no peer")
    parser.add_argument("--out", type=Path, default=Path("results") / "benchmarks")
    parser.add_argument("--data", type=Path, help=f"folder of real tables, for {', '.join(REAL)}")
    parser.add_argument("--rows", type=int, help="rows of the largest table, for scale")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - set(SUITE)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    missed = []
    for name in given.names or SUITE:
        words = ["--json", str(given.out / f"{name}.json")] + ["--quick"] * given.quick
        if name in REAL and given.data:
            words += ["--data", str(given.data)]
        if name == "scale" and given.rows:
            words += ["--rows", str(given.rows)]
        print(f"\n== {name}", flush=True)
        if import_module(f"benchmarks.{name}").main(words):
            missed.append(name)
    print(f"\nNumbers in {given.out}.", f"Missed bars: {', '.join(missed) or 'none'}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
