"""Choices of a publisher in the browser, as options of the library, a command line and Python.

`CHOICES` is the one table of what the pages offer. What a choice means is explained in the
docstrings of the option objects; nothing here has a default of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tallyveil.loss import loss_name
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.registry import METHODS, PLAIN_METHODS
from tallyveil.release.options import SECTIONS, ReleaseOptions, flatten
from tallyveil.structs import describe_fields, list_changes
from tallyveil.studio.errors import TITLES, RefusedError

__all__ = [
    "CHOICES",
    "FORM",
    "LOSSES",
    "OWN_MECHANISM",
    "SENTENCES",
    "Place",
    "check_folder_name",
    "list_choices",
    "make_options",
    "read_choices",
    "write_command",
    "write_python",
]

OWN_MECHANISM = "a mechanism of your own"
"""The method that draws from a mechanism's file."""

TABLE, PRIVACY, TOTALS = "The table", "Privacy and method", "Totals"
FILE, OUTPUT, ABOUT = "The file", "Output", "About the release"
TOP, GROUPS = "", "groups"


class Choice(NamedTuple):
    """A choice: the object of a request that has its key, its kind, and its place on the pages.

    `section` is `GROUPS` for the columns of a method of their own.
    """

    name: str
    section: str
    kind: str
    panel: str
    values: tuple[str, ...] = ()

    @property
    def help(self) -> str:
        """What the key means, as its docstring explains it."""
        if self.section == GROUPS:
            return describe_fields(METHODS[self.name])["columns"]
        if self.section == "method":
            kinds = (kind for kind in METHODS.values() if self.name in kind.__struct_fields__)
            return next(text for kind in kinds if (text := describe_fields(kind).get(self.name)))
        owner: type = SECTIONS[self.section] if self.section else ReleaseOptions
        return describe_fields(owner)[self.name]


CHOICES: Mapping[str, Choice] = {
    choice.name: choice
    for choice in (
        Choice("count", TOP, "many", TABLE),
        Choice("keep", TOP, "many", TABLE),
        Choice("by", TOP, "many", TABLE),
        Choice("categories", TOP, "text", TABLE),
        Choice("where", "microdata", "many", TABLE),
        Choice("bins", "microdata", "many", TABLE),
        Choice("other", "microdata", "text", TABLE),
        Choice("id_column", "unit", "text", TABLE),
        Choice("allow_duplicates", "counts", "switch", TABLE),
        Choice("allow_totals", "counts", "switch", TABLE),
        Choice("upper", TOP, "many", PRIVACY),
        Choice("epsilon", TOP, "many", PRIVACY),
        Choice("accuracy", "budget", "number", PRIVACY),
        Choice("confidence", "budget", "number", PRIVACY),
        Choice("delta", "budget", "text", PRIVACY),
        Choice("kind", "unit", "text", PRIVACY, ("person", "event")),
        Choice("neighbours", "unit", "text", PRIVACY, ("add_remove", "replace_one")),
        Choice("contributions", "unit", "whole", PRIVACY),
        Choice("spread", "unit", "text", PRIVACY, ("any", "one_row", "distinct_rows")),
        Choice("disjoint", "unit", "many", PRIVACY),
        Choice("method", TOP, "text", PRIVACY),
        Choice("epsilons", "method", "text", PRIVACY),
        Choice("priority", "method", "text", PRIVACY),
        Choice("loss", "method", "text", PRIVACY),
        Choice("properties", "method", "many", PRIVACY),
        Choice("hierarchy", GROUPS, "text", TOTALS),
        Choice("invariant", "method", "text", TOTALS),
        Choice("weights", "method", "text", TOTALS),
        Choice("upper_column", "method", "text", TOTALS),
        Choice("margins", GROUPS, "text", TOTALS),
        Choice("strata", GROUPS, "text", TOTALS),
        Choice("nested", "counts", "text", TOTALS),
        Choice("structural_zeros", "counts", "many", TOTALS),
        Choice("delimiter", "source", "text", FILE),
        Choice("encoding", "source", "text", FILE),
        Choice("sheet_name", "source", "text", FILE),
        Choice("skiprows", "source", "whole", FILE),
        Choice("skipfooter", "source", "whole", FILE),
        Choice("comment", "source", "text", FILE),
        Choice("thousands", "source", "text", FILE),
        Choice("decimal", "source", "text", FILE),
        Choice("na_values", "source", "many", FILE),
        Choice("format", "output", "text", OUTPUT, ("csv", "parquet")),
        Choice("unbiased", "method", "switch", OUTPUT),
        Choice("signed", "method", "switch", OUTPUT),
        Choice("title", "about", "text", ABOUT),
        Choice("publisher", "about", "text", ABOUT),
        Choice("contact", "about", "text", ABOUT),
        Choice("period", "about", "text", ABOUT),
        Choice("license", "about", "text", ABOUT),
    )
}
"""What the pages offer."""

FORM = tuple(name for name, choice in CHOICES.items() if choice.panel == FILE)
"""The choices that say how the file of the table is written."""

CHOSEN_BY = {"epsilons": "ladder", "priority": "preserve", "signed": "geometric"}
"""Keys of a method that choose it."""

KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "many": (list,),
    "number": (int, float),
    "whole": (int,),
    "switch": (bool,),
}
LONGEST, MOST_WORDS = 2000, 500
LONGEST_LIST = 200_000
"""Characters of the public list of categories."""

FOLDER_NAME = re.compile(r"[\w][\w .()-]{0,99}")


@dataclass(frozen=True)
class Place:
    """Where a table is, a private folder, where the release goes, and who pays.

    `mechanism` is the file of a mechanism of the publisher's own; `report` where the comparison
    with the truth goes, if it is wanted.
    """

    table: str
    private: str
    columns: tuple[str, ...]
    out: str | None = None
    ledger: str | None = None
    dataset: str | None = None
    mechanism: str | None = None
    report: str | None = None


def read_choices(data: Any) -> dict[str, Any]:
    """The choices in a message of a browser: known names and kinds only, empty ones left out."""
    if not isinstance(data, dict):
        raise RefusedError(400, "The choices cannot be read.")
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name not in CHOICES:
            raise RefusedError(400, "There is no such choice.")
        kind = "text" if name == "categories" else CHOICES[name].kind
        right = isinstance(value, KINDS[kind]) and (kind == "switch" or type(value) is not bool)
        words = value if isinstance(value, list) else [value]
        longest = LONGEST_LIST if name == "categories" else LONGEST
        if not right or len(words) > MOST_WORDS:
            raise RefusedError(400, f"{name!r} cannot be read.")
        if isinstance(value, (str, list)):
            if not all(isinstance(word, str) and len(word) <= longest for word in words):
                raise RefusedError(400, f"{name!r} cannot be read.")
            found[name] = words[0].strip() if isinstance(value, str) else _drop_empty(words)
            if not found[name]:
                del found[name]
        else:
            found[name] = value
    return found


def make_options(choices: Mapping[str, Any], place: Place) -> ReleaseOptions:
    """Return the options of the library that say the same; what was not chosen keeps its default.

    A column that is neither counted nor marked as public is not released.
    """
    given = dict(choices)
    if "categories" in given:
        several = len(given.get("by", ())) > 1
        given["categories"] = _read_categories(str(given["categories"]), place.private, several)
    if "epsilons" in given:
        given.pop("epsilon", None)
    request: dict[str, Any] = {"method": _read_method(given, place)}
    for name, value in given.items():
        section = CHOICES[name].section
        if section in SECTIONS:
            request.setdefault(section, {})[name] = value
        elif section == TOP and name != "method":
            request[name] = value
    if request.get("count"):
        request.setdefault("keep", [])
    if place.dataset is not None:
        request |= {"ledger": place.ledger, "dataset": place.dataset}
    if place.out is not None:
        request["out"] = place.out
        request.setdefault("output", {})["confidential_report"] = place.report
    return ReleaseOptions(**request)


def _read_method(given: Mapping[str, Any], place: Place) -> Any:
    """Return the method that was chosen, by its name, its columns or one of its keys."""
    name = given.get("method", "auto")
    if name == OWN_MECHANISM:
        if place.mechanism is None:
            raise RefusedError(422, "Choose the file of your mechanism first.")
        return {"name": "file", "path": place.mechanism}
    if name not in PLAIN_METHODS:
        raise RefusedError(400, "There is no such method.")
    keys = {key: given[key] for key in given if CHOICES[key].section == "method"}
    if name != "design":  # offered beside it, and asked for with it alone
        keys = {key: value for key, value in keys.items() if key not in ("loss", "properties")}
    chosen = [(key, {"columns": given[key]}) for key in given if CHOICES[key].section == GROUPS]
    chosen += [(other, {}) for key, other in CHOSEN_BY.items() if keys.get(key)]
    if "epsilons" in keys:
        name = "auto"
    if chosen and name not in ("auto", chosen[0][0]):
        raise RefusedError(
            422, f"“{chosen[0][0]}” is a method of its own: leave the method at auto."
        )
    name, columns = chosen[0] if chosen else (name, {})
    return {"name": name, **columns, **keys}


def check_folder_name(name: Any) -> str:
    """A name for a new folder in the studio's own, or a refusal."""
    if not isinstance(name, str) or not FOLDER_NAME.fullmatch(name) or name.rstrip(" .") != name:
        raise RefusedError(
            400,
            "The folder's name must have letters, digits, spaces, points, dashes or brackets only, "
            "and begin with a letter or digit.",
        )
    return name


def _drop_empty(words: list[str]) -> list[str]:
    return [word for word in words if word.strip()]


def _read_categories(text: str, private: str, several: bool) -> Any:
    """The public list: lines such as sex = f, m by column, others as a file in a private folder."""
    from tallyveil.tables.microdata import read_column_lists

    lines = [line for line in text.splitlines() if line.strip()]
    if several and all("=" in line for line in lines):
        parts = [[part.strip() for part in line.split("=", 1)] for line in lines]
        values = [[name, ",".join(map(str.strip, listed.split(",")))] for name, listed in parts]
        return read_column_lists(["=".join(line) for line in values])
    content = (text.strip() + "\n").encode()
    name = f"categories-{hashlib.sha256(content).hexdigest()[:12]}{'.csv' if several else '.txt'}"
    place = Path(private) / name
    if not place.exists():
        partial = place.with_name(f"{name}.{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(place)
    return place


SENTENCES = {
    "row_honest": "A released answer is likeliest when it is the truth.",
    "row_monotone": "A released answer is the less likely, the further the truth lies from it.",
    "column_honest": "Of all answers, the true one is the likeliest to be released.",
    "column_monotone": "Answers are the less likely, the further they lie from the truth.",
    "fair": "The truth is released with the same chance, whatever it is.",
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


def write_command(table: str, options: ReleaseOptions) -> str:
    """Return the command for a terminal.

    >>> options = ReleaseOptions(count="cases", upper="9", unit={"contributions": 2}, out="release")
    >>> write_command("cases.csv", options)
    'tallyveil privatize cases.csv --count cases --upper 9 --out release --set unit.contributions=2'
    """
    words, settings = ["tallyveil", "privatize", table], list[str]()
    for key, value in flatten(options).items():
        if key in ("ledger", "dataset", "out", "method") or key in CHOICES:
            words += [word for text in _list_words(value) for word in (f"--{key}", text)]
        elif key == "method.epsilons":
            words[1] = "ladder"
            words += ["--epsilons", _write_word(value)]
        elif (key, value) != ("method.name", "ladder"):
            several = isinstance(value, tuple) and key.partition(".")[0] != "method"
            listed = value if several else [value]
            settings += [word for one in listed for word in ("--set", f"{key}={_write_word(one)}")]
    return shlex.join([*words, *settings])


def write_python(table: str, options: ReleaseOptions) -> str:
    """Return the same in Python.

    >>> print(write_python("cases.csv", ReleaseOptions(count="cases", about={"title": "Cases"})))
    import tallyveil as tv
    <BLANKLINE>
    release = tv.privatize(
        'cases.csv',
        count=('cases',),
        about=tv.About(title='Cases'),
    )
    """
    lines, called = [f"    {table!r},"], "release = tv.privatize("
    for name, value in list_changes(options).items():
        if name == "entropy":
            continue
        if name == "method" and value.name == "ladder":
            called = "levels = tv.privatize_levels("
            lines.append(f"    epsilons={value.epsilons!r},")
        elif name in SECTIONS or isinstance(value, Method):
            kind = "DesignMethod" if value.__class__.__name__ == "Design" else type(value).__name__
            keys = ", ".join(f"{key}={shown!r}" for key, shown in list_changes(value).items())
            lines.append(f"    {name}=tv.{kind}({keys}),")
        else:
            lines.append(f"    {name}={str(value) if isinstance(value, Path) else value!r},")
    return "\n".join(["import tallyveil as tv", "", called, *lines, ")"])


NOT_LISTED = ("out", "ledger", "dataset", "output.confidential_report")


def list_choices(options: ReleaseOptions) -> list[tuple[str, str]]:
    """List everything that was chosen, for people to read once more; defaults are left out.

    >>> list_choices(ReleaseOptions(count=["n"], epsilon=["1"], counts={"allow_totals": True}))
    [('Columns of counts', 'n'), ('Epsilon', '1'), ('allow totals', 'yes')]
    """
    listed = []
    for key, value in flatten(options).items():
        if key in NOT_LISTED:
            continue
        name = key.rpartition(".")[2] if key != "method.name" else "method"
        if isinstance(value, bool):
            shown = "yes" if value else "no"
        elif isinstance(value, Mapping):
            shown = "; ".join(f"{name}: {', '.join(map(str, v))}" for name, v in value.items())
        elif isinstance(value, Path) or key == "method.path":
            shown = "your list" if name == "categories" else "your file"
        else:
            shown = _write_word(value).replace(",", ", ")
        listed.append((TITLES.get(name, name.replace("_", " ")), shown))
    return listed


def _list_words(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}={_write_word(values)}" for name, values in value.items()]
    return [_write_word(one) for one in (value if isinstance(value, (list, tuple)) else [value])]


def _write_word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(_write_word(one) if not _is_group(one) else "+".join(one) for one in value)
    if callable(value):
        return loss_name(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_group(value: Any) -> bool:
    return isinstance(value, tuple)
