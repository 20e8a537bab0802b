"""Strict records: option objects that refuse a misspelt key and a value of another type."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.untrusted import escape_controls

AnyStruct = TypeVar("AnyStruct", bound="Struct")

LONGEST_NAME = 60
WORDS: Mapping[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "left out",
}
FIELD = re.compile(r"^ {4}(\w+(?:, \w+)*) : ")


class StrictMeta(msgspec.StructMeta):
    """Answers a misspelt key with the nearest right one."""

    if not TYPE_CHECKING:  # checkers read the signature from the fields

        def __call__(cls, *positional, **fields):  # noqa: N805
            """Build a record from fields by name."""
            label, names = getattr(cls, "LABEL", cls.__name__), cls.__struct_fields__
            if positional:
                raise UsageError(f"{label} takes its keys by name only.")
            for name in fields:
                if name not in names:
                    raise UsageError(f"{label} has no key {suggest_key(name, cls.list_paths())}")
            for name in list_required(cls):
                if name not in fields:
                    raise UsageError(f"{label} needs the key {name!r}.")
            return super().__call__(**fields)


class Struct(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, metaclass=StrictMeta
):
    """Base of option objects; subclasses normalise their fields first, then call `super`."""

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(type(self)):
            _require_type(field.name, getattr(self, field.name), field.type)

    @classmethod
    def list_paths(cls) -> Mapping[str, str]:
        """List the keys that a misspelt one may mean, each with how it is written."""
        return {name: name for name in cls.__struct_fields__}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by name, as fields are set."""
        return _rebuild, (type(self), msgspec.structs.asdict(self))


def _rebuild(kind: type[AnyStruct], fields: Mapping[str, Any]) -> AnyStruct:
    return kind(**fields)


def set_field(struct: msgspec.Struct, name: str, value: Any) -> None:
    """Replace a field by its one form; for `__post_init__` only."""
    msgspec.structs.force_setattr(struct, name, value)


@cache
def list_required(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """List the fields without a default."""
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.required)


def suggest_key(name: object, paths: Mapping[str, str]) -> str:
    """Quote an unknown key, and name the path of the nearest one.

    >>> suggest_key("contribution", {"contributions": "unit.contributions"})
    "'contribution'. Perhaps you mean 'unit.contributions'."
    """
    short = str(name)[:LONGEST_NAME]
    near = difflib.get_close_matches(short.replace("-", "_"), list(paths), 1)
    hint = f" Perhaps you mean {paths[near[0]]!r}." if near else ""
    return repr(escape_controls(short)) + "." + hint


def list_changes(struct: msgspec.Struct) -> dict[str, Any]:
    """List the fields that differ from their defaults."""
    fields = msgspec.structs.fields(type(struct))
    values = ((field, getattr(struct, field.name)) for field in fields)
    return {f.name: value for f, value in values if f.required or not _is_default(f, value)}


def list_values(value: Any) -> Sequence[Any]:
    """Return one value or several as a sequence; None as none."""
    if value is None:
        return ()
    return value if isinstance(value, (list, tuple)) else (value,)


def read_text(kind: type[AnyStruct], name: str, text: str) -> Any:
    """Read the value of a field from text, as a command line gives it."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    if name not in types:  # which is refused where the record is built
        return text
    plain = [kind for kind in _list_types(types[name]) if kind in (bool, int, float)]
    if not plain or str in _list_types(types[name]):
        return text
    try:
        return msgspec.convert(text, plain[0], strict=False)
    except msgspec.ValidationError:
        return text


@cache
def describe_fields(kind: type) -> Mapping[str, str]:
    """Read what each field means from the section Attributes of a class's docstring."""
    parts: dict[str, str] = {}
    names: list[str] = []
    for line in (kind.__doc__ or "").partition("Attributes\n")[2].splitlines():
        if match := FIELD.match(line):
            names = match[1].split(", ")
        elif line.strip() and names:
            parts |= {name: f"{parts.get(name, '')} {line.strip()}".strip() for name in names}
    return parts


def _is_default(field: Any, value: Any) -> bool:
    default = field.default
    if default is msgspec.NODEFAULT:
        default = None if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return type(value) is type(default) and bool(value == default)


def _require_type(name: str, value: Any, kind: Any) -> None:
    types = _list_types(kind)
    if Any in types or any(isinstance(part, type) and type(value) is part for part in types):
        return
    try:
        msgspec.convert(value, kind, from_attributes=False)
    except (msgspec.ValidationError, TypeError):
        raise ArgumentError(name, f"be {_describe_type(kind)}", value) from None


def _list_types(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _describe_type(kind: Any) -> str:
    parts: dict[str, None] = {}
    for part in _list_types(kind):
        if get_origin(part) is Literal:
            parts[f"one of: {', '.join(get_args(part))}"] = None
        elif part is not NoneType:
            parts[WORDS.get(part, "a list")] = None
    return " or ".join(parts)
