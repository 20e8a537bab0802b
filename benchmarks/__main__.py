"""Run benchmarks: python -m benchmarks [--quick] [--data DIR] [--rows N] [--out DIR] [NAME ...]

Each benchmark answers one question, prints its tables and writes its numbers to DIR/NAME.json.
With `--pages` the numbers go to benchmarks/numbers, and the pages made from them are written
again. The exit code is 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from benchmarks import SUITE, page
from benchmarks.harness import Settings, conduct


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(SUITE)}")
    parser.add_argument("--quick", action="store_true", help="small sizes; installs no peer")
    parser.add_argument("--out", type=Path, default=Path("results") / "benchmarks")
    parser.add_argument("--pages", action="store_true", help="write benchmarks/results.md again")
    parser.add_argument("--data", type=Path, help="folder of real tables, for accuracy and sums")
    parser.add_argument("--rows", type=int, help="rows of the largest table, for scale")
    parser.add_argument("--format", help="one format of scale: parquet, csv or quoted")
    parser.add_argument("--scratch", type=Path, help="folder for the files of scale")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(SUITE):
        parser.error(f"Unknown benchmark {', '.join(sorted(unknown))}; choose from {SUITE}.")
    settings = Settings(options.quick, options.data, options.rows, options.format, options.scratch)
    folder = page.NUMBERS if options.pages else options.out
    missed = []
    for name in options.names or SUITE:
        print(f"\n== {name}", flush=True)
        if not conduct(name, import_module(f"benchmarks.{name}").run, settings, folder):
            missed.append(name)
    if options.pages:
        page.write_pages()
    print(f"\nNumbers in {folder}.", f"Missed targets: {', '.join(missed) or 'none'}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
