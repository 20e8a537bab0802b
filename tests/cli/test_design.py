"""`tallyveil design` and `tallyveil compare`: files, pictures, JSON, errors."""

import csv
import json
import sys

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app


def inside(*words):
    """The program without a process of its own, for cases that need only its answer."""
    return CliRunner().invoke(app, [str(word) for word in words])


def test_design_writes_a_certified_mechanism_and_a_picture(tallyveil, tmp_path):
    out = tmp_path / "d"
    done = tallyveil("design", "count:6", "--epsilon", "0.5", "--property", "fair",
                     "--property", "column-monotone", "--out", out, check=0)  # fmt: skip
    assert "optimal for absolute loss" in done.stdout
    assert {file.name for file in out.iterdir()} == {
        "mechanism.json", "matrix.csv", "heatmap.png", "design.json"
    }  # fmt: skip
    assert tv.verify(out / "mechanism.json")
    found = tv.design(tv.Query.count(6), 0.5, properties=["fair", "column_monotone"])
    assert json.loads((out / "design.json").read_text())["objective"] == found.objective
    assert tv.Mechanism.from_csv(out / "matrix.csv").isclose(found.mechanism)
    assert (out / "heatmap.png").read_bytes().startswith(b"\x89PNG")
    assert tallyveil("verify", out / "mechanism.json").returncode == 0


def test_several_epsilons_give_the_trade_off(tallyveil, tmp_path):
    out = tmp_path / "d"
    done = tallyveil("design", "maximum:0:5", "--epsilon", "0.5", "--epsilon", "1/4",
                     "--property", "all", "--json", "--out", out, check=0)  # fmt: skip
    summaries = json.loads(done.stdout)
    assert [one["epsilon"] for one in summaries] == ["1/2", "1/4"]
    assert all(one["gap"] < 1e-6 for one in summaries)
    assert (out / "epsilon-1_4" / "mechanism.json").is_file()
    rows = list(csv.DictReader((out / "tradeoff.csv").read_text().splitlines()))
    assert [float(row["epsilon"]) for row in rows] == [0.5, 0.25]
    assert float(rows[0]["expected_loss"]) < float(rows[1]["expected_loss"])
    assert (out / "tradeoff.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "objective"),
    [
        (["count:5", "--worst-case", "--side-information", "2:5"],
         lambda q: tv.design(q, 1, worst_case=True, side_information=range(2, 6))),
        (["count:5", "--loss", "beyond:1", "--prior", "binomial:0.3"],
         lambda q: tv.design(q, 1, ("beyond", 1), prior=("binomial", 0.3))),
        (["count:5", "--fixed-point", "0.1,0.15,0.25,0.25,0.15,0.1", "--method", "lp"],
         lambda q: tv.design(q, 1, fixed_point=[0.1, 0.15, 0.25, 0.25, 0.15, 0.1])),
        (["count:5", "--delta", "0.01", "--no-zero-outputs"],
         lambda q: tv.design(q, 1, delta="0.01", zero_outputs=False)),
    ],
)  # fmt: skip
def test_options_mean_what_they_mean_in_python(tmp_path, words, objective):
    done = inside("design", *words, "--epsilon", "1", "--json", "--out", tmp_path / "d")
    wanted = objective(tv.Query.count(5)).objective
    assert json.loads(done.stdout)["objective"] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count:x", "--epsilon", "1"], "count:UPPER"),
        (["count:3", "--epsilon", "0"], "greater than 0"),
        (["count:3", "--epsilon", "1", "--property", "honest"], "Known properties"),
        (["count:3", "--epsilon", "1", "--loss", "cubic"], "Known losses"),
        (["count:2", "--epsilon", ".5", "--fixed-point", ".9,.05,.05", "--property",
          "weakly_honest"], "privacy, weakly_honest, fixed_point"),
    ],
)  # fmt: skip
def test_bad_requests_are_explained_and_write_nothing(tmp_path, words, message):
    done = inside("design", *words, "--out", tmp_path / "d")
    assert isinstance(done.exception, tv.TallyveilError)
    assert message in str(done.exception)
    assert not (tmp_path / "d").exists()


def test_compare_files_and_names(tallyveil, tmp_path):
    tallyveil("design", "count:6", "--epsilon", "1", "--out", tmp_path / "mine", check=0)
    done = tallyveil("compare", tmp_path / "mine" / "mechanism.json",
                     tmp_path / "mine" / "matrix.csv", "geometric", "--query", "count:6",
                     "--epsilon", "1", "--loss", "absolute", "--loss", "zero_one", "--json",
                     "--out", tmp_path / "view", check=0)  # fmt: skip
    rows = json.loads(done.stdout)
    assert [row["mechanism"] for row in rows[::2]] == ["mine", "matrix", "geometric"]
    assert rows[0]["expected_loss"] <= rows[4]["expected_loss"] + 1e-12
    assert {file.name for file in (tmp_path / "view").iterdir()} == {
        "comparison.csv", "comparison.png"
    }  # fmt: skip


def test_compare_shows_a_table_and_the_trade_off(tallyveil, tmp_path):
    done = tallyveil("compare", "geometric", "variant2", "--query", "count:6", "--epsilon", "0.5",
                     "--epsilon", "2", "--out", tmp_path, check=0)  # fmt: skip
    assert "absolute loss, uniform prior" in done.stdout
    assert (tmp_path / "tradeoff.png").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [(["nonsense"], "Known names: geometric"), (["geometric"], "--query and --epsilon")],
)
def test_compare_explains_bad_words(words, message):
    assert message in str(inside("compare", *words).exception)


def test_errors_are_one_paragraph(tallyveil):
    done = tallyveil("compare", "nonsense", check=1)
    assert "Known names: geometric" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["design", "compare"])
def test_help_has_an_example(command):
    assert f"tallyveil {command} " in " ".join(inside(command, "--help").stdout.split())


def test_without_the_plotting_library_everything_else_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # as if it were not installed
    done = inside("design", "count:4", "--epsilon", "1", "--out", tmp_path / "d")
    assert done.exit_code == 0
    assert {path.name for path in (tmp_path / "d").iterdir()} == {
        "mechanism.json", "matrix.csv", "design.json"
    }  # fmt: skip
    assert tv.verify(tmp_path / "d" / "mechanism.json")
