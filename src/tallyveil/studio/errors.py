"""How an error reaches a browser: one plain sentence, and never a confidential value."""

from __future__ import annotations

import re

from tallyveil.errors import TallyveilError

__all__ = ["TITLES", "RefusedError", "describe_problem", "name_options"]

TITLES = {
    "count": "Columns of counts",
    "upper": "Largest count",
    "epsilon": "Epsilon",
    "by": "Rows counted by",
    "keep": "Published unchanged",
    "hierarchy": "Sums that hold",
    "categories": "Public categories",
    "unit": "Protected is one",
    "contributions": "Counted at most",
}
"""What the pages call some of the options."""

OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
ARGUMENT = re.compile(r"^'([a-z_]+)'(?= must )")


class RefusedError(Exception):
    """A request that is not carried out: its status, and a sentence for people."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence
        super().__init__(sentence)


def name_options(text: str) -> str:
    """A sentence of the command line with its options called as the pages call them.

    >>> name_options("Say --allow-duplicates.")
    'Say “allow duplicates”.'
    >>> name_options("'upper' must be at least 1.")
    '“Largest count” must be at least 1.'
    """
    text = ARGUMENT.sub(lambda found: f"“{TITLES.get(found[1], found[1].replace('_', ' '))}”", text)
    return OPTION.sub(lambda found: f"“{found[1].replace('-', ' ')}”", text)


def describe_problem(problem: BaseException) -> str:
    """What went wrong, in a sentence; of what was not expected only its kind is named.

    >>> describe_problem(KeyError(17))
    'Something unexpected went wrong (KeyError). Nothing was released.'
    """
    if isinstance(problem, RefusedError):
        return problem.sentence
    if isinstance(problem, TallyveilError):
        return name_options(" ".join(str(problem).split()))
    if isinstance(problem, OSError) and problem.strerror:
        return f"A file could not be read or written: {problem.strerror}."
    if isinstance(problem, MemoryError):
        return "There was not enough memory for this."
    return f"Something unexpected went wrong ({type(problem).__name__}). Nothing was released."
