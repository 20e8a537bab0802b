"""The methods there are, by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, get_args

from tallyveil.errors import ArgumentError
from tallyveil.release.methods.auto import Auto
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.design import Design, Fair, MechanismFile
from tallyveil.release.methods.geometric import Canonical, Geometric, Staircase
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.ladder import Ladder
from tallyveil.release.methods.margins import Margins
from tallyveil.release.methods.preserve import Preserve
from tallyveil.release.methods.strata import Strata
from tallyveil.structs import list_required

_Method: TypeAlias = (
    Preserve | Strata | Geometric | Fair | Design | Ladder | Hierarchy | Margins | MechanismFile
)
"""What a publisher asks for and a receipt names: a new method goes here."""

AnyMethod: TypeAlias = Auto | _Method
"""What a publisher asks for; msgspec tells methods apart by their tags."""

RecordedMethod: TypeAlias = _Method | Canonical | Staircase
"""What a receipt names: a delta or contributions in one row choose the last two."""

METHODS: Mapping[str, type[Method]] = {
    str(method.__struct_config__.tag): method for method in get_args(AnyMethod | RecordedMethod)
}

PLAIN_METHODS = tuple(
    str(method.__struct_config__.tag) for method in get_args(AnyMethod) if not list_required(method)
)
"""The methods that are asked for by their name alone: they need no keys."""

RULE = f"be one of {', '.join(PLAIN_METHODS)}, or the path of a mechanism file"


def find_method(name: str) -> type[Method]:
    """Return the method of this name that a publisher can ask for."""
    if name not in METHODS or METHODS[name] not in get_args(AnyMethod):
        raise ArgumentError("method", RULE, name)
    return METHODS[name]


def read_method(method: Any) -> Method:
    """Return a method from its object, its name, its keys, or the path of a mechanism file.

    >>> read_method("geometric"), read_method({"name": "strata", "columns": "state"})
    (Geometric(signed=False, unbiased=False), Strata(columns=('state',), unbiased=False))
    """
    if isinstance(method, Method):
        return method
    if isinstance(method, Mapping):
        fields = {str(key): value for key, value in method.items() if key != "name"}
        return find_method(str(method.get("name", "auto")))(**fields)
    if isinstance(method, str) and method in PLAIN_METHODS:
        return METHODS[method]()
    if isinstance(method, (str, Path)) and os.path.isfile(method):
        return MechanismFile(path=str(method))
    raise ArgumentError("method", RULE, str(method))
