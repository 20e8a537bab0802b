"""What a clever forger does: change facts of a receipt, and make every document again."""

import json

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


def reseal(folder):
    """Write the checksums of the files that are there."""
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != CHECKSUMS}
    (folder / CHECKSUMS).write_text(checksums_text(files))


def passes(folder):
    """Whether a folder checks once its checksums are right."""
    reseal(folder)
    return all(finding.ok for finding in tv.check_package(folder))


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
