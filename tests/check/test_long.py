"""A long text file is checked in batches, with the same findings as in one piece."""

import numpy as np
import pandas as pd
import pytest

from tallyveil.check.package import check_package
from tallyveil.tables import text
from tests.asking import privatize
from tests.attacks.forging import reseal

OPTIONS = {
    "hierarchy": {"hierarchy": ["state", "county"]},
    "strata": {"strata": "state"},
    "unbiased": {"unbiased": True},
    "zeros": {"hierarchy": ["state"], "structural_zeros": "county==c3"},
}


def make_table():
    rows = np.arange(400)
    random = np.random.default_rng(1)
    table = pd.DataFrame({"state": rows // 100, "county": [f"c{n}" for n in rows // 20]})
    table["cases"] = np.where(table["county"] == "c3", 0, random.integers(0, 10, len(rows)))
    return table


def check(folder, monkeypatch, *, long):
    """List all findings; a file that is `long` is read in small blocks at every pass."""
    with monkeypatch.context() as patch:
        if long:
            patch.setattr(text, "HELD", -1)
            patch.setattr(text, "BLOCK", 500)
        return [(finding.name, finding.ok, finding.detail) for finding in check_package(folder)]


@pytest.fixture(params=OPTIONS)
def folder(request, tmp_path):
    path = tmp_path / "cases.csv"
    make_table().to_csv(path, index=False)
    options = {"count": "cases", "upper": 9, "epsilon": 1, "keep": "all", "allow_duplicates": True}
    privatize(path, **options, **OPTIONS[request.param], out=tmp_path / "release")
    return tmp_path / "release"


def test_a_long_file_is_checked_in_batches(folder, monkeypatch):
    findings = check(folder, monkeypatch, long=True)
    assert all(ok for _, ok, _ in findings)
    assert findings == check(folder, monkeypatch, long=False)


@pytest.mark.parametrize("change", [(b"\n3,c19,", b"\n2,c19,"), (b"\n0,c0,", b"\n0,c3,")])
def test_changed_labels_are_noticed_in_batches(folder, monkeypatch, change):
    """One row goes to another group, and the checksum of the file follows."""
    data = folder / "data.csv"
    before = data.read_bytes()
    after = before.replace(*change, 1)
    assert after != before
    data.write_bytes(after)
    reseal(folder)
    findings = check(folder, monkeypatch, long=True)
    assert not all(ok for _, ok, _ in findings)
    assert findings == check(folder, monkeypatch, long=False)
