"""Publish pairs of tables with the draws held fixed, and compare everything that leaves."""

import datetime as dt
import io
import os
import pickle
import random
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tallyveil.release import transaction
from tallyveil.release.methods import base
from tallyveil.tables import columnar, text
from tallyveil.tables import table as tables
from tallyveil.tables.table import FileIdentity
from tests.asking import FixedEntropy, privatize
from tests.attacks.engines import hold

LIMITS = ((tables, "BATCH_ROWS"), (columnar, "BATCH_ROWS"), (text, "HELD"), (text, "BLOCK"))
"""How much of a table is read at once, and up to which length text is held in memory."""

USUAL, SMALL = [getattr(*place) for place in LIMITS], [3, 3, -1, 64]


class FixedTime(dt.datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 1, tzinfo=tz)


@pytest.fixture
def fixed(monkeypatch):
    """Draws look at zeros instead of the true counts; names and times are always the same.

    The disk is not waited for.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(FileIdentity, "of", lambda path, *_: FileIdentity(path, ()))
    monkeypatch.setattr(transaction, "Entropy", FixedEntropy)
    monkeypatch.setattr(transaction.uuid, "uuid4", lambda: "one-name")
    monkeypatch.setattr(transaction, "datetime", FixedTime)
    draw = base.Plan.draw
    monkeypatch.setattr(
        base.Plan, "draw", lambda self, counts, entropy: draw(self, np.zeros_like(counts), entropy)
    )


@pytest.fixture
def compare(fixed):
    """What tells two published tables apart, with the draws held fixed."""
    yield compare_forms
    set_limits(USUAL)


def set_limits(values):
    for place, value in zip(LIMITS, values, strict=True):
        setattr(*place, value)


def dump(value):
    """A pickle of what an object holds; which of its parts are one object does not matter."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.fast = True
    pickler.dump(value)
    return buffer.getvalue()


def publish(table, folder, options, limits):
    """Everything that leaves: the folder's bytes, the pickled release, the table's memory.

    With `alone` in the options no folder is written, and a release is all there is. The source is
    gone before anybody looks at what is left of it.
    """
    keys = {"upper": 9, "epsilon": 1, **options}
    alone = keys.pop("alone", False)
    set_limits(limits)
    released = privatize(table, out=None if alone else folder, **keys)
    set_limits(USUAL)
    for path in folder.parent.iterdir():
        if path != folder:
            path.unlink()
    releases = released if isinstance(released, tuple) else [released]
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {
        "folder": releases[0].files if alone else files,
        "pickles": [dump((release, release.table)) for release in releases],
        "memory": [memory_of(release.table) for release in releases],
        "data": [memory_of(release.data.native()) for release in releases],
    }


def memory_of(table):
    """The types, index, levels and every buffer of a table."""
    if isinstance(table, pa.Table):
        chunks = [chunk for column in table.columns for chunk in column.chunks]
        return [str(table.schema), table.schema.metadata, [buffers_of(chunk) for chunk in chunks]]
    if isinstance(table, pl.DataFrame):
        return [
            [str(dtype) for dtype in table.dtypes],
            [series.to_physical().to_list() for series in table],
            [series.flags for series in table],
            [memory_of(pa.table({s.name: s.to_arrow()})) for s in table],
        ]
    if isinstance(table, pd.DataFrame):
        arrays = [table.iloc[:, at].array for at in range(table.shape[1])]
        return [
            [str(array.dtype) for array in arrays],
            [repr(array.dtype) for array in arrays],
            table.attrs,
            table.columns.names,
            repr(table.index),
            [array_memory(array) for array in arrays],
        ]
    return repr(table)


def array_memory(array):
    if isinstance(array, pd.Categorical):
        return [array.codes.tobytes(), array.codes.dtype.name, list(array.categories)]
    if isinstance(array.dtype, pd.ArrowDtype) or getattr(array.dtype, "storage", "") == "pyarrow":
        return [buffers_of(chunk) for chunk in array.__arrow_array__().chunks]
    if hasattr(array, "_data") and hasattr(array, "_mask"):
        return [array._data.tobytes(), array._mask.tobytes()]
    values = np.asarray(array)
    return values.tolist() if values.dtype == object else [values.tobytes(), values.base is None]


def buffers_of(array):
    found = [array.offset, [None if b is None else b.to_pybytes() for b in array.buffers()]]
    if pa.types.is_dictionary(array.type):
        found.append(buffers_of(array.dictionary))
    return found


def compare_forms(pair, options, place, engine=None):
    """Publish both tables, as they are or held by an engine; the names of what differs.

    Both have the same paths, one after the other: nothing but the table tells them apart. Either
    may be read in small batches.
    """
    parts, rng = [], random.Random(f"{options} {engine}")
    for columns in pair:
        place.mkdir(parents=True)
        source, more = hold(engine, columns, place / "table") if engine else (columns, {})
        parts.append(publish(source, place / "out", options | more, rng.choice([USUAL, SMALL])))
        shutil.rmtree(place)
    return [part for part in parts[0] if parts[0][part] != parts[1][part]]
