"""`python -m tallyveil.spark FILE ...` is `tallyveil privatize` for a table on a Spark cluster.

FILE is the path or address of Parquet files, or the name of a table; Spark finds its cluster in
its own configuration. `python -m tallyveil.spark run REQUEST` takes a request file.
"""

import sys

from tallyveil.cli.app import run
from tallyveil.spark import publish_source

if __name__ == "__main__":
    if sys.argv[1:2] != ["run"]:
        sys.argv.insert(1, "privatize")
    run(publish_source)
