"""Certificates, draws, designs and released data stay the same to the byte."""

import importlib.util
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("golden_cases", HERE / "cases.py")
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return cases.compute(tmp_path_factory.mktemp("golden"))


def test_every_case_is_known(found):
    expected = json.loads(cases.EXPECTED.read_text())
    assert set(found) == set(expected)


@pytest.mark.parametrize("name", sorted(json.loads(cases.EXPECTED.read_text())))
def test_nothing_moved(found, name):
    expected = json.loads(cases.EXPECTED.read_text())[name]
    assert {key: found[name].get(key) for key in expected} == expected


@pytest.mark.parametrize("folder", sorted((HERE / "version-1").iterdir()), ids=lambda p: p.name)
def test_folders_of_receipt_version_1_still_check(folder):
    import tallyveil as tv

    assert all(finding.ok for finding in tv.check_package(folder))
