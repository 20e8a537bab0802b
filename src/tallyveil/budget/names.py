"""Names of datasets that cannot be taken for one another.

Two budgets for one dataset protect it half as well, so a new name must differ visibly from
every name that a ledger has: not only by case, spaces, invisible characters or letters of
another alphabet that look the same.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from tallyveil.errors import ArgumentError
from tallyveil.untrusted import remove_invisible

__all__ = ["check_new_name", "find_look_alike"]

LONGEST_NAME = 200

SYLLABIC = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"})
"""Scripts that are written together with others and look like none of them."""

LOOK_ALIKES = {
    "a": "аαɑ", "b": "вβ", "c": "сϲ", "d": "ԁ", "e": "еε", "g": "ɡց", "h": "нһհ", "j": "јϳ",
    "k": "кκ", "m": "мμ", "n": "ηոп", "o": "оοօ0", "p": "рρ", "q": "ԛզ", "r": "г", "s": "ѕ",
    "t": "тτ", "u": "υս", "v": "νѵ", "w": "ԝω", "x": "хχ", "y": "уүγ", "z": "ζ",
    "l": "1|iіӏιıɩǀ", "-": "−", "/": "⁄∕", "'": "`´ʼ",
}  # fmt: skip
"""Letters of one alphabet and those of others that look like them, in lower case."""

TO_LATIN = str.maketrans({twin: shown for shown, twins in LOOK_ALIKES.items() for twin in twins})


def check_new_name(name: str, names: Iterable[str]) -> None:
    """Raise an `ArgumentError` if a dataset cannot be opened under `name`.

    Parameters
    ----------
    name : str
        The new dataset's name.
    names : iterable of str
        The names that the ledger has already.

    Examples
    --------
    >>> check_new_name("Fälle 2026", ["Fälle 2025"])
    >>> check_new_name("Cases", ["cases"])
    Traceback (most recent call last):
    ...
    tallyveil.errors.ArgumentError: 'dataset' must not look like 'cases', which is in this ledger \
already. Got 'Cases'.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ArgumentError("dataset", "be a name of at least one printable character", name)
    if len(name) > LONGEST_NAME:
        raise ArgumentError("dataset", f"have at most {LONGEST_NAME} characters", name)
    plain = unicodedata.normalize("NFKC", name)
    if name != " ".join(plain.split(" ")).strip() or "  " in name:
        hint = "No space at either end, no two in a row, no special forms of letters."
        raise ArgumentError("dataset", "be written plainly", got=ascii(name), hint=hint)
    if remove_invisible(name) != name:
        raise ArgumentError("dataset", "have no invisible characters", got=ascii(name))
    scripts = sorted({_script(letter) for letter in name if letter.isalpha()} - SYLLABIC)
    if len(scripts) > 1:
        got = f"{name!a}, which mixes {' and '.join(map(str.capitalize, scripts))}"
        raise ArgumentError("dataset", "use the letters of one alphabet", got=got)
    twin = find_look_alike(name, names)
    if twin is not None:
        rule = f"not look like {_shown(twin)}, which is in this ledger already"
        raise ArgumentError("dataset", rule, got=_shown(name))


def find_look_alike(name: str, names: Iterable[str]) -> str | None:
    """The first of `names` that looks like `name` without being it, or None."""
    look = _simplify(name)
    return next((other for other in names if other != name and _simplify(other) == look), None)


def _simplify(name: str) -> str:
    """What is left of a name when everything is gone that readers may overlook."""
    folded = unicodedata.normalize("NFKC", remove_invisible(name)).casefold()
    plain = "".join(_plain_symbol(letter) for letter in folded)
    return " ".join(plain.translate(TO_LATIN).split())


def _plain_symbol(letter: str) -> str:
    """Digits of every script as 0 to 9, dashes of every length as one."""
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    return "-" if unicodedata.category(letter) == "Pd" else letter


def _script(letter: str) -> str:
    """The alphabet of a letter, by the first word of its Unicode name."""
    return unicodedata.name(letter, "UNKNOWN").split()[0]


def _shown(name: str) -> str:
    """A name as people can tell it from its look-alike."""
    return repr(name) if name.isascii() else ascii(name)
