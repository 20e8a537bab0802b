"""`tallyveil design` and `tallyveil compare`: files, pictures, JSON, errors."""

import csv
import dataclasses
import inspect
import json
import re
import sys

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.cli.design import command
from tallyveil.optimize.problem import DesignOptions


def inside(words, *more):
    """The program without a process of its own, for cases that need only its answer."""
    return CliRunner().invoke(app, [*words.split(), *map(str, more)])


def test_design_writes_a_certified_mechanism_and_a_picture(tallyveil, tmp_path):
    out = tmp_path / "d"
    words = "design count:6 --epsilon 0.5 --property fair --property column-monotone --out"
    done = tallyveil(words, out, check=0)
    assert "optimal for absolute loss" in done.stdout
    files = {"mechanism.json", "matrix.csv", "heatmap.png", "design.json"}
    assert {file.name for file in out.iterdir()} == files
    assert tv.verify(out / "mechanism.json")
    design = tv.design(tv.Query.count(6), 0.5, properties=["fair", "column_monotone"])
    assert json.loads((out / "design.json").read_text())["objective"] == design.objective
    assert tv.Mechanism.from_csv(out / "matrix.csv").isclose(design.mechanism)
    assert (out / "heatmap.png").read_bytes().startswith(b"\x89PNG")
    assert tallyveil("verify", out / "mechanism.json").returncode == 0


def test_several_epsilons_give_the_trade_off(tmp_path):
    out = tmp_path / "d"
    words = "design maximum:0:5 --epsilon 0.5 --epsilon 1/4 --property all --json --out"
    summaries = json.loads(inside(words, out).stdout)
    assert [summary["epsilon"] for summary in summaries] == ["1/2", "1/4"]
    assert all(summary["gap"] < 1e-6 for summary in summaries)
    assert (out / "epsilon-1_4" / "mechanism.json").is_file()
    rows = list(csv.DictReader((out / "tradeoff.csv").read_text().splitlines()))
    assert [float(row["epsilon"]) for row in rows] == [0.5, 0.25]
    assert float(rows[0]["expected_loss"]) < float(rows[1]["expected_loss"])
    assert (out / "tradeoff.png").stat().st_size > 5000


KNOWN, BINOMIAL = range(2, 6), ("binomial", 0.3)
POINT = [0.1, 0.15, 0.25, 0.25, 0.15, 0.1]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--worst-case --side-information 2:5", {"worst_case": True, "side_information": KNOWN}),
        ("--loss beyond:1 --prior binomial:0.3", {"loss": ("beyond", 1), "prior": BINOMIAL}),
        (f"--fixed-point {','.join(map(str, POINT))} --method lp", {"fixed_point": POINT}),
        ("--delta 0.01 --no-zero-outputs", {"delta": "0.01", "zero_outputs": False}),
    ],
)
def test_options_mean_what_they_mean_in_python(tmp_path, words, options):
    done = inside(f"design count:5 {words} --epsilon 1 --json --out", tmp_path / "d")
    expected = tv.design(tv.Query.count(5), 1, **options).objective
    assert json.loads(done.stdout)["objective"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("design count:x --epsilon 1", "count:UPPER"),
        ("design count:3 --epsilon 0", "greater than 0"),
        ("design count:3 --epsilon 1 --property honest", "Known properties"),
        ("design count:3 --epsilon 1 --loss cubic", "Known losses"),
        (
            "design count:2 --epsilon .5 --fixed-point .9,.05,.05 --property weakly_honest",
            "privacy, weakly_honest, fixed_point",
        ),
        ("design count:3 --epsilon 1 --loss beyond:x", "'loss' must have a number after 'beyond:'"),
        ("design count:3 --epsilon 1 --prior binomial:x", "give the binomial a probability"),
        ("design count:3 --epsilon 1 --prior 1,2,x,4", "'prior' must be numbers separated"),
        ("design count:3 --epsilon 1 --target no", "'target' must be numbers separated"),
        ("design count:3 --epsilon 1 --side-information 1.5:3", "FIRST:LAST in whole"),
        ("design count:3 --epsilon 1 --side-information 1:2:3", "FIRST:LAST in whole"),
        ("design count:3 --epsilon 1 --method simplex", "'auto' or 'lp'"),
        ("design count:3 --epsilon 1 --worst-case --prior 1,2,3,4", "A worst case has no prior"),
        ("compare nonsense", "Known names: geometric"),
        ("compare geometric", "--query and --epsilon"),
    ],
)
def test_bad_requests_are_explained_and_write_nothing(tmp_path, words, message):
    done = inside(f"{words} --out", tmp_path / "d")
    assert isinstance(done.exception, tv.TallyveilError)
    assert message in str(done.exception)
    assert not (tmp_path / "d").exists()


def test_a_query_may_come_from_a_file_that_describes_one(tmp_path):
    file, query = tmp_path / "query.json", tv.Query.count(3).to_dict()
    file.write_text(json.dumps(query))
    done = inside("design --epsilon 1 --json --out", tmp_path / "d", file)
    assert json.loads(done.stdout)["query"] == query
    for text in ("{", "[]", '{"kind": "count"}', '{"kind": "count", "up": 1}'):
        file.write_text(text)
        done = inside("design --epsilon 1 --out", tmp_path / "d", file)
        assert isinstance(done.exception, tv.ArgumentError)
        assert re.search("describes a query|name a query|exactly the entries", str(done.exception))


def test_options_have_the_names_they_have_in_python():
    """`DesignOptions` is the one list; the function and the command follow it."""
    names = {field.name for field in dataclasses.fields(DesignOptions)}
    parameters = set(inspect.signature(command).parameters)
    assert names - {"progress"} <= parameters
    others = {"question", "epsilon", "categories", "extend", "out_folder", "as_json"}
    assert parameters - names == others


def test_compare_files_and_names(tmp_path):
    mine, view = tmp_path / "mine", tmp_path / "view"
    inside("design count:6 --epsilon 1 --out", mine)
    words = "compare --query count:6 --epsilon 1 --loss absolute --loss zero_one --json --out"
    done = inside(words, view, mine / "mechanism.json", mine / "matrix.csv", "geometric")
    rows = json.loads(done.stdout)
    assert [row["mechanism"] for row in rows[::2]] == ["mine", "matrix", "geometric"]
    assert rows[0]["expected_loss"] <= rows[4]["expected_loss"] + 1e-12
    assert {file.name for file in view.iterdir()} == {"comparison.csv", "comparison.png"}


def test_compare_shows_a_table_and_the_trade_off(tallyveil, tmp_path):
    words = "compare geometric variant2 --query count:6 --epsilon 0.5 --epsilon 2 --out"
    done = tallyveil(words, tmp_path, check=0)
    assert "absolute loss, uniform prior" in done.stdout
    assert (tmp_path / "tradeoff.png").is_file()


def test_without_the_plotting_library_everything_else_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # as if it were not installed
    done = inside("design count:4 --epsilon 1 --method lp --json --out", tmp_path / "d")
    assert done.exit_code == 0
    (attempt,) = json.loads(done.stdout)["attempts"]
    assert attempt["outcome"].startswith("meets the demands")
    files = {"mechanism.json", "matrix.csv", "design.json"}
    assert {path.name for path in (tmp_path / "d").iterdir()} == files
    assert tv.verify(tmp_path / "d" / "mechanism.json")
