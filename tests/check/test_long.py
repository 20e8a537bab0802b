"""Long text and Feather files are checked in batches, with what a whole reading finds."""

import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.release import groups as by_group
from tallyveil.tables import arrow_write, plain, source
from tallyveil.tables.counts import read_counts

OPTIONS = {
    "hierarchy": {"hierarchy": ["state", "county"]},
    "strata": {"strata": "state"},
    "unbiased": {"unbiased": True},
    "zeros": {"hierarchy": ["state"], "zero": "county==c3"},
}


def make_table():
    rows = np.arange(400)
    random = np.random.default_rng(1)
    table = pd.DataFrame({"state": rows // 100, "county": [f"c{n}" for n in rows // 20]})
    table["cases"] = np.where(table["county"] == "c3", 0, random.integers(0, 10, len(rows)))
    return table


def find(folder, monkeypatch, *, long):
    """All findings, without a reading of the whole file if it is `long`."""
    with monkeypatch.context() as patch:
        if long:
            patch.setattr(source, "LONG_RELEASE", 0)
            patch.setattr(plain, "SMALLEST", 0)
            patch.setattr(source, "_parse", None)
            patch.setattr(source, "read_file", None)
        return [(found.name, found.ok, found.detail) for found in check_package(folder)]


@pytest.fixture(params=OPTIONS)
def folder(request, tmp_path):
    path = tmp_path / "cases.csv"
    make_table().to_csv(path, index=False)
    options = OPTIONS[request.param]
    named = {"count": "cases", "upper": 9, "epsilon": 1, "keep": "all", "allow_duplicates": True}
    tv.privatize(path, **named, **options, out=tmp_path / "release")
    return tmp_path / "release"


def test_a_long_file_is_checked_in_batches(folder, monkeypatch):
    found = find(folder, monkeypatch, long=True)
    assert all(ok for _, ok, _ in found)
    assert found == find(folder, monkeypatch, long=False)


@pytest.mark.parametrize("change", [(b"\n3,c19,", b"\n2,c19,"), (b"\n0,c0,", b"\n0,c3,")])
def test_changed_labels_are_found_in_batches(folder, monkeypatch, change):
    """One row goes to another group, and the checksum of the file follows."""
    data, sums = folder / "data.csv", folder / "SHA256SUMS"
    before = data.read_bytes()
    after = before.replace(*change, 1)
    assert after != before
    data.write_bytes(after)
    old, new = (hashlib.sha256(content).hexdigest() for content in (before, after))
    sums.write_text(sums.read_text().replace(old, new))
    found = find(folder, monkeypatch, long=True)
    assert not all(ok for _, ok, _ in found)
    assert found == find(folder, monkeypatch, long=False)


@pytest.fixture
def feather(tmp_path, monkeypatch):
    """A release of 400 rows in a Feather file of four batches, without totals of groups."""
    monkeypatch.setattr(by_group, "MOST_ROWS", 0)
    path = tmp_path / "cases.arrow"
    make_table()[["county", "cases"]].to_feather(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_write, "IPC_ROWS", 100)
        named = {"count": "cases", "upper": 9, "epsilon": 1, "allow_duplicates": True}
        tv.privatize(path, **named, keep="all", out=tmp_path / "release")
    return tmp_path / "release" / "data.arrow"


def read_feather(path, monkeypatch, *, long, rows=400):
    """The counts of a Feather file, without a reading of the whole file if it is `long`."""
    with monkeypatch.context() as patch:
        if long:
            patch.setattr(source, "LONG_RELEASE", 0)
            patch.setattr(source, "read_file", None)
        named = {"rows": rows, "counts": ["cases"], "labels": []}
        found = source.read_released(path, ",", "utf-8", **named)
        return found.names, found.type_of("cases"), read_counts(found, "cases", 9).values.tolist()


def test_a_long_feather_file_is_read_in_batches(feather, monkeypatch):
    assert pa.ipc.open_file(feather.read_bytes()).num_record_batches == 4
    found = read_feather(feather, monkeypatch, long=True)
    assert found == read_feather(feather, monkeypatch, long=False)
    monkeypatch.setattr(source, "LONG_RELEASE", 0)
    opened = source.read_released(feather, ",", "utf-8", rows=400, counts=["cases"], labels=[])
    assert max(batch.rows for batch in opened.batches()) == 100
    findings = find(feather.parent, monkeypatch, long=True)
    assert all(ok for _, ok, _ in findings)
    assert findings == find(feather.parent, monkeypatch, long=False)


def rewrite_feather(change):
    """Write a Feather file anew, in batches of 100 rows, after something was done to its table."""

    def edit(content):
        table, buffer = change(pa.ipc.open_file(content).read_all()), pa.BufferOutputStream()
        with pa.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table, 100)
        return buffer.getvalue().to_pybytes()

    return edit


def put_cases(values):
    return rewrite_feather(lambda table: table.set_column(1, "cases", values))


def pack_zeros(content):
    """A few bytes that unpack to 400 MB."""
    buffer = pa.BufferOutputStream()
    table = pa.table({"county": pa.nulls(1), "cases": np.zeros(1, np.int64)})
    zeros = pa.table({"county": pa.nulls(50_000_000), "cases": np.zeros(50_000_000, np.int64)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(buffer, table.schema, options=options) as writer:
        writer.write_table(zeros)
    return buffer.getvalue().to_pybytes()


FORGED = {
    "metadata": rewrite_feather(lambda table: table.replace_schema_metadata({"truth": "7"})),
    "a narrow type": put_cases(pa.array([1] * 400, pa.int8())),
    "counts as text": put_cases(pa.array(["1"] * 400)),
    "coded counts": put_cases(pa.array([1] * 400).dictionary_encode()),
    "no value": put_cases(pa.array([1] * 399 + [None])),
    "below 0": put_cases(pa.array([1] * 399 + [-1])),
    "two columns of one name": rewrite_feather(lambda table: table.rename_columns(["cases"] * 2)),
    "another name": rewrite_feather(lambda table: table.rename_columns(["county", "case"])),
    "cut short": lambda content: content[: len(content) // 2],
    "a batch cut out": lambda content: content[:1000] + content[2000:],
    "no mark": lambda content: b"arrow1" + content[6:],
    "no end": lambda content: content[:-6] + b"ARROW2",
    "text": lambda content: b"county,cases\nc1,3\n" * 100,
    "zeros": pack_zeros,
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_feather_files_are_refused_in_batches(feather, monkeypatch, name):
    feather.write_bytes(FORGED[name](feather.read_bytes()))
    for long in (False, True):
        with pytest.raises(tv.TableError):
            read_feather(feather, monkeypatch, long=long)


def test_a_damaged_batch_is_refused_when_it_is_read(feather, monkeypatch):
    """What LZ4 cannot unpack, in the third of four batches."""
    content = feather.read_bytes()
    with pa.ipc.open_file(content) as reader:
        assert reader.num_record_batches == 4
    starts = [at for at in range(len(content)) if content[at : at + 4] == b"\x04\x22\x4d\x18"]
    broken = starts[len(starts) * 3 // 4 - 1] if starts else 0
    feather.write_bytes(content[:broken] + bytes(16) + content[broken + 16 :])
    assert starts
    for long in (False, True):
        with pytest.raises(tv.TableError):
            read_feather(feather, monkeypatch, long=long)


def test_a_changed_count_is_found_in_batches(feather, monkeypatch):
    """The histogram of the receipt is that of all batches."""
    before = feather.read_bytes()
    cases = pa.ipc.open_file(before).read_all()["cases"].to_pylist()
    cases[-1] = (cases[-1] + 1) % 10
    after = put_cases(pa.array(cases))(before)
    feather.write_bytes(after)
    sums = feather.parent / "SHA256SUMS"
    old, new = (hashlib.sha256(content).hexdigest() for content in (before, after))
    sums.write_text(sums.read_text().replace(old, new))
    found = [find(feather.parent, monkeypatch, long=long) for long in (False, True)]
    assert found[0] == found[1]
    assert not all(ok for _, ok, _ in found[1])
