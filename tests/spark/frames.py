"""What the engine uses of a Spark DataFrame, in this process: tasks run one after the other."""

from types import SimpleNamespace

import pyarrow as pa
from pyspark import cloudpickle

from tallyveil.tables import spark_jobs


class LocalFrame:
    """Partitions as Arrow tables. `fails` tasks of every job run again after they have ended."""

    def __init__(self, partitions, batch=1000, repeats=()):
        self.partitions, self.batch, self.repeats = list(partitions), batch, set(repeats)
        context = SimpleNamespace(defaultParallelism=2)
        self.sparkSession = SimpleNamespace(conf=_Conf(), range=self._range, sparkContext=context)

    @property
    def _jdf(self):
        analyzed = SimpleNamespace(deterministic=lambda: True)
        return SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: analyzed))

    @property
    def columns(self):
        return self.partitions[0].column_names

    def _new(self, partitions):
        return LocalFrame(partitions, self.batch, self.repeats)

    def _range(self, start, stop, step, parts):
        numbers = range(start, stop, step)
        return self._new(
            pa.table({"id": [n for n in numbers if n % parts == at]}) for at in range(parts)
        )

    def select(self, *names):
        return self._new(part.select(list(names)) for part in self.partitions)

    def toDF(self, *names):  # noqa: N802 - Spark's name
        return self._new(part.rename_columns(list(names)) for part in self.partitions)

    def mapInArrow(self, function, schema):  # noqa: N802 - Spark's name
        """Spark writes functions of more than a mebibyte to disk, and with them the key."""
        assert len(cloudpickle.dumps(function)) < 4096
        made = []
        for number, part in enumerate(self.partitions):
            for _ in range(2 if number in self.repeats else 1):
                batches = list(function(iter(part.to_batches(self.batch))))
            empty = pa.table({schema.split()[0]: []})
            made.append(pa.Table.from_batches(batches) if batches else empty)
        return self._new(made)

    def collect(self):
        return [tuple(row.values()) for part in self.partitions for row in part.to_pylist()]


class _Conf(dict):
    def get(self, name, default=None):
        return dict.get(self, name, default)

    def set(self, name, value):
        self[name] = value

    def unset(self, name):
        del self[name]


LocalFrame.__module__ = "pyspark.sql.dataframe"  # how tables are told apart


def read_schema(frame):
    return frame.partitions[0].schema


def estimate_bytes(frame, names):
    return sum(part.select(list(names)).nbytes for part in frame.partitions)


def use_local_frames(monkeypatch):
    """Let the engine take local frames for Spark's."""
    monkeypatch.setattr(spark_jobs, "read_schema", read_schema)
    monkeypatch.setattr(spark_jobs, "estimate_bytes", estimate_bytes)
    monkeypatch.setattr(spark_jobs, "list_files", lambda *_: [])
