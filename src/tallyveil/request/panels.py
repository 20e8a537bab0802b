"""Under which heading and with what words an option is shown, in terminal and studio."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ABOUT", "FILE", "OUTPUT", "PRIVACY", "SUMS", "TABLE", "tell"]

TABLE, PRIVACY, OUTPUT = "The table", "Privacy and method", "Output"
SUMS, ABOUT, FILE = "Sums that hold", "About the release", "The file"


def tell(text: str, panel: str, cli: str = "text", flag: str = "") -> Mapping[str, str]:
    """What the command line needs to know: help, panel, and the kind of value.

    Kinds are ``text``, ``many`` (may be repeated), ``number``, ``whole``, ``switch``, ``path``
    and ``none`` for what only Python takes.
    """
    return {"help": text, "panel": panel, "cli": cli, "flag": flag}
