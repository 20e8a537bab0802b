"""Tables of Spark, privatized where they are. Needs the extra ``tallyveil[spark]``, and Java."""

from __future__ import annotations

from typing import Any

from tallyveil.plans.distributed import require_place, require_taken
from tallyveil.publish.folder import require_new_folder
from tallyveil.publish.privatize import takes_options, warn_publisher
from tallyveil.publish.release import Release
from tallyveil.publish.transaction import open_account, publish_table
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.request import check_options
from tallyveil.tables.spark_jobs import open_frame

__all__ = ["open_table", "privatize"]


@takes_options(ReleaseOptions)
def privatize(table: Any, options: ReleaseOptions) -> Release:
    """A private version of a Spark table of counts, as a release folder with its receipt.

    The rows stay on the executors. They are drawn once, into a private folder beside `out`, and
    published from there as a folder of Parquet files; this machine sees histograms.

    Parameters
    ----------
    table : DataFrame, path or str
        A DataFrame of a classic session, the path of Parquet files, or the name of a table.
    out : path
        The release folder, on a file system that all executors share with this machine.
    count, upper, epsilon, keep, ...
        As for `tv.privatize`, for the methods preserve and geometric and upper bounds of at most
        4,000. Options that Spark does not take are refused by name.

    Returns
    -------
    Release
        As from `tv.privatize`, with the same promise; its `table` is a DataFrame of the folder.
    """
    frame = open_table(table, options)
    (release,) = publish_table(
        frame, options, command="tallyveil.spark.privatize", remark=warn_publisher
    )
    return release


def open_table(table: Any, options: ReleaseOptions) -> Any:
    """Open a table as a DataFrame; what can be refused without it is, before Spark starts."""
    require_taken(options)
    require_place(options)
    check_options(options)
    open_account(options)
    require_new_folder(str(options.out))
    return open_frame(table)
