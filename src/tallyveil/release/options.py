"""Options of a release: objects, the same in Python, request files and command lines.

Each object refuses what it can by itself; what does not go together is refused in
`tallyveil.release.request`. Every key is explained in the docstring of its class, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import exact_epsilon, exact_rational
from tallyveil.release.methods.auto import Auto
from tallyveil.release.methods.base import LEAST_EPSILON, MOST_DIGITS
from tallyveil.release.methods.design import MechanismFile
from tallyveil.release.methods.registry import METHODS, find_method, read_method
from tallyveil.structs import Struct, list_changes, list_values, set_field, suggest_key
from tallyveil.tables.source import Source
from tallyveil.untrusted import escape_controls

KEEP_ALL = "all"
"""The value of `keep` that releases every other column."""

LEAST_DELTA, LARGEST_DELTA = Fraction(1, 10**12), Fraction(1, 2)
LARGEST_CONTRIBUTIONS = 10**6
LONGEST_TEXT = 300
"""Characters of each text about a release."""


def read_names(values: Any, argument: str) -> tuple[str, ...]:
    """Return the names of columns, each once."""
    names = _read_texts(values, argument)
    if len(set(names)) != len(names):
        raise ArgumentError(argument, "name every column once", got=", ".join(names))
    return names


def split_names(values: Any, argument: str = "") -> tuple[str, ...]:
    """Return names from a sequence, or from one text with commas between them."""
    if values is None:
        return ()
    parts = values.split(",") if isinstance(values, str) else list_values(values)
    names = tuple(str(part).strip() for part in parts if str(part).strip())
    require_writable(argument, names)
    if argument and isinstance(values, str) and not names:
        raise ArgumentError(argument, "name at least one column", got="an empty text")
    return names


def require_writable(argument: str, parts: Iterable[Any]) -> None:
    """Refuse text with half a surrogate pair, which no encoding can write."""
    try:
        for part in parts:
            str(part).encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"'{argument}' has a character that cannot be written.") from None


def require_short(exact: Fraction, argument: str) -> Fraction:
    """Return an amount, unless it has more digits than a receipt should."""
    if exact.denominator >= 10**MOST_DIGITS:
        raise ArgumentError(argument, f"be a fraction of at most {MOST_DIGITS} digits")
    return exact


def check_epsilon(value: Any, argument: str) -> Fraction:
    """Return an exact epsilon of at least `LEAST_EPSILON`, in few enough digits for a receipt."""
    epsilon = require_short(exact_epsilon(value, argument), argument)
    if epsilon < LEAST_EPSILON:
        hint = "With less, the noise is wider than any count."
        raise ArgumentError(argument, f"be at least {float(LEAST_EPSILON):g}", value, hint)
    return epsilon


def _read_texts(values: Any, argument: str) -> tuple[str, ...]:
    texts = tuple(str(text) for text in list_values(values))
    require_writable(argument, texts)
    return texts


def _read_groups(values: Any) -> tuple[tuple[str, ...], ...]:
    """Return groups of columns: one group as names, or several as lists or texts with commas.

    >>> _read_groups(["m", "f"]), _read_groups("m,f"), _read_groups([["m", "f"], "a,b"])
    ((('m', 'f'),), (('m', 'f'),), (('m', 'f'), ('a', 'b')))
    """
    listed = list_values(values)
    if len(listed) > 1 and all(isinstance(group, str) and "," not in group for group in listed):
        listed = [listed]
    return tuple(split_names(group, "disjoint") for group in listed)


class Counts(Struct, frozen=True):
    """Facts about a table of counts.

    Attributes
    ----------
    allow_duplicates : bool
        Accept rows with the same public labels; asserts that nobody is in two of them.
    allow_totals : bool
        Accept rows labelled Total, or by the beginning of other labels; asserts that nobody is
        counted twice.
    nested : sequence of str
        Count columns that each count some of those in the next, such as deaths,cases: every
        released row keeps that order.
    structural_zeros : sequence of str
        Rows that are 0 by definition, such as "sex = F and cause = prostate". They are public,
        get no noise and cost nothing.
    """

    allow_duplicates: bool = False
    allow_totals: bool = False
    nested: tuple[str, ...] = ()
    structural_zeros: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = split_names(self.nested, "nested")
        if names and (len(names) < 2 or len(set(names)) != len(names)):
            rule = "name at least two columns of counts, each once, such as deaths,cases"
            raise ArgumentError("nested", rule, got=", ".join(names))
        set_field(self, "nested", names)
        set_field(self, "structural_zeros", _read_texts(self.structural_zeros, "structural_zeros"))
        super().__post_init__()


class Microdata(Struct, frozen=True):
    """Choice of the records to count, and their categories.

    Attributes
    ----------
    where : sequence of str
        Count only records that meet these conditions, such as "age >= 18".
    bins : mapping
        Ranges of a number, by their public limits: {"age": [0, 18, 65]} or "age=0,18,65" gives
        0-17, 18-64 and 65+.
    other : str
        Category for all values that are not listed.
    """

    where: tuple[str, ...] = ()
    bins: Any = None
    other: str | None = None

    def __post_init__(self) -> None:
        set_field(self, "where", _read_texts(self.where, "where"))
        super().__post_init__()
        if self.other is not None:
            require_writable("other", [self.other])
            if not self.other.strip():
                raise ArgumentError("other", "be a label for the cell of all other values")


class Unit(Struct, frozen=True):
    """Privacy unit, and its contribution bound.

    Attributes
    ----------
    kind : str
        What is protected: one "person", or one single "event" such as a visit.
    neighbours : str
        How neighbouring tables differ: by "add_remove" of one unit, or by "replace_one", which
        costs twice.
    contributions : int
        Times one person is counted in each count column, or records per person. Multiplies the
        cost.
    id_column : str
        Column that identifies a person: at most `contributions` records of each are counted,
        chosen at random. Never released.
    disjoint : sequence of sequence of str
        Count columns where a person is in one only; they are charged once.
    spread : str
        Where the contributions of one unit are: in "any" rows, in "one_row" or in "distinct_rows"
        of the released table.
    """

    kind: Literal["person", "event"] = "person"
    neighbours: Literal["add_remove", "replace_one"] = "add_remove"
    contributions: int = 1
    id_column: str | None = None
    disjoint: tuple[tuple[str, ...], ...] = ()
    spread: Literal["any", "one_row", "distinct_rows"] = "any"

    def __post_init__(self) -> None:
        if isinstance(self.contributions, Integral) and not isinstance(self.contributions, bool):
            set_field(self, "contributions", int(self.contributions))
        set_field(self, "disjoint", _read_groups(self.disjoint))
        super().__post_init__()
        if not 1 <= self.contributions <= LARGEST_CONTRIBUTIONS:
            rule = f"be a whole number from 1 to {LARGEST_CONTRIBUTIONS:,}"
            raise ArgumentError("contributions", rule, self.contributions)
        names = [name for group in self.disjoint for name in group]
        if len(set(names)) != len(names):
            raise ArgumentError("disjoint", "name every column once", got=", ".join(names))
        if any(len(group) < 2 for group in self.disjoint):
            rule = "name two or more of the count columns"
            raise ArgumentError("disjoint", rule, got=", ".join(names))
        if self.spread != "any" and self.disjoint:
            raise UsageError(f"'spread' {self.spread!r} does not go with 'disjoint' columns.")
        if self.id_column is not None and self.kind != "person":
            raise UsageError("'id_column' bounds the records of a person: set 'kind' to 'person'.")
        if self.spread != "one_row":
            return
        if self.id_column is not None:
            raise UsageError("'id_column' bounds records in all rows: leave 'spread' out.")
        if self.contributions == 1 or self.neighbours != "add_remove":
            raise UsageError(
                "'spread' 'one_row' requires 'contributions' of 2 or more and 'neighbours' "
                "'add_remove': a replaced unit leaves one row and enters another."
            )


class Budget(Struct, frozen=True):
    """An accuracy instead of an epsilon, or a delta next to it.

    Attributes
    ----------
    accuracy : number
        Instead of `epsilon`: choose it so that released counts are within this many of the true
        counts with the probability `confidence`.
    confidence : float
        Probability that goes with `accuracy`.
    delta : number
        For geometric and design: the delta of (epsilon, delta)-privacy of each count column, such
        as 1e-6. Noise then has no far tails.
    """

    accuracy: float | None = None
    confidence: float = 0.95
    delta: str = "0"

    def __post_init__(self) -> None:
        delta = require_short(exact_rational(self.delta, "delta"), "delta")
        if delta and not LEAST_DELTA <= delta <= LARGEST_DELTA:
            hint = "A usual choice is far below one in the number of people, such as 1e-6."
            raise ArgumentError("delta", "be 0, or lie between 1e-12 and 0.5", self.delta, hint)
        set_field(self, "delta", str(delta))
        super().__post_init__()
        if self.accuracy is None and self.confidence != 0.95:
            raise UsageError("'confidence' goes with 'accuracy': how sure it must be.")


class Output(Struct, frozen=True):
    """Files to write.

    Attributes
    ----------
    format : str
        Format of the data file: "csv" or "parquet"; by default that of the table.
    confidential_report : path
        Write a comparison with the true counts here. Keep it secret.
    """

    format: str | None = None
    confidential_report: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.confidential_report, Path):
            set_field(self, "confidential_report", str(self.confidential_report))
        super().__post_init__()


class About(Struct, frozen=True):
    """Texts of the publisher about a release, one line each.

    Attributes
    ----------
    title : str
        Title of the release.
    publisher : str
        Name of the publisher.
    contact : str
        Address for questions.
    period : str
        Reference period, such as 2026-01.
    license : str
        Licence of the release, such as CC-BY-4.0.
    """

    title: str = ""
    publisher: str = ""
    contact: str = ""
    period: str = ""
    license: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.__struct_fields__:
            text = getattr(self, name)
            if text and (text != escape_controls(text) or len(text) > LONGEST_TEXT):
                rule = f"be one line of text, of at most {LONGEST_TEXT} characters"
                raise ArgumentError(name, rule, text)
            set_field(self, name, text.strip())

    @property
    def lines(self) -> tuple[str, ...]:
        """Sentences for a page, the title apart."""
        stated = (
            ("Period", self.period),
            ("Published by", self.publisher),
            ("Contact", self.contact),
            ("Licence", self.license),
        )
        return tuple(f"{name}: {text}" for name, text in stated if text)

    def describe_package(self) -> dict[str, Any]:
        """Return the properties of a Frictionless data package."""
        package: dict[str, Any] = {"title": self.title} if self.title else {}
        if self.publisher or self.contact:
            who = {"title": self.publisher or self.contact, "role": "publisher"}
            contributor = {**who, **({"contact": self.contact} if self.contact else {})}
            package["contributors"] = [contributor]
        if self.license:
            package["licenses"] = [{"name": self.license, "title": self.license}]
        if self.period:
            package["period"] = self.period
        return package


class DryRun(Struct, frozen=True):
    """Table of a dry run; request files and command lines only.

    Attributes
    ----------
    rows : int
        Plan for this many rows, and do not open the table.
    like : path
        A public table with the same columns, such as last year's release, to try the plan on.
    """

    rows: int | None = None
    like: str | None = None


class ReleaseOptions(Struct, frozen=True):
    """Options of one release, each checked by itself.

    Attributes
    ----------
    count : str or sequence of str
        Count columns to protect.
    upper : int
        Largest count to release; larger counts are top-coded. Take it from public knowledge, never
        from the data. One for all count columns, or one for each.
    epsilon : number
        Privacy loss of each count column. Smaller is more private. One for all, or one for each.
    keep : str or sequence of str
        Public columns to release unchanged, or "all". Other columns are not released.
    by : str or sequence of str
        Microdata: columns to count records by. Of a table of counts: its category columns.
    categories : path, sequence or mapping
        Every category to release, as a file or a list; with several columns a mapping of column
        to list.
    method : str, path or Method
        auto, preserve, geometric, fair, design, a mechanism file, or a method with keys.
    source, counts, microdata, unit, budget, output, about, dry_run : object
        Further keys, by topic.
    out : path
        Release folder to create.
    ledger : path, address or Ledger
        Ledger to debit: a file or postgresql://...
    dataset : str
        Dataset to debit in the ledger.
    entropy : Entropy
        Source of random bits, for tests only.
    """

    LABEL: ClassVar[str] = "A request"

    count: Any = ()
    upper: Any = None
    epsilon: Any = None
    keep: Any = None
    by: Any = ()
    categories: Any = None
    method: Any = Auto()
    source: Source = Source()
    counts: Counts = Counts()
    microdata: Microdata = Microdata()
    unit: Unit = Unit()
    budget: Budget = Budget()
    output: Output = Output()
    about: About = About()
    dry_run: DryRun = DryRun()
    out: str | None = None
    ledger: Any = None
    dataset: str | None = None
    entropy: Any = None

    def __post_init__(self) -> None:
        for name, kind in SECTIONS.items():
            value = getattr(self, name)
            if isinstance(value, Mapping):
                _require_keys(name, kind, value)
                set_field(self, name, kind(**value))
            elif not isinstance(value, kind):
                raise ArgumentError(name, f"be {kind.__name__} or a mapping of its keys", value)
        if isinstance(self.method, Mapping):
            keys = {key: value for key, value in self.method.items() if key != "name"}
            _require_keys("method", find_method(str(self.method.get("name", "auto"))), keys)
        set_field(self, "method", read_method(self.method))
        for name in ("count", "by"):
            set_field(self, name, read_names(getattr(self, name), name))
        if self.keep is not None:
            keep = read_names(self.keep, "keep")
            if KEEP_ALL in keep and len(keep) > 1:
                raise UsageError("Use keep='all' alone, or name columns with 'keep', not both.")
            set_field(self, "keep", KEEP_ALL if KEEP_ALL in keep else keep)
        if isinstance(self.out, Path):
            set_field(self, "out", str(self.out))
        super().__post_init__()
        if self.dataset is not None:
            require_writable("dataset", [self.dataset])

    @classmethod
    def list_paths(cls) -> Mapping[str, str]:
        """List every key of a request with its path."""
        return list_paths()

    def __repr__(self) -> str:
        """Show what differs from the defaults; an address may hold a password."""
        shown = {n: v for n, v in list_changes(self).items() if n not in ("ledger", "entropy")}
        return f"ReleaseOptions({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def flatten(options: ReleaseOptions) -> dict[str, Any]:
    """Return every key that differs from its default, dotted within objects.

    >>> flatten(ReleaseOptions(method="geometric", unit={"contributions": 3}))
    {'method': 'geometric', 'unit.contributions': 3}
    """
    keys: dict[str, Any] = {}
    for name, value in list_changes(options).items():
        if isinstance(value, MechanismFile):
            keys["method"] = value.path
            continue
        changes = list_changes(value) if isinstance(value, Struct) else {}
        if name == "method" and changes:
            keys["method.name"] = value.name
        elif not isinstance(value, Struct) or name == "method":
            keys[name] = value.name if name == "method" else value
        keys |= {f"{name}.{key}": inner for key, inner in changes.items()}
    return keys


SECTIONS: Mapping[str, type[Struct]] = {
    "source": Source,
    "counts": Counts,
    "microdata": Microdata,
    "unit": Unit,
    "budget": Budget,
    "output": Output,
    "about": About,
    "dry_run": DryRun,
}
"""The objects of a request, by key."""


@cache
def list_paths() -> Mapping[str, str]:
    """List every key of a request, with and without its section, with its path."""
    paths = {key: f"method.{key}" for kind in METHODS.values() for key in kind.__struct_fields__}
    for section, kind in SECTIONS.items():
        paths |= {key: f"{section}.{key}" for key in kind.__struct_fields__}
    top = set(ReleaseOptions.__struct_fields__) - {*SECTIONS, "entropy"}
    return paths | {key: key for key in top} | {path: path for path in paths.values()}


def _require_keys(section: str, kind: type[Struct], keys: Iterable[str]) -> None:
    """Refuse an unknown key of a section; name the method that has it, or the nearest key."""
    inner = {key: f"{section}.{key}" for key in kind.__struct_fields__}
    for key in keys:
        if key in inner:
            continue
        others = [name for name, m in METHODS.items() if key in m.__struct_fields__]
        if section == "method" and others:
            (name,) = (name for name, method in METHODS.items() if method is kind)
            raise UsageError(
                f"The method {name!r} has no key {key!r}. It goes with the method {others[0]!r}."
            )
        raise UsageError(f"{section!r} has no key {suggest_key(key, {**list_paths(), **inner})}")
