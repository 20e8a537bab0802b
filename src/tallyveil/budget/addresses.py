"""Addresses of databases, and the passwords in them, which are never shown or written."""

from __future__ import annotations

import re
import shlex
from urllib.parse import parse_qsl, unquote

from tallyveil.errors import LedgerError

__all__ = ["SCHEMES", "find_secrets", "hide_passwords", "is_address", "remove_secrets"]

SCHEMES = ("postgresql", "postgres")
HIDDEN = "***"
SECRET_WORDS = ("password", "sslpassword", "oauth_client_secret")
AUTHORITY = re.compile(r"(?P<scheme>[a-z]+://)(?P<user>[^:/?#@]*):.*@", re.IGNORECASE | re.DOTALL)
PARAMETER = re.compile(r"(?P<name>[\w%]+)=[^&]*")


def is_address(location: str) -> bool:
    """Whether a ledger's place is an address on a server rather than a file.

    >>> is_address("postgresql://db.example/budgets"), is_address("budget.db")
    (True, False)
    """
    return location.partition("://")[0].lower() in SCHEMES and "://" in location


def hide_passwords(command: str) -> str:
    """A command line as it may be kept: every password in an address is replaced by stars.

    >>> hide_passwords("tallyveil ledger show --ledger postgresql://ann:secret@db/budgets")
    "tallyveil ledger show --ledger 'postgresql://ann:***@db/budgets'"
    """
    if not any(f"{scheme}:" in command.lower() for scheme in SCHEMES):
        return command
    try:
        words = shlex.split(command)
    except ValueError:  # no command line: hide too much rather than too little
        words = [command]
    hidden = [_hide_in_word(word) if "://" in word else word for word in words]
    return command if hidden == words else shlex.join(hidden)


def find_secrets(address: str) -> set[str]:
    """Every spelling of every password in an address, or a `LedgerError` if that is not clear."""
    _, _, rest = address.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if rest.count("@") > 1 or ("@" in rest and "@" not in authority):
        raise LedgerError(
            "The ledger's address cannot be read. In a password, / ? # @ : and % are written as "
            "%2F %3F %23 %40 %3A and %25; better leave it out and use PGPASSWORD or a pgpass file."
        )
    user, at, _ = authority.partition("@")
    written = {user.partition(":")[2]} if at else set()
    query = rest.partition("?")[2].partition("#")[0]
    written |= {part.partition("=")[2] for part in query.split("&") if _is_secret(part)}
    written |= {value for name, value in parse_qsl(query) if name.lower() in SECRET_WORDS}
    return {spelling for text in written for spelling in (text, unquote(text)) if spelling}


def remove_secrets(text: str, secrets: set[str]) -> str:
    """`text` with stars in the place of every secret, longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _is_secret(parameter: str) -> bool:
    """Whether a parameter is one, however its name is spelled: libpq decodes names as well."""
    return unquote(parameter.partition("=")[0]).lower() in SECRET_WORDS


def _hide_in_word(word: str) -> str:
    shown = AUTHORITY.sub(rf"\g<scheme>\g<user>:{HIDDEN}@", word)
    return PARAMETER.sub(
        lambda found: f"{found['name']}={HIDDEN}" if _is_secret(found[0]) else found[0], shown
    )
