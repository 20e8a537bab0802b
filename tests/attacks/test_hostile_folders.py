"""A release folder that somebody else made cannot stop its reader: seconds, megabytes, a plain no.

Every case is a folder whose files have at most 10 MB, given to every command that reads folders;
see `test_hostile_mechanisms`.
"""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tallyveil.cli.app import app
from tests.asking import privatize
from tests.attacks import hostile
from tests.attacks.hostile import (
    fill,
    long_texts,
    mark,
    require_cheap_refusal,
    run_measured,
    write_arrow,
)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Releases of one table of 60 rows, as text and as Parquet."""
    place = tmp_path_factory.mktemp("honest")
    table = pa.table({"place": [f"p{k}" for k in range(60)], "cases": [k % 7 for k in range(60)]})
    pq.write_table(table, place / "t.parquet")
    for kind in ("csv", "parquet"):
        options = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1, "format": kind}
        privatize(place / "t.parquet", out=place / kind, **options)
    return place


def edit(folder, change):
    document = json.loads((folder / "receipt.json").read_text())
    change(document)
    (folder / "receipt.json").write_text(json.dumps(document, indent=1))


def set_epsilon(text):
    def change(data):
        data["columns"][0]["stages"][0]["epsilon"] = text

    return lambda folder: edit(folder, change)


def set_in_column(**values):
    return lambda folder: edit(folder, lambda data: data["columns"][0].update(values))


def many_columns(folder):
    edit(folder, lambda data: data.update(columns=data["columns"] * 1500))


def many_stages(folder):
    def change(data):
        stages = data["columns"][0]["stages"]
        data["columns"][0]["stages"] = [stages[0]] * 4000 + stages

    edit(folder, change)


def long_histogram(folder):
    path = folder / "receipt.json"
    text = path.read_text()
    start = text.index('"rows": [') + len('"rows": [')
    path.write_text(text[:start] + fill("0,") + text[start:])


def replace_data(name, make):
    return lambda folder: (folder / name).write_bytes(make())


def rewrite(name, write):
    return lambda folder: write(folder / name)


def make_pipe(name):
    def change(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def make_link(name, target):
    def change(folder):
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return change


ZEROS = {"use_dictionary": False, "data_page_size": 2**30, "write_batch_size": 2**26}
FOLDERS = {
    "csv": {
        "an epsilon with an exponent": set_epsilon("1e400000000"),
        "an epsilon of ten million": set_epsilon("10000000"),
        "an epsilon of many digits": set_epsilon("1/" + "3" * 3999),
        "an upper bound of 10^11": set_in_column(upper=10**11),
        "an upper bound of a million": set_in_column(upper=10**6),
        "many columns": many_columns,
        "many stages": many_stages,
        "a long histogram": long_histogram,
        "rows without end": replace_data("data.csv", lambda: fill("1\n").encode()),
        "rows of two": replace_data("data.csv", lambda: fill("1,1\n", "place,cases\n").encode()),
        "columns without end": replace_data("data.csv", lambda: fill("1,").encode()),
        "many names": replace_data(
            "data.csv", lambda: ",".join(map(str, range(1_400_000))).encode() + b"\n1\n"
        ),
        "a quote that never ends": replace_data("data.csv", lambda: fill('""', '"').encode()),
        "a receipt that is a pipe": make_pipe("receipt.json"),
        "data that are a pipe": make_pipe("data.csv"),
        "a mechanism that is a pipe": make_pipe("mechanism.json"),
        "a certificate that is a pipe": make_pipe("certificate.json"),
        "a page that is a pipe": make_pipe("METHODOLOGY.html"),
        "checksums that are a pipe": make_pipe("SHA256SUMS"),
        "a receipt that is a device": make_link("receipt.json", "/dev/zero"),
        "data that are a device": make_link("data.csv", "/dev/urandom"),
        "a link to itself": make_link("mechanism.json", "mechanism.json"),
        "a description that is deep": replace_data("datapackage.json", lambda: fill("[").encode()),
        "a receipt that is deep": replace_data("receipt.json", lambda: fill("[").encode()),
        "a receipt of objects": replace_data(
            "receipt.json", lambda: fill('{"":0},', "[", "0]").encode()
        ),
        "many checksums": replace_data(
            "SHA256SUMS", lambda: "".join(f"0  {k}\n" for k in range(900_000)).encode()
        ),
    },
    "parquet": {
        "hundreds of millions of rows": rewrite("data.parquet", write_arrow("parquet", 50_000_000)),
        "pages of zeros": rewrite(
            "data.parquet", write_arrow("parquet", 30_000_000, compression="zstd", **ZEROS)
        ),
        "long strings": rewrite("data.parquet", lambda path: long_texts(path, store_schema=True)),
        "noise": replace_data("data.parquet", lambda: b"PAR1" + os.urandom(10**6) + b"PAR1"),
    },
}
QUICK = (
    *("an epsilon with an exponent", "a long histogram", "a receipt that is a pipe"),
    *("a receipt that is a device", "rows of two", "hundreds of millions of rows"),
    "pages of zeros",
)  # the dearest of every kind, in every run
CASES = [(kind, name) for kind, cases in FOLDERS.items() for name in cases]


@pytest.mark.parametrize(("kind", "name"), mark(CASES, QUICK))
def test_a_hostile_folder_is_refused_cheaply(honest, kind, name, tmp_path):
    folder = shutil.copytree(honest / kind, tmp_path / "release")
    FOLDERS[kind][name](folder)
    sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
    assert max(sizes) <= hostile.LARGEST_FILE
    require_cheap_refusal("check", folder)


READERS = {
    "report": ("report",),
    "page": ("report", "--out", "page.html"),
    "column": ("interpret", "--column", "cases", "--out", "read.csv"),
    "groups": ("interpret", "--column", "cases", "--by", "place"),
}
READ_QUICK = ("hundreds of millions of rows", "long strings", "stated rows")
READ = [
    (reader, kind, name)
    for kind, name in [*CASES, ("parquet", "stated rows")]
    for reader in READERS
]


def state_rows(folder):
    """As many rows as a small file may have, all of them stated in the receipt."""
    write_arrow("parquet", 2_400_000)(folder / "data.parquet")
    edit(folder, lambda data: data["table"].update(rows=2_400_000))


@pytest.mark.parametrize(("reader", "kind", "name"), mark(READ, READ_QUICK))
def test_a_hostile_folder_stops_no_reader(honest, reader, kind, name, tmp_path):
    """Other commands read folders without checking them; what they show may be as wrong."""
    folder = shutil.copytree(honest / kind, tmp_path / "release")
    {**FOLDERS[kind], "stated rows": state_rows}[name](folder)
    words = [tmp_path / word if "." in word else word for word in READERS[reader]]
    hostile.require_cheap(*words, folder)


def test_an_honest_release_that_packs_tightly_can_be_read(honest, monkeypatch):
    """More rows than a small file of a stranger may have are read where that is asked for."""
    monkeypatch.setattr("tallyveil.tables.published.ROWS_READ", 10)
    monkeypatch.setattr("tallyveil.tables.published.BYTES_READ", 10**6)
    words = ["interpret", str(honest / "parquet"), "--column", "cases"]
    refused, read = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--large"]))
    assert (refused.exit_code, read.exit_code) == (1, 0)
    assert "say --large" in str(refused.exception)
    assert len(read.stdout.splitlines()) == 61


@pytest.mark.parametrize("kind", FOLDERS)
def test_the_honest_folders_check(honest, kind):
    code, *_, shown = run_measured("check", honest / kind)
    assert code == 0, shown
