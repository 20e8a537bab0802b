"""The command line and the Python that do the same as the buttons."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

from tallyveil.loss import loss_name
from tallyveil.request.options import ReleaseOptions

__all__ = ["write_command", "write_python"]


def write_command(table: str, options: ReleaseOptions) -> str:
    """The command for a terminal.

    >>> write_command("cases.csv", ReleaseOptions("cases", upper="9", epsilon="1", out="release"))
    'tallyveil privatize cases.csv --count cases --upper 9 --epsilon 1 --out release'
    """
    words = ["tallyveil", "privatize", table]
    for field in fields(ReleaseOptions):
        value = getattr(options, field.name)
        told = field.metadata
        if told["cli"] == "none" or _is_left_out(field.name, value):
            continue
        flag = told["flag"] or f"--{field.name.replace('_', '-')}"
        if told["cli"] == "switch":
            yes, _, no = flag.partition("/")
            words.append(yes if value else no)
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
    return "\n".join(["import tallyveil as tv", "", "release = tv.privatize(", *lines, ")"])


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
