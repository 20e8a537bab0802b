"""`tallyveil reproduce`: selection, files, exit codes."""

import pytest
from typer.testing import CliRunner

from tallyveil.cli.app import app
from tallyveil.errors import ArgumentError
from tallyveil.papers.harness import registry
from tallyveil.papers.harness.experiment import Experiment, Result, Table, check_number

runner = CliRunner()


@pytest.mark.parametrize("paper", ["cormode", "000"])
def test_one_figure_is_computed_and_written(tmp_path, paper):
    out = tmp_path / "results"
    done = runner.invoke(
        app, ["reproduce", "--paper", paper, "--figure", "7", "--quick", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "Cormode 2018 Figure 7" in done.output
    assert "10/11" in done.output
    written = sorted(path.name for path in (out / "cormode").iterdir())
    assert written == ["figure-7-verdict.csv", "figure-7.csv", "figure-7.png", "figure-7.svg"]


def test_the_list_names_every_experiment():
    done = runner.invoke(app, ["reproduce", "--list"])
    assert done.exit_code == 0
    assert len(done.output.splitlines()) == len(registry.list_experiments())


def test_an_unknown_paper_is_refused():
    done = runner.invoke(app, ["reproduce", "--paper", "007", "--list"])
    assert isinstance(done.exception, ArgumentError)


def test_a_missing_file_is_refused(tmp_path):
    done = runner.invoke(app, ["reproduce", "--adult", str(tmp_path / "nothing.data")])
    assert done.exit_code == 2


def test_a_page_is_written_where_asked(tmp_path):
    page = tmp_path / "page.md"
    done = runner.invoke(
        app,
        [
            "reproduce",
            "--paper",
            "gupte",
            "--table",
            "2",
            "--out",
            str(tmp_path / "out"),
            "--page",
            str(page),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "### Gupte 2010 Table 2" in page.read_text()


@pytest.mark.parametrize(("got", "code"), [(1.0, 0), (2.0, 1)])
def test_an_unexplained_difference_is_exit_code_1(tmp_path, monkeypatch, got, code):
    from tallyveil.figures import new_figure

    found = Result(
        {"data": Table.of(("x",), [(1,)])}, new_figure, (check_number("claim", 1.0, got, 0.1),)
    )
    made_up = Experiment("cormode", "Figure 99", "t", "1", lambda context: found)
    monkeypatch.setattr(registry, "list_experiments", lambda: (made_up,))
    done = runner.invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert done.exit_code == code, done.output
