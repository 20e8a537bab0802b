"""Crashes, closed windows and second tabs: nothing is paid twice, lost, shown or left behind."""

import re
import signal
import tempfile
import time
from contextlib import contextmanager

import httpx2
import pytest

import tallyveil as tv
import tallyveil.studio.workers as workers_module
from tallyveil.studio.uploads import hold_folder
from tallyveil.studio.workers import LONGEST_TEMPORARY, serve_calls

from .test_uploads import zipped

CHOSEN = {"count": ["cases"], "keep": ["county"], "upper": ["40"], "epsilon": ["1"]}


def test_what_is_released_is_what_the_page_showed(client, place):
    base = client.open_demo()
    client.choose(base, **CHOSEN)
    shown = client.find_keys(base)
    client.choose(base, epsilon=["5"])  # in another tab
    before = len(tv.Ledger(place / "budget.db").history("cases"))
    pressed = client.send_json(f"{base}/release", {**shown, "out": "unseen", "dataset": "cases"})
    assert pressed.status_code == 409
    assert "changed" in pressed.json()["error"]
    assert not (place / "unseen").exists()
    assert len(tv.Ledger(place / "budget.db").history("cases")) == before


def test_a_zip_that_is_refused_is_refused_again(client, studio):
    bad = zipped(("receipt.json", "{}"), ("../evil", "x"))
    key = client.new_bundle({"r.zip": bad})
    for _ in range(2):
        ended = client.follow(client.send_json(f"/bundles/{key}/check").json()["job"])
        assert ended["state"] == "refused"
        assert ended["sentence"] == "A name points outside its folder."
    assert [p.name for p in studio.bundles[key].iterdir()] == ["r.zip"]


def test_a_zip_has_the_room_that_is_left(client):
    ended = client.check({"r.zip": zipped(("data.csv", b"0" * (61 << 20)))})
    assert ended["sentence"] == "What the zip holds is too large."


def test_temporary_files_of_a_worker_are_in_the_private_folder(tmp_path, monkeypatch):
    class Closed:
        def send(self, message):
            pass

        def recv(self):
            raise EOFError

    handled = {}
    monkeypatch.setattr(workers_module.signal, "signal", handled.__setitem__)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    serve_calls(Closed(), False, tmp_path)
    assert tempfile.gettempdir() == str(tmp_path)
    assert handled[signal.SIGHUP] == handled[signal.SIGINT] == signal.SIG_IGN
    with pytest.raises(BlockingIOError):
        hold_folder(tmp_path, alone=True)


@contextmanager
def let_in(server):
    """Somebody who was let in, without a browser."""
    origin = server.origin
    with httpx2.Client(base_url=origin, headers={"origin": origin}, timeout=300) as line:
        line.get(server.address)
        yield line


def test_a_closed_window_leaves_no_table_behind(served, tmp_path):
    """Its folder of temporary files has a long name, which a socket's name cannot have."""
    started = type(served)(tmp_path)
    assert len(str(started.temporary)) > LONGEST_TEMPORARY
    table = b"area,cases\nA,1\nB,2\n"
    with let_in(started) as line:
        line.put("/tables", content=table, headers={"x-name": "t.csv"})
    assert list(started.temporary.rglob("table.csv"))
    started.process.send_signal(signal.SIGHUP)
    started.process.communicate(timeout=120)
    assert not list(started.temporary.rglob("run-*"))


def test_a_killed_studio_finishes_what_was_paid_for(served, tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 3)
    started = type(served)(tmp_path, tmp_path / "budget.db")
    rows = "".join(f"a{i},{i % 9}\n" for i in range(60_000))
    table = f"county,cases\n{rows}".encode()
    with let_in(started) as line:
        opened = line.put("/tables", content=table, headers={"x-name": "t.csv"}).json()
        base = opened["next"].removesuffix("/table")
        line.post(f"{base}/choices", json={"choices": CHOSEN})
        keys = dict(re.findall(r'data-(request|plan)="([^"]+)"', line.get(f"{base}/release").text))
        line.post(f"{base}/release", json={**keys, "out": "made", "dataset": "cases"})
        wait_for(lambda: book.history("cases"))
    started.process.kill()
    started.process.communicate()
    wait_for((tmp_path / "made" / "receipt.json").exists)
    assert all(finding.ok for finding in tv.check_package(tmp_path / "made"))
    assert len(book.history("cases")) == 1
    assert list(started.temporary.rglob("table.csv"))

    def is_removed_by_another_start():
        type(started)(started.folder).stop()
        return not list(started.temporary.rglob("table.csv"))

    wait_for(is_removed_by_another_start)


def wait_for(happens, seconds=300):
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


HOSTILE_NAME = "<img src=x onerror=alert(1)>\"'&{{7*7}}"


def test_names_are_words_and_never_markup(client, place):
    text = f'"{HOSTILE_NAME.replace(chr(34), chr(34) * 2)}",cases\na,1\nb,2\n'
    sent = client.put("/tables", content=text.encode(), headers={"x-name": "%3Cb%3Ex.csv"})
    base = sent.json()["next"].removesuffix("/table")
    client.choose(base, count=["cases"], keep=[HOSTILE_NAME], upper=["9"], epsilon=["1"])
    client.send_json("/ledger/open", {"dataset": HOSTILE_NAME, "epsilon": "2"})
    (place / "<i>folder").mkdir(exist_ok=True)
    (place / "<i>folder" / "receipt.json").write_text("{}")
    for path in (*(f"{base}/{s}" for s in ("table", "protect", "accuracy", "release")), "/ledger"):
        shown = client.get(path).text
        assert "<img" not in shown
        assert "<b>x.csv" not in shown
        assert "{{7*7}}" in shown or "49" not in shown
    for path in ("/", "/check", "/read"):
        assert "<i>folder" not in client.get(path).text
    ended = client.release(base, "marked up")
    assert ended["state"] == "done", ended


def test_a_zip_of_a_mechanism_and_its_certificate_is_checked(client):
    message = {"query": "count", "upper": 9, "epsilon": "1"}
    saved = client.send_json("/design/certify", message).json()
    ended = client.check({"m.zip": zipped(*saved.items())})
    assert (ended["result"]["kind"], ended["result"]["ok"]) == ("certificate", True)
