"""The worked examples find what they show."""

import importlib.util
import sys
from pathlib import Path

import pytest

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
