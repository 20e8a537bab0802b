"""The four papers: who wrote them, when, and under which name the program knows them."""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.errors import ArgumentError

__all__ = ["PAPERS", "Paper", "find_paper"]


@dataclass(frozen=True)
class Paper:
    """One paper: authors, year and title.

    Attributes
    ----------
    authors : tuple of str
        Family names in the order of the title page.
    year : int
        The year of publication.
    title : str
        The title as printed.
    """

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
        ("Cormode", "Kulkarni", "Srivastava"),
        2018,
        "Constrained Private Mechanisms for Count Data",
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
        ("Gupte", "Sundararajan"),
        2010,
        "Universally Optimal Privacy Mechanisms for Minimax Agents",
    ),
}
"""The papers by the name of their package in `tallyveil.papers`, in the order of the page."""

OLD_NUMBERS = {f"{number:03d}": name for number, name in enumerate(PAPERS)}
"""Names of the papers before version 0.1: 000 to 003, still understood."""


def find_paper(name: str) -> str:
    """Return the key in `PAPERS` of a paper given by first author, or by its old number.

    Parameters
    ----------
    name : str
        ``"cormode"``, ``"croft"``, ``"kohli"`` or ``"gupte"``, in any case.

    Returns
    -------
    str
        The key in `PAPERS`.

    Examples
    --------
    >>> find_paper("Croft"), find_paper("001")
    ('croft', 'croft')
    """
    key = OLD_NUMBERS.get(name, name.lower())
    if key not in PAPERS:
        raise ArgumentError("paper", f"be one of {', '.join(PAPERS)}", name)
    return key
