"""`tallyveil check` and `report`: a recipient trusts nothing that a folder says of itself."""

import hashlib
import json
import shutil

import pytest

import tallyveil as tv
from tests.asking import privatize
from tests.attacks import forging


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    import pandas as pd

    table = pd.DataFrame({"county": range(300), "cases": [i % 7 for i in range(300)], "x": "y"})
    rel = privatize(table, count="cases", keep="all", upper=9, epsilon=1)
    return rel.save(tmp_path_factory.mktemp("published") / "release")


@pytest.fixture
def release(published, tmp_path):
    return shutil.copytree(published, tmp_path / "release")


def forge_count(folder):
    """Put a count outside the range into the data; the checksums are right again."""
    header, _, *rows = (folder / "data.csv").read_text().splitlines()
    (folder / "data.csv").write_text("\n".join([header, "0,77,y", *rows]) + "\n")
    forging.reseal(folder)


def forge_mechanism(folder):
    """Put a certified mechanism with a larger epsilon into the folder."""
    mechanism = tv.certify_geometric(tv.Query.count(9), 2)
    mechanism.save(folder / "mechanism.json")
    mechanism.save_certificate(folder / "certificate.json")
    forging.reseal(folder)


def forge_weight(folder):
    """Change one weight of the mechanism, and its hash in the receipt."""
    path = folder / "mechanism.json"
    text = path.read_text()
    digit = next(place for place in range(900, len(text)) if text[place] in "2468")
    path.write_text(text[:digit] + "1" + text[digit + 1 :])
    receipt = forging.read(folder)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    receipt["columns"][0]["stages"][-1]["sha256"] = digest
    forging.write(folder, receipt)
    forging.reseal(folder)


@pytest.mark.parametrize(
    ("forge", "check"),
    [
        (forge_count, "published counts"),
        (forge_mechanism, "certificates"),
        (forge_weight, "certificates"),
    ],
)
def test_a_forged_release_is_exit_code_1(tallyveil, release, forge, check):
    """Others, with and without right checksums, are in `tests/attacks`."""
    forge(release)
    done = tallyveil("check", release, check=1)
    assert f"FAIL {check}" in done.stdout
    assert "does NOT check" in done.stdout


def name_other_templates(release):
    """Let a receipt say that another version of Tallyveil wrote the page."""
    receipt = release / "receipt.json"
    digest = json.loads(receipt.read_text())["program"]["page"]
    receipt.write_text(receipt.read_text().replace(digest, "0" * 64))
    forging.reseal(release)


def test_a_page_of_another_version_is_exit_code_3_and_never_passes(tallyveil, release):
    """Nobody can compare it, so it may say anything: the verdict must not be good."""
    page = release / "METHODOLOGY.html"
    page.write_text(page.read_text().replace("at most 2.72", "at most 1.01"))
    name_other_templates(release)
    done = tallyveil("check", release, check=3)
    assert "every document follows" not in done.stdout
    assert "not compared page" in done.stdout
    assert "The page was written by another version" in " ".join(done.stdout.split())
    assert "This release checks" not in done.stdout
    assert "at most 2.72" in " ".join(done.stdout.split())
    verdict = json.loads(tallyveil("check", release, "--json", check=3).stdout)
    assert not verdict["ok"]
    assert [check["check"] for check in verdict["checks"] if not check["ok"]] == ["page"]
    forge_count(release)
    verdict = json.loads(tallyveil("check", release, "--json", check=1).stdout)
    assert verdict["promised"] == []


def test_pages_of_a_ladder_by_another_version_are_exit_code_3(tallyveil, tmp_path):
    privatize([i % 7 for i in range(300)], upper=9, epsilons=[2, 1], out=tmp_path / "out")
    for level in (tmp_path / "out").iterdir():
        name_other_templates(level)
    done = tallyveil("check", tmp_path / "out", check=3)
    assert done.stdout.count("not compared level-") == 2


@pytest.mark.parametrize("listed", [False, True])
def test_files_that_are_missing_or_should_not_be_there_are_named(tallyveil, release, listed):
    (release / ".DS_Store").touch()
    if listed:
        forging.reseal(release)
    assert "Unexpected file .DS_Store: remove it." in tallyveil("check", release, check=1).stdout
    (release / "METHODOLOGY.html").unlink()
    assert "METHODOLOGY.html is missing." in tallyveil("check", release, check=1).stdout


def test_json_and_a_folder_that_is_none(tallyveil, release):
    verdict = json.loads(tallyveil("check", release, "--json", check=0).stdout)
    assert verdict["ok"]
    assert len(verdict["checks"]) == 9
    shutil.rmtree(release)
    release.mkdir()
    tallyveil("check", release, check=1)


def test_the_report_is_rebuilt_from_the_folder(tallyveil, release, tmp_path):
    page = tmp_path / "again.html"
    done = tallyveil("report", release, "--out", page, check=0)
    assert page.read_bytes() == (release / "METHODOLOGY.html").read_bytes()
    assert "epsilon 1 for one person" in done.stdout
    assert "exists already" in tallyveil("report", release, "--out", page, check=1).stderr
    receipt = json.loads(tallyveil("report", release, "--json", check=0).stdout)
    assert receipt["statement"]["epsilon"] == 1
