"""Jobs on a Spark cluster: the only module that imports Spark.

Each job is one stage whose tasks give their results to the driver. Spark accepts one result for
each partition, after any failure or repetition.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from zipimport import zipimporter

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions
from pyspark.sql.types import StringType

from tallyveil.errors import TableError, TallyveilError, UsageError
from tallyveil.spark.tasks import PLACED
from tallyveil.tables.counts import RowError
from tallyveil.tables.table import BATCH_ROWS

ENCRYPTED = "spark.io.encryption.enabled"
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
RESULT = "result binary"
FAILED = "A Spark job failed. The reason is in Spark's own log."

Task = Callable[[Iterable[pa.RecordBatch], int], Iterable[Any]]


def open_frame(source: str) -> Any:
    """Open Parquet files by path or address, or a table of the catalogue by its name."""
    session = SparkSession.builder.appName("tallyveil").config(ENCRYPTED, "true").getOrCreate()
    try:
        if "://" in source:
            return session.read.parquet(source)
        if os.path.exists(source):
            return session.read.parquet(os.path.abspath(source))
        return session.table(source)
    except PySparkException:
        raise TableError(f"Spark has no Parquet files and no table {source!r}.") from None


def require_encryption(frame: Any) -> None:
    """Refuse a session that writes confidential data to disks unencrypted.

    A session on this machine alone gets this Python, unless another one is named for it.
    """
    with suppress(PySparkException):  # a session of Spark Connect has no context
        context = frame.sparkSession.sparkContext
        if context.master.partition("[")[0] == "local" and "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
    if frame.sparkSession.conf.get(ENCRYPTED, "false") != "true":
        raise UsageError(f"Spark writes data to disks: start the session with {ENCRYPTED}=true.")


def read_empty(frame: Any) -> Any:
    """Read names and types of all columns, as an Arrow table without rows."""
    with _quietly():
        return frame.limit(0).toArrow()


def list_files(frame: Any) -> dict[int, int]:
    """List the files of a frame in the order of their names, by the hash that marks their rows.

    Nothing for a single file, and where Spark does not know them.
    """
    names = sorted(frame.inputFiles())
    if len(names) < 2:
        return {}
    (hashes,) = (
        frame.sparkSession.range(1)
        .select(*(functions.xxhash64(functions.lit(n)) for n in names))
        .collect()
    )
    return {value: place for place, value in enumerate(hashes)}


def _select(frame: Any, names: Sequence[str]) -> Any:
    """Select columns; text is compared byte by byte, under any collation."""
    columns = []
    for name in names:
        column = frame["`" + name.replace("`", "``") + "`"]
        is_text = isinstance(frame.schema[name].dataType, StringType)
        columns.append(column.cast("string").alias(name) if is_text else column)
    return frame.select(*columns)


def run(frame: Any, names: Sequence[str], task: Task, *, mark_files: bool = False) -> list[Any]:
    """Run a task on every partition of some columns; return all results, in order.

    With `mark_files` one more column tells the place of every row: the hash of the file's name,
    and the start of the block, which is below 2^48, in its lower bits.
    """
    with _quietly():
        chosen = _select(frame, names)
        if mark_files:
            mark = functions.xxhash64(functions.input_file_name()).bitwiseXOR(
                functions.input_file_block_start()
            )
            chosen = chosen.select("*", mark.alias(" place"))
        return _collect(chosen, task)


def run_numbered(frame: Any, parts: int, task: Task) -> list[Any]:
    """Run a task once for each number below `parts`."""
    with _quietly():
        return _collect(frame.sparkSession.range(0, parts, 1, parts), task)


def group_rows(frame: Any, names: Sequence[str], task: Task) -> list[Any]:
    """Run a task on the different rows of some columns, with the number of each at the end."""
    with _quietly():
        chosen = _select(frame, names)
        grouped = chosen.toDF(*map(str, range(len(names)))).groupBy(*map(str, range(len(names))))
        return _collect(grouped.count().toDF(*names, " rows"), task)


def run_by_person(
    frame: Any, names: Sequence[str], place: Callable[..., Any], choose: Task
) -> list[Any]:
    """Place all rows in one stage, and choose rows of each person in the next."""
    with _quietly():
        placed = _map(_select(frame, names), lambda batches, _: place(batches), PLACED)
        parts = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        return _collect(placed.repartition(parts, "person"), choose)


def _collect(frame: Any, task: Task) -> list[Any]:
    def give_results(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
        try:
            results = list(task(batches, number))
        except RowError as error:
            results = [TableError(error.describe("A row"))]
        except TallyveilError as error:  # our own message, which quotes no row
            results = [error]
        yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(results)]})

    conf = frame.sparkSession.conf
    before = conf.get(BATCH)
    conf.set(BATCH, str(BATCH_ROWS))
    try:
        rows = _map(frame, give_results, RESULT).collect()
    finally:
        conf.set(BATCH, before)
    results = [result for row in rows for result in pickle.loads(row[0])]
    for result in results:
        if isinstance(result, TallyveilError):
            raise result
    return results


def _map(frame: Any, task: Callable[..., Iterator[pa.RecordBatch]], schema: str) -> Any:
    """Map the batches of every partition; what goes wrong is named by its kind alone."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        filled = (batch for batch in batches if batch.num_rows)
        try:
            yield from task(filled, number)
            for _ in filled:  # Spark ends a process that leaves rows, and starts a new one
                pass
            _forget_archives()
        except Exception as error:
            raise RuntimeError(f"A Tallyveil task failed: {type(error).__name__}") from None

    return frame.mapInArrow(work, schema)


def _forget_archives() -> None:
    """Forget what zip files hold: Spark reads that anew for every task, in a tenth of a second."""
    for name, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[name]


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave Spark's own words in its log: they may quote rows."""
    try:
        yield
    except TallyveilError:
        raise
    except Exception:
        raise TableError(FAILED) from None
