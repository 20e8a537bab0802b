import csv
import json

import pytest

import tallyveil as tv


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
        done = tallyveil("interpret", "--released", 7, "--mechanism", file, "--prior", prior,
                         "--json", check=0)  # fmt: skip
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
        ("4", "10"), ("0", "3"), ("37", "40"),
    ]  # fmt: skip
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--released", "41"), "a value this mechanism can report"),
        (("--released", "nan"), "a value this mechanism can report"),
        ((), "either --released or a FILE"),
        (("--query", "count:4"), "either --within or --epsilon"),
        (("--query", "count:4", "--within", "1", "--epsilon", "1"), "either --within"),
    ],
)
def test_bad_requests_say_what_is_wrong(tallyveil, certified, words, said):
    done = tallyveil("interpret", "--mechanism", certified, *words, check=1)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_tables_and_mechanisms(tallyveil, certified, tmp_path):
    table = tmp_path / "t.csv"
    for text, said in (("a,b\n1,x\n", "one released number"), ("a,b\n", "at least one row"),
                       ("", "header")):  # fmt: skip
        table.write_text(text)
        words = ("interpret", table, "--column", "b", "--mechanism", certified)
        assert said in tallyveil(*words, check=1).stderr
    table.write_text("a,b\n1,2\n")
    done = tallyveil("interpret", table, "--column", "c", "--mechanism", certified, check=1)
    assert "Columns: a, b" in done.stderr
    broken = tmp_path / "broken.json"
    text = certified.read_text()
    broken.write_text(
        text.replace('"upper": 40', '"upper": 41').replace('"upper":40', '"upper":41')
    )
    assert broken.read_text() != text
    tallyveil("interpret", "--released", 7, "--mechanism", broken, check=1)
    broken.write_text("not json")
    assert "JSON or CSV" in tallyveil("interpret", "--released", 7, "--mechanism", broken,
                                      check=1).stderr  # fmt: skip


def test_a_release_that_matched_ranks_is_read_as_a_whole(tallyveil, tmp_path):
    table = tmp_path / "cases.csv"
    rows = [f"area {i},{i * i % 11 % 7}" for i in range(200)]
    table.write_text("area,cases\n" + "\n".join(rows) + "\n")
    folder = tmp_path / "release"
    tallyveil("privatize", table, "--count", "cases", "--upper", 8, "--epsilon", 1,
              "--method", "preserve", "--out", folder, check=0)  # fmt: skip
    with (folder / "data.csv").open() as file:
        released = int(next(csv.DictReader(file))["cases"])
    seen = {}
    for mechanism in (folder, folder / "mechanism.json"):
        done = tallyveil("interpret", "--released", released, "--mechanism", mechanism,
                         "--json", check=0)  # fmt: skip
        assert "by rank after the draw" in done.stderr
        seen[mechanism] = json.loads(done.stdout)["standard_error"]
    receipt = json.loads((folder / "receipt.json").read_text())["columns"][0]
    law = [rows / 200 for rows in receipt["distribution"]["histogram"]]
    whole = tv.transport(tv.Query.count(8), receipt["mechanism"]["epsilon"], law, law)
    expected = tv.posterior(whole, released).standard_deviation
    assert list(seen.values()) == pytest.approx([expected] * 2)
