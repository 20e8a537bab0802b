"""A small file that somebody else made cannot stop its reader: seconds, megabytes, a plain no.

Every case is a file or folder of at most 10 MB, given to the program as a recipient would give
it. The program must end by itself with exit code 1 or 2, within 5 seconds of processor time and
500 MB of memory, and say why in its own words.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.proof import certificate as document
from tallyveil.proof.exponent import Growth

MOST_SECONDS, MOST_MEGABYTES, LARGEST_FILE = 5.0, 500, 10 * 2**20
PROGRAM = [sys.executable, "-m", "tallyveil"]
ROOM = 9_900_000  # bytes that a filled file has
PROBE = """
import json, os, sys
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, memory]))
"""  # a small process starts the program, because memory is counted from before the start
LIMITED = ["timeout", "--signal=KILL", "300"]  # a program that waits for ever fails its test


def run_measured(*words):
    """Exit code, processor seconds, megabytes and what was said."""
    command = [sys.executable, "-S", "-c", PROBE, *LIMITED, *PROGRAM, *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    *said, last = done.stdout.strip().splitlines()
    return *json.loads(last), "\n".join([*said, done.stderr])


def require_cheap_refusal(*words):
    code, seconds, megabytes, said = run_measured(*words)
    assert code in (1, 2), said
    assert seconds < MOST_SECONDS, f"{seconds:.1f} s"
    assert megabytes < MOST_MEGABYTES, f"{megabytes} MB"
    assert "Traceback" not in said
    assert "unexpected" not in said


# -- mechanism files and certificates --------------------------------------------------------


def reseal(data, **claims):
    claim = data["certificate"] | claims
    if "epsilon" in claims:
        growth = Growth.of(Fraction(claims["epsilon"]))
        claim["growth"] = {"numerator": str(growth.numerator), "shift": growth.shift}
    return document.canonical(data | {"certificate": document.seal(claim)})


def geometric(upper, **claims):
    data = tv.certify_geometric(tv.Query.count(9), 1).to_dict()
    query = {**data["certificate"]["query"], "upper": upper}
    neighbours = {"kind": "band", "size": upper + 1, "width": 1}
    claims = {"query": query, "neighbours": neighbours, "shape": [upper + 1] * 2} | claims
    return reseal(data, **claims)


def lines_of_ones(size):
    """Rows that total 2^62 in few bytes: all ones but the diagonal."""
    row = ["1"] * size
    return [" ".join([*row[:at], str(2**62 - size + 1), *row[at + 1 :]]) for at in range(size)]


def dense(size, neighbours):
    numbers = list(range(size))
    query = {"kind": "custom", "inputs": numbers, "outputs": numbers, "neighbours": neighbours}
    lines = lines_of_ones(size)
    data = tv.certify(tv.geometric(tv.Query.count(3), 1)).to_dict() | {"weights": lines}
    sha256 = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
    claims = {"query": query, "neighbours": neighbours, "shape": [size, size]}
    return reseal(data, epsilon="700", weights_sha256=sha256, **claims)


def explicit(size, pairs):
    every = ([low, high] for low in range(size) for high in range(low + 1, size))
    listed = list(islice(every, pairs))
    return dense(size, {"kind": "explicit", "size": size, "pairs": listed})


def ladder(size, levels, first="1"):
    lines = lines_of_ones(size)
    lines[0] = lines[0].replace("1", first, 1)
    epsilons = [str(700 - at) for at in range(levels)]
    query = tv.Query.count(size - 1).to_dict()
    parts = {"query": query, "epsilons": epsilons, "weights": [lines] * levels}
    return document.canonical({"format": document.LADDER_FORMAT, "version": 1, **parts})


def weights_instead(lines):
    data = tv.certify(tv.geometric(tv.Query.count(3), 1)).to_dict()
    return document.canonical(data | {"weights": lines})


def fill(part, start="", end=""):
    return start + part * ((ROOM - len(start) - len(end)) // len(part)) + end


def plain(matrix, query='{"kind": "count", "upper": 3}'):
    head = f'{{"format": "tallyveil-mechanism", "version": 1, "name": "x", "query": {query}, '
    return head + f'"epsilon": null, "delta": "0", "matrix": {matrix}}}'


FILES = {
    "a range of a hundred million.json": lambda: geometric(99_999_998),
    "the widest range, a false claim.json": lambda: geometric(3_999_999, epsilon="1/10"),
    "a wide band.json": lambda: dense(2000, {"kind": "band", "size": 2000, "width": 1998}),
    "many pairs.json": lambda: explicit(1900, 42_000),
    "many levels.json": lambda: ladder(400, 29),
    "very many levels.json": lambda: ladder(30, 600),
    "a large ladder.json": lambda: ladder(1900, 1, first="2"),
    "a negative weight.json": lambda: ladder(5, 2, first="-1"),
    "millions of rows.json": lambda: weights_instead(["1"] * 1_400_000),
    "a row of millions.json": lambda: weights_instead([fill("1 ", end="1")] + ["1"] * 3),
    "an epsilon of many digits.json": lambda: geometric(9, name="x" * 9).replace(
        '"epsilon": "1"', f'"epsilon": "1.{"3" * 5000}"'
    ),
    "an epsilon with an exponent.json": lambda: geometric(9).replace(
        '"epsilon": "1"', '"epsilon": "1e400000000"'
    ),
    "much noise.json": lambda: document.canonical(
        tv.certify_noise(1).to_dict() | {"noise": {
            "epsilon": "1", "near": fill("1 ", end="1"), "beyond": "1", "block": "1", "again": "1"}}
    ),
    "a long number.json": lambda: fill("9"),
    "deep lists.json": lambda: fill("["),
    "deep objects.json": lambda: fill('{"":'),
    "many lists.json": lambda: fill("[],", "[", "[]]"),
    "many objects.json": lambda: fill('{"":0},', "[", "{}]"),
    "many numbers.json": lambda: fill("0,", '{"format": "tallyveil-ladder", "weights": [', "0]}"),
    "indented numbers.json": lambda: fill(
        "   0,\n", '{\n "format": "tallyveil-ladder",\n "weights": [\n', "   0]}\n"
    ),
    "quotes that never end.json": lambda: fill('\\"', '"'),
    "a wide plain matrix.json": lambda: plain(fill("0,", "[[", "0]]")),
    "a long plain matrix.json": lambda: plain(fill("0,", "[", "0]")),
    "a plain matrix of a huge query.json": lambda: plain(
        "[[1]]", '{"kind": "count", "upper": 3999999}'
    ),
    "fine categories.json": lambda: plain(
        "[[1]]", '{"kind": "count", "upper": 3, "categories": 1e-300}'
    ),
    "one column.csv": lambda: fill("0\n"),
    "one row.csv": lambda: fill("0,", end="0\n"),
    "a square.csv": lambda: "\n".join([",".join(["0"] * 2200)] * 2200) + "\n",
    "long cells.csv": lambda: fill("1", end="\n1\n"),
    "open quotes.csv": lambda: fill('"'),
    "a sparse ptable.csv": lambda: "i,j,p\n" + "".join(f"{k},{k},1\n" for k in range(550_000)),
    "one row of a ptable.csv": lambda: "i,j,p\n" + "".join(f"0,{k},0\n" for k in range(900_000)),
    "labels of no use.csv": lambda: "true,nan,inf\n1e400,0.5,0.5\n-inf,0.5,0.5\n",
}  # fmt: skip


QUICK = (
    *("a range of a hundred million.json", "a wide band.json", "many levels.json"),
    *("a negative weight.json", "deep objects.json", "indented numbers.json"),
    *("one column.csv", "a sparse ptable.csv"),
    *("an epsilon with an exponent", "a long histogram", "old stages that take long"),
    *("a receipt that is a pipe", "a receipt that is a device", "hundreds of millions of rows"),
    *("pages of zeros", "zeros", "rows of two", "many packed rows", "many sheet rows"),
)  # of every kind the dearest, in every run


def mark(names):
    """The names as cases, most of them for the long run."""
    slow = pytest.mark.slow
    return [pytest.param(*n, marks=() if n[-1] in QUICK else slow, id="-".join(n)) for n in names]


@pytest.mark.parametrize("name", mark([(name,) for name in FILES]))
def test_a_hostile_mechanism_file_is_refused_cheaply(name, tmp_path):
    path = tmp_path / name
    path.write_text(FILES[name](), encoding="utf-8")
    assert path.stat().st_size <= LARGEST_FILE
    require_cheap_refusal("verify", path)


# -- release folders -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Releases of one table of 60 rows, as text, Parquet and Feather."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    place = tmp_path_factory.mktemp("honest")
    counts = [k % 7 for k in range(60)]
    table = pa.table({"place": [f"p{k}" for k in range(60)], "cases": counts})
    pq.write_table(table, place / "t.parquet")
    feather.write_feather(table, place / "t.feather")
    (place / "t.csv").write_text("place,cases\n" + "".join(f"p{k},{k % 7}\n" for k in range(60)))
    options = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
    for kind in ("csv", "parquet", "feather"):
        tv.privatize(place / f"t.{kind}", out=place / kind, **options)
    for kind in ("csv.gz", "csv.zst", "xlsx", "dta"):
        tv.privatize(place / "t.csv", out=place / kind, format=kind, **options)
    return place


def edit(folder, change):
    document = json.loads((folder / "receipt.json").read_text())
    change(document)
    (folder / "receipt.json").write_text(json.dumps(document, indent=1))


def set_epsilon(text):
    return lambda folder: edit(folder, lambda data: data["stages"][0].update(epsilon_exact=text))


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


def old_stages(folder):
    """A receipt of version 1 with stages whose noise takes long to build."""
    old = Path(__file__).parents[1] / "golden" / "version-1" / "preserve"
    shutil.rmtree(folder)
    shutil.copytree(old, folder)

    def change(data):
        column = data["columns"][0]
        first = column["stages"][0]
        tiny = [{**first, "epsilon_exact": f"1/{10**9 + k}"} for k in range(12)]
        column["stages"] = [*tiny, *column["stages"]]

    edit(folder, change)


def replace_data(name, make):
    return lambda folder: (folder / name).write_bytes(make())


def parquet_of(array, **options):
    def make():
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(pa.table({"place": array(), "cases": array()}), buffer, **options)
        return buffer.getvalue()

    return make


def feather_of(rows, compression):
    def make():
        import pyarrow as pa
        from pyarrow import feather

        buffer = io.BytesIO()
        zeros = np.zeros(rows, dtype=np.int64)
        table = pa.table({"place": zeros, "cases": zeros})
        feather.write_feather(table, buffer, compression=compression, chunksize=10**7)
        return buffer.getvalue()

    return make


def long_strings():
    """A dictionary of one string of 5 MB that a million rows refer to, and a count column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 1_000_000
    codes = pa.array(np.zeros(rows, dtype=np.int32))
    words = pa.DictionaryArray.from_arrays(codes, pa.array([os.urandom(2_500_000).hex()]))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"place": words, "cases": np.zeros(rows, dtype=np.int64)}), buffer)
    return buffer.getvalue()


def packed(packing, rows):
    """A few kilobytes that unpack to very many rows."""

    def make():
        import pyarrow as pa

        content = b"place,cases\n" + b"1,1\n" * rows
        if packing == "gzip":
            return gzip.compress(content)
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, packing) as stream:
            stream.write(content)
        return sink.getvalue().to_pybytes()

    return make


def many_sheet_rows(folder):
    """A workbook whose sheet has a million more rows than the receipt states."""
    path, buffer = folder / "data.xlsx", io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("sheet1.xml"):
                end = content.index(b"</sheetData>")
                more = b"<row><c><v>1</v></c><c><v>1</v></c></row>" * 1_000_000
                content = content[:end] + more + content[end:]
            new.writestr(name, content)
    path.write_bytes(buffer.getvalue())


def long_stata():
    """A file of more than a million rows."""
    import pandas as pd
    import pyreadstat

    zeros = np.zeros(1_200_000, dtype=np.int8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.dta")
        pyreadstat.write_dta(pd.DataFrame({"place": zeros, "cases": zeros}), path)
        return path.read_bytes()


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
        "old stages that take long": old_stages,
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
        "hundreds of millions of rows": replace_data(
            "data.parquet", parquet_of(lambda: np.zeros(50_000_000, dtype=np.int64))
        ),
        "pages of zeros": replace_data(
            "data.parquet",
            parquet_of(lambda: np.zeros(30_000_000, dtype=np.int64), compression="zstd", **ZEROS),
        ),
        "long strings": replace_data("data.parquet", long_strings),
        "noise": replace_data("data.parquet", lambda: b"PAR1" + os.urandom(10**6) + b"PAR1"),
    },
    "feather": {
        "zeros": replace_data("data.arrow", feather_of(50_000_000, "zstd")),
        "noise": replace_data("data.arrow", lambda: b"ARROW1" + os.urandom(10**6) + b"ARROW1"),
    },
    "csv.gz": {"rows without end": replace_data("data.csv.gz", packed("gzip", 90_000_000))},
    "csv.zst": {
        "many packed rows": replace_data("data.csv.zst", packed("zstd", 8_000_000)),
        "noise": replace_data("data.csv.zst", lambda: b"\x28\xb5\x2f\xfd" + os.urandom(10**6)),
    },
    "xlsx": {"many sheet rows": many_sheet_rows},
    "dta": {"a million rows": replace_data("data.dta", long_stata)},
}
CASES = [(kind, name) for kind, cases in FOLDERS.items() for name in cases]


@pytest.mark.parametrize(("kind", "name"), mark(CASES))
def test_a_hostile_folder_is_refused_cheaply(honest, kind, name, tmp_path):
    folder = shutil.copytree(honest / kind, tmp_path / "release")
    FOLDERS[kind][name](folder)
    sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
    assert max(sizes) <= LARGEST_FILE
    require_cheap_refusal("check", folder)


@pytest.mark.parametrize("kind", FOLDERS)
def test_the_honest_folders_check(honest, kind):
    code, *_, said = run_measured("check", honest / kind)
    assert code == 0, said


def test_other_commands_wait_for_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    os.mkfifo(tmp_path / "m.json")
    for words in (
        ("verify", tmp_path / "t.csv"),
        ("verify", tmp_path / "m.json"),
        ("inspect", tmp_path / "t.csv"),
        ("interpret", "--released", "3", "--mechanism", tmp_path / "m.json"),
    ):
        require_cheap_refusal(*words)
