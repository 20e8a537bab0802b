"""`tallyveil check` and `report`: a recipient trusts nothing that a folder says of itself."""

import hashlib
import json
import shutil

import pytest

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.release.folder import CHECKSUMS, list_checksums
from tallyveil.release.receipt import Receipt
from tests.asking import privatize


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    import pandas as pd

    table = pd.DataFrame({"county": range(300), "cases": [i % 7 for i in range(300)], "x": "y"})
    rel = privatize(table, count="cases", keep="all", upper=9, epsilon=1)
    return rel.save(tmp_path_factory.mktemp("published") / "release")


@pytest.fixture
def release(published, tmp_path):
    return shutil.copytree(published, tmp_path / "release")


def failed(folder):
    return [finding.name for finding in check_package(folder) if not finding.ok]


def reseal(folder):
    """Make the checksums right again, as a forger would."""
    files = (path for path in folder.iterdir() if path.name != CHECKSUMS)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (folder / CHECKSUMS).write_text(list_checksums(sums))


def edit(folder, name, change):
    """Change a document; a receipt states what follows from its facts, unless that was changed."""
    data = json.loads((folder / name).read_text())
    before = json.dumps(data.get("statement"))
    change(data)
    if name == "receipt.json" and json.dumps(data["statement"]) == before:
        data = Receipt.from_dict(data).to_dict()
    (folder / name).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def edit_receipt(change):
    return lambda folder: edit(folder, "receipt.json", change)


def edit_data(change):
    def forge(folder):
        lines = (folder / "data.csv").read_text().splitlines()
        (folder / "data.csv").write_text("\n".join(change(lines)) + "\n")

    return forge


def cheaper_everywhere(receipt):
    for stage in receipt["columns"][0]["stages"]:
        stage["epsilon"] = "1/4"


def other_mechanism(folder):
    mechanism = tv.certify_geometric(tv.Query.count(9), 2)
    mechanism.save(folder / "mechanism.json")
    mechanism.save_certificate(folder / "certificate.json")


def other_weight(folder):
    path = folder / "mechanism.json"
    text = path.read_text()
    digit = next(place for place in range(900, len(text)) if text[place] in "2468")
    path.write_text(text[:digit] + "1" + text[digit + 1 :])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    edit(folder, "receipt.json", lambda r: r["columns"][0]["stages"][-1].update(sha256=digest))


count_out_of_range = edit_data(lambda lines: [lines[0], "0,77,y", *lines[2:]])
FORGERIES = {
    "files and checksums": lambda folder: (folder / "extra.txt").write_text("x"),
    "a file is missing": lambda folder: (folder / "certificate.json").unlink(),
    "receipt": edit_receipt(lambda receipt: receipt.update(private=False)),
    "paths": edit_receipt(lambda r: r["columns"][0]["stages"][0].update(file="../other.json")),
    "certificates": other_mechanism,
    "weights": other_weight,
    "budget": edit_receipt(lambda r: r["statement"].update(epsilon_exact="1/2")),
    "budget of stages": edit_receipt(cheaper_everywhere),
    "published counts": count_out_of_range,
    "rows": edit_data(lambda lines: lines[:-1]),
    "data description": lambda folder: edit(
        folder, "datapackage.json", lambda p: p["resources"][0].update(bytes=1)
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_release_is_found_even_with_right_checksums(release, name):
    FORGERIES[name](release)
    if name not in ("files and checksums", "a file is missing"):
        reseal(release)
    assert failed(release)


@pytest.mark.parametrize("name", ["data.csv", "METHODOLOGY.html", "receipt.json", "SHA256SUMS"])
def test_every_changed_byte_is_found(release, name):
    path = release / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert "files and checksums" in failed(release)


def test_a_forged_release_is_exit_code_1(tallyveil, release):
    count_out_of_range(release)
    reseal(release)
    done = tallyveil("check", release, check=1)
    assert "FAIL published counts" in done.stdout
    assert "does NOT check" in done.stdout


def test_a_page_of_another_version_is_exit_code_3_and_never_passes(tallyveil, release):
    """Nobody can compare it, so it may say anything: the verdict must not be good."""
    receipt, page = release / "receipt.json", release / "METHODOLOGY.html"
    digest = json.loads(receipt.read_text())["program"]["page"]
    receipt.write_text(receipt.read_text().replace(digest, "0" * 64))
    page.write_text(page.read_text().replace("at most 2.72", "at most 1.01"))
    reseal(release)
    done = tallyveil("check", release, check=3)
    assert "not compared page" in done.stdout
    assert "The page was written by another version" in " ".join(done.stdout.split())
    assert "This release checks" not in done.stdout
    assert "at most 2.72" in " ".join(done.stdout.split())
    verdict = json.loads(tallyveil("check", release, "--json", check=3).stdout)
    assert not verdict["ok"]
    assert [check["check"] for check in verdict["checks"] if not check["ok"]] == ["page"]
    count_out_of_range(release)
    reseal(release)
    tallyveil("check", release, check=1)


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
