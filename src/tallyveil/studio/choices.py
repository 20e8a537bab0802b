"""Choices of a publisher in the browser, as options of the library, a command line and Python.

What the pages offer is the table `PANELS`. What a choice means is explained in the docstrings of
the option objects, whose fields also give its type; nothing here has a default.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from tallyveil.loss import loss_name
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.design import Design, MechanismFile
from tallyveil.release.methods.registry import METHODS, PLAIN_METHODS
from tallyveil.release.options import SECTIONS, ReleaseOptions, flatten
from tallyveil.structs import describe_fields, list_changes
from tallyveil.studio.wording import FILE, PANELS, TITLES, VALUES, RefusedError, name_options
from tallyveil.tables.write import FORMATS

OWN_MECHANISM = "your own mechanism"
"""The method that draws from a mechanism's file."""

TOP, GROUPS, METHOD = "", "groups", "method"
LISTS = (
    *("count", "keep", "by", "upper", "epsilon", "where", "bins", "disjoint", "properties"),
    *("structural_zeros", "na_values"),
)
"""Options with several values; the pages separate those of others by commas themselves."""

Word = Annotated[str, msgspec.Meta(max_length=2000)]
KINDS: Mapping[str, Any] = {
    "list": Annotated[list[Word], msgspec.Meta(max_length=500)],
    "switch": bool,
    "whole": int,
    "text": Word,
    "categories": Annotated[str, msgspec.Meta(max_length=200_000)],
}
"""What a browser may send, by the kind of a choice."""

CHOSEN_BY = {"epsilons": "ladder", "priority": "preserve", "signed": "geometric"}
"""Keys of a method that choose it."""

FOLDER_NAME = re.compile(r"[\w][\w .()-]{0,99}")


class Choice(NamedTuple):
    """A choice: the object of a request that has its key, and its kind.

    `section` is `GROUPS` for the columns that choose a method.
    """

    name: str
    section: str
    kind: str
    help: str
    values: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title on the pages."""
        return TITLES[self.name]


def _describe(name: str) -> Choice:
    """Describe the choice with a name from the option object that has a field for it."""
    section, owner, field = _find_owner(name)
    (kind,) = (f.type for f in msgspec.structs.fields(owner) if f.name == field)
    texts = [describe_fields(part).get(field, "") for part in (owner, *owner.__mro__)]
    text = next(filter(None, texts)).replace("`", "'").removeprefix("Whether ")
    values = get_args(kind) if get_origin(kind) is Literal else ()
    values = FORMATS if name == "format" else values
    plain = {bool: "switch", int: "whole"}.get(
        kind, "categories" if name == "categories" else "text"
    )
    text = name_options(text[0].upper() + text[1:])
    return Choice(name, section, "list" if name in LISTS else plain, text, values)


def _find_owner(name: str) -> tuple[str, type[msgspec.Struct], str]:
    """Return the part of a request that has a key, the object's class and the field's name."""
    if name in METHODS:
        return GROUPS, METHODS[name], "columns"
    objects: list[tuple[str, type[msgspec.Struct]]] = [(TOP, ReleaseOptions), *SECTIONS.items()]
    objects += [(METHOD, kind) for kind in METHODS.values()]
    section, owner = next(part for part in objects if name in part[1].__struct_fields__)
    return section, owner, name


CHOICES: Mapping[str, Choice] = {name: _describe(name) for name in TITLES}
"""What the pages offer, by name."""

FORM = PANELS[FILE]
"""The choices that say how the file of the table is written."""

NOT_LISTED = ("out", "ledger", "dataset", "output.confidential_report")


@dataclass(frozen=True)
class Place:
    """Places of a table, of private files and of the release, and the account that pays.

    `mechanism` is the file of a mechanism of the publisher's own; `report` is where the comparison
    with the truth goes, if there is one.
    """

    table: str
    private: str
    columns: tuple[str, ...]
    out: str | None = None
    ledger: str | None = None
    dataset: str | None = None
    mechanism: str | None = None
    report: str | None = None


def read_field(message: Mapping[str, Any], name: str, kind: Any, default: Any = None) -> Any:
    """Return a field of a message as the type `kind`, or refuse it."""
    try:
        return msgspec.convert(message.get(name, default), kind)
    except msgspec.ValidationError:
        raise RefusedError(400, f"{name!r} cannot be read.") from None


def read_choices(data: Any) -> dict[str, Any]:
    """Return the choices in a message of a browser; empty ones are left out."""
    if not isinstance(data, dict):
        raise RefusedError(400, "The choices cannot be read.")
    choices: dict[str, Any] = {}
    for name in data:
        if name not in CHOICES:
            raise RefusedError(400, "There is no such choice.")
        value = read_field(data, name, KINDS[CHOICES[name].kind])
        if isinstance(value, str):
            value = value.strip()
        elif isinstance(value, list):
            value = [word for word in value if word.strip()]
        if value not in ("", []):
            choices[name] = value
    return choices


def make_options(choices: Mapping[str, Any], place: Place) -> ReleaseOptions:
    """Return the options of the library that say the same; what was not chosen keeps its default.

    A column that is neither counted nor marked as public is not released.
    """
    choices = dict(choices)
    if "categories" in choices:
        several = len(choices.get("by", ())) > 1
        choices["categories"] = _read_categories(choices["categories"], place.private, several)
    if "epsilons" in choices:
        choices.pop("epsilon", None)
    request: dict[str, Any] = {METHOD: _read_method(choices, place)}
    for name, value in choices.items():
        section = CHOICES[name].section
        if section in SECTIONS:
            request.setdefault(section, {})[name] = value
        elif section == TOP:
            request.setdefault(name, value)
    if request.get("count"):
        request.setdefault("keep", [])
    if place.dataset is not None:
        request |= {"ledger": place.ledger, "dataset": place.dataset}
    if place.out is not None:
        request["out"] = place.out
        request.setdefault("output", {})["confidential_report"] = place.report
    return ReleaseOptions(**request)


def _read_method(choices: Mapping[str, Any], place: Place) -> Any:
    """Return the method that was chosen, by its name, its columns or one of its keys."""
    name = choices.get(METHOD, "auto")
    if name == OWN_MECHANISM:
        if place.mechanism is None:
            raise RefusedError(422, "Choose the file of your mechanism first.")
        return {"name": "file", "path": place.mechanism}
    if name not in PLAIN_METHODS:
        raise RefusedError(400, "There is no such method.")
    keys = {key: value for key, value in choices.items() if CHOICES[key].section == METHOD}
    if name != "design":  # the page offers these next to it
        keys = {key: value for key, value in keys.items() if key not in ("loss", "properties")}
    groups = {key: value for key, value in choices.items() if CHOICES[key].section == GROUPS}
    implied = [*groups, *(CHOSEN_BY[key] for key in keys if key in CHOSEN_BY and keys[key])]
    if not implied:
        return {"name": name, **keys}
    if name not in ("auto", implied[0]) and "epsilons" not in keys:
        raise RefusedError(422, f"“{implied[0]}” is a method: leave the method at auto.")
    columns = {"columns": groups[implied[0]]} if groups else {}
    return {"name": implied[0], **columns, **keys}


def check_folder_name(name: Any) -> str:
    """Return a name for a new folder in the studio's own, or refuse it."""
    if not isinstance(name, str) or not FOLDER_NAME.fullmatch(name) or name.rstrip(" .") != name:
        raise RefusedError(
            400,
            "Name the folder with letters, digits, spaces, points, dashes or brackets only, "
            "beginning with a letter or digit.",
        )
    return name


def _read_categories(text: str, private: str, several: bool) -> Any:
    """Read the public list: lines such as sex = f, m by column, or a file in a private folder."""
    from tallyveil.tables.microdata import read_column_lists

    lines = [line for line in text.splitlines() if line.strip()]
    if several and all("=" in line for line in lines):
        parts = (map(str.strip, line.split("=", 1)) for line in lines)
        values = ((name, ",".join(map(str.strip, labels.split(",")))) for name, labels in parts)
        return read_column_lists(["=".join(pair) for pair in values])
    content = (text.strip() + "\n").encode()
    name = f"categories-{hashlib.sha256(content).hexdigest()[:12]}{'.csv' if several else '.txt'}"
    file = Path(private) / name
    if not file.exists():
        partial = file.with_name(f"{name}.{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(file)
    return file


def write_command(table: str, options: ReleaseOptions) -> str:
    """Return the command for a terminal.

    >>> options = ReleaseOptions(count="cases", upper="9", unit={"contributions": 2}, out="release")
    >>> write_command("cases.csv", options)
    'tallyveil privatize cases.csv --count cases --upper 9 --out release --set unit.contributions=2'
    """
    words, settings = ["tallyveil", "privatize", table], list[str]()
    for key, value in flatten(options).items():
        if "." not in key:
            words += [word for text in _list_words(value) for word in (f"--{key}", text)]
        elif key == "method.epsilons":
            words[1] = "ladder"
            words += ["--epsilons", _write_word(value)]
        elif (key, value) != ("method.name", "ladder"):
            several = isinstance(value, tuple) and not key.startswith("method.")
            for part in value if several else [value]:
                settings += ["--set", f"{key}={_write_word(part)}"]
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
    lines, call = [f"    {table!r},"], "release = tv.privatize("
    for name, value in list_changes(options).items():
        if name == METHOD and value.name == "ladder":
            call = "levels = tv.privatize_levels("
            lines.append(f"    epsilons={value.epsilons!r},")
        elif name in SECTIONS or isinstance(value, Method):
            kind = "DesignMethod" if isinstance(value, Design) else type(value).__name__
            keys = ", ".join(f"{key}={part!r}" for key, part in list_changes(value).items())
            lines.append(f"    {name}=tv.{kind}({keys}),")
        else:
            lines.append(f"    {name}={str(value) if isinstance(value, Path) else value!r},")
    return "\n".join(["import tallyveil as tv", "", call, *lines, ")"])


def list_choices(options: ReleaseOptions) -> list[tuple[str, str]]:
    """List everything that was chosen, for people to read once more; defaults are left out.

    >>> list_choices(ReleaseOptions(count=["n"], epsilon=["1"], counts={"allow_totals": True}))
    [('Count columns', 'n'), ('Epsilon', '1'), ('Allow rows that look like totals', 'yes')]
    """
    names = {"method.name": METHOD, "method.columns": options.method.name}
    choices = []
    for key, value in flatten(options).items():
        if key in NOT_LISTED:
            continue
        if isinstance(value, Mapping):
            text = "; ".join(f"{name}: {', '.join(map(str, v))}" for name, v in value.items())
        elif isinstance(value, Path):
            text = "your list"
        elif key == METHOD and isinstance(options.method, MechanismFile):
            text = OWN_MECHANISM
        elif isinstance(value, bool):
            text = "yes" if value else "no"
        else:
            text = VALUES.get(str(value)) or _write_word(value).replace(",", ", ")
        choices.append((TITLES[names.get(key, key.rpartition(".")[2])], text))
    return choices


def _list_words(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}={_write_word(values)}" for name, values in value.items()]
    return list(map(_write_word, value if isinstance(value, (list, tuple)) else [value]))


def _write_word(value: Any) -> str:
    """Write a value as a command line takes it; columns of one margin are joined by +."""
    if isinstance(value, (list, tuple)):
        parts = ("+".join(v) if isinstance(v, tuple) else _write_word(v) for v in value)
        return ",".join(parts)
    if callable(value):
        return loss_name(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
