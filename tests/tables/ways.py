"""One table written in the ways in which people have files."""

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather


def quote(line):
    return ",".join(f'"{cell}"' for cell in line.split(","))


LINES = {
    "one quoted cell": lambda lines: [*lines[:-1], quote(lines[-1])],
    "all cells quoted": lambda lines: list(map(quote, lines)),
    "semicolons": lambda lines: [line.replace(",", ";") for line in lines],
    "tabs": lambda lines: [line.replace(",", "\t") for line in lines],
    "titles and footnotes": lambda lines: ["A title", "", *lines, "# note", "", "A note", "more"],
}
ENDS = {"Windows": "\r\n", "old Mac": "\r"}
ENCODINGS = ("latin-1", "utf-16", "utf-8-sig")
PACKINGS = {"gz": "gzip", "zst": "zstd"}
OPTIONS = {
    "semicolons": {"delimiter": ";"},
    "tabs": {"delimiter": "tab"},
    "latin-1": {"encoding": "latin-1"},
    "titles and footnotes": {"skiprows": 2, "skipfooter": 2, "comment": "#"},
}
TEXTS = ("plain", *LINES, *ENDS, *ENCODINGS, *PACKINGS)
MIXED = ("titles and footnotes, all cells quoted, Windows, utf-16, zst", "semicolons, latin-1, gz")
WAYS = (*TEXTS, *MIXED, "parquet", "feather")


def write(way, folder, lines, name="cases"):
    """Write lines of cells in a way, or in several; return the path and how it must be read."""
    if way in ("parquet", "feather"):
        header, *rows = csv.reader(io.StringIO("\n".join(lines)))
        columns = zip(*rows, strict=True)
        table = pa.table([_read_numbers(column) for column in columns], names=header)
        path = folder / f"{name}.{way}"
        if way == "parquet":
            pq.write_table(table, path, row_group_size=777)
        else:
            feather.write_feather(table, path, chunksize=555, compression="uncompressed")
        return path, {}
    parts, ending, options = way.split(", "), "csv", {}
    for part, change in LINES.items():  # titles last
        lines = change(lines) if part in parts else lines
    end = next((ENDS[part] for part in parts if part in ENDS), "\n")
    content = (end.join(lines) + end).encode(next((p for p in parts if p in ENCODINGS), "utf-8"))
    for part in parts:
        options |= OPTIONS.get(part, {})
        ending += f".{part}" * (part in PACKINGS)
    path = folder / f"{name}.{ending}"
    path.write_bytes(content)
    for part in set(parts) & set(PACKINGS):
        with pa.CompressedOutputStream(str(path), PACKINGS[part]) as stream:
            stream.write(content)
    return path, options


def _read_numbers(cells):
    numbers = all(cell.isdigit() and str(int(cell)) == cell for cell in cells)
    return pa.array(map(int, cells)) if numbers else pa.array(cells)
