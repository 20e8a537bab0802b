"""Check, read, design, ledger and learn, by their answers: the library's own numbers."""

import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.properties import PROPERTIES
from tallyveil.studio import server
from tallyveil.studio.work_design import LESSONS

from .test_uploads import zipped


def files_of(folder, around=""):
    return {around + path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("how", ["folder", "zip", "files"])
def test_a_good_release_checks_however_it_comes(client, release_folder, how):
    files = files_of(release_folder, "" if how == "files" else "release/")
    ended = client.check({"release.zip": zipped(*files.items())} if how == "zip" else files)
    assert ended["state"] == "done", ended
    result = ended["result"]
    assert result["ok"]
    assert result["verdict"] == "This release checks."
    answer = json.loads(CliRunner().invoke(app, ["check", str(release_folder), "--json"]).output)
    assert result["findings"] == answer["checks"]
    assert result["facts"]["promise"] == answer["promise"]
    assert np.array(result["matrices"][0]["matrix"]).shape == (21, 21)


@pytest.mark.parametrize("forged", ["data.csv", "receipt.json", "certificate.json"])
def test_a_forged_release_does_not(client, release_folder, forged):
    files = files_of(release_folder)
    files[forged] = files[forged].replace(b"1", b"2", 1)
    result = client.check(files)["result"]
    assert not result["ok"]
    assert result["verdict"] == "This release does NOT check."
    assert any(not finding["ok"] for finding in result["findings"])


def test_a_certificate_and_a_matrix(client, release_folder, tmp_path):
    files = files_of(release_folder)
    two = {name: files[name] for name in ("mechanism.json", "certificate.json")}
    result = client.check(two)["result"]
    assert (result["ok"], result["kind"]) == (True, "certificate")
    mechanism = tv.geometric(tv.Query.count(9), 1)
    for text in (mechanism.to_csv(), mechanism.to_ptable()):
        result = client.check({"matrix.csv": text.encode()})["result"]
        assert (result["ok"], result["kind"]) == (True, "matrix")
        assert result["matrices"][0]["realised"] == pytest.approx(1)
    broken = client.check({"matrix.csv": b"1,0\n0.5,0.5\n"})["result"]
    assert not broken["ok"]
    assert "infinite" in broken["findings"][0]["detail"]
    assert broken["matrices"][0]["worst"] == {"likelier": 1, "rarer": 0, "output": 1}


def test_a_release_of_the_folder_is_read(client, place, release_folder):
    shutil.copytree(release_folder, place / "to read")
    key = client.send_json("/bundles", {"folder": "to read"}).json()["bundle"]
    early = client.send_json(f"/bundles/{key}/count", {"released": 7, "column": "cases"})
    assert early.status_code == 409
    seen = client.send_json(f"/bundles/{key}/open").json()
    assert seen["columns"][0]["name"] == "cases"
    assert seen["columns"][0]["cut"]  # sums are of counts cut to the upper bound: the page says so
    message = {"column": "cases", "released": 7, "confidence": 0.95}
    count = client.send_json(f"/bundles/{key}/count", message).json()
    assert count["low"] <= 7 <= count["high"]
    assert sum(count["chances"]) == pytest.approx(1)
    message = {"column": "cases", "by": ["region"], "confidence": 0.95}
    totals = client.send_json(f"/bundles/{key}/totals", message).json()
    expected = tv.estimate_total(release_folder, column="cases", by="region")
    assert [line["group"] for line in totals["groups"]] == list(expected)
    assert totals["groups"][0]["low"] == expected["N"].low
    private = client.send_json(f"/bundles/{key}/totals", {**message, "by": ["cases"]})
    assert private.status_code == 422
    changed = client.put(f"/bundles/{key}/files", content=b"{}", headers={"x-name": "a.json"})
    assert changed.status_code == 409


def test_a_design_is_the_librarys(client):
    message = {"query": "count", "upper": 20, "epsilon": "0.5", "properties": ["fair"]}
    seen = client.send_json("/design/solve", message).json()
    best = tv.design(tv.Query.count(20), "0.5", properties="fair")
    assert seen["objective"] == pytest.approx(best.objective, rel=1e-9)
    assert seen["properties"]["fair"]
    assert np.array(seen["matrix"]) == pytest.approx(best.mechanism.matrix, abs=1e-6)
    answer = {}
    shown = seen["python"].replace("import tallyveil as tv", "").replace("print(d)", "")
    design = lambda *arguments, **named: answer.update(arguments=arguments, named=named) or best  # noqa: E731
    fake = type("tv", (), {"Query": tv.Query, "design": design, "certify": lambda _: fake})
    fake.save = lambda _: None
    exec(shown, {"tv": fake})
    assert answer["arguments"] == (tv.Query.count(20), "0.5")
    assert answer["named"]["properties"] == ["fair"]
    saved = client.send_json("/design/certify", message).json()
    proved = tv.verify(json.loads(saved["mechanism.json"]))
    assert proved.ok
    prices = client.send_json("/design/prices", {**message, "upper": 8}).json()
    assert [line["property"] for line in prices][1:] == list(PROPERTIES)
    assert all(line["price"] >= -1e-9 for line in prices if line["price"] is not None)


def test_other_questions_and_losses(client):
    for message in (
        {"query": "mean", "records": 4, "lower": 0, "upper": 3, "loss": "squared"},
        {"query": "maximum", "lower": 0, "upper": 9, "worst_case": True},
        {"query": "count", "upper": 6, "prior": "binomial:0.3", "loss": "beyond:1"},
    ):
        seen = client.send_json("/design/solve", {"epsilon": "1", **message})
        assert seen.status_code == 200, seen.text


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_lesson_answers(client, lesson):
    assert client.get(f"/learn/{lesson}").status_code == 200
    seen = client.send_json(f"/learn/{lesson}/answer", {"epsilon": "0.7", "at": 3})
    assert seen.status_code == 200, seen.text
    answer = seen.json()
    if lesson == "solvers":
        assert answer["realised"] is None or answer["realised"] > answer["claimed"]
        assert answer["proved"] <= answer["claimed"]
    if lesson == "levels":
        assert answer["holds"]


def test_the_ledger_page(client, place):
    assert "cases" in client.get("/ledger").text
    assert client.send_json("/ledger/verify").json()["ok"]
    opened = client.send_json("/ledger/open", {"dataset": "visits", "epsilon": "0.3"})
    assert opened.status_code == 200
    assert tv.Ledger(place / "budget.db").account("visits").epsilon == Fraction(3, 10)


def test_a_ledger_that_was_changed_is_told(client, studio, tmp_path):
    book = tv.Ledger.create(tmp_path / "changed.db")
    book.open("cases", 2)
    with sqlite3.connect(tmp_path / "changed.db") as file:
        file.execute("drop trigger entries_keep")
        file.execute("update entries set body = replace(body, '2', '9')")
    saved, studio.ledger = studio.ledger, str(tmp_path / "changed.db")
    try:
        answer = client.send_json("/ledger/verify").json()
        assert client.get("/ledger").status_code == 200
    finally:
        studio.ledger = saved
    assert not answer["ok"]


def test_every_page_has_its_policy_and_no_script_inside(client):
    for path in ("/", "/publish", "/check", "/read", "/design", "/ledger", "/learn"):
        page = client.get(path)
        assert page.status_code == 200
        assert page.headers["cache-control"] == "no-store"
        assert "'unsafe" not in page.headers["content-security-policy"]
        for forbidden in (" style=", "onclick=", "<style", "javascript:", "localStorage"):
            assert forbidden not in page.text


def test_charts_are_drawn_by_the_librarys_own_file(client):
    """D3 is served from its package; nothing of it is in the repository."""
    from xstatic.pkg.d3 import BASE_DIR

    served = client.get("/library/d3.js")
    assert served.content == Path(BASE_DIR, "d3.js").read_bytes()
    assert served.headers["content-type"] == "text/javascript; charset=utf-8"
    assert client.get("/library/__init__.py").status_code == 404
    static = Path(server.__file__).with_name("static")
    assert max(path.stat().st_size for path in static.iterdir()) < 20_000


def test_a_question_can_be_watched_and_leaves_nothing(client, studio):
    name = "0123456789abcdef" * 2
    seen, say = [], studio.workers.call

    def call(*arguments):
        *arguments, say_stage = arguments
        return say(*arguments, lambda stage: (say_stage(stage), seen.append(dict(studio.stages))))

    studio.workers.call = call
    try:
        for watched in (name, "../../etc", ""):
            message = {"query": "count", "upper": 12, "epsilon": "1", "properties": ["fair"]}
            answer = client.send_json("/design/solve", message, **{"x-watch": watched})
            assert answer.status_code == 200
    finally:
        studio.workers.call = say
    stages = [one[name] for one in seen if one]
    assert stages[0] == "searching for the best mechanism"
    assert any("step" in stage for stage in stages)
    assert {key for one in seen for key in one} == {name}
    assert studio.stages == {}
    assert client.get(f"/questions/{name}/events").text == 'data: {"stage": ""}\n\n'


def test_every_page_says_what_the_plan_would_leave(client, place):
    base = client.open_demo()
    client.choose(base, count=["cases"], upper=["20"], epsilon=["0.25"])
    left = tv.Ledger(place / "budget.db").account("cases").remaining_epsilon
    leaves = client.send_json(f"{base}/preview").json()["leaves"]
    words = f"would leave ε {float(left - Fraction(1, 4)):g}"
    assert leaves["cases"] == words
    for path in ("/", "/publish", "/check", "/learn/bias", "/nothing"):
        page = client.get(path, headers={"accept": "text/html"}).text
        assert words in page
        assert "the plan for cases.csv" in page
    client.choose(base, epsilon=["700"])
    assert "would leave" not in client.get("/").text  # another plan, not looked at yet
    assert (
        client.send_json(f"{base}/preview").json()["leaves"]["cases"] == "costs more than is left"
    )
    client.send_json(f"{base}/remove")
    assert "costs more" not in client.get("/").text
