"""Addresses of databases, the secrets in them, and what is an address of another kind.

How secrets are hidden in texts is in `tallyveil.passwords`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from tallyveil.errors import LedgerError
from tallyveil.passwords import HIDDEN, is_secret

__all__ = [
    "KEEP_PASSWORDS",
    "NOT_SHOWN",
    "SCHEMES",
    "find_secrets",
    "is_address",
    "is_unknown_address",
    "remove_secrets",
]

SCHEMES = ("postgresql", "postgres")
NOT_SHOWN = "It is not shown, because it may hold a password."
KEEP_PASSWORDS = "Keep passwords in PGPASSWORD or a pgpass file."
FOREIGN = re.compile(r"(?:[a-z][a-z0-9+.\-]++:)+/|[^\s/:@]+:[^\s@]*@", re.IGNORECASE)
"""The scheme of an address (drives of Windows have one letter), or USER:PASSWORD@."""

KEYS = (
    *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "sslmode", "server"),
    *("database", "uid", "driver", "dsn", "data source", "user id", "initial catalog"),
)
PAIR = re.compile(r"(?:^|[\s;])([a-z_][\w%]*(?: (?:source|id|catalog))?)\s*=", re.IGNORECASE)
"""The name of a parameter in a connection string, at its start or after a space or semicolon."""


def is_address(location: str) -> bool:
    """Whether a ledger's place is an address on a server rather than a file.

    >>> is_address("postgresql://db.example/budgets"), is_address("budget.db")
    (True, False)
    """
    return location.partition("://")[0].lower() in SCHEMES and "://" in location


def is_unknown_address(place: str | Path) -> bool:
    """Whether what should be a file is none, and has the form of an address instead.

    That is a scheme, as in ``mysql://``, or a connection string, as in ``host=db password=...``.
    A file that exists is a file, whatever its name.

    >>> is_unknown_address("postgresql+psycopg://db/x"), is_unknown_address("host=db user=ann")
    (True, True)
    >>> is_unknown_address("a=b.csv"), is_unknown_address("year=2020/user=1.csv")
    (False, False)
    """
    text = str(place)
    if os.path.exists(text):
        return False
    if FOREIGN.match(text):
        return True
    names = [name.lower() for name in PAIR.findall(text)]
    keys = [name for name in names if name in KEYS]
    return any(map(is_secret, names)) or len(keys) > 1 or text.partition("=")[0] == "host"


def find_secrets(address: str) -> set[str]:
    """Every spelling of every password in an address, or a `LedgerError` if that is not clear."""
    _, _, rest = address.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if rest.count("@") > 1 or ("@" in rest and "@" not in authority):
        raise LedgerError(
            "The ledger's address cannot be read. In a password, / ? # @ : and % are written as "
            "%2F %3F %23 %40 %3A and %25; better leave it out and use PGPASSWORD or a pgpass file."
        )
    user, separator, _ = authority.partition("@")
    written = {user.partition(":")[2]} if separator else set()
    query = rest.partition("?")[2].partition("#")[0]
    parts = (part.partition("=") for part in query.split("&"))
    written |= {value for name, _, value in parts if is_secret(name)}
    written |= {value for name, value in parse_qsl(query) if is_secret(name)}
    return {spelling for text in written for spelling in (text, unquote(text)) if spelling}


def remove_secrets(text: str, secrets: set[str]) -> str:
    """`text` with stars in the place of every secret, longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text
