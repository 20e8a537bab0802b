import csv
import json
import re

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.cli.interpret import open_released
from tallyveil.tables import text
from tallyveil.tables.table import BATCH_ROWS, Table
from tests.asking import privatize


@pytest.fixture
def certified(tmp_path):
    path = tmp_path / "mechanism.json"
    tv.certify(tv.geometric(tv.Query.count(40), 1.0)).save(path)
    return path


@pytest.fixture
def publish(tallyveil, tmp_path):
    """Write a table and release it with `privatize`; the release folder."""

    def run(header, rows, words):
        table, folder = tmp_path / "table.csv", tmp_path / "release"
        table.write_text("\n".join([header, *rows]) + "\n")
        tallyveil(f"privatize --keep all {words}", table, "--out", folder, check=0)
        return folder

    return run


def read_rows(text):
    return list(csv.DictReader(text.splitlines()))


def test_one_value_in_words_numbers_and_a_picture(tallyveil, certified, tmp_path):
    picture = tmp_path / "seven.png"
    words = ("interpret --released 7 --mechanism", certified)
    done = tallyveil(*words, "--plot", picture, check=0)
    assert "fits true counts from 4 to 10" in done.stdout
    assert " 7   0.462  ████" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    facts = json.loads(tallyveil(*words, "--json", check=0).stdout)
    assert facts["confidence_set"] == [4, 10]
    expected = tv.posterior(tv.geometric(tv.Query.count(40), 1.0), 7)
    assert facts["standard_error"] == pytest.approx(expected.standard_deviation)


@pytest.mark.parametrize("prior", ["uniform", "binomial:0.2"])
def test_plain_json_csv_and_priors(tallyveil, tmp_path, prior):
    m = tv.geometric(tv.Query.count(40), 1.0)
    plain, matrix = tmp_path / "plain.json", tmp_path / "matrix.csv"
    plain.write_text(m.to_json())
    m.to_csv(matrix)
    seen = []
    for file in (plain, matrix):
        words = f"interpret --released 7 --json --prior {prior} --mechanism"
        seen.append(json.loads(tallyveil(words, file, check=0).stdout))
    assert seen[0] == seen[1]
    expected = tv.posterior(m, 7, ("binomial", 0.2) if prior != "uniform" else None)
    assert seen[0]["posterior_mean"] == pytest.approx(expected.mean)


def test_a_whole_column(tallyveil, certified, tmp_path):
    table, target = tmp_path / "released.csv", tmp_path / "read.csv"
    table.write_text('county,cases\n"A, upper",7\nB,0\nC,40\n')
    words = ("interpret", table, "--column", "cases", "--mechanism", certified)
    done = tallyveil(*words, "--out", target, check=0)
    rows = read_rows(target.read_text())
    assert [row["county"] for row in rows] == ["A, upper", "B", "C"]
    intervals = [("4", "10"), ("0", "3"), ("37", "40")]
    assert [(row["cases_low"], row["cases_high"]) for row in rows] == intervals
    assert [row["cases_standard_error"] for row in rows] == ["1.35037", "0.959517", "0.959517"]
    assert "The total of the true counts is about 47" in done.stdout
    assert tallyveil(*words, check=0).stdout == target.read_text()
    facts = json.loads(tallyveil(*words, "--prior", "uniform", "--json", check=0).stdout)
    assert facts["kind"] == "credible"
    assert facts["total"]["value"] == pytest.approx(47, abs=1e-6)


def test_accuracy_and_epsilon_both_ways(tallyveil):
    words = "interpret --query count:40 --within 3 --confidence 0.95"
    assert "Epsilon 0.83189 releases within 3" in tallyveil(words, check=0).stdout
    facts = json.loads(tallyveil(words, "--json", check=0).stdout)
    assert facts["epsilon"] == tv.epsilon_for(tv.Query.count(40), 3)
    back = tallyveil("interpret --query count:40 --epsilon 1/2 --json", check=0)
    assert json.loads(back.stdout)["within"] == tv.accuracy(tv.Query.count(40), "1/2")


def test_bad_tables_and_mechanisms(tallyveil, certified, tmp_path):
    table = tmp_path / "t.csv"
    for content, column, message, code in (
        ("a,b\n1,x\n", "b", "one released number", 1),
        ("a,b\n1,\n", "b", "one released number", 1),
        ("a,b\n", "b", "no rows", 1),
        ("", "b", "header", 1),
        ("a,b\n1\n", "b", "Row 1 has 1 cell where", 1),
        ("a,b\n1,2\n", "c", "Columns: a, b", 2),
    ):
        table.write_text(content)
        words = f"interpret --column {column} --mechanism"
        assert message in tallyveil(words, certified, table, check=code).stderr
    broken = tmp_path / "broken.json"
    proof = certified.read_text()
    broken.write_text(re.sub('"upper": ?40', '"upper": 41', proof))
    assert broken.read_text() != proof
    tallyveil("interpret --released 7 --mechanism", broken, check=1)
    broken.write_text("not json")
    done = tallyveil("interpret --released 7 --mechanism", broken, check=1)
    assert "'broken.json' must be a JSON document" in done.stderr


@pytest.mark.parametrize("command", ["interpret --released 7 --mechanism", "compare"])
def test_a_table_given_for_a_mechanism_is_not_printed(tallyveil, tmp_path, command):
    table = tmp_path / "cases.csv"
    table.write_text("county,cases\nAdams,31337\n")
    done = tallyveil(command, table, check=1)
    assert "cases.csv" in done.stderr
    assert "numbers only" in done.stderr
    assert "Adams" not in done.stderr + done.stdout
    assert "31337" not in done.stderr + done.stdout


def test_separators_and_encodings_are_guessed_or_named(tallyveil, certified, tmp_path):
    table = tmp_path / "released.csv"
    words = ("interpret", table, "--column", "cases", "--mechanism", certified)
    names = ["area", "cases", "cases_low", "cases_high", "cases_standard_error"]
    for mark in ";\t,":
        table.write_text(f"area{mark}cases\nA{mark}7\n", encoding="utf-8-sig")
        lines = tallyveil(*words, check=0).stdout.splitlines()
        assert [line.split(mark) for line in lines] == [names, ["A", "7", "4", "10", "1.35037"]]
    table.write_bytes("Größe|cases\nÄ|7\n".encode("latin-1"))
    done = tallyveil(*words, "--delimiter", "|", "--encoding", "latin-1", check=0)
    assert done.stdout.splitlines()[1] == "Ä|7|4|10|1.35037"
    assert "latin-1" in tallyveil(*words, check=1).stderr


def test_released_answers_need_not_be_whole(tallyveil, tmp_path):
    m = tv.geometric(tv.Query.mean(records=2, lower=0, upper=2), 1.0)
    (tmp_path / "mean.json").write_text(m.to_json())
    (tmp_path / "means.csv").write_text("mean\n0.5\n2\n")
    words = ("--column", "mean", "--mechanism", tmp_path / "mean.json")
    done = tallyveil("interpret", tmp_path / "means.csv", *words, check=0)
    assert done.stdout.splitlines()[1].startswith("0.5,")


def test_a_release_folder_is_read_by_itself(tallyveil, publish, tmp_path):
    words = "--count cases --count deaths --upper 8 --epsilon 2 --method geometric"
    folder = publish("area,cases,deaths", [f"a {i},{i % 5},{i % 3}" for i in range(60)], words)
    rows = read_rows(tallyveil("interpret --column deaths", folder, check=0).stdout)
    released = [row["deaths"] for row in read_rows((folder / "data.csv").read_text())]
    assert [row["deaths"] for row in rows] == released
    assert all(int(row["deaths_low"]) <= int(row["deaths"]) for row in rows)
    words = f"interpret --column deaths --json --released {released[0]}"
    low, high = json.loads(tallyveil(words, folder, check=0).stdout)["confidence_set"]
    assert (f"{low:g}", f"{high:g}") == (rows[0]["deaths_low"], rows[0]["deaths_high"])
    for words in ("interpret", "interpret --column area"):
        several = tallyveil(words, folder, check=2)
        assert "one of the released columns of counts: cases, deaths" in several.stderr
    (tmp_path / "other").mkdir()
    tv.certify(tv.geometric(tv.Query.count(8), 1)).save(tmp_path / "other" / "mechanism.json")
    nothing = tallyveil("interpret --column cases", tmp_path / "other")
    assert "holds no readable receipt.json" in nothing.stderr


def test_a_release_that_matched_ranks_is_read_as_a_whole(tallyveil, publish):
    words = "--count cases --upper 8 --epsilon 1 --method preserve"
    folder = publish("area,cases", [f"a {i},{i * i % 11 % 7}" for i in range(200)], words)
    released = int(read_rows((folder / "data.csv").read_text())[0]["cases"])
    errors = []
    for mechanism in (folder, folder / "mechanism.json"):
        words = f"interpret --json --released {released} --mechanism"
        done = tallyveil(words, mechanism, check=0)
        assert "assigned by rank" in done.stderr
        errors.append(json.loads(done.stdout)["standard_error"])
    receipt = json.loads((folder / "receipt.json").read_text())["columns"][0]
    remap = np.zeros((9, 9))
    remap[receipt["matching"]["draws"], receipt["matching"]["counts"]] = receipt["matching"]["rows"]
    chance = remap / np.maximum(remap.sum(axis=1, keepdims=True), 1)
    drawn = tv.geometric(tv.Query.count(8), receipt["stages"][-1]["certified_epsilon"]).matrix
    belief = (drawn @ chance)[:, released]  # every draw of 0..8 occurs among 200 rows
    belief /= belief.sum()
    mean = belief @ np.arange(9)
    assert errors == pytest.approx([np.sqrt(belief @ (np.arange(9) - mean) ** 2)] * 2)


@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_the_upper_bound_is_read_as_or_more(tallyveil, publish, method):
    words = f"--count cases --upper 30 --epsilon 1 --method {method}"
    folder = publish("area,cases", [f"a{i},{(i % 9) ** 2}" for i in range(300)], words)
    text = tallyveil("interpret --released 30", folder, check=0).stdout
    assert "to 30 or more" in text
    assert "were top-coded" in " ".join(text.split())
    assert "30+" in text
    lower = tallyveil("interpret --released 1", folder, check=0).stdout
    assert "or more" not in lower.replace("% or more", "")
    rows = read_rows(tallyveil("interpret", folder, check=0).stdout)
    assert {row["cases_high"] for row in rows if row["cases"] == "30"} == {"inf"}
    assert all(float(row["cases_low"]) <= 30 for row in rows)


def test_structural_zeros_are_certain_and_add_nothing(tallyveil, publish, tmp_path):
    """The total that `interpret` prints is the one of `tv.estimate_total`."""
    rows = [f"p{i},{sex},{5 if sex == 'M' else 0}" for i in range(100) for sex in "FM"]
    words = "--count cases --upper 20 --epsilon 1 --method geometric"
    words += " --set counts.structural_zeros=sex=F"
    out, target = publish("place,sex,cases", rows, words), tmp_path / "read.csv"
    tallyveil("interpret --column cases", out, "--out", target, check=0)
    women = [line for line in target.read_text().splitlines() if ",F," in line]
    assert {line.split(",", 2)[2] for line in women} == {"0,0,0,0"}
    facts = json.loads(tallyveil("interpret --column cases --json", out, check=0).stdout)
    assert facts["total"]["value"] == pytest.approx(tv.estimate_total(out).value)


def test_totals_of_groups_are_the_librarys(tallyveil, publish, tmp_path):
    rows = [f"a{i},{'NS'[i % 2]},{i % 5}" for i in range(100)]
    out = publish("area,state,cases", rows, "--count cases --upper 9 --epsilon 1")
    words = ("interpret --by state --out", tmp_path / "totals.csv", out)
    groups = json.loads(tallyveil(*words, "--json", check=0).stdout)["groups"]
    expected = tv.estimate_total(out, by="state")
    assert [group["state"] for group in groups] == list(expected)
    assert [group["total"] for group in groups] == [round(t.value, 2) for t in expected.values()]
    written = read_rows((tmp_path / "totals.csv").read_text())
    assert [float(row["total"]) for row in written] == [group["total"] for group in groups]
    assert (
        tallyveil("interpret --by state", out, check=0).stdout
        == (tmp_path / "totals.csv").read_text()
    )


def test_a_folder_of_levels_says_what_it_is(tallyveil, tmp_path):
    folder = tmp_path / "levels"
    privatize([3, 1, 4, 1], upper=9, epsilons=[2, 1], out=folder)
    for words in ((), ("--by", "state"), ("--released", "3")):
        done = tallyveil("interpret", folder, *words, check=1)
        assert "holds 2 releases, one for each privacy level: name one of them" in done.stderr
    tallyveil("interpret", folder / "level-1-epsilon-2", "--released", "3", check=0)


def test_rows_of_a_hierarchy_are_refused_with_what_can_be_read(tallyveil, publish):
    rows = [f"{'AB'[i % 2]},c{i},{i % 5}" for i in range(40)]
    words = "--count cases --upper 2000 --epsilon 1 --hierarchy state,county"
    folder = publish("state,county,cases", rows, words)
    for words, hint in {
        "--by county": "A group of one row has no estimate",
        "--released 3": "Groups of rows can be read: name them with --by",
        "--column cases": "those of groups are: name them with --by",
    }.items():
        assert hint in tallyveil(f"interpret {folder} {words}", check=2).stderr
    assert len(read_rows(tallyveil(f"interpret {folder} --by state", check=0).stdout)) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("release --by county --prior uniform", "--prior does not go with totals"),
        ("release --out read.xlsx", "name a file that ends in .csv"),
        ("release --out t.csv", "exists already: name a new file"),
        ("release --released 3 --out new.csv", "--out does not go with --released"),
        ("release --column cases --plot new.png", "--plot does not go with a whole column"),
        ("release --query count:9 --epsilon 1", "FILE does not go with --query"),
        ("--query count:9", "either --within or --epsilon"),
        ("--query count:9 --within 1 --epsilon 1", "either --within or --epsilon"),
        ("--query count:4 --mechanism m.json", "--mechanism does not go with --query"),
        ("--mechanism m.json", "either --released or a FILE"),
        ("t.csv --released 7 --mechanism m.json", "either --released or a FILE"),
        (". --mechanism m.json", "leave out --mechanism"),
    ],
)
def test_no_option_is_ignored(tallyveil, tmp_path, words, message):
    (tmp_path / "t.csv").write_text("a\n1\n")
    frame = pd.DataFrame({"county": list("abcd"), "cases": [3, 1, 4, 1]})
    options = {"count": "cases", "keep": "county", "upper": 9, "epsilon": 1}
    privatize(frame, **options, out=tmp_path / "release")
    assert message in tallyveil(f"interpret {words}", cwd=tmp_path, check=2).stderr


@pytest.mark.parametrize(
    "words",
    ["", "--method geometric --set method.signed=true", "--upper 5000", "--method geometric"],
)
def test_a_wide_range_is_read_from_the_folder_row_by_row(tallyveil, publish, tmp_path, words):
    """Intervals of all rows hold the true counts about as often as they say."""
    true = [(row * row) % 23 if row % 3 else row * 7 for row in range(600)]
    rows = [f"a{row},{count}" for row, count in enumerate(true)]
    folder = publish("area,cases", rows, f"--count cases --epsilon 1 {words}")
    done = tallyveil("interpret", folder, "--out", tmp_path / "read.csv", check=0)
    assert "The total of the true counts is about" in done.stdout
    rows = read_rows((tmp_path / "read.csv").read_text())
    low = np.array([float(row["cases_low"]) for row in rows])
    high = np.array([float(row["cases_high"]) for row in rows])
    held = ((low <= true) & (true <= high)).mean()
    assert held > 0.95 - 5 * (0.95 * 0.05 / 600) ** 0.5
    assert low.min() >= 0
    assert (high - low).max() < 30


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_long_tables_are_read_and_written_in_batches(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(text, "HELD", -1)
    monkeypatch.setattr(text, "BLOCK", 1 << 16)
    rows = BATCH_ROWS + 1000
    frame = pd.DataFrame({"area": [f"a{i}" for i in range(rows)], "cases": np.arange(rows) % 9})
    path = tmp_path / f"data.{ending}"
    {"csv": frame.to_csv, "parquet": frame.to_parquet}[ending](path, index=False)
    monkeypatch.setattr(Table, "hold", None)  # never read as a whole
    released = open_released(path, None, "utf-8")
    numbers = released.read_numbers("cases")
    assert numbers.tolist() == frame["cases"].tolist()
    pieces = list(
        released.write(["twice"], lambda part: [(2 * numbers[part]).astype(str).tolist()])
    )
    assert len(pieces) > 2
    lines = "".join(pieces).splitlines()
    assert lines[0] == "area,cases,twice"
    assert lines[1:] == [f"a{i},{i % 9},{2 * (i % 9)}.0" for i in range(rows)]


@pytest.mark.parametrize("options", [{}, {"invariant": "total"}])
def test_the_total_of_a_hierarchy_is_that_of_its_files(tallyveil, tmp_path, options):
    table = pd.DataFrame({"state": ["N", "S"] * 60, "area": range(120), "cases": [1, 4, 0] * 40})
    hierarchy = {"count": "cases", "upper": 9, "epsilon": 1, "hierarchy": ["state", "area"]}
    privatize(table, **hierarchy, **options, out=tmp_path / "r")
    done = tallyveil("interpret --json --out", tmp_path / "read.csv", tmp_path / "r")
    total = json.loads(done.stdout)["total"]
    stated = pd.read_csv(tmp_path / "r" / "sums-0.csv").iloc[0]
    assert total["value"] == pytest.approx(stated["cases_estimate"], abs=0.001)
    assert total["standard_error"] == pytest.approx(stated["cases_deviation"], abs=0.001)
