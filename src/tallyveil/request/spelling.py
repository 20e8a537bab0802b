"""Messages name options as the command line does; here they are spelled as Python does."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from tallyveil.request.options import ReleaseOptions

__all__ = ["spell_for_python"]

VALUE = r"'[^']*'|\d+|[A-Z]{2,}|all|tab|utf-[a-z0-9-]+"
OPTION = re.compile(rf"--([a-z]+(?:-[a-z]+)*)(?: ({VALUE})(?![a-z0-9]))?")
COMMAND = ": tallyveil "


def spell_for_python(message: str) -> str:
    """A message with every option of a release as an argument; whole commands stay as they are.

    >>> spell_for_python("If it is, say --skip-rows 2.")
    'If it is, say skip_rows=2.'
    >>> spell_for_python("Use --keep all.")
    "Use keep='all'."
    """
    words, command, rest = message.partition(COMMAND)
    return OPTION.sub(_spell, words) + command + rest


def _spell(found: re.Match[str]) -> str:
    known = _list_flags().get(found[1])
    if known is None:
        return found[0]
    name, is_switch = known
    value = found[2]
    if is_switch:
        return f"{name}=True"
    if value is None:
        return repr(name)
    plain = value.isdigit() or value.isupper() or value.startswith("'")
    return f"{name}={value if plain else repr(value)}"


def _list_flags() -> dict[str, tuple[str, bool]]:
    """The argument behind every option, and whether it is a switch."""
    found: dict[str, tuple[str, bool]] = {}
    for field in fields(ReleaseOptions):
        told: Any = field.metadata
        flag = (told["flag"] or f"--{field.name.replace('_', '-')}").partition("/")[0]
        found[flag.removeprefix("--")] = field.name, told["cli"] == "switch"
    return found
