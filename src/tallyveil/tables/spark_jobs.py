"""Jobs of Spark: the only module that imports it.

What Spark says of an error may quote data, and is not repeated.
"""

from __future__ import annotations

import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from tallyveil.errors import MissingExtraError, TableError, UsageError
from tallyveil.tables.arrow_values import import_pyarrow
from tallyveil.tables.distributed import PrivateRoom, Seal
from tallyveil.tables.spark_files import read_pieces, write_piece
from tallyveil.tables.spark_tasks import Task, write_row
from tallyveil.tables.spool import open_new

__all__ = [
    "ROWS_AT_ONCE",
    "collect_numbers",
    "collect_rows",
    "describe_unseen",
    "estimate_bytes",
    "is_repeatable",
    "list_files",
    "open_frame",
    "open_published",
    "read_schema",
    "require_parquet",
    "spread_numbers",
]

Result = TypeVar("Result")

ROWS_AT_ONCE = 1 << 16
"""Rows in a batch."""

STOPPED = (
    "Spark stopped while it worked on the table. Its message may quote data and is not shown; it "
    "stands in Spark's own logs."
)
PYTHON = "PYSPARK_PYTHON"
"""Where Spark looks for the Python of its tasks."""

NOT_THERE = "No module named 'tallyveil'"
MISSING = (
    "The Python of the executors has no Tallyveil: install this version there as well, or set "
    "PYSPARK_PYTHON to a Python that has it."
)
SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_AT_ONCE)}
"""How a session is set while a job of ours runs."""

AS_IT_IS = {"__globPaths__": "false"}
"""How files are read whose path has marks such as * that stand for themselves."""

ENDS = (b"PAR1", b"PARE")
"""How a Parquet file ends."""

REFERENCE, PLAIN_FILES = "AttributeReference", ("HadoopFsRelation", "ParquetFileFormat")
"""Of which classes the plan of a DataFrame is that is nothing but columns of Parquet files."""

MOST_NUMBERS = 16
"""How many numbers a task has at the most."""


def open_frame(source: Any) -> Any:
    """Open a Parquet path or a table of the catalogue as a DataFrame; one is given back as it is.

    The session is the one that is running, or a new one as Spark's own configuration says.
    """
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as missing:
        raise MissingExtraError("pyspark", "spark") from missing
    import_pyarrow()
    if not isinstance(source, (str, Path)):
        if not hasattr(source, "mapInArrow"):
            raise UsageError("Give Spark a DataFrame, a Parquet path or the name of a table.")
        return source
    words, session = str(source), _start()
    if not (isinstance(source, Path) or "/" in words or words.endswith(".parquet")):
        return _read(session, lambda: session.table(words), words, "as a table of the catalogue")
    if os.path.exists(words) and _starts_here(session):
        return _open_here(session, Path(words).absolute(), words)
    return _read(session, lambda: session.read.parquet(words), words, "as Parquet")


def _start() -> Any:
    """The running session, or a new one; on this machine alone its tasks have this very Python."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("tallyveil")
    is_local = (SparkConf().get("spark.master") or "local").startswith("local")
    if not is_local or PYTHON in os.environ:
        return builder.getOrCreate()
    os.environ[PYTHON] = sys.executable
    try:
        return builder.getOrCreate()
    finally:
        del os.environ[PYTHON]


def open_published(frame: Any, path: Path) -> Any:
    """A published folder as a DataFrame of the session of another."""
    return _open_here(frame.sparkSession, path, str(path))


def _open_here(session: Any, path: Path, words: str) -> Any:
    """Open a Parquet file, or a folder of them, of this machine; `words` are for errors."""
    if path.is_file():
        require_parquet([path])
    read = session.read.options(**AS_IT_IS).parquet
    return _read(session, lambda: read(f"file:{path}"), words, "as Parquet")


def _starts_here(session: Any) -> bool:
    """Whether a path without a scheme is one of this machine for Spark, too."""
    settings = session.sparkContext._jsc.hadoopConfiguration()
    return str(settings.get("fs.defaultFS")).startswith("file:")


def _read(session: Any, read: Callable[[], Result], words: str, kind: str) -> Result:
    """Open a table; of what Spark says where it cannot, which may quote the file, show nothing."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with _hush(session):
            return read()
    except (PySparkException, Py4JError):
        name = words.rpartition("/")[2]
        hint = " It takes no colon in the name of a file: rename it." if ":" in name else ""
        raise TableError(f"Spark cannot read {words!r} {kind}.{hint}") from None


@contextmanager
def _hush(session: Any) -> Iterator[None]:
    """Keep Spark's log, and with it what it quotes, off the screen.

    Spark's own way to set the level could not be undone: it forgets what shells do not show.
    """
    logs = session._jvm.org.apache.logging.log4j
    before = logs.LogManager.getRootLogger().getLevel()
    logs.core.config.Configurator.setRootLevel(logs.Level.OFF)
    try:
        yield
    finally:
        logs.core.config.Configurator.setRootLevel(before)


def require_parquet(files: Iterable[Path]) -> None:
    """Refuse files of this machine that do not end as Parquet files do; Spark would quote them."""
    for path in files:
        try:
            with path.open("rb") as file:
                file.seek(-min(len(ENDS[0]), path.stat().st_size), os.SEEK_END)
                end = file.read()
        except OSError:  # executors may see it
            continue
        if end not in ENDS:
            raise TableError(f"Spark cannot read {str(path)!r} as Parquet.")


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


def collect_rows(frame: Any, names: Sequence[str], task: Task, room: PrivateRoom) -> list[Any]:
    """What a task gives for some columns of each partition.

    Columns have numbers for names on the way: Spark takes a dot for a field inside a column.
    """
    return _collect(frame, lambda: _choose(frame, names), _Order(task, tuple(names)), room)


def _choose(frame: Any, names: Sequence[str]) -> Any:
    numbers = {name: f"c{at}" for at, name in enumerate(frame.columns)}
    return frame.toDF(*numbers.values()).select(*(numbers[name] for name in names))


def collect_numbers(frame: Any, task: Task, count: int, room: PrivateRoom) -> list[Any]:
    """What a task gives for numbers below `count`, a few for each task.

    Of several attempts of a task Spark takes one, and its word alone arrives here.
    """
    return _collect(frame, lambda: spread_numbers(frame, count), _Order(task), room)


def spread_numbers(frame: Any, count: int) -> Any:
    """The numbers below `count` as a DataFrame: a partition for each core, as tasks cost."""
    session = frame.sparkSession
    tasks = max(session.sparkContext.defaultParallelism, -(-count // MOST_NUMBERS))
    return session.range(0, count, 1, min(count, tasks))


def list_files(frame: Any, names: Sequence[str]) -> list[Path]:
    """The files of columns that are nothing but Parquet files here, as they are; else none."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        frame = frame.select(*("`" + name.replace("`", "``") + "`" for name in names))
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
        listed = list(relation.location().inputFiles()) if kinds == PLAIN_FILES else []
        is_twice = len(set(listed)) < len(listed)
        if is_twice or kinds != PLAIN_FILES or relation.partitionSchema().length():
            return []
        addresses = [urlsplit(file) for file in listed]
    except (Py4JError, PySparkException):
        return []
    if any(address.scheme != "file" or address.netloc for address in addresses):
        return []
    return sorted(Path(unquote(address.path)) for address in addresses)


def _name_class(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def estimate_bytes(frame: Any, names: Sequence[str]) -> int:
    """What Spark guesses that columns take; very much where it cannot."""
    plan = _choose(frame, names)._jdf.queryExecution().optimizedPlan()
    return int(str(plan.stats().sizeInBytes()))


@dataclass(frozen=True)
class _Order:
    """A task, and the names of the columns that it gets, if any."""

    task: Task
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class _SealedOrder:
    """Where an order lies, encrypted; what comes of it is encrypted as well.

    Spark writes what is large among the things that it hands to tasks, or gets from them, to disks,
    in the clear. So it gets the key of a release and this path, and never more.
    """

    path: Path
    seal: Seal

    @classmethod
    def write(cls, order: _Order, room: PrivateRoom) -> _SealedOrder:
        """Put an order into the private folder."""
        from pyspark import cloudpickle

        dump: Callable[[Any], bytes] = cloudpickle.dumps
        path = room.folder / f"order-{uuid.uuid4()}"
        with open(open_new(path), "wb") as file:
            write_piece(file, room.seal, dump(order))
        return cls(path, room.seal)

    def carry_out(self, batches: Iterator[Any], partition: int) -> Iterator[Any]:
        """Give the sealed rows of the task, or of a machine that does not see the order."""
        try:
            (content,) = read_pieces(self.path, self.seal)
        except OSError:
            yield self._close(pickle.dumps(_Unseen()))
            return
        order: _Order = pickle.loads(content)
        names = order.names
        named = (batch.rename_columns(names) for batch in batches) if names else batches
        for row in order.task(named, partition):
            yield self._close(row.column(0)[0].as_buffer())

    def _close(self, result: Any) -> Any:
        return write_row({"result": self.seal.close(memoryview(result).cast("B"))})


class _Unseen:
    """Said by a machine that does not see the private folder."""


def _make_function(order: _SealedOrder) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A plain function, as Spark wants it; its name is all that Spark's plans show of it."""

    def tallyveil_task(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return order.carry_out(batches, 0 if context is None else context.partitionId())

    return tallyveil_task


def _collect(frame: Any, choose: Callable[[], Any], order: _Order, room: PrivateRoom) -> list[Any]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    sealed = _SealedOrder.write(order, room)
    with _set(frame.sparkSession.conf):
        try:
            rows = choose().mapInArrow(_make_function(sealed), "result binary").collect()
        except (PySparkException, Py4JError) as problem:
            if NOT_THERE in str(problem):
                raise UsageError(MISSING) from None
            raise TableError(STOPPED) from None
        finally:
            sealed.path.unlink(missing_ok=True)
    found = [pickle.loads(room.seal.open(bytes(row[0]))) for row in rows]
    if any(isinstance(own, _Unseen) for own in found):
        raise describe_unseen(room.folder)
    return found


def describe_unseen(folder: Path) -> UsageError:
    """The error for a private folder that executors do not see."""
    return UsageError(
        f"The executors do not see {str(folder.parent)!r}, or may not write there: 'out' must lie "
        "on a file system that they share with this machine, as the same user."
    )


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
