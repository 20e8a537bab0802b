"""Compute every table and figure of the four papers again and say where they hold.

    python -m reproduction [--quick] [--data FOLDER] [--paper kohli] [--item "Figure 6"]

Writes the data (CSV), the picture (SVG and PNG) and a verdict for each. Without a folder of real
data, labelled stand-ins are generated. Ends with 1 if a result differs from a paper for a reason
that is not known.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from reproduction.experiment import Context
from reproduction.papers import PAPERS
from reproduction.run import run_experiments, select_experiments, write_page
from tallyveil.errors import UsageError


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser("reproduction", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small grids, in two minutes")
    parser.add_argument("--data", type=Path, help="folder of the real data, see README.md")
    parser.add_argument("--paper", help=f"only this paper: {', '.join(PAPERS)}")
    parser.add_argument("--item", help="only this item, such as 'Figure 7' or 'Section 8'")
    parser.add_argument("--out", type=Path, default=Path("results") / "reproduction")
    parser.add_argument("--page", type=Path, help="also write the page of verdicts here")
    parser.add_argument("--list", action="store_true", help="list the items and stop")
    options = parser.parse_args(arguments)
    if options.data and not options.data.is_dir():
        parser.error(f"--data {options.data} is not a folder")
    try:
        chosen = select_experiments(options.paper, options.item)
    except UsageError as error:
        parser.error(str(error))
    if options.list:
        for experiment in chosen:
            print(f"{experiment.name:<24} {experiment.title}")
        return 0
    context = Context(quick=options.quick, data=options.data)
    outcomes = []
    for outcome in run_experiments(chosen, context, options.out):
        print(outcome.line, flush=True)
        outcomes.append(outcome)
    if options.page:
        write_page(outcomes, options.quick, options.out, options.page)
    print(f"\nWritten to {options.out}: open {options.out / 'README.md'}")
    return int(any(outcome.result.verdict == "unexplained" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
