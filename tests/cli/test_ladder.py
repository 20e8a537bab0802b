import json
import shutil
from fractions import Fraction

import pytest

import tallyveil as tv
from tests.asking import privatize


def test_one_value(tallyveil):
    words = ("ladder", "--value", 17, "--upper", 40, "--epsilons", "2,1,0.5")
    done = tallyveil(*words, check=0)
    assert "All levels together cost epsilon 2" in done.stdout
    assert "No ledger" in done.stderr
    answer = json.loads(tallyveil(*words, "--json", check=0).stdout)
    assert len(answer["released"]) == 3
    assert all(0 <= value <= 40 for value in answer["released"])
    assert answer["epsilons_exact"] == ["2", "1", "1/2"]


def test_a_column_is_debited_once_and_written_whole(tallyveil, cases, ledger, history, tmp_path):
    folder = tmp_path / "levels"
    words = "ladder --keep all --count cases --upper 10 --epsilons 3/2,1/2 --dataset cases"
    tallyveil(words, cases, "--ledger", ledger, "--out", folder, check=0)
    assert [entry["epsilon_exact"] for entry in history()] == ["3/2"]
    levels = sorted(folder.iterdir())
    assert [path.name for path in levels] == ["level-1-epsilon-1.5", "level-2-epsilon-0.5"]
    for level in levels:
        receipt = json.loads((level / "receipt.json").read_text())
        assert receipt["ledger"]["digest"] == history()[0]["digest"]
        tallyveil("verify", level / "mechanism.json", check=0)
        tallyveil("check", level, check=0)
    done = tallyveil("check", folder, check=0)
    assert "2 levels of release" in done.stdout
    ladder = tv.load(levels[1] / "mechanism.json")
    assert [str(epsilon) for epsilon in ladder.epsilons] == ["3/2", "1/2"]
    assert ladder.exact_epsilon == Fraction(1, 2)


def test_a_level_takes_the_options_of_privatize(tallyveil, tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("region,age\n" + "".join(f"{'ns'[i % 2]},{i % 90}\n" for i in range(200)))
    words = "ladder --by region --categories s,n,nobody --upper 100 --epsilons 4,2"
    keys = ("--set", "microdata.where=age >= 18", "--set", "unit.neighbours=replace_one")
    folder = tmp_path / "levels"
    tallyveil(words, people, *keys, "--out", folder, check=0)
    receipt = json.loads((folder / "level-2-epsilon-2" / "receipt.json").read_text())
    assert receipt["statement"]["epsilon"] == 4.0
    assert receipt["level"] == 2
    assert receipt["columns"][0]["method"]["epsilons"] == ["4", "2"]
    assert receipt["table"]["counted_by"] == ["region"]
    tallyveil("check", folder, check=0)


def test_levels_that_do_not_belong_together_are_found(tallyveil, tmp_path):
    whole = tmp_path / "levels"
    privatize([3, 1, 4, 1], upper=10, epsilons=[2, 1], out=whole)
    without_level = shutil.copytree(whole, tmp_path / "without level")
    shutil.rmtree(without_level / "level-1-epsilon-2")
    without_receipt = shutil.copytree(whole, tmp_path / "without receipt")
    (without_receipt / "level-2-epsilon-1" / "receipt.json").unlink()
    tallyveil("check", without_level, check=1)
    tallyveil("check", without_receipt, check=1)


def test_the_true_count_stays_out_of_the_ledger(tallyveil, ledger, history):
    for words in (("--value", 4242), ("--value=4242",)):
        options = "ladder --upper 50 --epsilons 1,0.5 --dataset cases"
        tallyveil(options, *words, "--ledger", ledger, check=0)
    assert len(history()) == 2
    assert "4242" not in json.dumps(history())


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ("--value 3 --upper 9 --epsilons 1,2", "strictly decreasing", 2),
        ("--value 3 --upper 9 --epsilons 1,x", "finite number", 2),
        ("--upper 9 --epsilons 1", "either a FILE or --value", 2),
        ("--value 3 --upper 9 --epsilons 1 --ledger x.db", "belong together", 2),
        ("--value -3 --upper 9 --epsilons 1", "0 or more", 2),
        ("--value 3 --upper 9 --epsilons 1 --keep x", "does not go with --value", 2),
        ("cases.csv --keep all --count cases --upper 9 --epsilons 1", "folder with --out", 2),
        ("cases.csv --count x --upper 9 --epsilons 1 --out new", "No column named 'x'", 1),
        ("cases.csv --keep all --count cases --upper 9 --epsilons 1 --out .", "exist", 1),
    ],
)
def test_bad_requests(tallyveil, cases, words, message, code):
    done = tallyveil("ladder", *words.split(), cwd=cases.parent, check=code)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
