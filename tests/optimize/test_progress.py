"""The line that is shown while a long solve runs: on a terminal, in a notebook, or not at all."""

import builtins
from types import SimpleNamespace

import pytest

from tallyveil.optimize import solver


@pytest.fixture
def notebook(monkeypatch):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)


def watch(asked):
    with solver.watch_solver(asked, "Designing") as report:
        if report is not None:
            assert report(7, 0.25) is False
            assert report(12, 0.125) is False
        return report


def test_nobody_sees_a_line_where_output_goes_to_a_file(capsys):
    assert watch(None) is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("asked", [None, True])
def test_a_notebook_shows_one_line_over_itself_and_removes_it(notebook, monkeypatch, capsys, asked):
    monkeypatch.setattr(solver, "SECONDS_BEFORE_SHOWN", 0.0)
    watch(asked)
    out, shown = capsys.readouterr()
    assert out == ""
    assert "\n" not in shown
    *_, first, second, cleared, end = shown.split("\r")
    assert first == "Designing: iteration 7, objective 0.25"
    assert second.strip() == "Designing: iteration 12, objective 0.125"
    assert len(cleared) >= len(second.strip())
    assert cleared.strip() == end == ""


def test_no_line_when_told_so(notebook, capsys):
    assert watch(False) is None
    assert capsys.readouterr() == ("", "")
