"""Folders made before the budget was divided by predicted errors still check, as what they are."""

import json

import pytest

import tallyveil as tv
from tallyveil.plans import plan
from tallyveil.publish.folder import CHECKSUMS, checksums_text
from tallyveil.request.earlier_splits import choose_earlier_split

COUNTS = [k % 7 for k in range(400)]


def call_it_version_2(folder):
    """Write the receipt of that version, which had no totals of groups, and the page that it makes.

    A single column of counts has no groups, so pages were the same.
    """
    path = folder / "receipt.json"
    document = json.loads(path.read_text(encoding="utf-8")) | {"version": 2}
    for column in document["columns"]:
        assert column.pop("groups") == []
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != CHECKSUMS}
    (folder / CHECKSUMS).write_text(checksums_text(files))


def complaints(folder):
    return [found.name for found in tv.check_package(folder) if not found.ok]


@pytest.mark.parametrize(
    "options", [{}, {"tradeoff": 4}, {"priority": "counts"}, {"priority": "balanced"}]
)
def test_a_split_is_that_of_the_receipt_s_version(tmp_path, monkeypatch, options):
    asked = {"upper": 9, "epsilon": "1/2", "method": "preserve", **options}
    tv.privatize(COUNTS, out=tmp_path / "now", **asked)
    monkeypatch.setattr(plan, "choose_split", choose_earlier_split)
    tv.privatize(COUNTS, out=tmp_path / "then", **asked)
    assert complaints(tmp_path / "now") == []
    assert complaints(tmp_path / "then") == ["budget"]
    for name in ("now", "then"):
        call_it_version_2(tmp_path / name)
    assert complaints(tmp_path / "now") == ["budget"]
    assert complaints(tmp_path / "then") == []


def test_no_stage_is_needed_where_the_earlier_rule_had_none(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "choose_split", choose_earlier_split)
    made = tv.privatize(COUNTS, upper=9, epsilon=4, method="preserve", out=tmp_path / "then")
    assert len(made.receipt.stages) == 1
    call_it_version_2(tmp_path / "then")
    assert complaints(tmp_path / "then") == []
