"""Two confidential tables with the same released data give the same package, byte for byte."""

import gc
import re
import types

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize
from tests.attacks.engines import ENGINES, hold

N = 400
ONE = [i % 4 for i in range(N)]
OTHER = [(i * i) % 9 + 20 * (i == 7) for i in range(N)]
VARYING = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # the release's name
    rb"|20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"  # when it was made
)


def csv_table(path, counts):
    lines = [f"c{i},{count}" for i, count in enumerate(counts)]
    path.write_text("county,cases\n" + "\n".join(lines) + "\n")
    return path


def package(folder, table, **options):
    """The bytes of every file of a release, without its name and its time."""
    rel = tv.privatize(table, count="cases", keep="all", upper=9, epsilon=1, **options)
    rel.save(folder)
    files = {path.name: VARYING.sub(b"*", path.read_bytes()) for path in folder.iterdir()}
    files.pop("SHA256SUMS")  # digests of texts with names and times in them
    return files


def test_a_mechanism_that_ignores_the_truth_gives_identical_packages(tmp_path):
    """No part of the program is replaced: every row of the matrix is the same law."""
    blind = tv.certify(tv.uniform(tv.Query.count(9)), 1).save(tmp_path / "blind.json")
    result = []
    for counts in (ONE, OTHER):
        table, folder = csv_table(tmp_path / "t.csv", counts), tmp_path / f"out{len(result)}"
        result.append(package(folder, table, method=blind, entropy=SeededNotPrivate(5)))
    assert result[0] == result[1]
    assert len(result[0]) == 6


@pytest.mark.parametrize("engine", [*ENGINES, "array", "list", "series"])
def test_what_a_release_holds_is_public(engine, tmp_path):
    """Nothing that can be reached from a release is a confidential count."""
    marked = [99990 + i % 10 for i in range(60)]
    arrays = {"array": np.array, "list": list, "series": pd.Series}
    if engine in arrays:
        source, options = arrays[engine](marked), {}
    else:
        columns = {"area": [f"a{at}" for at in range(60)], "cases": marked}
        source, options = hold(engine, columns, tmp_path / "table")
        options = {"count": "cases", "keep": "all", **options}
    rel = privatize(source, upper=9, epsilon=1, **options)
    hidden = b"|".join(reached(rel))
    for secret in set(marked):
        assert str(secret).encode() not in hidden
        assert secret.to_bytes(8, "little") not in hidden


def reached(start):
    """The bytes of every array, text and number that can be reached from an object."""
    seen, waiting = set(), [start]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (type, types.ModuleType, types.FrameType)):
            continue
        seen.add(id(item))
        if isinstance(item, types.FunctionType):
            waiting += [cell.cell_contents for cell in item.__closure__ or ()]
            continue
        if isinstance(item, np.ndarray) and item.dtype != object:
            yield item.tobytes()
        elif isinstance(item, (str, bytes, int)):
            yield item if isinstance(item, bytes) else str(item).encode()
        elif hasattr(item, "to_pandas") and hasattr(item, "schema"):
            yield item.to_pandas().to_csv().encode()
        else:
            waiting += gc.get_referents(item)
