"""Forge releases: change facts of a receipt, and write every document again from them."""

import hashlib
import json
import shutil

import numpy as np

import tallyveil as tv
from tallyveil.check import package
from tallyveil.release.folder import CHECKSUMS, FileFacts, list_checksums
from tallyveil.release.methods.base import Labels
from tallyveil.release.methods.sums import LevelColumn, read_stated
from tallyveil.release.receipt import Receipt
from tallyveil.release.release import describe_data, read_json, rebuild_methodology

REFUSALS = (
    tv.TallyveilError,
    OSError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)
"""What writing documents from contradictory facts may raise."""

DOCUMENTS = ("receipt.json", "METHODOLOGY.html", "datapackage.json")
"""With the files of totals, what follows from a receipt and the data."""


def reseal(folder):
    """Write the checksums of the files that are there."""
    files = (path for path in folder.iterdir() if path.name != CHECKSUMS)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (folder / CHECKSUMS).write_text(list_checksums(sums))


def checks(folder):
    """Return whether a folder checks, every page compared."""
    return all(finding.ok for finding in tv.check_package(folder))


def passes(folder):
    """Return whether a folder checks once its checksums are right."""
    reseal(folder)
    return checks(folder)


def rebuild(folder, document):
    """Write every document and file of totals again from the facts of a receipt."""
    receipt = Receipt.from_dict(document)
    table = package._read_data(folder, receipt)
    sums = {} if receipt.sums is None else rebuild_sums(folder, table, receipt)
    (folder / "receipt.json").write_text(receipt.to_json(), encoding="utf-8")
    (folder / "METHODOLOGY.html").write_text(rebuild_methodology(folder), encoding="utf-8")
    path = folder / "datapackage.json"
    fields = read_json(path)["resources"][0]["schema"]["fields"]
    types = {field["name"]: field["type"] for field in fields}
    facts = FileFacts.of((folder / receipt.table.file).read_bytes())
    path.write_bytes(describe_data(table, facts, receipt, types, sums))


def rebuild_sums(folder, table, receipt):
    """Write the files of totals again, with the estimates that they state."""
    record = receipt.sums
    free = None if receipt.zeros is None else receipt.zeros.find_free(table)
    grouping = receipt.method.group(Labels(table), free=free)
    files = {}
    for level, name in enumerate(record.files):
        content = (folder / name).read_bytes()
        parts = {}
        for column in receipt.columns:
            accuracy = receipt.method.describe_levels(grouping, column.epsilon, column.upper)
            sums = grouping.full.sum_up(table.counts(column.name))
            missed = None
            if receipt.method.crossed:
                missed = np.array([int(t) for t in read_stated(content, column.name, "missed")])
            estimates = read_stated(content, column.name)
            parts[column.name] = LevelColumn(sums[level], estimates, accuracy, missed)
        files[name] = receipt.method.write_level(level, grouping.full, table, parts)
        (folder / name).write_bytes(files[name])
    return files


def read(folder):
    """Read the receipt of a folder as it is written."""
    return json.loads((folder / "receipt.json").read_text(encoding="utf-8"))


def write(folder, document):
    """Write a receipt in the form that the program writes."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (folder / "receipt.json").write_text(text, encoding="utf-8")


def get(data, path):
    """Return the value at a place of a JSON document."""
    for key in path:
        data = data[key]
    return data


def put(data, path, value):
    """Return a copy of a JSON document with another value at a place."""
    copy = json.loads(json.dumps(data))
    get(copy, path[:-1])[path[-1]] = value
    return copy


def list_places(data, path=(), most=3, groups=False):
    """List the places of a JSON document with a value or a list, or with `groups` an object.

    Of lists the first `most` entries are places.
    """
    if path and (groups or not isinstance(data, dict)):
        yield path
    parts = data.items() if isinstance(data, dict) else ()
    parts = enumerate(data[:most]) if isinstance(data, list) else parts
    for key, value in parts:
        yield from list_places(value, (*path, key), most, groups)


def mutate(value, words=()):
    """Return other values for a place, of its type and of others."""
    if isinstance(value, bool):
        values = [not value, 1, "true", None]
    elif isinstance(value, int):
        values = [value + 1, 0, -1, float(value), str(value), 10**12, value - 1]
    elif isinstance(value, float):
        values = [value / 2, value + 1, 0.0, str(value), value - 1]
    elif isinstance(value, str):
        values = [value + " ", "", *words, "1/1024", "x", None, 7]
    elif isinstance(value, list):
        longer = [value * 2, None, value[::-1], [*value, *value[-1:]]]
        values = [[], value[:-1], *longer] if value else [["x"], None]
    else:
        values = [0, "x", {}, *([None] if value else [])]
    return [other for other in values if other != value or type(other) is not type(value)]


def copy(honest, place):
    """Copy a folder to forge; return it with the contents of all that `rebuild` writes."""
    forged = shutil.copytree(honest, place / "forged")
    paths = (*map(forged.joinpath, DOCUMENTS), *forged.glob("sums-*"))
    return forged, {path.name: path.read_bytes() for path in paths}


def try_fact(forged, content, document):
    """Put a changed receipt into a folder, by hand and with every document written again.

    Return the receipt that passes, or None, and whether documents could be written from it.
    """
    honest = json.loads(content["receipt.json"])
    for name, honest_bytes in content.items():
        (forged / name).write_bytes(honest_bytes)
    write(forged, document)
    if passes(forged):
        return document, False
    try:
        rebuild(forged, document)
    except REFUSALS:
        return None, False
    again = read(forged)  # a fact that follows from others is as it was
    return (again if again != honest and passes(forged) else None), True


def require_same_documents(honest, place):
    """Rebuild an honest folder byte for byte: forgeries then fail because of what they say."""
    again, content = copy(honest, place)
    document = read(again)
    for name in content.keys() - {"datapackage.json"} - {n for n in content if "sums-" in n}:
        (again / name).unlink()
    (again / CHECKSUMS).unlink()
    rebuild(again, document)
    reseal(again)
    for path in honest.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name
    assert checks(again)
