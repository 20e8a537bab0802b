"""The four papers: their algorithms and every experiment, computed again.

Nothing else in the package imports this one. `tv.papers.greedy_fixed_point` and the other
names in the type stub beside this file are fetched on first use.
"""

from tallyveil._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
