"""Folders of hierarchies, margins, strata and zeros: what a forger changes is found.

Estimates before rounding rest on draws that are not published: a forger who changes one together
with its interval, by less than rounding does, is not found.
"""

import csv
import io
import itertools

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tests.asking import privatize
from tests.attacks import forging

passes = forging.passes
ZEROS = ["sex = m and part = b", "region = w"]
KINDS = {
    "hierarchy": {"hierarchy": "region,ward"},
    "exact": {"hierarchy": "region,ward", "invariant": "region", "weights": "1,2,3,4"},
    "upper_column": {"hierarchy": "region,ward", "upper_column": "people"},
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
        options = {
            "count": "cases",
            "keep": "all",
            "upper": 9,
            "epsilon": 1,
            "structural_zeros": ZEROS,
        }
        privatize(frame, **options, **asked, out=place / name)
    return place


@pytest.mark.parametrize("name", KINDS)
def test_a_forger_makes_the_same_documents_from_the_same_facts(folders, tmp_path, name):
    forging.require_same_documents(folders / name, tmp_path)


@pytest.mark.parametrize("name", KINDS)
def test_no_fact_of_a_receipt_about_groups_and_zeros_can_be_changed(folders, tmp_path, name):
    document = forging.read(folders / name)
    forged, content = forging.copy(folders / name, tmp_path)
    assert passes(forged)
    facts = {key: document[key] for key in FACTS if key in document}
    assert "structural_zeros" in facts
    assert len(facts) == 2
    tried, rebuilt, survivors = 0, 0, []
    for path in forging.list_places(facts, most=None, groups=True):
        for value in forging.mutate(forging.get(facts, path), ("ward", "total")):
            changed = forging.put(document, path, value)
            passed, again = forging.try_fact(forged, content, changed)
            tried, rebuilt = tried + 1, rebuilt + again
            if passed:
                survivors.append((path, value))
    assert tried > 15
    assert rebuilt
    weights = ("hierarchy", "level_weights")  # others may lead to the same shares
    rules = set(facts["structural_zeros"]["rules"])  # in another order, or twice, they are the same
    for path, value in survivors:
        assert path[:2] == weights or (path[-1] == "rules" and set(value) == rules), (path, value)


@pytest.mark.parametrize("name", KINDS)
def test_no_cell_of_the_data_or_of_a_file_of_sums_can_be_changed(folders, tmp_path, name):
    forged, _ = forging.copy(folders / name, tmp_path)
    for path in (forged / "data.csv", *sorted(forged.glob("sums-*.csv"))):
        honest = path.read_text(encoding="utf-8")
        rows = list(csv.reader(io.StringIO(honest)))
        chosen = [*range(min(3, len(rows))), len(rows) - 1]
        for at, place in itertools.product(chosen, range(len(rows[0]))):
            old = rows[at][place]
            number = old.lstrip("-").replace(".", "", 1).isdigit()
            rows[at][place] = str(float(old) + 1) if "." in old and number else f"{old}1"
            write_rows(path, rows)
            rows[at][place] = old
            assert not passes(forged), (path.name, at, place)
        path.write_text("".join(honest.splitlines(keepends=True)[:-1]), "utf-8")
        assert not passes(forged), path.name
        path.write_text(honest, "utf-8")
    assert passes(forged)


def write_rows(path, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def edit(path, change):
    """A file of rows, changed by `change`, which is given its header and rows of cells."""
    header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
    change(header, rows)
    write_rows(path, [header, *rows])


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
    "upper_column": {2: ("n0", "n1")},
    "exact": {2: ("s0", "s1")},
    "margins": {0: ("n0", "n1")},
}


@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.parametrize("by", [4, 500])
def test_no_estimate_can_be_moved_to_another_group(folders, tmp_path, name, by):
    forged, _ = forging.copy(folders / name, tmp_path)
    document = forging.read(forged)
    for level, (up, down) in SHIFTS[name].items():
        edit(forged / f"sums-{level}.csv", move(up, by))
        edit(forged / f"sums-{level}.csv", move(down, -by))
    forging.make_again(forged, document)
    assert not passes(forged)


def test_no_estimate_of_a_margin_can_be_moved_alone(folders, tmp_path):
    forged, _ = forging.copy(folders / "margins", tmp_path)
    document = forging.read(forged)
    edit(forged / "sums-1.csv", move("f", 30))
    forging.make_again(forged, document)
    assert not passes(forged)


def test_misses_of_margins_are_compared_and_cannot_be_left_out(folders, tmp_path):
    forged, _ = forging.copy(folders / "margins", tmp_path)
    document = forging.read(forged)
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
    forged, _ = forging.copy(folders / name, tmp_path)
    document = forging.read(forged)

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
    privatize(frame, **options, **KINDS[asked], out=forged)
    assert passes(forged)
    document = forging.read(forged)

    def change(header, rows):
        at = header.index("cases_unbiased")
        lowest = min(rows, key=lambda row: int(row[at]))
        lowest[at] = "-5000"

    edit(forged / "data.csv", change)
    forging.make_again(forged, document)
    assert not passes(forged)


@pytest.mark.parametrize("name", KINDS)
def test_no_stage_of_a_group_can_be_left_out_or_renamed(folders, tmp_path, name):
    document = forging.read(folders / name)
    forged, content = forging.copy(folders / name, tmp_path)
    stages = document["columns"][0]["stages"]
    for at in range(len(stages)):
        for changed in ([*stages[:at], *stages[at + 1 :]], [*stages, stages[at]]):
            other = forging.put(document, ("columns", 0, "stages"), changed)
            assert forging.try_fact(forged, content, other)[0] is None
