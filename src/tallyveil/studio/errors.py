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
    "kind": "Protected is one",
    "contributions": "Counted at most",
}
"""What the pages call some of the options."""

SECTIONS = "source|counts|microdata|unit|budget|output|about|method|dry_run"
KEY = re.compile(rf"'?\b(?:{SECTIONS})\.([a-z_]+)'?(?:=('[^']*'|\w+))?")
SETTING = re.compile(r"\b(keep|by|count|upper)=('[^']*')")
ARGUMENT = re.compile(r"^'([a-z_]+)'(?= must )")


class RefusedError(Exception):
    """A request that is not carried out: its status, and a sentence for people."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence
        super().__init__(sentence)


def name_options(text: str) -> str:
    """Spell a sentence that names keys with the words of the pages.

    >>> name_options("Use counts.allow_duplicates=True.")
    'Use “allow duplicates”.'
    >>> name_options("'upper' must be at least 1.")
    '“Largest count” must be at least 1.'
    """
    from tallyveil.request.spelling import spell_for_python

    text = ARGUMENT.sub(_name_key, spell_for_python(text))
    return KEY.sub(_name_setting, SETTING.sub(_name_setting, text))


def _name_key(found: re.Match[str]) -> str:
    return f"“{TITLES.get(found[1], found[1].replace('_', ' '))}”"


def _name_setting(found: re.Match[str]) -> str:
    value = (found[2] or "True").strip("'")
    return _name_key(found) + ("" if value == "True" else f" {value}")


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
