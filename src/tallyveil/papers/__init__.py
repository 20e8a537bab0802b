"""The four papers: their algorithms, and every experiment computed again.

One package per paper, named for its first author: `cormode`, `croft`, `kohli` and `gupte`.
Each holds the paper's algorithms and, in `experiments`, its tables and figures. `harness` runs the
experiments and compares them with the print; ERRATA.md lists where the print is wrong.

Nothing else in the package but the command line imports this one. `tv.papers.greedy_fixed_point`
and the other names in the type stub beside this file are imported on first use.
"""

from tallyveil._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
