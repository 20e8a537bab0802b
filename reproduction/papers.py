"""The four papers: authors, year and title, and how two of them state privacy."""

from __future__ import annotations

import math
from typing import NamedTuple


class Paper(NamedTuple):
    """A paper: first author and year, and all authors, year and title as printed."""

    label: str
    citation: str


PAPERS = {
    "cormode": Paper(
        "Cormode 2018",
        "Cormode, Kulkarni and Srivastava (2018), Constrained Private Mechanisms for Count Data",
    ),
    "croft": Paper(
        "Croft 2020",
        "Croft, Sack and Shi (2020), The Impact of Range Constraints on Utility in the Design of "
        "Differentially Private Mechanisms",
    ),
    "kohli": Paper(
        "Kohli 2026",
        "Kohli and Laskowski (2026), Preserving Target Distributions With Differentially Private "
        "Count Mechanisms",
    ),
    "gupte": Paper(
        "Gupte 2010",
        "Gupte and Sundararajan (2010), Universally Optimal Privacy Mechanisms for Minimax Agents",
    ),
}
"""The papers by the name of their module in `tallyveil.papers`, in the order of the page."""


def epsilon_from_alpha(alpha: float) -> float:
    """Convert the alpha of Cormode et al. and of Gupte and Sundararajan to epsilon = -ln alpha.

    alpha = e^-epsilon lies between 0 and 1; probabilities of neighbouring answers differ by a
    factor of at least alpha and at most 1/alpha. Larger alpha is more private.

    Examples
    --------
    >>> round(epsilon_from_alpha(0.5), 6)
    0.693147
    """
    return -math.log(alpha)
