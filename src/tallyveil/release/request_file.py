"""Request files: everything a release needs, for every month.

The file is TOML. Its keys are `table` and those of `ReleaseOptions`; objects are tables of the
file. Paths in it are relative to its own folder.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tallyveil.budget.ledger import open_store
from tallyveil.budget.postgresql import (
    KEEP_PASSWORDS,
    find_secrets,
    is_address,
    is_unknown_address,
)
from tallyveil.errors import UsageError
from tallyveil.loss import loss_name
from tallyveil.passwords import hide_passwords
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.design import MechanismFile
from tallyveil.release.methods.registry import METHODS, PLAIN_METHODS, AnyMethod
from tallyveil.release.options import SECTIONS, ReleaseOptions, list_paths
from tallyveil.structs import describe_fields, list_changes, suggest_key
from tallyveil.tables.databases import require_file
from tallyveil.tables.read import STANDARD_INPUT
from tallyveil.untrusted import escape_controls, open_file

TABLE = "table"
PYTHON_ONLY = ("entropy",)
KEYS = (TABLE, *(name for name in ReleaseOptions.__struct_fields__ if name not in PYTHON_ONLY))
LONG_KEY = re.compile(rb"(?:\.[ \t]*(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*){40}")
"""Keys of very many parts, which take very long to read."""

LARGEST_WHOLE = 2**63 - 1
LARGEST_FILE = 1 << 20
"""Bytes of a request file; a longer list of categories belongs in a file."""

PATHS = ("out", "ledger", "output.confidential_report", "dry_run.like")
MAYBE_PATHS = ("categories", "method", "method.path")
"""Keys that name a file, or something else."""

HEAD = """\
# A request of tallyveil. Run it with: tallyveil run FILE --out FOLDER
# On the command line, --set KEY=VALUE changes a key.
"""


def make_schema() -> dict[str, Any]:
    """Build the JSON schema of a request file from the option objects."""
    (_, method), definitions = msgspec.json.schema_components(
        [ReleaseOptions, AnyMethod], ref_template="#/$defs/{name}"
    )
    properties = definitions.pop("ReleaseOptions")["properties"]
    for name, text in describe_fields(ReleaseOptions).items():
        properties[name]["description"] = text
    properties["method"]["anyOf"] = [{"type": "string"}, method]
    for name in PYTHON_ONLY:
        del properties[name]
    table = {"type": "string", "description": "File with the table, or a database's address."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A request of tallyveil",
        "description": "What `tallyveil run FILE` releases; the file is TOML.",
        "type": "object",
        "properties": {TABLE: table, **properties},
        "additionalProperties": False,
        "$defs": definitions,
    }


def read_request(path: str | Path) -> tuple[str | None, dict[str, Any]]:
    """Read a request file: the path of its table, and its keys as `ReleaseOptions` takes them.

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
        request = tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
        _require_numbers(request)
    except RecursionError:
        raise UsageError(f"The request {str(path)!r} is nested too deeply.") from None
    except ValueError as problem:
        raise UsageError(f"The request {str(path)!r} is not TOML: {_explain(problem)}.") from None
    for name in request:
        if name not in KEYS:
            raise UsageError(
                f"A request has no key {suggest_key(name, {TABLE: TABLE, **list_paths()})}"
            )
    table, keys = _resolve(request, file.parent)
    ReleaseOptions(**keys)  # which refuses keys and values that are wrong
    return table, keys


def write_request(options: ReleaseOptions, table: str | None, folder: Path) -> str:
    """Return the text of a request file in `folder` that asks for the same release again.

    Defaults are left out, and so is the release folder: every release needs a new one.
    """
    lines = [HEAD]
    if table is not None and table != STANDARD_INPUT:
        if find_secrets(table):
            raise UsageError(
                f"The address holds a password, which no request may. {KEEP_PASSWORDS}"
            )
        if not is_address(table):
            require_file(table)
            table = _relate(table, folder)
        lines += [f"{TABLE} = {_write(table)}", ""]
    changes = list_changes(options)
    method = changes.pop("method", None)
    sections = {name: changes.pop(name) for name in SECTIONS if name in changes}
    if isinstance(method, MechanismFile):
        changes["method"] = method.path
    elif isinstance(method, Method) and not list_changes(method):
        changes["method"] = method.name
    elif isinstance(method, Method):
        sections["method"] = method
    for name, value in changes.items():
        if name not in ("out", *PYTHON_ONLY):
            lines += _write_key(name, value, folder, describe_fields(ReleaseOptions)[name])
    inner: Any
    for section, inner in sections.items():
        lines += [f"[{section}]"]
        lines += [f"name = {_write(inner.name)}"] if section == "method" else []
        for name, value in list_changes(inner).items():
            kind: type = type(inner)
            text = describe_fields(kind).get(name, "")
            lines += _write_key(name, value, folder, text, section)
    text = "\n".join(lines)
    tomllib.loads(text)
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


def _explain(problem: ValueError) -> str:
    """Say what is wrong with a text that is no TOML."""
    if isinstance(problem, UnicodeDecodeError):
        return "not UTF-8 text"
    is_syntax = isinstance(problem, tomllib.TOMLDecodeError)
    return escape_controls(str(problem)) if is_syntax else "a number has too many digits"


def _require_numbers(value: Any) -> None:
    """Refuse whole numbers beyond what TOML allows."""
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise ValueError
    for part in value.values() if isinstance(value, dict) else value if type(value) is list else ():
        _require_numbers(part)


def _resolve(request: dict[str, Any], folder: Path) -> tuple[str | None, dict[str, Any]]:
    """Return the table's path and the keys, with paths relative to the folder of the request."""
    table = request.pop(TABLE, None)
    if table is not None and not isinstance(table, str):
        raise UsageError("'table' must be text: the path of the table.")
    if table is not None and table != STANDARD_INPUT and not is_address(table):
        if not os.path.exists(folder / table):
            require_file(table)
        table = str(folder / table)
    for holder, name, path in _list_keys(request):
        value = holder[name]
        if not isinstance(value, str):
            continue
        is_word = path == "method" and value in PLAIN_METHODS
        is_path = path in PATHS and not _is_elsewhere(value, folder)
        is_maybe = path in MAYBE_PATHS or path.startswith("categories.")
        if is_path or (is_maybe and not is_word and os.path.isfile(folder / value)):
            holder[name] = str(folder / value)
    return table, request


def _list_keys(request: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """List every key with the table that holds it and its path."""
    for name, value in request.items():
        if isinstance(value, dict) and name in (*SECTIONS, "method", "categories"):
            yield from ((value, inner, f"{name}.{inner}") for inner in value)
        else:
            yield request, name, name


def _is_elsewhere(place: str, folder: Path) -> bool:
    """Return whether a place is an address; opening one of an unknown kind fails."""
    return is_address(place) or (is_unknown_address(place) and not os.path.exists(folder / place))


def _write_key(name: str, value: Any, folder: Path, text: str, section: str = "") -> list[str]:
    shown = _file_value(f"{section}.{name}" if section else name, value, folder)
    return [*(f"# {line}" for line in textwrap.wrap(text, 90)), f"{name} = {_write(shown)}", ""]


def _file_value(path: str, value: Any, folder: Path) -> Any:
    """Return the value of a key as a file in `folder` holds it."""
    if path == "method.loss" and not isinstance(value, str):
        is_tuple = isinstance(value, tuple)
        parts = (f"{part:g}" if isinstance(part, float) else str(part) for part in value)
        return ":".join(parts) if is_tuple else loss_name(value)
    if path == "ledger":
        address = str(value)
        if is_address(address) and find_secrets(address):
            raise UsageError(
                "The ledger's address holds a password, which no request may hold: leave it out "
                "and use PGPASSWORD or a pgpass file."
            )
        if is_unknown_address(address) and not is_address(address):
            open_store(address)  # which refuses it
        return address if is_address(address) else _relate(address, folder)
    if path == "source.sql" and hide_passwords(str(value)) != str(value):
        raise UsageError(f"The query holds a password, which no request may hold. {KEEP_PASSWORDS}")
    if path == "categories" and isinstance(value, Mapping):
        return {name: _file_value(path, part, folder) for name, part in value.items()}
    is_file = isinstance(value, (str, Path)) and os.path.isfile(value)
    is_word = path == "method" and str(value) in METHODS
    if path in PATHS or (path in MAYBE_PATHS and is_file and not is_word):
        return _relate(value, folder)
    return value


def _relate(path: str | Path, folder: Path) -> str:
    try:
        return os.path.relpath(Path(path).absolute(), folder.absolute())
    except ValueError:  # on another drive
        return str(Path(path).absolute())


def _write(value: Any) -> str:
    """Write a value as TOML."""
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
