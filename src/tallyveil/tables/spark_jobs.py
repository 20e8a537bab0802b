"""Jobs of Spark: the only module that imports it.

What Spark says of an error may quote data, and is not repeated.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlparse

from tallyveil.errors import MissingExtraError, TableError, UsageError
from tallyveil.tables.arrow_values import import_pyarrow
from tallyveil.tables.spark_tasks import Task

__all__ = [
    "ROWS_AT_ONCE",
    "collect_numbers",
    "collect_results",
    "estimate_bytes",
    "is_repeatable",
    "list_files",
    "open_frame",
    "open_published",
    "read_schema",
    "spread_numbers",
    "write_numbers",
]

Result = TypeVar("Result")

ROWS_AT_ONCE = 1 << 16
"""Rows in a batch."""

STOPPED = (
    "Spark stopped while it worked on the table. Its message may quote data and is not shown; it "
    "stands in Spark's own logs."
)
COMMITTER = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_AT_ONCE),
    "spark.sql.sources.commitProtocolClass": COMMITTER,
}
"""How a session is set while a job of ours runs."""

STAGING = {"mapreduce.fileoutputcommitter.algorithm.version": "1"}
"""How staged files are shown: when all tasks have ended."""

REFERENCE, PLAIN_FILES = "AttributeReference", ("HadoopFsRelation", "ParquetFileFormat")
"""Of which classes the plan of a DataFrame is that is nothing but columns of Parquet files."""

MOST_NUMBERS = 16
"""How many numbers a task has at the most."""


def open_frame(source: Any) -> Any:
    """Open a Parquet path or a table of the catalogue as a DataFrame; one is given back as it is.

    The session is the one that is running, or a new one as Spark's own configuration says.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise MissingExtraError("pyspark", "spark") from missing
    import_pyarrow()
    if not isinstance(source, (str, Path)):
        if not hasattr(source, "mapInArrow"):
            raise UsageError("Give Spark a DataFrame, a Parquet path or the name of a table.")
        return source
    words, session = str(source), SparkSession.builder.appName("tallyveil").getOrCreate()
    is_path = isinstance(source, Path) or "/" in words or words.endswith(".parquet")
    try:
        return session.read.parquet(words) if is_path else session.table(words)
    except PySparkException:
        kind = "as Parquet" if is_path else "as a table of the catalogue"
        raise TableError(f"Spark cannot read {words!r} {kind}.") from None


def open_published(frame: Any, path: Path) -> Any:
    """A published folder as a DataFrame of the session of another."""
    return frame.sparkSession.read.parquet(path.as_uri())


def is_repeatable(frame: Any) -> bool:
    """Whether a DataFrame has no expression that gives other values whenever it is worked out."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        raise UsageError("A DataFrame of Spark Connect is not taken: use a classic session.")
    return bool(plan.queryExecution().analyzed().deterministic())


def read_schema(frame: Any) -> Any:
    """The columns of a DataFrame as Arrow's schema."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(frame.schema)
    except PySparkException:
        raise TableError("The DataFrame has a column of a type that Arrow has not.") from None


def collect_results(frame: Any, task: Task) -> list[Any]:
    """What a task gives for each partition."""

    def work() -> list[Any]:
        found: list[Any] = frame.mapInArrow(_make_function(task), "result binary").collect()
        return found

    return [pickle.loads(bytes(row[0])) for row in _run(frame, work)]


def collect_numbers(frame: Any, task: Task, count: int) -> list[Any]:
    """What a task gives for numbers below `count`, a few for each task."""
    return collect_results(spread_numbers(frame, count), task)


def spread_numbers(frame: Any, count: int) -> Any:
    """The numbers below `count` as a DataFrame: a partition for each core, as tasks cost."""
    session = frame.sparkSession
    tasks = max(session.sparkContext.defaultParallelism, -(-count // MOST_NUMBERS))
    return session.range(0, count, 1, min(count, tasks))


def list_files(frame: Any) -> list[Path]:
    """The files of a DataFrame that is nothing but Parquet files here, as they are; else none."""
    from py4j.protocol import Py4JError

    try:
        plan = frame._jdf.queryExecution().optimizedPlan()
        if _name_class(plan) == "Project":
            chosen = plan.projectList()
            if {_name_class(chosen.apply(at)) for at in range(chosen.size())} != {REFERENCE}:
                return []
            plan = plan.child()
        if _name_class(plan) != "LogicalRelation":
            return []
        relation = plan.relation()
        kinds = _name_class(relation), _name_class(relation.fileFormat())
        if kinds != PLAIN_FILES or relation.partitionSchema().length():
            return []
        addresses = [urlparse(file) for file in frame.inputFiles()]
    except Py4JError:
        return []
    if any(address.scheme != "file" or address.netloc for address in addresses):
        return []
    return sorted(Path(unquote(address.path)) for address in addresses)


def _name_class(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def estimate_bytes(frame: Any) -> int:
    """What Spark guesses that a table takes; very much where it cannot."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def write_numbers(frame: Any, task: Task, count: int, schema: str, folder: Path) -> None:
    """Write what a task gives for numbers below `count`, once, through Spark's own committer."""

    def work() -> None:
        made = spread_numbers(frame, count).mapInArrow(_make_function(task), schema)
        made.write.options(**STAGING).parquet(folder.as_uri())

    _run(frame, work)


def _make_function(task: Task) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A plain function, as Spark wants it; its name is all that Spark's plans show of it."""

    def tallyveil_task(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return task(batches, 0 if context is None else context.partitionId())

    return tallyveil_task


def _run(frame: Any, work: Callable[[], Result]) -> Result:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with _set(frame.sparkSession.conf):
        try:
            return work()
        except (PySparkException, Py4JError):
            raise TableError(STOPPED) from None


@contextmanager
def _set(conf: Any) -> Iterator[None]:
    """Set the session as our jobs need it, and back."""
    before = {name: conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            conf.unset(name) if value is None else conf.set(name, value)
