"""The files of a release folder, as bytes, from the released table and its receipt alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from tallyveil.publish.page.methodology import methodology
from tallyveil.publish.plan import ColumnPlan, Drawn
from tallyveil.tables.base import Table

__all__ = ["bundle"]

MEDIA_TYPES = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
}


def bundle(
    data: Table, columns: Sequence[tuple[ColumnPlan, Drawn]], receipt: dict[str, Any]
) -> dict[str, bytes]:
    """Name and content of every file but the checksums."""
    content = data.to_bytes()
    name = receipt["table"]["file"]
    files = {
        name: content,
        "datapackage.json": _json(_datapackage(data, content, receipt)),
        "receipt.json": _json(receipt),
        "METHODOLOGY.html": methodology(receipt, [drawn.picture for _, drawn in columns]).encode(),
    }
    for (plan, _), record in zip(columns, receipt["columns"], strict=True):
        files[record["mechanism"]["file"]] = plan.mechanism_bytes
        files[record["certificate"]["file"]] = plan.certificate_bytes
    return files


def _datapackage(data: Table, content: bytes, receipt: dict[str, Any]) -> dict[str, Any]:
    """A Frictionless description of the data file."""
    counted = {column["name"]: column for column in receipt["columns"]}
    fields: list[dict[str, Any]] = [{"name": name, "type": "string"} for name in data.index_names]
    for name in data.names:
        if name not in counted:
            fields.append({"name": name, "type": data.type_of(name)})
            continue
        upper = counted[name]["upper"]
        fields.append(
            {
                "name": name,
                "type": "integer",
                "description": "a privatized count; see METHODOLOGY.html",
                "constraints": {"required": True, "minimum": 0, "maximum": upper},
            }
        )
    resource: dict[str, Any] = {
        "profile": "tabular-data-resource" if data.extension in ("csv", "tsv") else "data-resource",
        "name": "data",
        "path": receipt["table"]["file"],
        "format": data.extension,
        "mediatype": MEDIA_TYPES[data.extension],
        "encoding": receipt["table"]["encoding"],
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": {"fields": fields},
    }
    if data.extension in ("csv", "tsv"):
        resource["dialect"] = {"delimiter": receipt["table"]["delimiter"], "header": True}
    return {
        "profile": "data-package",
        "name": f"private-release-{receipt['release']}",
        "title": "Privatized counts",
        "description": receipt["promise"],
        "created": receipt["created"],
        "resources": [resource],
    }


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()
