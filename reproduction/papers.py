"""The four papers: authors, year and title, and how two of them state privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """One paper: authors in the order of the title page, year and title as printed."""

    authors: tuple[str, ...]
    year: int
    title: str

    @property
    def label(self) -> str:
        """The first author and the year, for headings and tables."""
        return f"{self.authors[0]} {self.year}"

    @property
    def citation(self) -> str:
        """All authors, the year and the title."""
        *others, last = self.authors
        return f"{', '.join(others)} and {last} ({self.year}), {self.title}"


PAPERS = {
    "cormode": Paper(
        ("Cormode", "Kulkarni", "Srivastava"), 2018, "Constrained Private Mechanisms for Count Data"
    ),
    "croft": Paper(
        ("Croft", "Sack", "Shi"),
        2020,
        "The Impact of Range Constraints on Utility in the Design of Differentially Private "
        "Mechanisms",
    ),
    "kohli": Paper(
        ("Kohli", "Laskowski"),
        2026,
        "Preserving Target Distributions With Differentially Private Count Mechanisms",
    ),
    "gupte": Paper(
        ("Gupte", "Sundararajan"), 2010, "Universally Optimal Privacy Mechanisms for Minimax Agents"
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
