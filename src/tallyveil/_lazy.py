"""Public names, listed in a type stub and imported on first use.

The list is the stub next to the module (``__init__.pyi``), one line for each name:
``from tallyveil.query import Query as Query``. So type checkers and the program read the same
list, and a new name is one new line.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # typing itself takes longer to import than everything here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attach_stub(
    name: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of the module `name` in `file`.

    >>> fetch, listing, names = attach_stub("tallyveil", import_module("tallyveil").__file__)
    >>> "privatize" in names, fetch("Query").__name__
    (True, 'Query')
    """
    homes = read_stub(file)
    names = sorted(homes)

    def fetch(attribute: str) -> Any:
        if attribute not in homes:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        home = import_module(homes[attribute])
        is_module = hasattr(home, "__path__") and attribute not in vars(home)
        value = (
            import_module(f"{homes[attribute]}.{attribute}")
            if is_module
            else getattr(home, attribute)
        )
        setattr(sys.modules[name], attribute, value)
        return value

    return fetch, lambda: names, names


def read_stub(file: str) -> dict[str, str]:
    """Return the home module of every name in the stub next to `file`."""
    homes = {}
    with open(file.removesuffix("c").removesuffix(".py") + ".pyi", encoding="utf-8") as stub:
        for line in stub:
            words = line.split()
            if words[:1] == ["from"]:
                homes[words[-1]] = words[1]
    return homes
