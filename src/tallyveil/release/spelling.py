"""Messages name keys of a request in quotes; readers of tables still name flags of a command."""

from __future__ import annotations

import re

__all__ = ["spell_for_python"]

KEYS = {
    "allow-duplicates": "counts.allow_duplicates",
    "allow-totals": "counts.allow_totals",
    "comment": "source.comment",
    "decimal": "source.decimal",
    "delimiter": "source.delimiter",
    "encoding": "source.encoding",
    "format": "output.format",
    "from": "table",
    "missing": "source.na_values",
    "other": "microdata.other",
    "query": "source.sql",
    "sheet": "source.sheet_name",
    "skip-footer": "source.skipfooter",
    "skip-rows": "source.skiprows",
    "thousands": "source.thousands",
    "where": "microdata.where",
}
SWITCHES = ("allow-duplicates", "allow-totals")
FLAG = re.compile(rf"--({'|'.join(KEYS)})\b(?: ('[^']*'|\d+|[A-Z]{{2,}}|tab|utf-[a-z0-9-]+))?")
COMMAND = ": tallyveil "


def spell_for_python(message: str) -> str:
    """Spell the flags in a message as keys; whole commands stay as they are.

    >>> spell_for_python("If it is, say --skip-rows 2.")
    'If it is, say source.skiprows=2.'
    """
    words, command, rest = message.partition(COMMAND)
    return FLAG.sub(_spell, words) + command + rest


def _spell(found: re.Match[str]) -> str:
    key, value = KEYS[found[1]], found[2]
    if found[1] in SWITCHES:
        return f"{key}=True"
    if value is None:
        return repr(key)
    plain = value.isdigit() or value.isupper() or value.startswith("'")
    return f"{key}={value if plain else repr(value)}"
