"""The same table in every library."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

ENGINES = ("csv", "tsv", "parquet", "arrow", "arrow file", "pandas", "pandas index", "polars")


@pytest.fixture(params=ENGINES)
def build(request, tmp_path):
    """Build the source of a table from columns, as a user of one library would hold it."""

    def make(columns):
        frame = pd.DataFrame(columns)
        if request.param in ("csv", "tsv"):
            path = tmp_path / f"table.{request.param}"
            frame.to_csv(path, index=False, sep="\t" if request.param == "tsv" else ",")
            return path
        if request.param == "parquet":
            pq.write_table(pa.table(columns), tmp_path / "table.parquet", row_group_size=3)
            return tmp_path / "table.parquet"
        if request.param == "arrow file":
            pa.feather.write_feather(pa.table(columns), tmp_path / "table.arrow", chunksize=2)
            return tmp_path / "table.arrow"
        if request.param == "pandas index":
            return frame.set_index(next(iter(columns)))
        library = {"arrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}
        return library[request.param](columns)

    return make
