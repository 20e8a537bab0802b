"""What a clever forger does: change facts of a receipt, and make every document again."""

import json
import shutil

import numpy as np

import tallyveil as tv
from tallyveil.check import package
from tallyveil.documents.files import FileFacts, describe_data
from tallyveil.documents.receipt import Receipt
from tallyveil.release.folder import CHECKSUMS, checksums_text
from tallyveil.release.methods.sums import LevelColumn, find_grouping, read_stated
from tallyveil.release.release import read_json, rebuild_methodology

REFUSALS = (
    tv.TallyveilError,
    OSError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)
"""How facts that contradict each other end when documents are made from them by force."""


MADE_AGAIN = ("receipt.json", "METHODOLOGY.html", "datapackage.json")
"""With the files of sums, what documents are made again of."""


def reseal(folder):
    """Write the checksums of the files that are there."""
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != CHECKSUMS}
    (folder / CHECKSUMS).write_text(checksums_text(files))


def checks(folder):
    """Whether a folder checks as it is."""
    return all(finding.ok for finding in tv.check_package(folder))


def passes(folder):
    """Whether a folder checks once its checksums are right."""
    reseal(folder)
    return checks(folder)


def make_again(folder, document):
    """Every document and file of sums, as they follow from the facts of a receipt."""
    receipt = Receipt.from_dict(document)
    table = package._read_data(folder, receipt, True)
    sums = {} if receipt.sums is None else make_sums_again(folder, table, receipt)
    (folder / "receipt.json").write_text(receipt.to_json(), encoding="utf-8")
    (folder / "METHODOLOGY.html").write_text(rebuild_methodology(folder), encoding="utf-8")
    make_description_again(folder, table, receipt, sums)


def make_description_again(folder, table, receipt, sums):
    """The description of the data that are there, with the types it stated."""
    path = folder / "datapackage.json"
    fields = read_json(path)["resources"][0]["schema"]["fields"]
    types = {field["name"]: field["type"] for field in fields}
    facts = FileFacts.of((folder / receipt.table.file).read_bytes())
    path.write_bytes(describe_data(table, facts, receipt, types, sums))


def make_sums_again(folder, table, receipt):
    """The files of a hierarchy's or of margins' levels, with the estimates that they state."""
    record = receipt.sums
    grouping = find_grouping(record.method, table, receipt.zeros)
    made = {}
    for level, name in enumerate(record.files):
        content = (folder / name).read_bytes()
        parts = {}
        for column in receipt.columns:
            accuracy = record.method.describe_levels(grouping, column.epsilon, column.upper)
            sums = grouping.full.sum_up(table.counts(column.name))
            missed = None
            if record.method.crossed:
                missed = np.array([int(t) for t in read_stated(content, column.name, "missed")])
            estimates = read_stated(content, column.name)
            parts[column.name] = LevelColumn(sums[level], estimates, accuracy, missed)
        made[name] = record.method.write_level(level, grouping.full, table, parts)
        (folder / name).write_bytes(made[name])
    return made


def can_make_again(folder, document):
    """Whether documents could be made from these facts; they then lie in the folder."""
    try:
        make_again(folder, document)
    except REFUSALS:
        return False
    return True


def read(folder):
    """The receipt of a folder, as it is written."""
    return json.loads((folder / "receipt.json").read_text(encoding="utf-8"))


def write(folder, document):
    """Write a receipt in the form that the program writes."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (folder / "receipt.json").write_text(text, encoding="utf-8")


def get(data, path):
    """The value at a place of a JSON document."""
    for key in path:
        data = data[key]
    return data


def put(data, path, value):
    """A copy of a JSON document with another value at a place."""
    copy = json.loads(json.dumps(data))
    get(copy, path[:-1])[path[-1]] = value
    return copy


def list_places(data, path=(), most=3, groups=False):
    """Every place in a JSON document that holds a value or a list, or with `groups` an object.

    Of lists the first `most` entries are places.
    """
    if path and (groups or not isinstance(data, dict)):
        yield path
    parts = data.items() if isinstance(data, dict) else ()
    parts = enumerate(data[:most]) if isinstance(data, list) else parts
    for key, value in parts:
        yield from list_places(value, (*path, key), most, groups)


def mutate(value, words=()):
    """Other values for a place, of its own kind and of others."""
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
    """A folder to forge, and the bytes of what is made again in it."""
    forged = shutil.copytree(honest, place / "forged")
    names = [name for name in MADE_AGAIN if (honest / name).exists()]
    return forged, {
        p.name: p.read_bytes() for p in (*map(honest.joinpath, names), *honest.glob("sums-*"))
    }


def try_fact(forged, content, document):
    """Put a changed receipt into a folder, by hand and with everything made again.

    Gives the receipt that passes, or None, and whether documents could be made from it.
    """
    honest = json.loads(content["receipt.json"])
    for name, honest_bytes in content.items():
        (forged / name).write_bytes(honest_bytes)
    write(forged, document)
    if passes(forged):
        return document, False
    if not can_make_again(forged, document):
        return None, False  # facts that contradict each other or the data
    again = read(forged)  # what follows from the facts may have come back as it was
    return (again if again != honest and passes(forged) else None), True


def require_same_documents(honest, place):
    """Forgeries fail because of what they say, not because the tests cannot write documents."""
    again, _ = copy(honest, place)
    make_again(again, read(again))
    reseal(again)
    for path in honest.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name
