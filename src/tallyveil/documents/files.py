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
from tallyveil.documents.page import methodology
from tallyveil.documents.receipt import Receipt
from tallyveil.release.methods.preserve import BEST_USE
from tallyveil.tables.table import Table

__all__ = ["DATAPACKAGE", "METHODOLOGY", "RECEIPT", "FileFacts", "build_files", "describe_data"]

DATAPACKAGE, RECEIPT, METHODOLOGY = "datapackage.json", "receipt.json", "METHODOLOGY.html"
MEDIA_TYPES = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "dta": "application/x-stata-dta",
    "sav": "application/x-spss-sav",
    "xpt": "application/x-sas-xport",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


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
    parts: Mapping[str, Mapping[str, bytes]],
) -> dict[str, bytes]:
    """Name and content of every file but the data, which are `written` already, and checksums.

    `parts` are the files of proofs and of sums, by these two words.
    """
    proofs, sums = parts["proofs"], parts["sums"]
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
    uppers = {column.name: column.upper for column in receipt.columns}
    beside = {name for column in receipt.columns for name in column.columns[1:]}
    beside |= {column.name for column in receipt.columns if column.signed}
    best = {c.name: c.upper for c in receipt.columns if c.is_best}
    fields: list[dict[str, Any]] = []
    for name in (*data.index_names, *data.names):
        if name in best:
            words = f"{BEST_USE}; see METHODOLOGY.html"
            plain = {"name": name, "type": "integer", "description": words}
            limits = {"required": True, "minimum": 0, "maximum": best[name]}
            fields.append({**plain, "constraints": limits})
            continue
        if name in beside:
            words = "an unbiased estimate of the count, with noise; see METHODOLOGY.html"
            plain = {"name": name, "type": "integer", "description": words}
            fields.append({**plain, "constraints": {"required": True}})
            continue
        if name not in uppers:
            kind = (types or {}).get(name)
            if kind is None:
                kind = "string" if name in data.index_names else data.type_of(name)
            fields.append({"name": name, "type": kind, **_describe_ranges(name, receipt)})
            continue
        fields.append(
            {
                "name": name,
                "type": "integer",
                "description": "a privatized count; see METHODOLOGY.html",
                "constraints": {"required": True, "minimum": 0, "maximum": uppers[name]},
            }
        )
    is_text = data.format == "csv"
    resource: dict[str, Any] = {
        "profile": "tabular-data-resource" if is_text else "data-resource",
        "name": "data",
        "path": receipt.table.file,
        "format": data.format,
        "mediatype": MEDIA_TYPES[data.format],
        "encoding": receipt.table.encoding,
        "bytes": written.size,
        "hash": f"sha256:{written.sha256}",
        "schema": {"fields": fields},
    }
    if is_text:
        resource["dialect"] = {"delimiter": receipt.table.delimiter, "header": True}
    package = {
        "profile": "data-package",
        "name": f"private-release-{receipt.release}",
        "title": "Privatized counts",
        "description": receipt.promise,
        "created": receipt.created,
        **receipt.about.describe_package(),
        **({"title": receipt.warning} if receipt.warning else {}),
        "resources": [resource, *(_describe_sums(*one) for one in (sums or {}).items())],
    }
    return (json.dumps(package, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _describe_ranges(name: str, receipt: Receipt) -> dict[str, Any]:
    """The public ranges of a column that was counted by ranges."""
    bins = dict(receipt.table.bins).get(name)
    if bins is None:
        return {}
    begin = ", ".join(f"{limit:.15g}" for limit in bins.limits)
    words = f"ranges that begin at {begin}; each ends where the next begins"
    return {"description": words, "constraints": {"enum": list(receipt.table.list_ranges(name))}}


def _describe_sums(name: str, content: bytes) -> dict[str, Any]:
    """The file of one level of a hierarchy."""
    header = next(csv.reader(io.StringIO(content.decode("utf-8"))))
    return {
        "profile": "tabular-data-resource",
        "name": name.removesuffix(".csv"),
        "path": name,
        "format": "csv",
        "mediatype": MEDIA_TYPES["csv"],
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": {"fields": [{"name": column, "type": "any"} for column in header]},
        "dialect": {"delimiter": ",", "header": True},
    }
