"""Hide passwords in texts that are shown or written.

Every message of the program's errors goes through `hide_passwords`, and every command that a
ledger keeps through `hide_in_command`. Both hide too much rather than too little.
"""

from __future__ import annotations

import re
import shlex
from urllib.parse import unquote

HIDDEN = "***"
SECRET_WORDS = ("pass", "pw")
SECRET_ENDINGS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token"),
    *("secret_key", "secretkey", "access_key", "accesskey", "api_key", "apikey"),
)
AUTHORITY = re.compile(
    r"(?<![a-z0-9+.\-])(?P<start>[a-z][a-z0-9+.\-]++:/++[^:/?#@]*+):.*@",
    re.IGNORECASE | re.DOTALL,
)
"""An address up to its last @; a path has lost one of its strokes."""

NAME = re.compile(r"(?<![\w%.\-])(?P<name>[\w%.\-]++)\s*+(?:=>|:=|==?)\s*+")
QUOTED = (
    r"\\++['\"].*?\\['\"]|''(?!\s|$).*?''|'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.)*+\"|\{[^}]*+\}"
    r"|\\*+['\"{].*"
)
VALUE = re.compile(rf"(?:{QUOTED})?(?:\\++.|[^\s\\]|\\$)*+", re.DOTALL)
"""A value, in marks of quotation (of SQL inside SQL as well) or up to the next space."""

PARAMETER = re.compile(r"[^&]*+")
"""A value in an address, where & begins the next."""


def is_secret(name: str) -> bool:
    """Return True if a parameter of this name is a secret; libpq decodes names.

    >>> is_secret("PASSWORD"), is_secret("pass%77ord"), is_secret("oauth_client_secret")
    (True, True, True)
    >>> is_secret("port")
    False
    """
    word = unquote(name).lower().lstrip("-")
    return word in SECRET_WORDS or word.endswith(SECRET_ENDINGS)


def hide_passwords(text: str) -> str:
    """Replace every password in a text by stars.

    >>> hide_passwords("There is no file 'postgresql:/ann:secret@db/budgets'.")
    "There is no file 'postgresql:/ann:***@db/budgets'."
    >>> hide_passwords("host=db password=secret user=ann")
    'host=db password=*** user=ann'
    >>> hide_passwords("a=b.csv")
    'a=b.csv'
    """
    last = text.rfind("@") + 1
    shown = AUTHORITY.sub(rf"\g<start>:{HIDDEN}@", text[:last]) + text[last:]
    return _hide_values(shown) if "=" in shown else shown


def hide_in_command(command: str) -> str:
    """Replace every password in a command line by stars, argument by argument.

    >>> hide_in_command("tallyveil ledger show --ledger postgresql://ann:secret@db/budgets")
    "tallyveil ledger show --ledger 'postgresql://ann:***@db/budgets'"
    """
    try:
        words = shlex.split(command)
    except ValueError:  # no command line: hide too much rather than too little
        words = [command]
    hidden = [hide_passwords(word) for word in words]
    if hidden != words:
        return shlex.join(hidden)
    return command


def _hide_values(text: str) -> str:
    """Replace the values of secret parameters by stars: name=value, name = 'value'."""
    pieces, done = [], 0
    for name in NAME.finditer(text):
        if name.start() < done or not is_secret(name["name"]):
            continue
        inside = "?" in text[done : name.start()] and "://" in text
        value = (PARAMETER if inside else VALUE).match(text, name.end())
        if value is not None and value[0]:
            pieces += [text[done : name.end()], HIDDEN]
            done = value.end()
    return "".join([*pieces, text[done:]])
