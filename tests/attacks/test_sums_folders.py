"""Forge folders of hierarchies, margins, strata and structural zeros: every change is noticed.

Estimates before rounding rest on draws that are not published: a change of one together with its
interval, by less than rounding, is not noticed.
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
from tests.attacks.forging import passes

COMMON = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
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
    for name, options in KINDS.items():
        privatize(frame, **COMMON, structural_zeros=ZEROS, **options, out=place / name)
    return place


@pytest.fixture
def forge(folders, tmp_path):
    """Copy a folder, change the rows of its files, rebuild the rest; return whether it passes."""

    def forge(name, changes, facts=()):
        forged = tmp_path / "forged"
        if not forged.exists():
            forging.copy(folders / name, tmp_path)
        for file, change in changes:
            edit(forged / file, change)
        document = forging.read(forged)
        document["columns"][0] |= dict(facts)
        forging.rebuild(forged, document)
        return passes(forged)

    return forge


@pytest.mark.parametrize("name", KINDS)
def test_the_forger_rebuilds_honest_folders_byte_for_byte(folders, tmp_path, name):
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
    """Let `change` alter the header and the rows of cells of a file."""
    header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
    change(header, rows)
    write_rows(path, [header, *rows])


def move(label, by):
    """Move the estimate of a group; its interval follows when the file is written again."""

    def change(header, rows):
        place = header.index("cases_estimate")
        for row in rows:
            if label in row[: header.index("cases")]:
                row[place] = f"{float(row[place]) + by:.3f}"

    return change


SHIFTS = {  # by kind: the labels that are moved in each file, up and down
    "hierarchy": {1: "ns", 2: ("n0", "s0")},
    "upper_column": {2: ("n0", "n1")},
    "exact": {2: ("s0", "s1")},
    "margins": {0: ("n0", "n1")},
}


@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.parametrize("by", [4, 500])
def test_no_estimate_can_be_moved_to_another_group(forge, name, by):
    shifts = SHIFTS[name].items()
    pairs = [(level, *one) for level, both in shifts for one in zip(both, (by, -by), strict=True)]
    assert not forge(name, [(f"sums-{level}.csv", move(*shift)) for level, *shift in pairs])


def test_no_estimate_of_a_margin_can_be_moved_alone(forge):
    assert not forge("margins", [("sums-1.csv", move("f", 30))])


def test_misses_of_margins_are_compared_and_cannot_be_left_out(folders, tmp_path, forge):
    document = forging.read(folders / "margins")
    missed = document["columns"][0].pop("missed")
    assert not forge("margins", [], {"missed": [most + 1 for most in missed]})
    assert not forge("margins", [], {"missed": missed[:1]})
    with pytest.raises(tv.errors.PackageError):
        forging.rebuild(tmp_path / "forged", document)


@pytest.mark.parametrize("name", ["hierarchy", "margins"])
@pytest.mark.parametrize("form", ["{}0", " {}", "+{}", "0{}"])
def test_estimates_have_one_form(forge, name, form):
    def change(header, rows):
        place = header.index("cases_estimate")
        rows[0][place] = form.format(rows[0][place])

    assert not forge(name, [("sums-0.csv", change)])


@pytest.mark.parametrize("name", ["hierarchy", "margins", "strata"])
def test_draws_that_no_noise_gives_are_noticed(folders, tmp_path, forge, name):
    columns = ["region", "ward", "sex", "part", "cases"]
    frame = pd.read_csv(folders / name / "data.csv")[columns].assign(cases=0)
    privatize(frame, **COMMON, unbiased=True, **KINDS[name], out=tmp_path / "forged")
    assert passes(tmp_path / "forged")

    def change(header, rows):
        place = header.index("cases_unbiased")
        min(rows, key=lambda row: int(row[place]))[place] = "-5000"

    assert not forge(name, [("data.csv", change)])


@pytest.mark.parametrize("name", KINDS)
def test_no_stage_of_a_group_can_be_left_out_or_doubled(folders, tmp_path, name):
    document = forging.read(folders / name)
    forged, content = forging.copy(folders / name, tmp_path)
    stages = document["columns"][0]["stages"]
    for place in range(len(stages)):
        for changed in ([*stages[:place], *stages[place + 1 :]], [*stages, stages[place]]):
            other = forging.put(document, ("columns", 0, "stages"), changed)
            assert forging.try_fact(forged, content, other)[0] is None
