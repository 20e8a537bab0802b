"""Raw counts hidden in the file of a release that checks: in words, bytes and spellings beside it.

Every file is changed so that its readers still find the same table, and everything else is
made again.
"""

import json
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil.tables import text
from tests.asking import privatize
from tests.attacks import forging

FRAME = pd.DataFrame({"county": [f"c{i}" for i in range(40)], "cases": [i % 7 for i in range(40)]})
TRUTH = ",".join(map(str, FRAME.cases))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("honest")
    options = {"count": "cases", "keep": "all", "upper": 90, "epsilon": 1, "method": "geometric"}
    for kind in sorted({kind for kind, _ in HIDDEN.values()}):
        privatize(FRAME, format=kind, out=place / kind, **options)
        assert all(finding.ok for finding in tv.check_package(place / kind))
    return place


def by_line(change):
    """Change the line of the fourth row, which is c3's."""

    def edit(path):
        lines = path.read_text().splitlines(keepends=True)
        lines[4] = change(*lines[4].rstrip("\n").split(","))
        path.write_text("".join(lines))

    return edit


def by_bytes(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


def before_footer(content):
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content[:at] + TRUTH.encode() + content[at:]


ONE_FORM = {
    "version": "2.6",
    "compression": "snappy",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}


def rewrite_parquet(change=lambda table: table, **options):
    """Write the file anew, in the form of releases but for what is changed."""
    return lambda path: pq.write_table(change(pq.read_table(path)), path, **ONE_FORM | options)


def name_the_writer(content):
    """Other words of the same length for the program that wrote the file."""
    return content.replace(b"parquet-cpp-arrow version", TRUTH[:17].encode() + b" version")


def sign_the_footer(content):
    """Append field 9 of the footer, the metadata of a signing key, which readers pass over."""
    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - size : -9] + bytes([0x28, len(TRUTH)]) + TRUTH.encode() + b"\0"
    return content[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def say_in_footer(path):
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, **ONE_FORM) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"truth": TRUTH})


def say_in_field(table):
    return table.cast(table.schema.set(0, table.schema.field(0).with_metadata({"truth": TRUTH})))


def say_by_null(table):
    return table.cast(table.schema.set(1, pa.field("cases", pa.int64())))


def say_by_type(table):
    return table.set_column(1, "cases", table["cases"].cast(pa.int8()))


def code_more(table):
    """Labels as codes of a dictionary that has one that no row has."""
    labels = pa.array([*table["county"].to_pylist(), TRUTH])
    codes = pa.array(range(len(table)), pa.int32())
    return table.set_column(0, "county", pa.DictionaryArray.from_arrays(codes, labels))


HIDDEN = {
    "a leading zero": ("csv", by_line(lambda area, count: f"{area},0{count}\n")),
    "a fraction": ("csv", by_line(lambda area, count: f"{area},{count}.0\n")),
    "a space before": ("csv", by_line(lambda area, count: f"{area}, {count}\n")),
    "a space behind": ("csv", lambda path: path.write_text(path.read_text()[:-1] + " \n")),
    "quotes": ("csv", by_line(lambda area, count: f'"{area}",{count}\n')),
    "a quoted count": ("csv", by_line(lambda area, count: f'{area},"{count}"\n')),
    "a quoted name": ("csv", by_bytes(lambda content: content.replace(b"county", b'"county"'))),
    "a mark": ("csv", by_bytes(lambda content: b"\xef\xbb\xbf" + content)),
    "line ends of two characters": (
        "csv",
        by_bytes(lambda content: content.replace(b"\n", b"\r\n")),
    ),
    "empty lines": ("csv", by_bytes(lambda content: content + b"\n\n")),
    "no last line end": ("csv", by_bytes(lambda content: content[:-1])),
    "metadata": ("parquet", say_in_footer),
    "metadata of a column": ("parquet", rewrite_parquet(say_in_field, store_schema=True)),
    "a schema of Arrow": ("parquet", rewrite_parquet(store_schema=True)),
    "a narrow type": ("parquet", rewrite_parquet(say_by_type)),
    "a count that may be missing": ("parquet", rewrite_parquet(say_by_null)),
    "a dictionary": ("parquet", rewrite_parquet(code_more, use_dictionary=["county"])),
    "statistics": ("parquet", rewrite_parquet(write_statistics=True)),
    "an index of pages": ("parquet", rewrite_parquet(write_page_index=True)),
    "checksums of pages": ("parquet", rewrite_parquet(write_page_checksum=True)),
    "other row groups": ("parquet", rewrite_parquet(row_group_size=7)),
    "smaller pages": ("parquet", rewrite_parquet(data_page_size=16, write_batch_size=4)),
    "another compression": ("parquet", rewrite_parquet(compression="zstd")),
    "a hole": ("parquet", by_bytes(before_footer)),
    "another writer": ("parquet", by_bytes(name_the_writer)),
    "a key in the footer": ("parquet", by_bytes(sign_the_footer)),
}


def describe_again(folder):
    """Write the description of the changed file, or of its bytes alone."""
    try:
        forging.rebuild(folder, forging.read(folder))
    except tv.TallyveilError:
        path = folder / "datapackage.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        resource = document["resources"][0]
        facts = forging.FileFacts.of((folder / resource["path"]).read_bytes())
        resource |= {"bytes": facts.size, "hash": f"sha256:{facts.sha256}"}
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", HIDDEN)
def test_nothing_is_hidden_beside_the_table(folders, tmp_path, monkeypatch, name, streamed):
    kind, change = HIDDEN[name]
    forged = shutil.copytree(folders / kind, tmp_path / "forged")
    if streamed:
        monkeypatch.setattr(text, "HELD", -1)
        monkeypatch.setattr(text, "BLOCK", 50)
    describe_again(forged)
    assert forging.passes(forged)
    path = forged / f"data.{kind}"
    honest = path.read_bytes()
    change(path)
    assert path.read_bytes() != honest
    describe_again(forged)
    assert not forging.passes(forged)
