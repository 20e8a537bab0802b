"""Words of the pages: what was chosen, and the command line and Python that do the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tallyveil.loss import loss_name
from tallyveil.request.options import ReleaseOptions
from tallyveil.studio.errors import TITLES

__all__ = ["LOSSES", "SENTENCES", "list_choices", "write_command", "write_python"]

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
