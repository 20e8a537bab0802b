import csv
import json
import re

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.cli.released import open_released
from tallyveil.tables import text
from tallyveil.tables.table import BATCH_ROWS, Table
from tests.asking import privatize


@pytest.fixture
def certified(tmp_path):
    path = tmp_path / "mechanism.json"
    tv.certify(tv.geometric(tv.Query.count(40), 1.0)).save(path)
    return path


def test_one_value_in_words_numbers_and_a_picture(tallyveil, certified, tmp_path):
    picture = tmp_path / "seven.png"
    words = ("interpret", "--released", 7, "--mechanism", certified, "--plot", picture)
    done = tallyveil(*words, check=0)
    assert "fits true answers from 4 to 10" in done.stdout
    assert " 7   0.462  ████" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(tallyveil(*words[:5], "--json", check=0).stdout)
    assert found["confidence_set"] == [4, 10]
    expected = tv.posterior(tv.geometric(tv.Query.count(40), 1.0), 7)
    assert found["standard_error"] == pytest.approx(expected.standard_deviation)


@pytest.mark.parametrize("prior", ["uniform", "binomial:0.2"])
def test_plain_json_csv_and_priors(tallyveil, tmp_path, prior):
    m = tv.geometric(tv.Query.count(40), 1.0)
    plain, matrix = tmp_path / "plain.json", tmp_path / "matrix.csv"
    plain.write_text(m.to_json())
    m.to_csv(matrix)
    seen = []
    for file in (plain, matrix):
        words = ("--released", 7, "--mechanism", file, "--prior", prior, "--json")
        done = tallyveil("interpret", *words, check=0)
        seen.append(json.loads(done.stdout))
    assert seen[0] == seen[1]
    expected = tv.posterior(m, 7, ("binomial", 0.2) if prior != "uniform" else None)
    assert seen[0]["posterior_mean"] == pytest.approx(expected.mean)


def test_a_whole_column(tallyveil, certified, tmp_path):
    table, target = tmp_path / "released.csv", tmp_path / "read.csv"
    table.write_text('county,cases\n"A, upper",7\nB,0\nC,40\n')
    words = ("interpret", table, "--column", "cases", "--mechanism", certified)
    done = tallyveil(*words, "--out", target, check=0)
    rows = list(csv.DictReader(target.read_text().splitlines()))
    assert [row["county"] for row in rows] == ["A, upper", "B", "C"]
    assert [(row["cases_low"], row["cases_high"]) for row in rows] == [
        ("4", "10"),
        ("0", "3"),
        ("37", "40"),
    ]
    assert [row["cases_standard_error"] for row in rows] == ["1.35037", "0.959517", "0.959517"]
    assert "The total of the true answers is about 47" in done.stdout
    assert tallyveil(*words, check=0).stdout == target.read_text()
    found = json.loads(tallyveil(*words, "--prior", "uniform", "--json", check=0).stdout)
    assert found["kind"] == "credible"
    assert found["total"]["value"] == pytest.approx(47, abs=1e-6)


def test_accuracy_and_epsilon_both_ways(tallyveil):
    words = ("interpret", "--query", "count:40", "--within", 3, "--confidence", 0.95)
    assert "Epsilon 0.83189 releases within 3" in tallyveil(*words, check=0).stdout
    found = json.loads(tallyveil(*words, "--json", check=0).stdout)
    assert found["epsilon"] == tv.epsilon_for(tv.Query.count(40), 3)
    back = tallyveil("interpret", "--query", "count:40", "--epsilon", "1/2", "--json", check=0)
    assert json.loads(back.stdout)["within"] == tv.accuracy(tv.Query.count(40), "1/2")


@pytest.mark.parametrize("value", ["41", "nan"])
def test_a_value_that_cannot_have_been_released(tallyveil, certified, value):
    done = tallyveil("interpret", "--mechanism", certified, "--released", value, check=2)
    assert "a value this mechanism can report" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "either --released or a FILE"),
        (("--query", "count:4"), "--mechanism does not go with --query"),
        (("t.csv", "--released", "7"), "either --released or a FILE"),
        ((".",), "leave out --mechanism"),
    ],
)
def test_options_that_do_not_go_together(tallyveil, certified, tmp_path, words, said):
    (tmp_path / "t.csv").write_text("a\n1\n")
    done = tallyveil("interpret", "--mechanism", certified, *words, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_tables_and_mechanisms(tallyveil, certified, tmp_path):
    table = tmp_path / "t.csv"
    for content, said in (
        ("a,b\n1,x\n", "one released number"),
        ("a,b\n1,\n", "one released number"),
        ("a,b\n", "no rows"),
        ("", "header"),
        ("a,b\n1\n", "Row 1 has 1 cells"),
    ):
        table.write_text(content)
        words = ("interpret", table, "--column", "b", "--mechanism", certified)
        assert said in tallyveil(*words, check=1).stderr
    table.write_text("a,b\n1,2\n")
    done = tallyveil("interpret", table, "--column", "c", "--mechanism", certified, check=2)
    assert "Columns: a, b" in done.stderr
    broken = tmp_path / "broken.json"
    proof = certified.read_text()
    broken.write_text(
        proof.replace('"upper": 40', '"upper": 41').replace('"upper":40', '"upper":41')
    )
    assert broken.read_text() != proof
    tallyveil("interpret", "--released", 7, "--mechanism", broken, check=1)
    broken.write_text("not json")
    done = tallyveil("interpret", "--released", 7, "--mechanism", broken, check=1)
    assert "'broken.json' must be a JSON document" in done.stderr


@pytest.mark.parametrize("command", ["interpret", "compare"])
def test_a_table_given_for_a_mechanism_is_not_printed(tallyveil, tmp_path, command):
    table = tmp_path / "cases.csv"
    table.write_text("county,cases\nAdams,31337\n")
    words = {
        "interpret": ("--released", 7, "--mechanism", table),
        "compare": (table,),
    }[command]
    done = tallyveil(command, *words, check=1)
    assert "cases.csv" in done.stderr
    assert "numbers only" in done.stderr
    assert "Adams" not in done.stderr + done.stdout
    assert "31337" not in done.stderr + done.stdout


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_separators_and_byte_order_marks_of_a_released_table(tallyveil, certified, tmp_path, mark):
    table = tmp_path / "released.csv"
    table.write_text(f"area{mark}cases\nA{mark}7\n", encoding="utf-8-sig")
    words = ("interpret", table, "--column", "cases", "--mechanism", certified)
    expected = [
        ["area", "cases", "cases_low", "cases_high", "cases_standard_error"],
        ["A", "7", "4", "10", "1.35037"],
    ]
    lines = tallyveil(*words, check=0).stdout.splitlines()
    assert [line.split(mark) for line in lines] == expected


def test_other_encodings_and_delimiters_are_named(tallyveil, certified, tmp_path):
    table = tmp_path / "released.csv"
    table.write_bytes("Größe|cases\nÄ|7\n".encode("latin-1"))
    words = ("interpret", table, "--column", "cases", "--mechanism", certified)
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


def test_a_release_folder_is_read_by_itself(tallyveil, tmp_path):
    table = tmp_path / "cases.csv"
    rows = [f"area {i},{i % 5},{i % 3}" for i in range(60)]
    table.write_text("area,cases,deaths\n" + "\n".join(rows) + "\n")
    folder = tmp_path / "release"
    words = ("--keep", "all", "--count", "cases", "--count", "deaths", "--upper", 8, "--epsilon", 2)
    tallyveil("privatize", table, *words, "--method", "geometric", "--out", folder, check=0)
    whole = tallyveil("interpret", folder, "--column", "deaths", check=0)
    with (folder / "data.csv").open() as file:
        released = [row["deaths"] for row in csv.DictReader(file)]
    found = list(csv.DictReader(whole.stdout.splitlines()))
    assert [row["deaths"] for row in found] == released
    assert all(int(row["deaths_low"]) <= int(row["deaths"]) for row in found)
    one = tallyveil(
        "interpret", folder, "--column", "deaths", "--released", released[0], "--json", check=0
    )
    low, high = json.loads(one.stdout)["confidence_set"]
    assert (f"{low:g}", f"{high:g}") == (found[0]["deaths_low"], found[0]["deaths_high"])
    for words in ((folder,), (folder, "--column", "area")):
        several = tallyveil("interpret", *words)
        assert several.returncode in (1, 2)
        assert "one of the released columns of counts: cases, deaths" in several.stderr
    (tmp_path / "other").mkdir()
    tv.certify(tv.geometric(tv.Query.count(8), 1)).save(tmp_path / "other" / "mechanism.json")
    nothing = tallyveil("interpret", tmp_path / "other", "--column", "cases")
    assert "holds no readable receipt.json" in nothing.stderr


def test_a_release_that_matched_ranks_is_read_as_a_whole(tallyveil, tmp_path):
    table = tmp_path / "cases.csv"
    rows = [f"area {i},{i * i % 11 % 7}" for i in range(200)]
    table.write_text("area,cases\n" + "\n".join(rows) + "\n")
    folder = tmp_path / "release"
    words = (
        "--keep",
        "all",
        "--count",
        "cases",
        "--upper",
        8,
        "--epsilon",
        1,
        "--method",
        "preserve",
    )
    tallyveil("privatize", table, *words, "--out", folder, check=0)
    with (folder / "data.csv").open() as file:
        released = int(next(csv.DictReader(file))["cases"])
    seen = {}
    for mechanism in (folder, folder / "mechanism.json"):
        words = ("--released", released, "--mechanism", mechanism, "--json")
        done = tallyveil("interpret", *words, check=0)
        assert "by rank after the draw" in done.stderr
        seen[mechanism] = json.loads(done.stdout)["standard_error"]
    receipt = json.loads((folder / "receipt.json").read_text())["columns"][0]
    remap = np.zeros((9, 9))
    remap[receipt["matching"]["draws"], receipt["matching"]["counts"]] = receipt["matching"]["rows"]
    chance = remap / np.maximum(remap.sum(axis=1, keepdims=True), 1)
    drawn = tv.geometric(tv.Query.count(8), receipt["mechanism"]["epsilon"]).matrix
    belief = (drawn @ chance)[:, released]  # every draw of 0..8 occurs among 200 rows
    belief /= belief.sum()
    mean = belief @ np.arange(9)
    expected = np.sqrt(belief @ (np.arange(9) - mean) ** 2)
    assert list(seen.values()) == pytest.approx([expected] * 2)


def test_the_upper_bound_is_read_as_or_more(tallyveil, tmp_path):
    table = tmp_path / "cases.csv"
    table.write_text("area,cases\n" + "".join(f"a{i},{(i % 9) ** 2}\n" for i in range(300)))
    for method in ("geometric", "preserve"):
        folder = tmp_path / method
        words = ("--keep", "all", "--count", "cases", "--upper", 30, "--epsilon", 1)
        tallyveil("privatize", table, *words, "--method", method, "--out", folder, check=0)
        said = tallyveil("interpret", folder, "--released", 30, check=0).stdout
        assert "to 30 or more" in said
        assert "cut off before the draw" in " ".join(said.split())
        assert "30+" in said
        lower = tallyveil("interpret", folder, "--released", 1, check=0).stdout
        assert "or more" not in lower.replace("% or more", "")
        found = list(csv.DictReader(tallyveil("interpret", folder, check=0).stdout.splitlines()))
        assert {row["cases_high"] for row in found if row["cases"] == "30"} == {"inf"}
        assert all(float(row["cases_low"]) <= 30 for row in found)


def test_structural_zeros_are_certain_and_add_nothing(tallyveil, tmp_path):
    """The total that `interpret` prints is the one of `tv.estimate_total`."""
    rows = [f"p{i},{sex},{5 if sex == 'M' else 0}" for i in range(100) for sex in "FM"]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["place,sex,cases", *rows]) + "\n")
    out, read = tmp_path / "release", tmp_path / "read.csv"
    ask = ("--count", "cases", "--keep", "all", "--upper", 20, "--epsilon", 1)
    zero = ("--method", "geometric", "--set", "counts.structural_zeros=sex = F")
    tallyveil("privatize", table, *ask, *zero, "--out", out, check=0)
    tallyveil("interpret", out, "--column", "cases", "--out", read, check=0)
    women = [line for line in read.read_text().splitlines() if ",F," in line]
    assert {line.split(",", 2)[2] for line in women} == {"0,0,0,0"}
    told = tallyveil("interpret", out, "--column", "cases", "--json", check=0).stdout
    assert json.loads(told)["total"]["value"] == pytest.approx(tv.estimate_total(out).value)


def test_a_folder_of_levels_says_what_it_is(tallyveil, tmp_path):
    folder = tmp_path / "levels"
    privatize([3, 1, 4, 1], upper=9, epsilons=[2, 1], out=folder)
    for words in ((), ("--by", "state"), ("--released", "3")):
        done = tallyveil("interpret", folder, *words, check=1)
        assert "holds 2 releases, one for each privacy level: name one of them" in done.stderr
    tallyveil("interpret", folder / "level-1-epsilon-2", "--released", "3", check=0)


def test_a_query_asks_for_one_thing(tallyveil):
    for words in ((), ("--within", "1", "--epsilon", "1")):
        done = tallyveil("interpret", "--query", "count:4", *words, check=2)
        assert "either --within or --epsilon" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--by", "county", "--prior", "uniform"), "--prior does not go with totals"),
        (("--released", "3", "--out", "new.csv"), "--out does not go with --released"),
        (("--column", "cases", "--plot", "new.png"), "--plot does not go with a whole column"),
        (("--query", "count:9", "--epsilon", "1"), "FILE does not go with --query"),
    ],
    ids=["totals", "one answer", "column", "query"],
)
def test_no_option_is_ignored(tallyveil, tmp_path, words, said):
    folder = tmp_path / "release"
    frame = pd.DataFrame({"county": list("abcd"), "cases": [3, 1, 4, 1]})
    privatize(frame, count="cases", keep="county", upper=9, epsilon=1, out=folder)
    assert said in tallyveil("interpret", folder, *words, check=2).stderr


def test_large_totals_are_whole_numbers_with_separators(tallyveil, tmp_path):
    frame = pd.DataFrame({"area": range(200), "people": [1_354_000 + at for at in range(200)]})
    options = {"count": "people", "keep": "area", "epsilon": 1, "method": "geometric"}
    privatize(frame, **options, out=tmp_path / "r")
    done = tallyveil("interpret", tmp_path / "r", "--out", tmp_path / "read.csv", check=0)
    said = done.stdout.replace("\n", " ")
    assert re.search(
        r"about 270,8\d\d,\d{3}, .* interval 270,8\d\d,\d{3} to 270,8\d\d,\d{3}\.", said
    )


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--method", "geometric", "--set", "method.signed=true"),
        ("--upper", "5000"),
        ("--method", "geometric"),
    ],
)
def test_a_wide_range_is_read_from_the_folder_row_by_row(tallyveil, tmp_path, words):
    """Intervals of all rows hold the true counts about as often as they say."""
    true = [(at * at) % 23 if at % 3 else at * 7 for at in range(600)]
    (tmp_path / "t.csv").write_text(
        "area,cases\n" + "".join(f"a{at},{count}\n" for at, count in enumerate(true))
    )
    release = tmp_path / "release"
    options = ("--count", "cases", "--keep", "area", "--epsilon", "1", "--out", release)
    tallyveil("privatize", tmp_path / "t.csv", *options, *words, check=0)
    done = tallyveil("interpret", release, "--out", tmp_path / "read.csv", check=0)
    assert "The total of the true answers is about" in done.stdout
    with open(tmp_path / "read.csv", newline="") as file:
        rows = list(csv.DictReader(file))
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
    asked = {"count": "cases", "upper": 9, "epsilon": 1, "hierarchy": ["state", "area"]}
    privatize(table, **asked, **options, out=tmp_path / "r")
    words = ["interpret", str(tmp_path / "r"), "--out", str(tmp_path / "read.csv"), "--json"]
    said = json.loads(tallyveil(*words).stdout)["total"]
    stated = pd.read_csv(tmp_path / "r" / "sums-0.csv").iloc[0]
    assert said["value"] == pytest.approx(stated["cases_estimate"], abs=0.001)
    assert said["standard_error"] == pytest.approx(stated["cases_deviation"], abs=0.001)
