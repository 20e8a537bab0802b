"""The files of a release folder, as bytes, from the released table and its receipt alone."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallyveil.arrays import Floats
from tallyveil.release.methods.preserve import BEST_USE
from tallyveil.release.page import methodology
from tallyveil.release.receipt import Receipt
from tallyveil.tables.table import Table

DATAPACKAGE, RECEIPT, METHODOLOGY = "datapackage.json", "receipt.json", "METHODOLOGY.html"
MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True)
class FileFacts:
    """How long a file is, and its SHA-256."""

    size: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> FileFacts:
        """The facts of a file with this content."""
        return cls(len(content), hashlib.sha256(content).hexdigest())


def build_files(
    data: Table,
    written: FileFacts,
    receipt: Receipt,
    matrices: Sequence[Floats | None],
    proofs: Mapping[str, bytes],
    *,
    sums: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Name and content of every file but the data, which are `written` already, and checksums."""
    return {
        DATAPACKAGE: describe_data(data, written, receipt, sums=sums),
        RECEIPT: receipt.to_json().encode(),
        METHODOLOGY: methodology(receipt, matrices).encode(),
        **proofs,
        **sums,
    }


def describe_data(
    data: Table,
    written: FileFacts,
    receipt: Receipt,
    types: Mapping[str, str] | None = None,
    sums: Mapping[str, bytes] | None = None,
) -> bytes:
    """A Frictionless description of the data file, whose facts are `written`, and of `sums`.

    `types` are those stated for other columns, where they are known: a text file does not say
    of itself whether its codes are numbers.
    """
    fields = [
        _describe_field(name, data, receipt, types or {})
        for name in (*data.index_names, *data.names)
    ]
    resource = _describe_file("data", receipt.table.file, data.format, written, fields)
    package = {
        "profile": "data-package",
        "name": f"private-release-{receipt.release}",
        "title": "Privatized counts",
        "description": receipt.promise,
        "created": receipt.created,
        **receipt.about.describe_package(),
        **({"title": receipt.warning} if receipt.warning else {}),
        "resources": [resource, *(_describe_sums(*item) for item in (sums or {}).items())],
    }
    return (json.dumps(package, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _describe_field(
    name: str, data: Table, receipt: Receipt, types: Mapping[str, str]
) -> dict[str, Any]:
    """One column of the data: a released count, draws before the clamp, or a public column."""
    column = next((column for column in receipt.columns if name in column.columns), None)
    if column is None:
        kind = "string" if name in data.index_names else data.type_of(name)
        return {"name": name, "type": types.get(name, kind), **_describe_ranges(name, receipt)}
    if name == column.drawn_column:
        words = "an unbiased estimate of the count, with noise; see METHODOLOGY.html"
        limits: dict[str, Any] = {"required": True}
    else:
        use = BEST_USE if column.method.tradeoff == 0 else "a privatized count"
        words = f"{use}; see METHODOLOGY.html"
        limits = {"required": True, "minimum": 0, "maximum": column.upper}
    return {"name": name, "type": "integer", "description": words, "constraints": limits}


def _describe_ranges(name: str, receipt: Receipt) -> dict[str, Any]:
    """The public ranges of a column that was counted by ranges."""
    bins = receipt.table.ranges.get(name)
    if bins is None:
        return {}
    begin = ", ".join(f"{limit:.15g}" for limit in bins.limits)
    words = f"ranges that begin at {begin}; each ends where the next begins"
    return {"description": words, "constraints": {"enum": list(receipt.table.list_ranges(name))}}


def _describe_sums(file: str, content: bytes) -> dict[str, Any]:
    """The file of one level of a hierarchy."""
    header = next(csv.reader(io.StringIO(content.decode("utf-8"))))
    fields = [{"name": column, "type": "any"} for column in header]
    return _describe_file(file.removesuffix(".csv"), file, "csv", FileFacts.of(content), fields)


def _describe_file(
    name: str, file: str, kind: str, facts: FileFacts, fields: list[dict[str, Any]]
) -> dict[str, Any]:
    """One file, with its columns."""
    is_text = kind == "csv"
    return {
        "profile": "tabular-data-resource" if is_text else "data-resource",
        "name": name,
        "path": file,
        "format": kind,
        "mediatype": MEDIA_TYPES[kind],
        "encoding": "utf-8",
        "bytes": facts.size,
        "hash": f"sha256:{facts.sha256}",
        "schema": {"fields": fields},
        **({"dialect": {"delimiter": ",", "header": True}} if is_text else {}),
    }
