"""Words of the pages: titles of options, sentences for properties and for errors.

An error is one plain sentence, and never holds a confidential value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tallyveil.errors import TallyveilError

FILE = "The file"
PANELS: Mapping[str, tuple[str, ...]] = {
    "The table": (
        *("count", "keep", "by", "categories", "where", "bins", "other", "id_column"),
        *("allow_duplicates", "allow_totals"),
    ),
    "Privacy and method": (
        *("upper", "epsilon", "delta", "kind", "neighbours", "contributions", "spread", "disjoint"),
        *("method", "epsilons", "priority", "loss", "properties"),
    ),
    "Totals": (
        *("hierarchy", "invariant", "weights", "upper_column", "margins", "strata", "nested"),
        "structural_zeros",
    ),
    FILE: (
        *("delimiter", "encoding", "sheet_name", "skiprows", "skipfooter", "comment"),
        *("thousands", "decimal", "na_values"),
    ),
    "Output": ("format", "unbiased", "signed"),
    "About the release": ("title", "publisher", "contact", "period", "license"),
}
"""The options that the pages offer, by panel."""

TITLES = {
    name: name.replace("_", " ").capitalize() for panel in PANELS.values() for name in panel
} | {
    "count": "Count columns",
    "keep": "Public columns",
    "by": "Records counted by",
    "categories": "Public categories",
    "where": "Only records where",
    "bins": "Ranges of a number",
    "other": "Category for all other values",
    "id_column": "Column that identifies a person",
    "allow_duplicates": "Allow rows with the same labels",
    "allow_totals": "Allow rows that look like totals",
    "upper": "Largest count",
    "kind": "Privacy unit",
    "neighbours": "How neighbouring tables differ",
    "contributions": "Contributions of one person",
    "spread": "Rows of one person",
    "disjoint": "Disjoint count columns",
    "epsilons": "Epsilon of each level",
    "hierarchy": "Totals by",
    "invariant": "Totals released exactly",
    "weights": "Weights of the levels",
    "upper_column": "Column of upper bounds",
    "nested": "Nested count columns",
    "sheet_name": "Sheet",
    "skiprows": "Title lines to skip",
    "skipfooter": "Footnote lines to skip",
    "comment": "Start of comment lines",
    "thousands": "Separator of thousands",
    "decimal": "Decimal separator",
    "na_values": "Codes of missing counts",
    "format": "Format of the data file",
    "unbiased": "Add a column of unbiased counts",
    "signed": "Allow negative counts",
    "license": "Licence",
}
"""The titles of these options."""

VALUES = {
    "add_remove": "one person is added or removed",
    "replace_one": "one person is replaced by another, which costs twice",
    "any": "any rows, also the same one several times",
    "one_row": "all in one row",
    "distinct_rows": "each in another row",
}
"""Words for values of options."""

SENTENCES = {
    "row_honest": "A released answer is likeliest when it is the truth.",
    "row_monotone": "A released answer is less likely, the further it is from the truth.",
    "column_honest": "The true answer is the likeliest to be released.",
    "column_monotone": "Answers further from the truth are less likely to be released.",
    "fair": "The truth is released with the same probability for every true answer.",
    "weakly_honest": "The truth is released at least as often as by guessing.",
    "symmetric": "Counting from the other end changes nothing.",
    "output_private": "Neighbouring released answers are nearly equally likely.",
}
"""A sentence for each property; `tallyveil.properties` has the formulas."""

LOSSES = {
    "absolute": "how far off",
    "squared": "how far off, squared: large errors hurt more",
    "zero_one": "right or wrong",
    "beyond:1": "more than 1 off",
    "beyond:3": "more than 3 off",
}
NOT_KEYS = r"(?<!Got )(?<!olumn )(?<!method )(?<!key )"
SECTION = r"(?:source|counts|microdata|unit|budget|output|about|method)\."
KEY = re.compile(rf"{NOT_KEYS}'(?:{SECTION})?([a-z_]+)'")
SETTING = re.compile(rf"(?<![\w'.])(?:{SECTION})?([a-z_]+)=('[^']*'|\w+)")


class RefusedError(Exception):
    """A request that is not carried out: its status, and a sentence for people."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence
        super().__init__(sentence)


def name_options(text: str) -> str:
    """Spell a sentence that names keys with the words of the pages.

    >>> name_options("Use counts.allow_totals=True, or 'upper'. Got 'count'.")
    "Use “Allow rows that look like totals”, or “Largest count”. Got 'count'."
    """
    return KEY.sub(_name_key, SETTING.sub(_name_key, text))


def _name_key(match: re.Match[str]) -> str:
    """Return the title of a key, with the value that is set."""
    title = {"confidential_report": "Comparison with the true counts", **TITLES}.get(match[1])
    if title is None:
        return match[0]
    value = match[2].strip("'") if match.re is SETTING else "True"
    return f"“{title}”" + ("" if value == "True" else f" {value}")


def describe_problem(problem: BaseException) -> str:
    """Describe an error in a sentence; of an unexpected one, name only its kind.

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
