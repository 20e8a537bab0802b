"""A request in a file: everything a release needs, checked by a schema, repeated every month.

The file is TOML. Its keys are `table` and the options of a release, which are listed once, in
`ReleaseOptions`. Paths in it are relative to its own folder.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from tallyveil.budget.addresses import (
    KEEP_PASSWORDS,
    find_secrets,
    is_address,
    is_unknown_address,
)
from tallyveil.budget.ledger import open_store
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.passwords import hide_passwords
from tallyveil.release.methods.registry import ASKED_FOR
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables.databases import require_file
from tallyveil.tables.source import STANDARD_INPUT
from tallyveil.untrusted import escape_controls, open_file

__all__ = ["make_schema", "read_request", "save_request", "write_request"]

TABLE = "table"
LONG_KEY = re.compile(rb"(?:\.[ \t]*(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*){40}")
"""Keys of very many parts, which take very long to read."""

LARGEST_WHOLE = 2**63 - 1
LONGEST_NAME = 60
LARGEST_FILE = 1 << 20
"""Bytes of a request file; a longer list of categories is a file of its own."""

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NAMES = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
AMOUNT = {"anyOf": [NUMBER, TEXT]}
LIST = {"anyOf": [TEXT, {"type": "array", "items": AMOUNT}]}
KINDS: dict[str, dict[str, Any]] = {
    "text": TEXT,
    "many": NAMES,
    "number": NUMBER,
    "whole": WHOLE,
    "switch": {"type": "boolean"},
    "path": TEXT,
}
"""What each kind of option holds in a file."""


def _per_column(one: dict[str, Any]) -> dict[str, Any]:
    many = [{"type": "array", "items": one}, {"type": "object", "additionalProperties": one}]
    return {"anyOf": [one, *many]}


OWN: dict[str, dict[str, Any]] = {
    "upper": _per_column(WHOLE),
    "epsilon": _per_column(AMOUNT),
    "delta": AMOUNT,
    "tradeoff": AMOUNT,
    "levels": LIST,
    "level_weights": LIST,
    "hierarchy": NAMES,
    "margins": NAMES,
    "strata": NAMES,
    "nested": NAMES,
    "invariant": NAMES,
    "disjoint": {"anyOf": [TEXT, {"type": "array", "items": NAMES}]},
    "bins": {
        "anyOf": [
            TEXT,
            {"type": "array", "items": TEXT},
            {"type": "object", "additionalProperties": {"type": "array", "items": NUMBER}},
        ]
    },
    "categories": {
        "anyOf": [
            TEXT,
            {"type": "array", "items": {"anyOf": [AMOUNT, {"type": "array", "items": AMOUNT}]}},
            {"type": "object", "additionalProperties": {"type": "array", "items": AMOUNT}},
        ]
    },
}
"""Options that hold more in a file than on a command line."""

PATHS = ("out", "ledger", "confidential_report")
MAYBE_PATHS = ("categories", "method")
"""Options that name a file, or something else."""

TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table",
}


def make_schema() -> dict[str, Any]:
    """The JSON schema of a request file, made from the one list of options."""
    properties: dict[str, Any] = {
        TABLE: {**TEXT, "description": "The file with the table, relative to this one."}
    }
    for field in _offered():
        described = {**_kind_of(field), "description": field.metadata["help"]}
        default = field.default
        if default is not MISSING and default not in (None, ()):
            described["default"] = default
        properties[field.name] = described
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A request of tallyveil",
        "description": "What `tallyveil run FILE` releases; the file is TOML.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def read_request(path: str | Path) -> tuple[str | None, dict[str, Any]]:
    """Read a request file: the path of its table, and its options by name.

    Raises a `UsageError` that names the key, or the line, that is wrong.
    """
    file = Path(path)
    try:
        with open_file(file) as stream:
            content = stream.read(LARGEST_FILE + 1)
    except OSError as problem:
        raise UsageError(f"The request {str(path)!r} cannot be read: {problem.strerror}.") from None
    if len(content) > LARGEST_FILE:
        raise UsageError(f"The request {str(path)!r} is larger than a request should be.")
    try:
        if LONG_KEY.search(content):
            raise RecursionError
        found = tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except RecursionError:
        raise UsageError(f"The request {str(path)!r} is nested too deeply.") from None
    except ValueError as problem:
        raise UsageError(f"The request {str(path)!r} is not TOML: {_say(problem)}.") from None
    _check(found)
    return _resolve(found, file.parent)


def write_request(options: ReleaseOptions, table: str | None, folder: Path) -> str:
    """The text of a request file in `folder` that asks for the same release again.

    What has its default is left out. The release folder stands in a comment: every release
    needs a new one.
    """
    lines = ["# A request of tallyveil. Run it with: tallyveil run FILE --out FOLDER"]
    lines += ["# Options on the command line override what stands here.", ""]
    if table is not None and table != STANDARD_INPUT:
        require_file(table)
        lines += [f"{TABLE} = {_write(_relate(table, folder))}", ""]
    for field in _offered():
        value = getattr(options, field.name)
        if value is None or value == field.default or (field.name == "out"):
            continue
        lines += [f"# {line}" for line in textwrap.wrap(field.metadata["help"], 90)]
        lines += [f"{field.name} = {_write(_file_value(field.name, value, folder))}", ""]
    text = "\n".join(lines)
    _check(tomllib.loads(text))
    return text


def save_request(path: Path, options: ReleaseOptions, table: str | None) -> None:
    """Write a request file, which must not exist yet."""
    if os.path.lexists(path):
        raise UsageError(f"{str(path)!r} exists already: name a new request file.")
    text = write_request(options, table, path.absolute().parent)
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as problem:
        raise UsageError(
            f"The request {str(path)!r} cannot be written: {problem.strerror}."
        ) from None


def _say(problem: ValueError) -> str:
    """What is wrong with a text that is no TOML."""
    if isinstance(problem, UnicodeDecodeError):
        return "not UTF-8 text"
    known = isinstance(problem, tomllib.TOMLDecodeError)
    return escape_controls(str(problem)) if known else "a number has too many digits"


def _offered() -> list[Field[Any]]:
    return [field for field in fields(ReleaseOptions) if field.metadata["cli"] != "none"]


def _kind_of(field: Field[Any]) -> dict[str, Any]:
    return OWN.get(field.name) or KINDS[field.metadata["cli"]]


def _check(found: Mapping[str, Any]) -> None:
    """Hold a request against the schema; an error names the first key that does not fit."""
    known = make_schema()["properties"]
    for name, value in found.items():
        if name not in known:
            short = name[:LONGEST_NAME]
            raise UsageError(
                f"The request has a key {escape_controls(short)!r} that no release knows."
                + _suggest(short, known)
            )
        if not _fits(value, known[name]):
            raise ArgumentError(name, f"be {_describe(known[name])} in a request file", value)


def _suggest(name: str, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name.replace("-", "_"), list(known), 1)
    return f" Perhaps you mean {near[0]!r}." if near else ""


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_fits(value, one) for one in schema["anyOf"])
    kind = schema["type"]
    if isinstance(value, bool) != (kind == "boolean") or not isinstance(value, TYPES[kind]):
        return False
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        return False
    if kind == "array":
        return all(_fits(item, schema["items"]) for item in value)
    if kind == "object":
        return all(_fits(item, schema["additionalProperties"]) for item in value.values())
    return True


def _describe(schema: Mapping[str, Any]) -> str:
    parts = schema.get("anyOf", [schema])
    kinds: dict[str, None] = {}
    for part in parts:
        kinds |= dict.fromkeys(_describe(part).split(" or ") if "anyOf" in part else [])
        if "anyOf" not in part:
            kinds[WORDS[part["type"]]] = None
    return " or ".join(kinds)


def _resolve(found: dict[str, Any], folder: Path) -> tuple[str | None, dict[str, Any]]:
    """The table's path and the options, with paths relative to the folder of the request."""
    table = found.pop(TABLE, None)
    if table is not None and table != STANDARD_INPUT:
        if not os.path.exists(folder / table):
            require_file(table)
        table = str(folder / table)
    for name in PATHS:
        if name in found and not _is_elsewhere(found[name], folder):
            found[name] = str(folder / found[name])
    for name in MAYBE_PATHS:
        value = found.get(name)
        is_word = name == "method" and value in ASKED_FOR
        if isinstance(value, str) and not is_word and os.path.isfile(folder / value):
            found[name] = str(folder / value)
    return table, found


def _is_elsewhere(place: str, folder: Path) -> bool:
    """Whether a place is an address; one of an unknown kind is refused by whoever opens it."""
    return is_address(place) or (is_unknown_address(place) and not os.path.exists(folder / place))


def _file_value(name: str, value: Any, folder: Path) -> Any:
    """The value of an option as a file in `folder` holds it."""
    if name == "loss" and isinstance(value, tuple):
        return ":".join(f"{part:g}" if isinstance(part, float) else part for part in value)
    if name == "ledger":
        address = str(value)
        if is_address(address) and find_secrets(address):
            raise UsageError(
                "The ledger's address holds a password, which no request may hold: leave it out "
                "and use PGPASSWORD or a pgpass file."
            )
        if is_unknown_address(address) and not is_address(address):
            open_store(address)  # which refuses it
        return address if is_address(address) else _relate(address, folder)
    if name == "query" and hide_passwords(str(value)) != str(value):
        raise UsageError(f"The query holds a password, which no request may hold. {KEEP_PASSWORDS}")
    is_file = name in MAYBE_PATHS and isinstance(value, (str, Path)) and os.path.isfile(value)
    is_file = is_file and not (name == "method" and str(value) in ASKED_FOR)
    if name in PATHS or is_file:
        return _relate(value, folder)
    return value


def _relate(path: str | Path, folder: Path) -> str:
    try:
        return os.path.relpath(Path(path).absolute(), folder.absolute())
    except ValueError:  # on another drive
        return str(Path(path).absolute())


def _write(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        parts = (f"{_write(str(name))} = {_write(part)}" for name, part in value.items())
        return "{ " + ", ".join(parts) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_write, value)) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
