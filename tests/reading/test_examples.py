"""The worked examples run, on stand-in data that says so."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tallyveil.certified import mechanism as certified
from tallyveil.sampling.entropy import SeededNotPrivate

FOLDER = Path(__file__).parents[2] / "examples"


def example(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_consumers(monkeypatch):
    found = example("consumers", monkeypatch).main()
    assert found["everybody"] == pytest.approx(168 / 415)
    assert found["informed"] == pytest.approx(1 / 5)


def test_ladder(monkeypatch, capsys):
    released = example("ladder", monkeypatch).main()
    assert len(released) == 3
    assert "exact integers: True" in capsys.readouterr().out


@pytest.fixture
def seeded(monkeypatch):
    """Draws from a fixed seed, so that what is asserted of them cannot fail by chance."""
    monkeypatch.setattr(certified.Entropy, "fresh", lambda given: SeededNotPrivate(4))


@pytest.mark.usefixtures("seeded")
def test_naive_bayes_is_worth_having(monkeypatch, capsys):
    found = example("naive_bayes", monkeypatch).main(["--epsilon", "20"])
    assert "STAND-IN DATA" in capsys.readouterr().out
    assert found["not private"] > found["majority class"] + 0.05
    assert found["geometric"] > found["not private"] - 0.05


@pytest.mark.usefixtures("seeded")
def test_chow_liu_finds_most_of_the_information(monkeypatch, capsys):
    found = example("chow_liu", monkeypatch).main(["--epsilon", "40"])
    assert "STAND-IN DATA" in capsys.readouterr().out
    assert found["geometric"] <= found["not private"] + 1e-12
    assert found["geometric"] > 0.9 * found["not private"]


def test_the_adult_file_is_read_when_its_path_is_given(monkeypatch, tmp_path):
    file = tmp_path / "adult.data"
    line = "{}, Private, 1, HS-grad, {}, {}, Sales, Husband, White, {}, 0, 0, {}, X, {}\n"
    file.write_text(
        line.format(29, 8, "Never-married", "Male", 34, "<=50K")
        + line.format(60, 13, "Married-civ-spouse", "Female", 41, ">50K")
    )
    data, source = example("group_marginals", monkeypatch).people(file)
    assert "STAND-IN" not in source
    assert {name: values.tolist() for name, values in data.items()} == {
        "income": [0, 1],
        "age": [0, 3],
        "education": [0, 3],
        "marital": [1, 0],
        "hours": [0, 2],
        "sex": [1, 0],
    }
