"""Choices of a publisher in the browser, as options of the library, a command line and Python.

The list of choices is the library's own: every field of `ReleaseOptions` that the command line
offers, with the help it has there. Nothing here has a default of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from tallyveil.loss import loss_name, parse_loss
from tallyveil.release.options import ReleaseOptions
from tallyveil.request.panels import FILE
from tallyveil.studio.errors import TITLES, RefusedError, name_options

__all__ = [
    "FORM",
    "LOSSES",
    "OFFERED",
    "OWN_MECHANISM",
    "SENTENCES",
    "Place",
    "check_folder_name",
    "explain",
    "list_choices",
    "list_values",
    "make_options",
    "read_choices",
    "write_command",
    "write_python",
]

OWN = ("out", "ledger", "dataset", "confidential_report", "query", "entropy")
"""Options that are not chosen as words: places, what is not published, and what is for Python."""

OWN_MECHANISM = "a mechanism of your own"
"""The method that draws from a mechanism's file."""

OFFERED: Mapping[str, Field[Any]] = {
    field.name: field for field in fields(ReleaseOptions) if field.name not in OWN
}
FORM = tuple(name for name, field in OFFERED.items() if field.metadata["panel"] == FILE)
"""The choices that say how the file of the table is written."""

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


@cache
def list_values() -> Mapping[str, Sequence[str]]:
    """The choices that are one of a few words; what knows them is loaded when they are shown."""
    from tallyveil.release.methods.preserve import PRIORITIES
    from tallyveil.request.unit import NEIGHBOURS
    from tallyveil.tables.write import FORMATS

    return {
        "priority": tuple(PRIORITIES),
        "neighbours": NEIGHBOURS,
        "format": FORMATS,
    }


def explain(field: Field[Any]) -> str:
    """The help of an option, for a page instead of a command line."""
    text = field.metadata["help"].replace("; repeat for more", "; more of them with ; between")
    return name_options(text)


def read_choices(data: Any) -> dict[str, Any]:
    """The choices in a message of a browser: known names and kinds only, empty ones left out."""
    if not isinstance(data, dict):
        raise RefusedError(400, "The choices cannot be read.")
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name not in OFFERED:
            raise RefusedError(400, "There is no such choice.")
        kind = "text" if name == "categories" else OFFERED[name].metadata["cli"]
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
    """The options of the library that say the same; what was not chosen keeps its default.

    A column that is neither counted nor marked as public is not released.
    """
    given = dict(choices)
    if "loss" in given:
        given["loss"] = parse_loss(given["loss"])
    if "categories" in given:
        several = len(_names(given, "by")) > 1
        given["categories"] = _read_categories(str(given["categories"]), place.private, several)
    if given.get("method") == OWN_MECHANISM:
        if place.mechanism is None:
            raise RefusedError(422, "Choose the file of your mechanism first.")
        given["method"] = Path(place.mechanism)
    elif given.get("method", "auto") not in ASKED_FOR:
        raise RefusedError(400, "There is no such method.")
    if given.get("method") != "design":  # offered beside it, and asked for with it alone
        given = {k: v for k, v in given.items() if k not in ("loss", "properties")}
    if "levels" in given:
        given = {k: v for k, v in given.items() if k not in ("epsilon", "method")}
    if given.get("count"):
        given.setdefault("keep", [])
    if place.dataset is not None:
        given |= {"ledger": place.ledger, "dataset": place.dataset}
    if place.out is not None:
        given |= {"out": Path(place.out), "confidential_report": place.report}
    return ReleaseOptions(**given)


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


def _names(given: Mapping[str, Any], name: str) -> Sequence[str]:
    value = given.get(name, ())
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


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
    """The command for a terminal.

    >>> write_command("cases.csv", ReleaseOptions("cases", upper="9", epsilon="1", out="release"))
    'tallyveil privatize cases.csv --count cases --upper 9 --epsilon 1 --out release'
    """
    words = ["tallyveil", "privatize" if options.levels is None else "ladder", table]
    for field in fields(ReleaseOptions):
        value = getattr(options, field.name)
        told = field.metadata
        if told["cli"] == "none" or _is_left_out(field.name, value):
            continue
        flag = told["flag"] or f"--{field.name.replace('_', '-')}"
        if told["cli"] == "switch":
            yes, _, no = flag.partition("/")
            words.append(yes if value else no)
        elif isinstance(value, Mapping):
            listed = (f"{name}={_write_word(values)}" for name, values in value.items())
            words += [word for one in listed for word in (flag, one)]
        elif told["cli"] == "many" and isinstance(value, (list, tuple)):
            words += [word for one in value for word in (flag, _write_word(one))]
        else:
            words += [flag, _write_word(_write_loss(field.name, value))]
    return shlex.join(words)


def write_python(table: str, options: ReleaseOptions) -> str:
    """The same in Python.

    >>> print(write_python("cases.csv", ReleaseOptions("cases", epsilon="1")))
    import tallyveil as tv
    <BLANKLINE>
    release = tv.privatize(
        'cases.csv',
        count='cases',
        epsilon='1',
    )
    """
    lines = [f"    {table!r},"]
    for field in fields(ReleaseOptions):
        value = getattr(options, field.name)
        if field.metadata["cli"] != "none" and not _is_left_out(field.name, value):
            shown = str(value) if isinstance(value, Path) else value
            lines.append(f"    {field.name}={shown!r},")
    called = (
        "release = tv.privatize(" if options.levels is None else "levels = tv.privatize_levels("
    )
    return "\n".join(["import tallyveil as tv", "", called, *lines, ")"])


NOT_LISTED = ("out", "ledger", "dataset", "confidential_report")


def list_choices(options: ReleaseOptions) -> list[tuple[str, str]]:
    """Everything that was chosen, for people to read once more; defaults are left out.

    >>> list_choices(ReleaseOptions(["n"], epsilon=["1"], unbiased=True))
    [('Columns of counts', 'n'), ('Epsilon', '1'), ('unbiased', 'yes')]
    """
    found = []
    for field in fields(ReleaseOptions):
        value = getattr(options, field.name)
        if field.name in NOT_LISTED or _is_left_out(field.name, value):
            continue
        if isinstance(value, bool):
            shown = "yes" if value else "no"
        elif isinstance(value, Mapping):
            shown = "; ".join(f"{name}: {', '.join(map(str, v))}" for name, v in value.items())
        elif isinstance(value, Path):
            shown = "your list" if field.name == "categories" else "your file"
        else:
            shown = _write_word(_write_loss(field.name, value)).replace(",", ", ")
        found.append((TITLES.get(field.name, field.name.replace("_", " ")), shown))
    return found


def _is_left_out(name: str, value: Any) -> bool:
    default = next(f.default for f in fields(ReleaseOptions) if f.name == name)
    return value is None or bool(value == default) or (value in ([], ()) and not default)


def _write_loss(name: str, value: Any) -> Any:
    if name != "loss" or isinstance(value, str):
        return value
    return ":".join(map(str, value)) if isinstance(value, tuple) else loss_name(value)


def _write_word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)
