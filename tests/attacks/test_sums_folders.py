"""Folders of hierarchies, margins, strata and zeros: what a forger changes is found.

Estimates before rounding rest on draws that are not published: a forger who changes a margin's
estimate together with its interval is not found. That is the only place.
"""

import csv
import io
import itertools
import json
import shutil

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.documents.files import FileFacts, describe_data
from tallyveil.documents.receipt import Receipt
from tallyveil.plans.sum_files import describe_levels, read_stated, write_level
from tallyveil.plans.zeros import find_grouping
from tallyveil.publish.folder import CHECKSUMS, checksums_text
from tallyveil.publish.reopen import rebuild_methodology
from tallyveil.tables.source import read_table

ZEROS = ["sex = m and part = b", "region = w"]
KINDS = {
    "hierarchy": {"hierarchy": "region,ward"},
    "exact": {"hierarchy": "region,ward", "invariant": "region", "level_weights": "1,2,3,4"},
    "bounds": {"hierarchy": "region,ward", "bounds": "people"},
    "margins": {"margins": "region+ward,sex"},
    "strata": {"strata": "region"},
}
FACTS = ("hierarchy", "structural_zeros", "strata")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("honest")
    draw = np.random.default_rng(8)
    rows = [
        (region, f"{region}{ward}", sex, part)
        for region, wards in (("n", 3), ("s", 2), ("w", 1))
        for ward, sex, part in itertools.product(range(wards), "fm", "abc")
    ]
    frame = pd.DataFrame(rows, columns=["region", "ward", "sex", "part"])
    zero = ((frame.sex == "m") & (frame.part == "b")) | (frame.region == "w")
    cases = np.where(zero, 0, draw.integers(0, 9, len(frame)))
    frame = frame.assign(people=draw.integers(0, 9, len(frame)), cases=cases)
    for name, asked in KINDS.items():
        options = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1, "zero": ZEROS}
        tv.privatize(frame, **options, **asked, out=place / name)
    return place


def reseal(folder):
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != CHECKSUMS}
    (folder / CHECKSUMS).write_text(checksums_text(files))


def passes(folder):
    reseal(folder)
    return all(finding.ok for finding in tv.check_package(folder))


def list_places(data, path=()):
    """Every place in a JSON document, lists and groups included."""
    yield path
    parts = data.items() if isinstance(data, dict) else ()
    parts = enumerate(data) if isinstance(data, list) else parts
    for key, value in parts:
        yield from list_places(value, (*path, key))


def list_others(value):
    """Other values for a place."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1, value - 1, 0]
    if isinstance(value, str):
        return [f"{value}x", "", "ward", "total"]
    if isinstance(value, list):
        return [[], value[:-1], value[::-1], [*value, *value[-1:]]]
    return [None, {}]


def change(document, path, value):
    copy = json.loads(json.dumps(document))
    if not path:
        return value
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


def rebuild(folder, document):
    """All documents, and the files of sums, as they follow from the forged facts."""
    receipt = Receipt.from_dict(document)
    path = folder / receipt.table.file
    table = read_table(path, receipt.table.delimiter, receipt.table.encoding)
    made = {}
    if receipt.sums is not None:
        made = rebuild_sums(folder, table, receipt)
    (folder / "receipt.json").write_text(receipt.to_json(), encoding="utf-8")
    (folder / "METHODOLOGY.html").write_text(rebuild_methodology(folder), encoding="utf-8")
    facts = FileFacts.of(path.read_bytes())
    (folder / "datapackage.json").write_bytes(describe_data(table, facts, receipt, sums=made))


def rebuild_sums(folder, table, receipt):
    record, column = receipt.sums, receipt.columns[0]
    grouping = find_grouping(record.request, table, receipt.zeros)
    accuracy = describe_levels(record.request, grouping, column.epsilon, column.upper)
    sums = grouping.whole.sum_up(table.counts(column.name))
    made = {}
    for level, name in enumerate(record.files):
        content = (folder / name).read_bytes()
        missed = None
        if record.request.margins:
            missed = np.array([int(t) for t in read_stated(content, column.name, "missed")])
        parts = (sums[level], read_stated(content, column.name), accuracy, missed)
        made[name] = write_level(level, record, grouping.whole, table, {column.name: parts})
        (folder / name).write_bytes(made[name])
    return made


@pytest.mark.parametrize("name", list(KINDS))
def test_no_fact_of_a_receipt_about_groups_and_zeros_can_be_changed(folders, tmp_path, name):
    honest, forged = folders / name, tmp_path / "forged"
    assert passes(honest)
    document = json.loads((honest / "receipt.json").read_text(encoding="utf-8"))
    facts = {key: document[key] for key in FACTS if key in document}
    assert "structural_zeros" in facts
    assert len(facts) == 2
    tried, survivors = 0, []
    for path in list_places(facts):
        here = facts
        for key in path:
            here = here[key]
        for value in list_others(here) if path else ():
            if value == here:
                continue
            shutil.rmtree(forged, ignore_errors=True)
            shutil.copytree(honest, forged)
            changed = change(document, path, value)
            text = json.dumps(changed, indent=1, ensure_ascii=False) + "\n"
            (forged / "receipt.json").write_text(text, encoding="utf-8")
            tried += 1
            if passes(forged):
                survivors.append((path, value))
                continue
            try:
                rebuild(forged, changed)
            except Exception:  # facts that contradict each other or the data
                continue
            again = json.loads((forged / "receipt.json").read_text(encoding="utf-8"))
            if again != document and passes(forged):
                survivors.append((path, value))
    assert tried > 15
    weights = ("hierarchy", "level_weights")  # others may lead to the same shares
    assert not [one for one in survivors if one[0][:2] != weights]


@pytest.mark.parametrize("name", list(KINDS))
def test_no_cell_of_the_data_or_of_a_file_of_sums_can_be_changed(folders, tmp_path, name):
    forged = shutil.copytree(folders / name, tmp_path / "forged")
    for path in (forged / "data.csv", *sorted(forged.glob("sums-*.csv"))):
        honest = path.read_bytes()
        rows = list(csv.reader(io.StringIO(honest.decode("utf-8"))))
        chosen = [*range(min(3, len(rows))), len(rows) - 1]
        for at, place in itertools.product(chosen, range(len(rows[0]))):
            old = rows[at][place]
            number = old.lstrip("-").replace(".", "", 1).isdigit()
            rows[at][place] = str(float(old) + 1) if "." in old and number else f"{old}1"
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(rows)
            path.write_text(text.getvalue(), encoding="utf-8")
            rows[at][place] = old
            assert not passes(forged), (path.name, at, place)
        path.write_text("".join(honest.decode("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
        assert not passes(forged), path.name
        path.write_bytes(honest)
    assert passes(forged)


@pytest.mark.parametrize("name", list(KINDS))
def test_no_stage_of_a_group_can_be_left_out_or_renamed(folders, tmp_path, name):
    honest, forged = folders / name, tmp_path / "forged"
    document = json.loads((honest / "receipt.json").read_text(encoding="utf-8"))
    stages = document["columns"][0]["stages"]
    for at in range(len(stages)):
        for kept in ([s for i, s in enumerate(stages) if i != at], [*stages, stages[at]]):
            shutil.rmtree(forged, ignore_errors=True)
            shutil.copytree(honest, forged)
            changed = change(document, ("columns", 0, "stages"), kept)
            text = json.dumps(changed, indent=1, ensure_ascii=False) + "\n"
            (forged / "receipt.json").write_text(text, encoding="utf-8")
            assert not passes(forged)
            try:
                rebuild(forged, changed)
            except Exception:
                continue
            assert not passes(forged)
