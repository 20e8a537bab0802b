"""The main job: a table of counts in, a private table of the same kind out."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tallyveil.errors import TallyveilError, UsageError
from tallyveil.release.plan import ReleasePlan
from tallyveil.release.release import Release
from tallyveil.release.transaction import publish_table
from tallyveil.release.warnings import list_remarks
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.spelling import spell_for_python

__all__ = ["privatize", "privatize_levels", "takes_options", "warn_publisher"]

Options = ParamSpec("Options")
Result = TypeVar("Result")


def takes_options(
    make: Callable[Options, ReleaseOptions],
) -> Callable[
    [Callable[[Any, ReleaseOptions], Result]], Callable[Concatenate[Any, Options], Result]
]:
    """Let a function of (table, options) be called with the options as arguments.

    So the list of options is written once, in `ReleaseOptions`, and type checkers, `help` and
    the command line all read it there.
    """

    def decorate(
        run: Callable[[Any, ReleaseOptions], Result],
    ) -> Callable[Concatenate[Any, Options], Result]:
        @wraps(run)
        def call(table: Any, /, *args: Options.args, **kwargs: Options.kwargs) -> Result:
            try:
                options = make(*args, **kwargs)
            except TypeError as problem:
                words = str(problem).replace("ReleaseOptions.__init__", f"tv.{run.__name__}")
                raise UsageError(f"{words}.") from None
            try:
                return run(table, options)
            except TallyveilError as problem:
                problem.args = (spell_for_python(str(problem)), *problem.args[1:])
                raise

        first = inspect.Parameter("table", inspect.Parameter.POSITIONAL_ONLY, annotation=Any)
        signature = inspect.signature(make)
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[first, *signature.parameters.values()],
            return_annotation=inspect.signature(run).return_annotation,
        )
        return call

    return decorate


@takes_options(ReleaseOptions)
def privatize(table: Any, options: ReleaseOptions) -> Release:
    """A private version of a table of counts, of the kind that came in, with its receipt.

    Parameters
    ----------
    table : path, table or array
        A path (CSV, TSV, Excel, Parquet, Arrow, Stata, SPSS, SAS; "-" is standard input), an
        Arrow, pandas or Polars table, a one-dimensional array of counts, or a database's address
        ("postgresql://USER@HOST/NAME" or "duckdb:FILE") with a `query`.
    count : str or sequence of str
        The column of counts, or several; not needed for an array, nor for microdata.
    upper : int, optional
        The largest count that can be published; larger ones are top-coded. It must be public.
        Left out, only counts above 1,000,000,000 are (methods preserve and geometric).
    epsilon : number
        The privacy loss of each count column; exact (0.1 means 1/10). Like `upper` it may be
        given per count column, as a sequence or a mapping.
    delta : number
        For the methods geometric and design: the slack of (epsilon, delta)-privacy, the same for
        each count column; 0 unless given. Noise then has no far tails (`tv.canonical`).
    within, confidence : float
        Instead of epsilon: released counts lie within this many of the true ones with this
        probability.
    levels
        Only for `tv.privatize_levels`.
    method : str or Path
        "preserve" (keeps the distribution of counts), "geometric", "fair", "design" (uses
        `loss` and `properties`), a mechanism file, or "auto", which looks at sizes only.
    priority : str
        For preserve, what matters most: "distribution" (if left out), "balanced", which comes as
        near to it as single counts allow that err about as much as plain noise, or
        "counts", which gives single counts the least error and lets the distribution follow less
        closely.
    tradeoff : number
        For preserve, instead of a priority: how much error of single counts one unit of
        distribution error is worth. It decides which share of epsilon the distribution gets and,
        below 1, how far counts follow the best guess for their row; see `tv.frontier`.
    hierarchy : str or sequence of str
        Public columns from coarse to fine, such as ["state", "county"]: released counts add up
        exactly to released sums of every level, each protected with a share of epsilon.
    invariant, level_weights
        With a hierarchy: a level whose sums are public already and are published exactly, outside
        the promise; how much the error of each level counts, from the grand total to the rows.
    bounds : str
        With a hierarchy: a public column, published unchanged, with the largest count of every
        row, such as its population. No published count lies above it; larger ones are top-coded.
    zero : str or sequence of str
        Rows that are 0 whatever the data say, such as "sex = F and cause = prostate"; public.
        They receive nothing, and a table that has more in one is refused.
    margins : str, sequence of str, or sequence of sequence of str
        Margins that cross, such as ["age+sex", "education"] or [["age", "sex"], ["education"]]:
        counts add up to the released sums of the first two exactly where the cells allow it, of
        more as closely as rounding allows. Margins are measured where that is worth their share
        of epsilon.
    strata : str or sequence of str
        Public columns such as a region: the distribution of counts is kept within each of their
        groups, and in the whole table.
    nested : str or sequence of str
        Count columns of which each counts some of those in the next, such as ["deaths",
        "hospitalised", "cases"]: every published row keeps that order, whatever the true one is.
    neighbours : str
        "add_remove" one unit, or "change_one" (takes away and adds: costs twice).
    unit : str
        Who is protected: one "person", or one single "event" such as a visit.
    contributions : int
        How many rows of microdata one person has, or how often one person is counted in each
        count column; 1 unless given (costs that many times).
    one_row : bool
        With `contributions`: all of one unit's contributions are in the same row of the published
        table. For the method geometric; from 2 times epsilon on the noise is then made for them
        together (staircase noise), which errs less at the same cost.
    separate_rows : bool
        With `delta`, and with `contributions` or `rows_per_person`: no two of one unit's
        contributions are in the same row of the published table. For the method geometric, whose
        rows are drawn independently: the unit is charged what optimal composition of its rows'
        epsilons gives with that delta, and not their sum; worth it from some 16 rows on. With
        `person` it is made true: of a person's rows in one cell one is counted, chosen at random.
    person, rows_per_person : str and int
        Microdata with several rows of one person: the column that tells persons apart, which is
        not published, and how many rows of each are counted at the most. Further rows are left
        out at random, which makes `contributions` true: what stays of two tables that differ by
        all rows of one person differs by at most `rows_per_person` rows.
    disjoint : sequence of str, or of such sequences
        Count columns of which one unit is in one only: charged once, at the largest of their
        costs, instead of at their sum.
    by, where, categories
        Microdata, one row per person: the columns to count by, conditions such as
        "age >= 18", and the public list of categories. With `count`, `by` names the category
        columns of a table that is already aggregated. What is published for `by` has the types
        of the list.
    bins : mapping, str or sequence of str
        Microdata counted by ranges of a number that begin at public limits: {"age": [0, 18, 65]}
        or "age=0,18,65" gives 0-17, 18-64 and 65+. Every combination with the other columns'
        categories is published.
    other : str
        The public cell that every category which is not listed is counted in.
    order : str
        "input" keeps the rows' order, "sorted" sorts by the other columns. Rows that stand in
        the order of their counts give a warning.
    keep, drop : str or sequence of str
        Which other columns are public and published unchanged, and which are left out. Every
        other column must be named in one of them, or ``keep="all"`` says that all are public.
    allow_duplicates : bool
        Two rows may carry the same labels.
    allow_totals : bool
        A row may be called Total, or be a parent of others by its label: it repeats nobody.
    delimiter, encoding : str
        How a text file is written; one that begins with a byte-order mark says it itself.
    query : str
        With a database's address: the SQL query that gives the table. It may only read.
    sheet : str
        The sheet of an Excel workbook; needed if there are several.
    skip_rows, skip_footer, comment : int, int and str
        Title lines before the header, footnote lines at the end, and what lines begin with that
        are comments: none of them is read or published.
    thousands, decimal : str
        What separates thousands and decimals in counts.
    missing : str or sequence of str
        Codes for suppressed or missing counts, such as "*". Rows with one are left out, and the
        promise does not cover which they are: that must be public already.
    format : str
        What the data are written as: csv, tsv, xlsx, parquet, arrow, dta, sav, xpt, csv.gz or
        csv.zst. Left out, as they came.
    unbiased : bool
        Also publish a column NAME_unbiased: every row's noisy count before it was cut to the
        range or ranked. Signed, right on average, its variance in the receipt; it costs nothing
        more. For the methods geometric and preserve.
    signed : bool
        Publish counts as drawn, negative ones too: every value and every sum of values is right
        on average. For the method geometric without `upper`.
    title, publisher, contact, period, licence : str
        Words about the release, one line each, for its receipt, page and data package.
    out : path
        Write the release folder here, complete or not at all; must not exist yet.
    ledger, dataset : Ledger or path, and str
        A budget to debit before anything is drawn; needs `out`, so that nothing is paid for
        that cannot be written.
    confidential_report : path
        Also write the comparison with the truth, for your eyes only.
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
    if options.levels is not None:
        raise UsageError("Several levels give several releases: call tv.privatize_levels.")
    (release,) = publish_table(table, options, command="tv.privatize", remark=warn_publisher)
    return release


@takes_options(ReleaseOptions)
def privatize_levels(table: Any, options: ReleaseOptions) -> tuple[Release, ...]:
    """Releases of one table at several privacy levels, for readers trusted differently.

    Whoever collects several levels learns no more than the least private one says, so all of
    them together cost its epsilon and not the sum. With `out`, every level gets a complete
    release folder of its own inside that folder, to be handed to its readers.

    Parameters
    ----------
    table : path, table or array
        As for `tv.privatize`, which also explains all other arguments.
    levels : sequence of numbers
        The epsilon of each level, strictly decreasing, least private first.

    Returns
    -------
    tuple of Release
        One release for each level, in the order of `levels`.

    References
    ----------
    Gupte and Sundararajan (2010), Algorithm 1.

    Examples
    --------
    >>> near, far = privatize_levels([0, 3, 0, 7, 1] * 20, upper=9, levels=[2, "1/2"])
    >>> float(near.receipt.epsilon), float(far.receipt.epsilon)
    (2.0, 0.5)
    """
    if options.levels is None:
        raise UsageError("Give the levels, such as levels=[2, 1, 0.5].")
    return publish_table(table, options, command="tv.privatize_levels", remark=warn_publisher)


def warn_publisher(plan: ReleasePlan) -> None:
    """Warn the caller before anything is spent."""
    for remark in list_remarks(plan):
        words = spell_for_python(remark)
        warnings.warn(words, UserWarning, stacklevel=5)  # whoever called tv.privatize
