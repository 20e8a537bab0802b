"""Every exception Tallyveil raises.

::

    TallyveilError
    ├── ArgumentError (also ValueError)     an argument breaks a rule
    │   ├── UsageError                      arguments that do not go together
    │   ├── QueryError                      a query's answers, categories or neighbours
    │   └── MechanismError                  a matrix that is not a mechanism
    ├── InfeasibleError                     no mechanism meets all the constraints
    ├── CertificationError                  a matrix could not be proved private
    │   └── VerificationError               a certificate that does not hold
    ├── TableError (also ValueError)        a table that cannot be privatized as asked
    ├── LedgerError                         a ledger that cannot be read or trusted
    │   └── BudgetError                     a debit the budget does not cover
    ├── PackageError                        a release folder that does not check
    └── MissingExtraError (also ImportError) an optional library is not installed

Messages name the argument, the rule, what was given and what to do. They never contain
confidential values: a count from a table is described by its row's rule, not quoted. Passwords in
what was given are replaced by stars (`tallyveil.passwords`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from tallyveil.passwords import hide_passwords

LONGEST_VALUE = 120
"""Characters of a quoted value that a message shows at most."""


class TallyveilError(Exception):
    """The root of every error raised on purpose by Tallyveil; no message shows a password.

    >>> str(TallyveilError("There is no file 'mysql:/ann:secret@db'."))
    "There is no file 'mysql:/ann:***@db'."
    """

    def __init__(self, *parts: object) -> None:
        super().__init__(*(hide_passwords(x) if isinstance(x, str) else x for x in parts))


class ArgumentError(TallyveilError, ValueError):
    """An argument breaks a rule; the message names argument, rule and value.

    Parameters
    ----------
    argument : str
        The name of the argument.
    rule : str
        What it must do, to be read after "must".
    value : object
        What was given, quoted by its `repr`; None quotes nothing.
    hint : str
        A sentence that says what to do.
    got : str
        Words that describe what was given, instead of `value`.

    Examples
    --------
    >>> raise ArgumentError("epsilon", "be greater than 0", -1)
    Traceback (most recent call last):
    ...
    tallyveil.errors.ArgumentError: 'epsilon' must be greater than 0. Got -1.
    """

    def __init__(
        self, argument: str, rule: str, value: object = None, hint: str = "", *, got: str = ""
    ) -> None:
        self.argument, self.rule, self.value, self.hint, self.got = argument, rule, value, hint, got
        shown = got or ("" if value is None else _shorten(value))
        sentences = (f"{argument!r} must {rule}.", shown and f"Got {shown}.", hint)
        super().__init__(" ".join(filter(None, sentences)))

    def __reduce__(self) -> tuple[object, ...]:
        again = partial(type(self), got=self.got)
        return again, (self.argument, self.rule, self.value, self.hint)


class UsageError(ArgumentError):
    """Arguments that exclude each other, explained in a sentence.

    >>> raise UsageError("Give either a FILE or --value.")
    Traceback (most recent call last):
    ...
    tallyveil.errors.UsageError: Give either a FILE or --value.
    """

    def __init__(self, message: str) -> None:
        self.argument = self.rule = self.hint = self.got = ""
        self.value = None
        TallyveilError.__init__(self, message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self),)


class QueryError(ArgumentError):
    """A query whose answers, categories or neighbours do not fit together."""


class MechanismError(ArgumentError):
    """A matrix that is not a mechanism for its query."""


class InfeasibleError(TallyveilError):
    """No mechanism meets all the constraints; `conflict` names the conflicting ones."""

    def __init__(self, message: str, conflict: tuple[str, ...] = ()) -> None:
        self.conflict = conflict
        super().__init__(message)


class CertificationError(TallyveilError):
    """A matrix could not be proved private at the requested epsilon."""


class VerificationError(CertificationError):
    """A certificate or mechanism file makes a false claim."""


class TableError(TallyveilError, ValueError):
    """A table that cannot be released under the given options."""


class LedgerError(TallyveilError):
    """A ledger that cannot be opened, read or trusted."""


class BudgetError(LedgerError):
    """A debit that the remaining budget does not cover; nothing was spent."""


class PackageError(TallyveilError):
    """A release folder that is incomplete or does not match its own checksums."""


class MissingExtraError(TallyveilError, ImportError):
    """An optional library is missing; the message names the extra that installs it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            f"This needs {library}, which is not installed. In Tallyveil's repository, run: python "
            f'-m pip install -e ".[{extra}]". Elsewhere, put its wheel before [{extra}].'
        )


@contextmanager
def replacing(describe: Callable[[], TallyveilError]) -> Iterator[None]:
    """Raise what `describe` returns instead of a library's error, whose words may quote a cell."""
    try:
        yield
    except (TallyveilError, MemoryError):
        raise
    except BaseException as other:
        if not isinstance(other, Exception) and type(other).__name__ != "PanicException":  # Polars
            raise
        raise describe() from None


@contextmanager
def forgetting_causes() -> Iterator[None]:
    """Raise errors without the library's that they replace: "from None" only hides it."""
    try:
        yield
    except TallyveilError as problem:
        problem.__context__ = None
        raise


def describe_kind(value: object) -> str:
    """Describe the type of `value` without quoting it.

    >>> describe_kind(None), describe_kind([1, 2])
    ('None', 'a value of type list')
    """
    return "None" if value is None else f"a value of type {type(value).__name__}"


def numbered(number: int, noun: str) -> str:
    """Write a number and its noun, which is in the plural unless the number is 1.

    >>> numbered(1, "row"), numbered(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _shorten(value: object) -> str:
    try:
        text = hide_passwords(repr(value))
    except ValueError:  # a number of more digits than Python writes
        return describe_kind(value)
    if " at 0x" in text:  # a default repr: an address helps nobody
        return describe_kind(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
