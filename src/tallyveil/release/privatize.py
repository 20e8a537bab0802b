"""`privatize`: a table of counts in, a private table of the same kind out."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from tallyveil.errors import UsageError
from tallyveil.exact import Epsilon
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.ladder import Ladder
from tallyveil.release.methods.registry import METHODS
from tallyveil.release.options import (
    SECTIONS,
    About,
    Budget,
    Counts,
    Microdata,
    Output,
    ReleaseOptions,
    Unit,
)
from tallyveil.release.plan import ReleasePlan
from tallyveil.release.release import Release
from tallyveil.release.transaction import publish_table
from tallyveil.release.warnings import list_warnings
from tallyveil.sampling.entropy import Entropy
from tallyveil.structs import suggest_key
from tallyveil.tables.source import Source

if TYPE_CHECKING:
    from tallyveil.budget.ledger import Ledger

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Names: TypeAlias = str | Sequence[str]


def names_keys(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Answer a misspelt argument with the right one, or with the object that has it."""
    parameters = inspect.signature(function).parameters

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for name in kwargs:
            if name not in parameters:
                place = _locate(name, parameters)
                raise UsageError(f"tv.{function.__name__} has no argument {place}")
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as problem:
            raise UsageError(f"tv.{function.__name__}: {problem}.") from None
        return function(*args, **kwargs)

    return call


def _locate(name: str, parameters: Any) -> str:
    """Quote an unknown argument, and say where it belongs."""
    for section, kind in SECTIONS.items():
        if name in kind.__struct_fields__ and section in parameters:
            return f"{name!r}. It belongs to {section}=tv.{kind.__name__}({name}=...)."
    for method, kind in METHODS.items():
        if name in kind.__struct_fields__:
            return f"{name!r}. It belongs to method={{'name': {method!r}, {name!r}: ...}}."
    return suggest_key(name, {known: known for known in parameters})


@names_keys
def privatize(
    table: Any,
    /,
    count: Names = (),
    *,
    upper: Any = None,
    epsilon: Any = None,
    keep: Names | None = None,
    by: Names = (),
    categories: Any = None,
    method: str | Path | Method = "auto",
    source: Source = Source(),
    counts: Counts = Counts(),
    microdata: Microdata = Microdata(),
    unit: Unit = Unit(),
    budget: Budget = Budget(),
    output: Output = Output(),
    about: About = About(),
    out: str | Path | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    entropy: Entropy | None = None,
) -> Release:
    """Release a table of counts with differential privacy, with its receipt.

    Parameters
    ----------
    table : path, table or array
        A path ("-" is standard input), an Arrow, pandas or Polars table, a one-dimensional array of
        counts, or a database's address ("postgresql://USER@HOST/NAME" or "duckdb:FILE") with
        `source.sql`.
    count : str or sequence of str
        Count columns to protect; not needed for an array, nor for microdata.
    upper : int, optional
        Largest count to release; larger counts are top-coded. It must be public. Left out, only
        counts above 1,000,000,000 are (methods preserve and geometric). One for all count columns,
        a sequence, or a mapping by column.
    epsilon : number
        Privacy loss of each count column; exact (0.1 means 1/10). Like `upper`, one or several.
    keep : str or sequence of str
        Public columns to release unchanged; ``keep="all"`` releases every column. Columns named in
        `by` and in `method` are released without being named again; all others are not released.
        Rows keep their order; a warning says if that is the order of the counts.
    by : str or sequence of str
        Columns to count records by, where the table is microdata with one record per person. With
        `count`: the category columns of a table of counts.
    categories : path, sequence or mapping
        The public list of categories. What is released for `by` has the types of the list.
    method : str, path or Method
        "preserve" (keeps the distribution of counts), "geometric" (plain noise), "fair", "design",
        a mechanism file, or "auto", which looks at sizes only. Methods with keys:
        `tv.Preserve`, `tv.Geometric`, `tv.DesignMethod`, `tv.Strata`, `tv.Hierarchy`, `tv.Margins`.
    source : Source
        How the file is read: sheet, delimiter, encoding, codes of missing counts, query.
    counts : Counts
        Duplicates, rows of totals, nested columns and structural zeros of a table of counts.
    microdata : Microdata
        Conditions on records, ranges of numbers and the category for other values.
    unit : Unit
        Who is protected, and how often they are counted.
    budget : Budget
        An accuracy instead of an epsilon, or a delta.
    output : Output
        Format of the data file, and a confidential comparison with the truth.
    about : About
        Title, publisher, contact, period and licence.
    out : path
        Release folder to create, complete or not at all; must not exist yet.
    ledger, dataset : Ledger or path, and str
        A budget to debit before anything is drawn; needs `out`, so that nothing is paid for
        that cannot be written.
    entropy : Entropy
        `SeededNotPrivate` for tests; None takes random bits from the operating system.

    Returns
    -------
    Release
        The released table with its receipt. Guaranteed: differential privacy with the epsilon
        of the receipt for one unit, proved in integers; everything returned depends on the
        confidential table through the certified draws alone. Costs O(rows) plus the estimate
        of the distribution.

    Examples
    --------
    >>> rel = privatize([0, 3, 0, 7, 1] * 100, upper=9, epsilon=1)
    >>> len(rel.table), 0 <= min(rel.table) <= max(rel.table) <= 9, float(rel.receipt.epsilon)
    (500, True, 1.0)
    """
    options = ReleaseOptions(**_without(locals(), "table"))
    if isinstance(options.method, Ladder):
        raise UsageError("Several levels give several releases: call tv.privatize_levels.")
    (release,) = publish_table(table, options, command="tv.privatize", show_plan=warn_publisher)
    return release


@names_keys
def privatize_levels(
    table: Any,
    /,
    count: Names = (),
    *,
    epsilons: Sequence[Epsilon] | str,
    upper: Any = None,
    keep: Names | None = None,
    by: Names = (),
    categories: Any = None,
    source: Source = Source(),
    counts: Counts = Counts(),
    microdata: Microdata = Microdata(),
    unit: Unit = Unit(),
    output: Output = Output(),
    about: About = About(),
    out: str | Path | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    entropy: Entropy | None = None,
) -> tuple[Release, ...]:
    """Release one table at several privacy levels, for readers trusted differently.

    A reader who collects several levels learns no more than the least private one says, so all of
    them together cost its epsilon and not the sum. With `out`, every level gets a complete
    release folder inside that folder, for its readers.

    Parameters
    ----------
    table : path, table or array
        As for `tv.privatize`, which also explains all other arguments.
    epsilons : sequence of numbers
        The epsilon of each level, strictly decreasing, least private first.

    Returns
    -------
    tuple of Release
        One release for each level, in the order of `epsilons`.

    References
    ----------
    Gupte and Sundararajan (2010), Algorithm 1.

    Examples
    --------
    >>> near, far = privatize_levels([0, 3, 0, 7, 1] * 20, upper=9, epsilons=[2, "1/2"])
    >>> float(near.receipt.epsilon), float(far.receipt.epsilon)
    (2.0, 0.5)
    """
    keys = _without(locals(), "table", "epsilons")
    options = ReleaseOptions(**keys, method=Ladder(epsilons=epsilons))
    return publish_table(table, options, command="tv.privatize_levels", show_plan=warn_publisher)


def _without(keys: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in keys.items() if name not in names}


def warn_publisher(plan: ReleasePlan) -> None:
    """Warn the caller before anything is spent."""
    for warning in list_warnings(plan):
        warnings.warn(warning, UserWarning, stacklevel=6)
