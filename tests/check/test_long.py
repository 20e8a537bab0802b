"""Long text files are checked in batches, with what a whole reading finds."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from tallyveil.check.package import check_package
from tallyveil.tables import text
from tests.asking import privatize

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


def find(folder, monkeypatch, *, long):
    """All findings; a file that is `long` is read in small blocks at every pass."""
    with monkeypatch.context() as patch:
        if long:
            patch.setattr(text, "HELD", -1)
            patch.setattr(text, "BLOCK", 500)
        return [(found.name, found.ok, found.detail) for found in check_package(folder)]


@pytest.fixture(params=OPTIONS)
def folder(request, tmp_path):
    path = tmp_path / "cases.csv"
    make_table().to_csv(path, index=False)
    options = OPTIONS[request.param]
    named = {"count": "cases", "upper": 9, "epsilon": 1, "keep": "all", "allow_duplicates": True}
    privatize(path, **named, **options, out=tmp_path / "release")
    return tmp_path / "release"


def test_a_long_file_is_checked_in_batches(folder, monkeypatch):
    found = find(folder, monkeypatch, long=True)
    assert all(ok for _, ok, _ in found)
    assert found == find(folder, monkeypatch, long=False)


@pytest.mark.parametrize("change", [(b"\n3,c19,", b"\n2,c19,"), (b"\n0,c0,", b"\n0,c3,")])
def test_changed_labels_are_found_in_batches(folder, monkeypatch, change):
    """One row goes to another group, and the checksum of the file follows."""
    data, sums = folder / "data.csv", folder / "SHA256SUMS"
    before = data.read_bytes()
    after = before.replace(*change, 1)
    assert after != before
    data.write_bytes(after)
    old, new = (hashlib.sha256(content).hexdigest() for content in (before, after))
    sums.write_text(sums.read_text().replace(old, new))
    found = find(folder, monkeypatch, long=True)
    assert not all(ok for _, ok, _ in found)
    assert found == find(folder, monkeypatch, long=False)
