"""Hold one table in every kind of source: `ENGINES` by name.

An engine is given columns and a path without an ending. It returns a table, or a table and the
options that say how it is read. How a source is written (quotes, row groups, chunks) may depend on
every cell: none of that may be seen in a release.
"""

import csv as csv_format
import gzip
import random

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
from pyarrow import feather

ENGINES = {}


def hold(name, columns, path):
    """Hold columns in a kind of source; return it, and the options that say how it is read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = ENGINES[name](columns, path)
    return source if isinstance(source, tuple) else (source, {})


def engine(build):
    """List a function as an engine."""
    ENGINES[build.__name__.replace("_", " ")] = build
    return build


def vary(columns, *choices):
    """Choose by what the cells hold."""
    return random.Random(repr(columns)).choice(choices)


def write_text(columns, path, ending=".csv", **options):
    path = path.with_suffix(ending)
    pd.DataFrame(columns, dtype=object).to_csv(path, index=False, **options)
    return path


def list_text(name, ending=".csv", options=None, **form):
    """List a way to write text, and the options that say how it is read."""

    def build(columns, path):
        return write_text(columns, path, ending, **form), options or {}

    build.__name__ = name
    engine(build)


list_text("csv")
list_text("windows_csv", lineterminator="\r\n")
list_text("tsv", ".tsv", sep="\t")
list_text("semicolons", options={"delimiter": ";"}, sep=";")
list_text("western_csv", options={"encoding": "latin-1"}, encoding="latin-1")
list_text("wide_csv", encoding="utf-16")


@engine
def quoted_csv(columns, path):
    return write_text(
        columns, path, quoting=vary(columns, csv_format.QUOTE_ALL, csv_format.QUOTE_NONNUMERIC)
    )


@engine
def one_quoted_cell(columns, path):
    path = write_text(columns, path)
    lines = path.read_text(encoding="utf-8").splitlines()
    first, comma, rest = lines[-1].partition(",")
    if len(lines) > 1 and '"' not in first:
        lines[-1] = f'"{first}"{comma}{rest}'
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@engine
def titled_csv(columns, path):
    path = write_text(columns, path)
    content = path.read_text(encoding="utf-8")
    path.write_text(f"A table\n2026\n{content}A note\n", encoding="utf-8")
    return path, {"skiprows": 2, "skipfooter": 1}


@engine
def packed_csv(columns, path):
    content = write_text(columns, path).read_bytes()
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(content))
    return path.with_suffix(".csv.gz")


@engine
def zstandard_csv(columns, path):
    content = write_text(columns, path).read_bytes()
    with pa.CompressedOutputStream(str(path.with_suffix(".csv.zst")), "zstd") as stream:
        stream.write(content)
    return path.with_suffix(".csv.zst")


@engine
def parquet(columns, path):
    path = path.with_suffix(".parquet")
    packing = vary(columns, "snappy", "zstd", "none")
    size = vary(columns, 2, 7, 1000)
    pq.write_table(coded_arrow(columns, path), path, row_group_size=size, compression=packing)
    return path


@engine
def feather_file(columns, path):
    path = path.with_suffix(".feather")
    feather.write_feather(sliced_arrow(columns, path), path, chunksize=vary(columns, 2, 5))
    return path


@engine
def plain_arrow(columns, path):
    return pa.table(columns)


@engine
def arrow_batch(columns, path):
    return pa.RecordBatch.from_pydict(columns)


@engine
def coded_arrow(columns, path):
    """Dictionaries in the order of first appearance, chunks and metadata."""
    arrays = {}
    for name, values in columns.items():
        array = pa.array(values)
        arrays[name] = array.dictionary_encode() if pa.types.is_string(array.type) else array
    table = pa.table(arrays).replace_schema_metadata({"people": str(columns)})
    cut = vary(columns, 0, 1, 2)
    return pa.concat_tables([table[:cut], table[cut:]])


@engine
def sliced_arrow(columns, path):
    """A view of a larger table: its buffers hold a row that is not published."""
    longer = {name: [values[-1] if values else None, *values] for name, values in columns.items()}
    return pa.table(longer).slice(1)


@engine
def plain_pandas(columns, path):
    return pd.DataFrame(columns)


@engine
def coded_pandas(columns, path):
    frame = pd.DataFrame(columns)
    for name in ("sex", "area", "label"):
        if name in frame:
            frame[name] = frame[name].astype("category")
    frame.attrs["people"] = len(frame)
    frame.columns.name = "people"
    return frame


@engine
def small_pandas(columns, path):
    """Numbers in the smallest type that holds them, which tells the largest."""
    frame = pd.DataFrame(columns)
    for name in ("cases", "tests", "age", "code"):
        if name in frame and frame[name].dtype.kind in "iuf":
            frame[name] = pd.to_numeric(frame[name], downcast="unsigned")
    return frame


@engine
def indexed_pandas(columns, path):
    return pd.DataFrame(columns).set_index("area")


@engine
def arrow_pandas(columns, path):
    return coded_arrow(columns, path).to_pandas(types_mapper=pd.ArrowDtype)


@engine
def plain_polars(columns, path):
    return pl.DataFrame(columns)


@engine
def coded_polars(columns, path):
    frame = pl.DataFrame(columns)
    words = [name for name in frame.columns if frame.schema[name] == pl.String]
    return frame.with_columns(pl.col(words).cast(pl.Categorical))


@engine
def lazy_polars(columns, path):
    return pl.DataFrame(columns).lazy()


@engine
def excel(columns, path):
    path = path.with_suffix(".xlsx")
    pd.DataFrame(columns, dtype=object).to_excel(path, index=False, engine="xlsxwriter")
    return path


def label_all(columns):
    """Empty cells of words are empty words: statistics programs know no other."""
    words = {n for n, values in columns.items() if any(isinstance(v, str) for v in values)}
    return pd.DataFrame(
        {n: ["" if v is None and n in words else v for v in c] for n, c in columns.items()}
    )


@engine
def stata(columns, path):
    path = path.with_suffix(".dta")
    pyreadstat.write_dta(label_all(columns), path, file_label=str(columns)[:50])
    return path


@engine
def spss(columns, path):
    """Labels of values, and a row for each person's own code."""
    path = path.with_suffix(".sav")
    labels = {area: f"label {at}" for at, area in enumerate(columns.get("area", ()))}
    labels = {"area": labels} if labels else {}
    pyreadstat.write_sav(label_all(columns), path, variable_value_labels=labels, compress=True)
    return path


@engine
def sas(columns, path):
    path = path.with_suffix(".xpt")
    pyreadstat.write_xport(label_all(columns), path, file_format_version=8)
    return path


@engine
def database(columns, path):
    address = path.with_suffix(".db")
    with duckdb.connect(address) as opened:
        opened.register("people", pa.table(columns))
        opened.execute("CREATE TABLE people_kept AS SELECT * FROM people")
    return f"duckdb:{address}", {"sql": "SELECT * FROM people_kept"}
