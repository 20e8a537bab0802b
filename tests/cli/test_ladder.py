import csv
import json

from tallyveil import Ladder, Mechanism


def rows(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_one_value(tallyveil):
    words = ("ladder", "--value", 17, "--upper", 40, "--epsilons", "2,1,0.5")
    done = tallyveil(*words, check=0)
    assert "All levels together cost epsilon 2" in done.stdout
    assert "No ledger" in done.stderr
    found = json.loads(tallyveil(*words, "--json", check=0).stdout)
    assert len(found["released"]) == 3
    assert all(0 <= value <= 40 for value in found["released"])
    assert found["epsilons_exact"] == ["2", "1", "1/2"]


def test_a_column_is_debited_once_and_written_whole(tallyveil, cases, ledger, history, tmp_path):
    folder = tmp_path / "levels"
    tallyveil(
        "ladder",
        cases,
        "--count",
        "cases",
        "--upper",
        10,
        "--epsilons",
        "3/2,1/2",
        "--out",
        folder,
        "--ledger",
        ledger,
        "--dataset",
        "cases",
        check=0,
    )
    assert [entry["epsilon_exact"] for entry in history()] == ["3/2"]
    tables = sorted(folder.glob("level-*.csv"))
    assert [path.name for path in tables] == ["level-1-epsilon-1.5.csv", "level-2-epsilon-0.5.csv"]
    before = rows(cases)
    for path in tables:
        after = rows(path)
        assert [row["fips"] for row in after] == [row["fips"] for row in before]
        assert all(0 <= int(row["cases"]) <= 10 for row in after)
    near = [
        abs(int(a["cases"]) - int(b["cases"])) for a, b in zip(rows(tables[0]), before, strict=True)
    ]
    assert sum(near) / len(near) < 2
    ladder = Ladder.from_dict(json.loads((folder / "ladder.json").read_text()))
    assert ladder.verify() == [True, True]
    law = Mechanism.from_json((folder / "level-2-epsilon-0.5.mechanism.json").read_text())
    assert law.isclose(ladder.rungs[1].mechanism)


def test_an_overspent_budget_writes_nothing(tallyveil, cases, ledger, history, tmp_path):
    folder = tmp_path / "levels"
    words = ("ladder", cases, "--count", "cases", "--upper", 10, "--epsilons", "3,1")
    account = ("--ledger", ledger, "--dataset", "cases")
    done = tallyveil(*words, "--out", folder, *account, check=1)
    assert "Nothing was spent" in done.stderr
    assert not folder.exists()
    assert history() == []


def test_the_true_count_stays_out_of_the_ledger(tallyveil, ledger, history):
    for words in (("--value", 4242), ("--value=4242",)):
        tallyveil(
            "ladder",
            *words,
            "--upper",
            50,
            "--epsilons",
            "1,0.5",
            "--ledger",
            ledger,
            "--dataset",
            "cases",
            check=0,
        )
    assert len(history()) == 2
    assert "4242" not in json.dumps(history())


def test_kept_columns(tallyveil, cases, tmp_path):
    folder = tmp_path / "levels"
    tallyveil(
        "ladder",
        cases,
        "--count",
        "cases",
        "--upper",
        10,
        "--epsilons",
        "1",
        "--keep",
        "fips",
        "--out",
        folder,
        check=0,
    )
    assert list(rows(folder / "level-1-epsilon-1.csv")[0]) == ["fips", "cases"]


def test_bad_requests(tallyveil, cases, tmp_path):
    value = ("--value", 3, "--upper", 9)
    column = (cases, "--count", "cases", "--upper", 9, "--epsilons", "1")
    for words, said in (
        ((*value, "--epsilons", "1,2"), "strictly decreasing"),
        ((*value, "--epsilons", "1,x"), "finite number"),
        (("--upper", 9, "--epsilons", "1"), "either a FILE or --value"),
        ((*value, "--epsilons", "1", "--ledger", "x.db"), "--dataset"),
        (("--value", -3, "--upper", 9, "--epsilons", "1"), "0 or more"),
        (column, "--count and --out"),
        (
            (cases, "--count", "nothing", "--upper", 9, "--epsilons", "1", "--out", tmp_path / "x"),
            "no column 'nothing'",
        ),
        ((*column, "--out", tmp_path), "exist"),
    ):
        done = tallyveil("ladder", *words, check=1)
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_rows_that_repeat_a_category_are_refused(tallyveil, tmp_path):
    table = tmp_path / "cases.csv"
    table.write_text("area,cases\na,3\na,4\n")
    done = tallyveil(
        "ladder",
        table,
        "--count",
        "cases",
        "--upper",
        9,
        "--epsilons",
        "2,1",
        "--out",
        tmp_path / "levels",
        check=1,
    )
    assert "one person could be in both" in done.stderr.replace("\n", " ")
    assert not (tmp_path / "levels").exists()
