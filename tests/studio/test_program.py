"""How the studio starts and ends."""

import sys

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.studio.server import make_studio


@pytest.mark.parametrize("library", ["uvicorn", "starlette.applications", "xstatic.pkg.d3"])
def test_a_missing_library_is_named_with_its_extra(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    for module in ("server", "pages"):
        monkeypatch.delitem(sys.modules, f"tallyveil.studio.{module}", raising=False)
    done = CliRunner().invoke(app, ["studio"])
    assert isinstance(done.exception, tv.MissingExtraError)
    assert library in str(done.exception)
    assert '".[studio]"' in str(done.exception)


def test_what_is_not_there_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(tv.UsageError, match="There is no folder"):
        make_studio(tmp_path / "nowhere", None)
    with pytest.raises(tv.LedgerError, match="There is no ledger"):
        make_studio(tmp_path, str(tmp_path / "no.db"))
    done = CliRunner().invoke(app, ["studio", "--port", "70000"])
    assert isinstance(done.exception, tv.ArgumentError)
