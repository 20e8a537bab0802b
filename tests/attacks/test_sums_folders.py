"""Folders of hierarchies, margins, strata and zeros: what a forger changes is found.

Estimates before rounding rest on draws that are not published: a forger who changes one together
with its interval, by less than rounding does, is not found.
"""

import csv
import importlib.util
import io
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv

spec = importlib.util.spec_from_file_location("forging", Path(__file__).with_name("forging.py"))
forging = importlib.util.module_from_spec(spec)
spec.loader.exec_module(forging)
passes = forging.passes
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


@pytest.mark.parametrize("name", list(KINDS))
def test_a_forger_makes_the_same_documents_from_the_same_facts(folders, tmp_path, name):
    """Forgeries fail because of what they say, not because the tests cannot write documents."""
    again = shutil.copytree(folders / name, tmp_path / "again")
    forging.make_again(again, forging.read(again))
    for path in (folders / name).iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("name", list(KINDS))
def test_no_fact_of_a_receipt_about_groups_and_zeros_can_be_changed(folders, tmp_path, name):
    honest, forged = folders / name, tmp_path / "forged"
    assert passes(honest)
    document = json.loads((honest / "receipt.json").read_text(encoding="utf-8"))
    facts = {key: document[key] for key in FACTS if key in document}
    assert "structural_zeros" in facts
    assert len(facts) == 2
    tried, rebuilt, survivors = 0, 0, []
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
            if not forging.can_make_again(forged, changed):
                continue  # facts that contradict each other or the data
            rebuilt += 1
            if forging.read(forged) != document and passes(forged):
                survivors.append((path, value))
    assert tried > 15
    assert rebuilt
    weights = ("hierarchy", "level_weights")  # others may lead to the same shares
    rules = set(facts["structural_zeros"]["rules"])  # in another order, or twice, they are the same
    for path, value in survivors:
        assert path[:2] == weights or (path[-1] == "rules" and set(value) == rules), (path, value)


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


def edit(path, change):
    """A file of rows, changed by `change`, which is given its header and rows of cells."""
    header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
    change(header, rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    path.write_text(text.getvalue(), encoding="utf-8")


def move(label, by):
    """Move the estimate of a group; its interval follows when the file is made again."""

    def change(header, rows):
        at = header.index("cases_estimate")
        for row in rows:
            if label in row[: header.index("cases")]:
                row[at] = f"{float(row[at]) + by:.3f}"

    return change


SHIFTS = {  # by kind: the labels that are moved in each file, up and down
    "hierarchy": {1: "ns", 2: ("n0", "s0")},
    "bounds": {2: ("n0", "n1")},
    "exact": {2: ("s0", "s1")},
    "margins": {0: ("n0", "n1")},
}


@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.parametrize("by", [4, 500])
def test_no_estimate_can_be_moved_to_another_group(folders, tmp_path, name, by):
    forged = shutil.copytree(folders / name, tmp_path / "forged")
    document = json.loads((forged / "receipt.json").read_text(encoding="utf-8"))
    for level, (up, down) in SHIFTS[name].items():
        edit(forged / f"sums-{level}.csv", move(up, by))
        edit(forged / f"sums-{level}.csv", move(down, -by))
    forging.make_again(forged, document)
    assert not passes(forged)


def test_no_estimate_of_a_margin_can_be_moved_alone(folders, tmp_path):
    forged = shutil.copytree(folders / "margins", tmp_path / "forged")
    document = json.loads((forged / "receipt.json").read_text(encoding="utf-8"))
    edit(forged / "sums-1.csv", move("f", 30))
    forging.make_again(forged, document)
    assert not passes(forged)


def test_misses_of_margins_are_compared_and_cannot_be_left_out(folders, tmp_path):
    forged = shutil.copytree(folders / "margins", tmp_path / "forged")
    document = json.loads((forged / "receipt.json").read_text(encoding="utf-8"))
    (column,) = document["columns"]
    for stated in ([most + 1 for most in column["missed"]], column["missed"][:1]):
        column["missed"] = stated
        forging.make_again(forged, document)
        assert not passes(forged)
    del column["missed"]
    with pytest.raises(tv.errors.PackageError):
        forging.make_again(forged, document)


@pytest.mark.parametrize("name", ["hierarchy", "margins"])
@pytest.mark.parametrize("form", ["{}0", " {}", "+{}", "0{}"])
def test_estimates_stand_in_one_form(folders, tmp_path, name, form):
    forged = shutil.copytree(folders / name, tmp_path / "forged")
    document = json.loads((forged / "receipt.json").read_text(encoding="utf-8"))

    def change(header, rows):
        at = header.index("cases_estimate")
        rows[0][at] = form.format(rows[0][at])

    edit(forged / "sums-0.csv", change)
    forging.make_again(forged, document)
    assert not passes(forged)


@pytest.mark.parametrize("asked", ["hierarchy", "margins", "strata"])
def test_draws_that_no_noise_gives_are_found(folders, tmp_path, asked):
    columns = ["region", "ward", "sex", "part", "cases"]
    frame = pd.read_csv(folders / asked / "data.csv")[columns].assign(cases=0)
    options = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1, "unbiased": True}
    forged = tmp_path / "forged"
    tv.privatize(frame, **options, **KINDS[asked], out=forged)
    assert passes(forged)
    document = json.loads((forged / "receipt.json").read_text(encoding="utf-8"))

    def change(header, rows):
        at = header.index("cases_unbiased")
        lowest = min(rows, key=lambda row: int(row[at]))
        lowest[at] = "-5000"

    edit(forged / "data.csv", change)
    forging.make_again(forged, document)
    assert not passes(forged)


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
            if forging.can_make_again(forged, changed):
                assert not passes(forged)
