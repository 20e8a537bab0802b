"""Make hostile files, run the program on them, and measure what that costs."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from pyarrow import feather

MOST_SECONDS, MOST_MEGABYTES, LARGEST_FILE = 5.0, 500, 10 * 2**20
PROGRAM = [sys.executable, "-m", "tallyveil"]
ROOM = 9_900_000  # bytes that a filled file has
HEADER = "place,cases\n"
PROBE = """
import json, os, sys
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, memory]))
"""  # a small process starts the program, because memory is counted from before the start
LIMITED = ["timeout", "--signal=KILL", "300"]  # a program that waits for ever fails its test


def run_measured(*words):
    """Return exit code, processor seconds, megabytes and all that was printed."""
    command = [sys.executable, "-S", "-c", PROBE, *LIMITED, *PROGRAM, *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    *lines, last = done.stdout.strip().splitlines()
    return *json.loads(last), "\n".join([*lines, done.stderr])


def require_cheap(*words, codes=(0, 1, 2)):
    """Require that the program ends by itself, soon, in little memory and in its own words."""
    code, seconds, megabytes, shown = run_measured(*words)
    assert code in codes, shown
    assert seconds < MOST_SECONDS, f"{seconds:.1f} s"
    assert megabytes < MOST_MEGABYTES, f"{megabytes} MB"
    assert "Traceback" not in shown
    assert "unexpected" not in shown
    return shown


def require_cheap_refusal(*words):
    """Require the same, and that it refuses."""
    return require_cheap(*words, codes=(1, 2))


def fill(part, start="", end=""):
    return start + part * ((ROOM - len(start) - len(end)) // len(part)) + end


def mark(cases, quick):
    """The cases, those that are not `quick` for the long run; a case is named by its last word."""
    slow = pytest.mark.slow
    return [pytest.param(*c, marks=() if c[-1] in quick else slow, id="-".join(c)) for c in cases]


def squeeze(packing, content):
    if packing == "gzip":
        return gzip.compress(content, 1)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, packing) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def pack_rows(packing, rows, first=b""):
    return lambda: squeeze(packing, HEADER.encode() + first + b"1,1\n" * rows)


def write_statistics(kind, rows, **options):
    def make(path):
        zeros = np.zeros(rows, dtype=np.int8)
        frame = pd.DataFrame({"place": zeros, "cases": zeros})
        getattr(pyreadstat, f"write_{kind}")(frame, path, **options)

    return make


def write_arrow(kind, rows, *, coded=False, **options):
    """Write many rows of zeros as Parquet or Feather."""

    def make(path):
        zeros = np.zeros(rows, dtype=np.int64)
        place = zeros
        if coded:
            codes = pa.array(zeros.astype(np.int32))
            place = pa.DictionaryArray.from_arrays(codes, pa.array(["x"]))
        table = pa.table({"place": place, "cases": zeros})
        if kind == "parquet":
            pq.write_table(table, path, **options)
        else:
            packed = {"compression": "zstd", "chunksize": 10**8} | options
            feather.write_feather(table, path, **packed)

    return make


def long_texts(path, store_schema=False):
    """A million rows that all refer to one text of 5 MB, as a category with `store_schema`."""
    rows = 1_000_000
    codes = pa.array(np.zeros(rows, dtype=np.int32))
    place = pa.DictionaryArray.from_arrays(codes, pa.array([os.urandom(2_500_000).hex()]))
    table = pa.table({"place": place, "cases": np.zeros(rows, dtype=np.int64)})
    pq.write_table(table, path, store_schema=store_schema)  # else as text
