"""Raw counts hidden in the file of a release that checks: in words, bytes and spellings beside it.

Every file is changed so that its readers still find the same table, and everything else is
made again.
"""

import gzip
import io
import json
import shutil
import struct
import zipfile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

import tallyveil as tv
from attacks import forging
from tallyveil.check import package
from tallyveil.documents.receipt import Receipt
from tallyveil.tables import arrow_bare, arrow_sizes, plain, source

FRAME = pd.DataFrame({"county": [f"c{i}" for i in range(40)], "cases": [i % 7 for i in range(40)]})
TRUTH = ",".join(map(str, FRAME.cases))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("honest")
    options = {"count": "cases", "keep": "all", "upper": 90, "epsilon": 1, "method": "geometric"}
    for kind in sorted({kind for kind, _ in HIDDEN.values()}):
        tv.privatize(FRAME, format=kind, out=place / kind, **options)
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


def with_name(content):
    buffer = io.BytesIO()
    with gzip.GzipFile(filename=TRUTH, mode="wb", fileobj=buffer, mtime=0) as packed:
        packed.write(gzip.decompress(content))
    return buffer.getvalue()


def with_field(content):
    """A field of the header that no reader looks at."""
    field = len(TRUTH).to_bytes(2, "little") + TRUTH.encode()
    return content[:3] + b"\4" + content[4:10] + field + content[10:]


def before_footer(content):
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content[:at] + TRUTH.encode() + content[at:]


def rewrite_parquet(change):
    return lambda path: pq.write_table(change(pq.read_table(path)), path)


def rewrite_arrow(change):
    def edit(path):
        table = change(pa.ipc.open_file(path.read_bytes()).read_all())
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    return edit


def before_arrow_footer(content):
    at = len(content) - 10 - int.from_bytes(content[-10:-6], "little")
    return content[:at] + TRUTH.encode() + content[at:]


def in_padding(content):
    """The mark at the beginning is filled up to eight bytes."""
    return content[:6] + b"42" + content[8:]


def between_buffers(content):
    """Zeros fill up to eight bytes behind every buffer."""
    footer = arrow_sizes.FlatTable(
        content, len(content) - 10 - int.from_bytes(content[-10:-6], "little")
    )
    (block,) = footer.structs(3, 24)
    gaps = arrow_bare._list_gaps(content, *struct.unpack_from("<qi4xq", content, block))
    start, stop = next(gap for gap in gaps if gap[1] > gap[0])
    assert content[start:stop] == bytes(stop - start)
    return content[:start] + b"7" * (stop - start) + content[stop:]


def say_in_batches(path):
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch, custom_metadata={"truth": TRUTH})


def say_in_footer(path):
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    made = pa.ipc.new_file(str(path), table.schema, metadata={"truth": TRUTH})
    with made as writer:
        writer.write_table(table)


def say_in_schema(table):
    return table.replace_schema_metadata({"truth": TRUTH})


def say_in_field(table):
    return table.cast(table.schema.set(0, table.schema.field(0).with_metadata({"truth": TRUTH})))


def say_by_type(table):
    return table.set_column(1, "cases", table["cases"].cast(pa.int8()))


def rewrite_statistics(kind, **words):
    read = getattr(pyreadstat, {"xpt": "read_xport"}.get(kind, f"read_{kind}"))
    write = getattr(pyreadstat, {"xpt": "write_xport"}.get(kind, f"write_{kind}"))
    return lambda path: write(read(path)[0], path, **words)


def add_member(path):
    with zipfile.ZipFile(path, "a") as book:
        book.comment = TRUTH.encode()


LABELS = {"variable_value_labels": {"cases": {1: "one"}}}
HIDDEN = {
    "a leading zero": ("csv", by_line(lambda area, count: f"{area},0{count}\n")),
    "a fraction": ("csv", by_line(lambda area, count: f"{area},{count}.0\n")),
    "a space before": ("csv", by_line(lambda area, count: f"{area}, {count}\n")),
    "a space behind": ("tsv", lambda path: path.write_text(path.read_text()[:-1] + " \n")),
    "quotes": ("csv", by_line(lambda area, count: f'"{area}",{count}\n')),
    "a quoted count": ("csv", by_line(lambda area, count: f'{area},"{count}"\n')),
    "empty lines": ("csv", by_bytes(lambda content: content + b"\n\n")),
    "no last line end": ("csv", by_bytes(lambda content: content[:-1])),
    "a name": ("csv.gz", by_bytes(with_name)),
    "a field": ("csv.gz", by_bytes(with_field)),
    "a time": ("csv.gz", by_bytes(lambda content: content[:4] + b"\7" + content[5:])),
    "two members": ("csv.gz", by_bytes(lambda content: content + gzip.compress(b"", mtime=0))),
    "zeros": ("csv.gz", by_bytes(lambda content: content + bytes(20))),
    "a frame to skip": (
        "csv.zst",
        by_bytes(lambda content: content + b"\x50\x2a\x4d\x18\5\0\0\0truth"),
    ),
    "bytes of a workbook": ("xlsx", by_bytes(lambda content: content + TRUTH.encode())),
    "bytes before it": ("xlsx", by_bytes(lambda content: TRUTH.encode() + content)),
    "a comment": ("xlsx", add_member),
    "metadata": ("parquet", rewrite_parquet(say_in_schema)),
    "metadata of a column": ("parquet", rewrite_parquet(say_in_field)),
    "a narrow type": ("parquet", rewrite_parquet(say_by_type)),
    "a hole": ("parquet", by_bytes(before_footer)),
    "metadata of Arrow": ("arrow", rewrite_arrow(say_in_schema)),
    "metadata of its column": ("arrow", rewrite_arrow(say_in_field)),
    "a narrow type of Arrow": ("arrow", rewrite_arrow(say_by_type)),
    "a hole of Arrow": ("arrow", by_bytes(before_arrow_footer)),
    "its padding": ("arrow", by_bytes(in_padding)),
    "padding of its batches": ("arrow", by_bytes(between_buffers)),
    "words of its batches": ("arrow", say_in_batches),
    "words of its footer": ("arrow", say_in_footer),
    "a label of Stata": ("dta", rewrite_statistics("dta", file_label=TRUTH[:60])),
    "labels of columns": ("dta", rewrite_statistics("dta", column_labels=["area", TRUTH[:60]])),
    "labels of values": ("dta", rewrite_statistics("dta", **LABELS)),
    "a note of SPSS": ("sav", rewrite_statistics("sav", note=[TRUTH])),
    "its labels": ("sav", rewrite_statistics("sav", **LABELS)),
    "a label of SAS": ("xpt", rewrite_statistics("xpt", file_label=TRUTH[:39])),
}


def describe_again(folder):
    """The description of the changed file, where it is still read as a table."""
    receipt = Receipt.from_dict(forging.read(folder))
    try:
        table = package._read_data(folder, receipt, True)
    except tv.TallyveilError:
        path = folder / "datapackage.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        content = (folder / receipt.table.file).read_bytes()
        facts = forging.FileFacts.of(content)
        document["resources"][0] |= {"bytes": facts.size, "hash": f"sha256:{facts.sha256}"}
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    else:
        forging.make_description_again(folder, table, receipt, {})


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", HIDDEN)
def test_nothing_is_hidden_beside_the_table(folders, tmp_path, monkeypatch, name, streamed):
    kind, change = HIDDEN[name]
    forged = shutil.copytree(folders / kind, tmp_path / "forged")
    if streamed:
        monkeypatch.setattr(plain, "SMALLEST", 0)
        monkeypatch.setattr(source, "LONG_RELEASE", 0)
    assert forging.passes(forged)
    path = forged / f"data.{kind}"
    honest = path.read_bytes()
    change(path)
    assert path.read_bytes() != honest
    describe_again(forged)
    assert not forging.passes(forged)
