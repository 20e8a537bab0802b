"""The publisher's journey by its answers: every step, one debit, the same as the other doors."""

import io
import shlex
import threading
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.release.release import read_receipt
from tallyveil.studio.choices import (
    OWN_MECHANISM,
)

CHOSEN = {"count": ["cases"], "keep": ["county", "region"], "upper": ["40"], "epsilon": ["1"]}


def spent(place):
    return len(tv.Ledger(place / "budget.db").history("cases"))


def test_the_whole_journey_ends_with_a_folder_that_checks(client, place):
    base = client.open_demo()
    for step in ("table", "protect", "accuracy", "release"):
        assert client.get(f"{base}/{step}").status_code == 200
    client.choose(base, **CHOSEN)
    preview = client.send_json(f"{base}/preview").json()
    assert preview["epsilon_exact"] == "1"
    assert preview["columns"][0]["accuracy"]["true_count"][:2] == [0, 1]
    ended = client.release(base, "journey", "cases")
    assert ended["state"] == "done", ended
    assert ended["result"]["ok"]
    assert all(finding.ok for finding in tv.check_package(place / "journey"))
    packed = zipfile.ZipFile(io.BytesIO(client.get(f"{base}/zip").content))
    assert "journey/receipt.json" in packed.namelist()
    shown = client.get(f"{base}/page")
    assert shown.content == (place / "journey" / "METHODOLOGY.html").read_bytes()
    assert "sandbox" in shown.headers["content-security-policy"]


def test_pressing_at_once_and_again_is_one_release_and_one_debit(client, place):
    base = client.open_demo()
    client.choose(base, **CHOSEN)
    before = spent(place)
    message = {**client.find_keys(base), "out": "pressed", "dataset": "cases"}
    jobs = []

    def press(**changes):
        jobs.append(client.send_json(f"{base}/release", {**message, **changes}).json()["job"])

    threads = [threading.Thread(target=press) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.follow(jobs[0])["state"] == "done"
    press(out="pressed again")
    assert len(set(jobs)) == 1
    assert spent(place) == before + 1
    assert not (place / "pressed again").exists()
    assert '"state": "done"' in client.get(f"{base}/release").text  # reloaded: what was made


def test_another_release_needs_another_press_of_another_button(client, place):
    base = client.open_demo()
    client.choose(base, **CHOSEN)
    old = client.find_keys(base)
    assert client.release(base, "first of two", "cases")["state"] == "done"
    assert client.send_json(f"{base}/again").status_code == 200
    late = client.send_json(f"{base}/release", {**old, "out": "late", "dataset": "cases"})
    assert late.status_code == 409
    assert client.find_keys(base)["request"] != old["request"]
    assert client.release(base, "second of two", "cases")["state"] == "done"


def test_an_error_is_the_librarys_sentence_costs_nothing_and_can_be_mended(client, place):
    base = client.open_demo()
    client.choose(base, count=["cases"], upper=["40"], epsilon=["-1"])
    before, key = spent(place), client.find_keys(base)["request"]
    refused = client.send_json(f"{base}/preview")
    assert refused.status_code == 422
    with pytest.raises(tv.ArgumentError) as problem:
        tv.privatize([1], upper=40, epsilon="-1")
    sentence = str(problem.value).replace("'epsilon'", "“Epsilon”")  # as the page calls it
    assert refused.json() == {"error": sentence}
    ended = client.release(base, "never", "cases")
    assert (ended["state"], ended["sentence"]) == ("refused", sentence)
    assert spent(place) == before
    assert not (place / "never").exists()
    client.choose(base, epsilon=["0.5"])
    assert client.find_keys(base)["request"] == key
    assert client.release(base, "mended", "cases")["state"] == "done"


def test_a_cancelled_job_costs_nothing_and_leaves_nothing(client, studio, place):
    base = client.open_demo()
    client.choose(base, **CHOSEN)
    before = spent(place)
    message = {**client.find_keys(base), "out": "cancelled", "dataset": "cases"}
    job = client.send_json(f"{base}/release", message).json()["job"]
    assert client.send_json(f"/jobs/{job}/cancel").json() == {"cancelled": True}
    ended = client.follow(job)
    assert (ended["state"], ended["sentence"]) == ("cancelled", "Cancelled. Nothing was spent.")
    assert spent(place) == before
    assert not [p for p in place.iterdir() if "cancelled" in p.name]
    assert client.release(base, "cancelled", "cases")["state"] == "done"


def test_a_parquet_file_is_released_as_one(client, place):
    counts = pa.table({"area": [f"a{i}" for i in range(300)], "cases": np.arange(300) % 9})
    written = io.BytesIO()
    pq.write_table(counts, written)
    base = client.open_table(written.getvalue(), "counts.parquet")
    client.choose(base, count=["cases"], keep=["area"], upper=["9"], epsilon=["1"])
    assert client.release(base, "from parquet", "cases")["state"] == "done"
    assert (place / "from parquet" / "data.parquet").is_file()


def test_no_value_is_shown_unless_it_is_asked_for(client):
    text = "area,cases\nSECRETPLACE,7654321\nOTHER,3\n"
    base = client.open_table(text, "t.csv")
    for step in ("table", "protect", "accuracy", "release"):
        shown = client.get(f"{base}/{step}").text
        assert "SECRETPLACE" not in shown
        assert "7654321" not in shown
        assert " checked" not in shown  # nothing is ticked beforehand
    assert "SECRETPLACE" in client.send_json(f"{base}/values").text


def test_within_and_epsilon_move_each_other_exactly(client):
    base = client.open_demo()
    client.choose(base, **{**CHOSEN, "method": "geometric"})
    for within in (2, 3, 5, 8):
        seen = client.send_json(f"{base}/epsilon", {"within": within}).json()
        assert seen["within"] == within
        expected = tv.epsilon_for(tv.Query.count(40), within, 0.95)
        assert float(seen["chosen"]) == pytest.approx(expected, rel=1e-12)
    client.choose(base, method="preserve")
    for within in (2, 3, 5, 8):
        seen = client.send_json(f"{base}/epsilon", {"within": within}).json()
        assert seen["within"] == within


def test_the_confidential_table_is_not_opened_for_a_simulation(client, studio):
    base = client.open_demo()
    client.choose(base, **CHOSEN)
    draft = studio.drafts.find(base.rpartition("/")[2])
    draft.table.write_text("not,a table\n")
    (seen,) = client.send_json(f"{base}/simulate").json()
    assert seen["rows"] == 1200
    assert sum(seen["before"]) == 1200
    assert sum(seen["after"]) == pytest.approx(1200, rel=1e-3)
    assert [one["name"] for one in seen["sums"]] == ["total", "30 rows"]
    methods = client.send_json(f"{base}/methods").json()
    assert [one["method"] for one in methods] == ["preserve", "geometric", "fair", "design"]
    assert all(one["columns"][0]["error"]["mean"] > 0 for one in methods)


def test_a_hierarchy_is_planned_and_simulated_without_its_counts(client, studio):
    base = client.open_demo()
    client.choose(base, **CHOSEN, hierarchy="region")
    preview = client.send_json(f"{base}/preview").json()
    levels = preview["columns"][0]["sums"]
    assert [one["level"] for one in levels] == ["total", "region"]
    assert all(one["half_width"] > one["deviation"] > 0 for one in levels)
    draft = studio.drafts.find(base.rpartition("/")[2])
    header, *rows = draft.table.read_text().splitlines()
    draft.table.write_text("\n".join([header, *(row.rpartition(",")[0] + ",0" for row in rows)]))
    assert client.send_json(f"{base}/preview").json() == preview
    (seen,) = client.send_json(f"{base}/simulate").json()
    assert seen["before"][0] < 1200
    assert "region" in [one["name"] for one in seen["sums"]]
    methods = client.send_json(f"{base}/methods").json()
    assert all(one["columns"][0]["sums"][1]["name"] == "region" for one in methods)


def test_rows_of_people_are_counted_by_public_categories(client, place):
    text = "id,region,age\n" + "".join(f"{i},{'NESW'[i % 4]},{i % 90}\n" for i in range(400))
    base = client.open_table(text, "p.csv")
    client.choose(base, by=["region"], categories="N\nE\nS\nW", upper=["300"], epsilon=["1"])
    ended = client.release(base, "people", "cases")
    assert ended["state"] == "done", ended
    assert "--categories categories.txt" in ended["result"]["command"]


SAME = ("name", "upper", "method", "why", "epsilon", "stages", "properties")
REQUESTS = {
    "one count": {
        "count": ["cases"], "keep": ["county", "region"], "upper": ["20"], "epsilon": ["1"],
    },
    "several counts": {
        "count": ["cases", "deaths"], "keep": ["county"], "upper": ["20", "9"],
        "epsilon": ["1", "0.5"], "title": "Cases", "disjoint": ["cases,deaths"],
    },
    "several levels": {
        "count": ["cases"], "keep": ["county"], "upper": ["20"], "epsilons": "2, 1, 0.5",
    },
    "a hierarchy": {
        "count": ["cases"], "keep": ["county", "region"], "hierarchy": "region, county",
        "upper": ["20"], "epsilon": ["1"],
    },
    "rows of people": {
        "by": ["region", "sex"], "categories": "region = N, E, S, W\nsex = f, m", "epsilon": ["1"],
        "upper": ["90"],
    },
    "a design": {
        "count": ["cases"], "keep": ["county"], "upper": ["12"], "epsilon": ["1"],
        "method": "design", "loss": "squared", "properties": ["fair"],
    },
}  # fmt: skip


def describe_folder(folder):
    """What receipts say, apart from names, times and draws."""
    folders = {}
    for place in sorted(folder.rglob("receipt.json")):
        receipt = read_receipt(place.parent).to_dict()
        columns = [{key: column.get(key) for key in SAME} for column in receipt["columns"]]
        drawn = ("release", "created", "columns", "ledger")
        rest = {key: value for key, value in receipt.items() if key not in drawn}
        folders[str(place.relative_to(folder))] = rest, columns
    return folders


@pytest.mark.parametrize("kind", REQUESTS)
def test_the_command_shown_gives_the_same_receipt(client, place, tmp_path, kind):
    names = "county,region,sex,cases,deaths\n"
    rows = "".join(f"c{i},{'NESW'[i % 4]},{'fm'[i % 2]},{i % 12},{i % 7}\n" for i in range(240))
    (place / "both doors.csv").write_text(names + rows)
    chosen = client.send_json("/tables/folder", {"name": "both doors.csv"}).json()["next"]
    base = chosen.removesuffix("/table")
    client.choose(base, **REQUESTS[kind])
    seen = client.send_json(f"{base}/preview").json()
    ended = client.release(base, f"door {kind}")
    assert ended["state"] == "done", ended
    result = ended["result"]
    assert result["ok"]
    assert seen["epsilon"] == pytest.approx(result["epsilon"])
    assert seen["promise"] == result["promise"]
    words = shlex.split(result["command"])
    release_folder = place / f"door {kind}"
    assert words[0] == "tallyveil"
    assert str(release_folder) in words
    other = [str(tmp_path / "line") if word == str(release_folder) else word for word in words[1:]]
    ran = CliRunner().invoke(app, other)
    assert ran.exit_code == 0, ran.output
    assert describe_folder(release_folder) == describe_folder(tmp_path / "line")
    exec(result["python"].replace(repr(str(release_folder)), repr(str(tmp_path / "python"))))
    assert describe_folder(release_folder) == describe_folder(tmp_path / "python")


def test_a_mechanism_of_ones_own_and_the_comparison_with_the_truth(client, place):
    base = client.open_demo()
    choices = {**CHOSEN, "upper": ["9"], "method": OWN_MECHANISM}
    client.choose(base, **choices)
    assert client.send_json(f"{base}/preview").status_code == 422
    saved = client.send_json("/design/certify", {"query": "count", "upper": 9, "epsilon": "1"})
    sent = client.upload(f"{base}/mechanism", saved.json()["mechanism.json"], "mine.json")
    assert sent.status_code == 200
    assert client.upload(f"{base}/mechanism", b"x", "mine.exe").status_code == 415
    assert client.send_json(f"{base}/preview").json()["columns"][0]["method"] == "file"
    message = {**client.find_keys(base), "out": "own", "dataset": "cases", "report": True}
    ended = client.follow(client.send_json(f"{base}/release", message).json()["job"])
    assert ended["state"] == "done", ended
    assert "--method mechanism.json" in ended["result"]["command"]
    shown = client.get(f"{base}/report")
    assert "CONFIDENTIAL" in shown.text
    assert "sandbox" in shown.headers["content-security-policy"]
    assert (place / "own CONFIDENTIAL.html").stat().st_mode & 0o777 == 0o600
    packed = zipfile.ZipFile(io.BytesIO(client.get(f"{base}/zip").content))
    assert not [name for name in packed.namelist() if "CONFIDENTIAL" in name]


def test_the_summary_names_everything_that_was_chosen(client):
    base = client.open_demo()
    client.choose(base, **CHOSEN, unbiased=True, publisher="An office", contributions=2, title=" ")
    listed = dict(client.send_json(f"{base}/preview").json()["choices"])
    assert listed["Public columns"] == "county, region"
    assert listed["Contributions of one person"] == "2"
    assert listed["Add a column of unbiased counts"] == "yes"
    assert listed["Publisher"] == "An office"
    assert "Title" not in listed
    client.choose(base, keep=["county"])
    listed = dict(client.send_json(f"{base}/preview").json()["choices"])
    assert listed["Not released"] == "region, population"
