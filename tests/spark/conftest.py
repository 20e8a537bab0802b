"""What all tests of Spark share: a table of wards, and one cluster for all that need one."""

import gc
import importlib.util
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest


def _load(name):
    place = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"spark_{name}", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


frames, cluster_module = _load("frames"), _load("cluster")
SECRET = "Anna-Schmidt"


def make_table(rows, seed=1, start=0):
    random = np.random.default_rng(seed)
    cases = np.minimum(random.geometric(0.15, rows) - 1, 50)
    return pa.table(
        {
            "id": np.arange(start, start + rows),
            "ward": [f"ward {number}" for number in range(start, start + rows)],
            "cases": cases,
            "deaths": random.integers(0, 5, rows),
            "note": [SECRET] * rows,
        }
    )


@pytest.fixture
def table():
    return make_table(10_000)


@pytest.fixture
def make_frame(monkeypatch):
    frames.use_local_frames(monkeypatch)
    return frames.LocalFrame


@pytest.fixture
def frame(table, make_frame):
    """Five partitions of different sizes, one of them empty."""
    return make_frame(
        table.slice(a, b - a) for a, b in pairwise([0, 1500, 1500, 4000, 9999, 10_000])
    )


@pytest.fixture
def collect_sockets():
    """Close what Spark leaves to the collector here, and not in somebody else's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="session")
def cluster():
    cluster_module.require_cluster()
    running = cluster_module.Cluster()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def session(cluster):
    return cluster.connect()
