"""Tables on a Spark cluster, released from there. Needs ``tallyveil[spark]``, and Java."""

from __future__ import annotations

import inspect
from typing import Any

from tallyveil.errors import ArgumentError, MissingExtraError, UsageError, describe_kind
from tallyveil.release.methods.ladder import Ladder
from tallyveil.release.options import ReleaseOptions
from tallyveil.release.privatize import names_keys, warn_publisher
from tallyveil.release.privatize import privatize as privatize_here
from tallyveil.release.release import Release
from tallyveil.release.transaction import publish_table

__all__ = ["privatize", "publish_frame", "publish_source"]


def _privatize(frame: Any, /, count: Any = (), **keys: Any) -> Release:
    """Release a Spark frame with differential privacy, with its receipt.

    Executors check and draw the rows of a table of counts, which stay encrypted in a private
    folder next to `out` until this machine writes the release. Records are counted by executors,
    and their counts released here with every option. Rows keep the order of their files; sort a
    frame that Spark computes by public columns first.

    Parameters
    ----------
    frame : DataFrame
        A table of counts, or records. It must give the same rows whenever Spark computes it, and
        its session needs ``spark.io.encryption.enabled=true``.
    out : path
        Release folder to create, in a folder that all executors share with this machine; for
        records any folder.
    count, upper, epsilon, keep, by, ...
        As for `tv.privatize`. What needs all rows of a table of counts in one place is refused.

    Returns
    -------
    Release
        As from `tv.privatize`, with the same guarantee.
    """
    options = ReleaseOptions(count=count, **keys)
    if isinstance(options.method, Ladder):
        raise UsageError("Several levels need all rows in one place: call tv.privatize_levels.")
    command = "tallyveil.spark.privatize"
    (release,) = publish_frame(frame, options, command=command, show_plan=warn_publisher)
    return release


_privatize.__name__ = _privatize.__qualname__ = "privatize"
vars(_privatize)["__signature__"] = inspect.signature(privatize_here)
privatize = names_keys(_privatize)


def publish_frame(frame: Any, options: ReleaseOptions, **road: Any) -> tuple[Release, ...]:
    """Publish a Spark frame as `options` ask; what follows is as for `publish_table`."""
    if not hasattr(frame, "mapInArrow"):
        raise ArgumentError("frame", "be a Spark DataFrame", got=describe_kind(frame))
    from tallyveil.spark.rows import ClusterRows

    rows = ClusterRows(frame, options)
    try:
        return publish_table(rows.open(), options, home=rows, **road)
    finally:
        rows.close()


def publish_source(source: str, options: ReleaseOptions, **road: Any) -> tuple[Release, ...]:
    """Publish Parquet files by their path or address, or a table of the catalogue by its name."""
    try:
        from tallyveil.spark.jobs import open_frame
    except ImportError as missing:
        raise MissingExtraError("pyspark", "spark") from missing
    return publish_frame(open_frame(source), options, **road)
