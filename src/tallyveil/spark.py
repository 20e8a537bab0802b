"""Tables of Spark, privatized where they are. Needs the extra ``tallyveil[spark]``, and Java."""

from __future__ import annotations

from typing import Any

from tallyveil.errors import UsageError
from tallyveil.plans.distributed import require_place
from tallyveil.publish.folder import require_new_folder
from tallyveil.publish.privatize import takes_options, warn_publisher
from tallyveil.publish.release import Release
from tallyveil.publish.transaction import open_account, publish_table
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.request import check_options
from tallyveil.tables.spark_jobs import open_frame

__all__ = ["open_table", "privatize", "privatize_levels"]


@takes_options(ReleaseOptions)
def privatize(table: Any, options: ReleaseOptions) -> Release:
    """A private version of a Spark table of counts, as a release folder with its receipt.

    The rows stay on the executors. They are drawn once, into a private folder beside `out`, and
    published from there as a folder of Parquet files; this machine sees histograms. Microdata are
    counted there, and the counts of the public categories released here. Where an option needs
    all rows in one place, such as a hierarchy or another order, they are brought to this machine,
    encrypted on the way.

    Parameters
    ----------
    table : DataFrame, path or str
        A DataFrame of a classic session, the path of Parquet files, or the name of a table.
    out : path
        The release folder, on a file system that all executors share with this machine.
    count, upper, epsilon, keep, ...
        As for `tv.privatize`.

    Returns
    -------
    Release
        As from `tv.privatize`, with the same promise. Where rows stay on the executors, its
        `table` is a DataFrame of the folder.
    """
    if options.levels is not None:
        raise UsageError("Several levels are several releases: use privatize_levels.")
    frame = open_table(table, options)
    (release,) = publish_table(
        frame, options, command="tallyveil.spark.privatize", remark=warn_publisher
    )
    return release


@takes_options(ReleaseOptions)
def privatize_levels(table: Any, options: ReleaseOptions) -> tuple[Release, ...]:
    """Releases of one Spark table at several privacy levels, for readers trusted differently.

    See `tv.privatize_levels`, and `privatize` for what happens where.

    Parameters
    ----------
    table : DataFrame, path or str
        As for `privatize`.
    levels : sequence of numbers
        The epsilon of each level, strictly decreasing, least private first.

    Returns
    -------
    tuple of Release
        One release for each level, in the order of `levels`.
    """
    if options.levels is None:
        raise UsageError("Give the levels, such as levels=[2, 1, 0.5].")
    frame = open_table(table, options)
    return publish_table(
        frame, options, command="tallyveil.spark.privatize_levels", remark=warn_publisher
    )


def open_table(table: Any, options: ReleaseOptions) -> Any:
    """Open a table as a DataFrame; what can be refused without it is, before Spark starts."""
    require_place(options)
    check_options(options)
    open_account(options)
    require_new_folder(str(options.out))
    return open_frame(table)
