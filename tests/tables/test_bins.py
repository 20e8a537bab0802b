"""Numbers counted by public ranges, and every combination of categories."""

import json

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.errors import ArgumentError, TableError
from tallyveil.release.receipt import Receipt
from tallyveil.tables.microdata import Bins, read_bins
from tests.asking import privatize

AGES = [0, 17, 18, 44, 45, 64, 65, 99, 30, 31.5]
PEOPLE = "age,sex\n" + "".join(f"{age},{'fm'[i % 2]}\n" for i, age in enumerate(AGES))
LABELS = ["0-17", "18-44", "45-64", "65+"]


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def count(table, **options):
    made = privatize(table, **{"upper": 99, "epsilon": 50, **options})
    return made.table.to_pydict()


def test_a_number_is_counted_by_ranges(people, tmp_path):
    found = count(people, by="age", bins="age=0,18,45,65", out=tmp_path / "out")
    assert found == {"age": LABELS, "count": [2, 4, 2, 2]}
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))
    assert count(people, by="age", bins={"age": [0, 18, 45, 65]}) == found


def test_conditions_see_the_number_itself(people):
    found = count(people, by="age", bins="age=0,18,45,65", where="age < 31")
    assert found["count"] == [2, 2, 0, 0]


COMBINED = {
    "age=0,18,45,65": "0-17,f,1 0-17,m,1 18-44,f,2 18-44,m,2 45-64,f,1 45-64,m,1 65+,f,1 65+,m,1",
    "": "0,f,1 0,m,0 17,f,0 17,m,1",
}


@pytest.mark.parametrize("bins", COMBINED)
def test_every_combination_is_published(people, tmp_path, bins):
    """Of ranges or of a list in a file, with the list of another column."""
    (tmp_path / "ages.txt").write_text("0\n17\n")
    ages = ["--bins", bins] if bins else ["--categories", f"age={tmp_path / 'ages.txt'}"]
    options = ["--by", "age", "--by", "sex", *ages, "--categories", "sex=f,m", "--upper", "99"]
    options += [] if bins else ["--set", "microdata.where=age <= 17"]
    words = ["--epsilon", "50", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["privatize", str(people), *options, *words])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "data.csv").read_text().split()[1:] == COMBINED[bins].split()
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))


def test_structural_zeros_of_combinations(people):
    options = {"by": ["age", "sex"], "bins": "age=0,18", "categories": {"sex": ["f", "m"]}}
    path = people.with_name("old.csv")
    path.write_text("age,sex\n20,f\n30,m\n")
    found = count(path, **options, structural_zeros="age = 0-17 and sex = m")
    assert found["count"] == [0, 0, 1, 1]


@pytest.mark.parametrize("row", ["-1,f", ",f", "old,f"])
def test_what_lies_in_no_range_is_refused_or_other(people, row):
    people.write_text(PEOPLE + row + "\n")
    options = {"by": "age", "bins": "age=0,18,45,65"}
    with pytest.raises(TableError, match="not in the public list") as refused:
        count(people, **options)
    assert "old" not in str(refused.value)
    assert count(people, **options, other="unknown")["count"][-1] == 1


@pytest.mark.parametrize(
    "bins",
    ["age", "age=", "age=18,0", "age=0,0", "age=a,b", "=0,1", ["age=0", "age=1"], {"age": []}],
)
def test_limits_that_do_not_rise_are_refused(bins):
    with pytest.raises(ArgumentError, match="'bins' must"):
        read_bins(bins)


def test_bins_belong_to_microdata(people):
    with pytest.raises(ArgumentError, match="'bins' must name columns of 'by'"):
        count(people, by="sex", categories="f,m", bins="age=0,18")
    with pytest.raises(ArgumentError, match=r"'count' and 'microdata.bins' exclude each other"):
        count(people, count="age", keep="all", by=None, bins="age=0,18")
    with pytest.raises(ArgumentError, match="values of each column without bins"):
        count(people, by=["age", "sex"], bins="age=0,18")


def test_labels_of_ranges():
    assert Bins((0.0, 1.0, 3.0)).labels == ("0", "1-2", "3+")
    assert Bins((0.5, 1.5)).labels == ("0.5 to below 1.5", "1.5+")
    assert Bins((-5.0, 0.0)).find("-0.5") == "-5--1"


def test_the_release_states_its_ranges(people, tmp_path):
    """Receipt, description and page have the public limits, and a check rebuilds them."""
    out = tmp_path / "out"
    count(people, by=["age", "sex"], bins="age=0,18,45.5", categories="f,m", out=out)
    receipt = json.loads((out / "receipt.json").read_text())
    assert receipt["table"]["bins"] == {"age": [0, 18, 45.5]}
    labels = ["0 to below 18", "18 to below 45.5", "45.5+"]
    (field, *_) = json.loads((out / "datapackage.json").read_text())["resources"][0]["schema"][
        "fields"
    ]
    assert field["constraints"]["enum"] == labels
    assert "begin at 0, 18, 45.5" in field["description"]
    page = (out / "METHODOLOGY.html").read_text()
    assert f"Public ranges of age: {labels[0]}, {labels[1]} and {labels[2]}." in page
    assert all(finding.ok for finding in tv.check_package(out))


def test_a_cell_for_all_others_is_no_range_and_checks(people, tmp_path):
    out = tmp_path / "out"
    count(people, by="age", bins="age=18,45", other="younger", out=out)
    receipt = Receipt.from_dict(json.loads((out / "receipt.json").read_text()))
    assert receipt.table.list_ranges("age") == ("18-44", "45+", "younger")
    assert all(finding.ok for finding in tv.check_package(out))
