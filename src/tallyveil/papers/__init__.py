"""The algorithms of the four papers, one module or package per paper, named for its first author.

The repository's folder `reproduction` computes the papers' tables and figures again, and lists
where the print is wrong (errata). No other module of the package imports this one.
`tv.papers.greedy_fixed_point` and the other names in the type stub of this package are imported on
first use.
"""

from tallyveil._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
