"""Folders made before the budget was divided by predicted errors still check, as what they are."""

import json

import pytest

import tallyveil as tv
from tallyveil.documents.page.columns import BLURRED
from tallyveil.documents.page.html import MARKED_STYLE
from tallyveil.plans import plan
from tallyveil.publish.folder import CHECKSUMS, checksums_text
from tallyveil.request.earlier_splits import choose_earlier_split

COUNTS = [k % 7 for k in range(400)]


def call_it_version_2(folder, *, groups=True):
    """Write the receipt of that version, which had no totals of groups, and the page it had."""
    path = folder / "receipt.json"
    document = json.loads(path.read_text(encoding="utf-8")) | {"version": 2}
    for column in document["columns"]:
        assert not groups or column.pop("groups") == []
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = (folder / "METHODOLOGY.html").read_text(encoding="utf-8")
    for later, earlier in {
        MARKED_STYLE: "",
        BLURRED: "",
        '<table class="facts">': "<table>",
    }.items():
        page = page.replace(later, earlier)
    (folder / "METHODOLOGY.html").write_text(page, encoding="utf-8")
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"epsilon": 20, "method": "preserve"},
            {
                "; counts above 1,000,000,000, if there were any, count as that.": ", and no count "
                "was cut off. The distribution was measured at public thresholds: every count up "
                "to 63, then steps that grow with the count, up to 1,000,000,000.",
                "from 0, with 1,000,000,000 for all above": "from 0, without an upper bound",
            },
        ),
        (
            {"epsilon": 1, "signed": True},
            {
                "; counts above 1,000,000,000, if there were any, count as that": ", and no count "
                "was cut off",
                "of any sign, true ones above 1,000,000,000 taken as that": "of any sign, without "
                "bounds",
            },
        ),
    ],
)
def test_pages_of_earlier_receipts_keep_the_words_they_were_made_with(tmp_path, options, words):
    folder = tmp_path / "then"
    tv.privatize(COUNTS, out=folder, **options)
    assert complaints(folder) == []
    page = (folder / "METHODOLOGY.html").read_text(encoding="utf-8")
    for now, then in words.items():
        assert page.count(now) == 1
        page = page.replace(now, then)
    call_it_version_2(folder)
    assert complaints(folder) == ["figures and pages"]
    (folder / "METHODOLOGY.html").write_text(page, encoding="utf-8")
    call_it_version_2(folder, groups=False)
    assert complaints(folder) == []


def test_a_best_guess_of_an_earlier_receipt_is_described_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "choose_split", choose_earlier_split)
    folder = tmp_path / "then"
    tv.privatize(COUNTS, upper=9, epsilon=1, method="preserve", tradeoff=0, out=folder)
    call_it_version_2(folder)
    assert complaints(folder) == ["figures and pages", "data description"]
