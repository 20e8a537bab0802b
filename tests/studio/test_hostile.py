"""Requests that nobody should send: refused, nothing written, nothing leaked."""

import json
import socket

import pytest
import uvicorn
from starlette.testclient import TestClient

import tallyveil as tv
from tallyveil.studio import server

from .test_uploads import zipped

SECRET = "SECRETPLACE"
TABLE = f"area,cases\n{SECRET},7654321\nB,3\nC,1\n"
JSON = {"content-type": "application/json"}


@pytest.fixture
def draft(client):
    """A draft of a table with a secret in it, all choices made."""
    base = client.open_table(TABLE, "t.csv")
    client.choose(base, count=["cases"], upper=["9"], epsilon=["1"])
    return base


def look(place, studio):
    """Everything that could have been written."""
    paths = sorted(str(p.relative_to(place)) for p in place.rglob("*"))
    folders = sorted(p.name for p in studio.uploads.folder.iterdir())
    return paths, folders, len(tv.Ledger(place / "budget.db").history(kind=None))


def post(path, message, **headers):
    """A message as it is: a str or bytes is sent as the body, anything else as JSON."""
    body = message if isinstance(message, (str, bytes)) else json.dumps(message)
    return lambda c, d: c.request(
        "POST", path.format(d=d), content=body, headers={**JSON, **headers}
    )


def get(path, **headers):
    return lambda c, d: c.request("GET", path.format(d=d), headers=headers)


def put(path, content, name, **headers):
    return lambda c, d: c.request(
        "PUT", path.format(d=d), content=content, headers={"x-name": name, **headers}
    )


def without_key(method, path, **headers):
    def send(c, d):
        saved = dict(c.cookies)
        c.cookies.clear()
        try:
            return c.request(method, path.format(d=d), headers={**JSON, **headers}, content="{}")
        finally:
            c.cookies.update(saved)

    return send


def with_cookie(value):
    return without_key("GET", "/", cookie=value)


EVIL = "http://evil.example"
FRAMED = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
FETCHED = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
PEOPLE = {"by": ["area"], "count": [], "categories": "/etc/passwd"}
NAME, HOST = "tallyveil-8123", "127.0.0.1:8123"
HOSTS = ("evil.example", "evil.example:8123", "127.0.0.1:9", "", "127.0.0.1.:8123", "10.0.0.1:8123")
ORIGINS = (EVIL, "null", f"https://{HOST}", "http://127.0.0.1:80", "http://localhost:8123")
NOWHERE = (
    *("/nothing", "/publish/" + "0" * 32 + "/table", "/jobs/none/events", "/learn/nothing"),
    *("/library/..%2f__init__.py", "/library/d3.min.js", "/static/../server.py"),
    *("/static/%2e%2e/server.py", "/static/%252e%252e/server.py", "/static/..%5cserver.py"),
    *("/static//etc/passwd", "/static/%00"),
)
NO_CHOICES = (
    *({"out": "/tmp/x"}, {"ledger": "/tmp/x.db"}, {"entropy": "7"}),
    *({"confidential_report": "/tmp/r"}, {"kind": "x" * 3000}, ["count"], None),
    *({"count": 7}, {"count": "a"}, {"count": [1]}, {"epsilons": ["1"]}),
    *({"contributions": True}, {"contributions": 1.5}, {"unbiased": "yes"}),
)
NO_TABLES = ("nothing.csv", "../secret.csv", "/etc/passwd", 7, "budget.db")
NO_DESIGNS = (
    *({"query": "count", "upper": "many"}, {"query": "count", "upper": 0}),
    *({"upper": 5, "properties": ["nice"]}, {"upper": 5, "loss": "import os"}),
    {"upper": 5, "prior": "1,x"},
)
HOSTILE = {
    # who asks
    "no cookie": (without_key("GET", "/"), 403),
    "no cookie, a step": (without_key("GET", "{d}/release"), 403),
    "no cookie, a button": (without_key("POST", "{d}/release"), 403),
    "no cookie, a style": (without_key("GET", "/static/studio.css"), 403),
    "no cookie, the zip": (without_key("GET", "{d}/zip"), 403),
    "an empty cookie": (with_cookie(f"{NAME}="), 403),
    "a wrong cookie": (with_cookie(f"{NAME}={'0' * 64}"), 403),
    "a cookie of another port": (with_cookie("tallyveil-1=x"), 403),
    "a broken cookie": (with_cookie(f"{NAME}=\x01;;=;\x7f"), 403),
    "a used token": (without_key("GET", "/open?token=" + "a" * 32), 403),
    "an empty token": (without_key("GET", "/open?token="), 403),
    "no token": (without_key("GET", "/open"), 403),
    # from where
    **{f"the host {host!r}": (get("/", host=host), 421) for host in HOSTS},
    "two hosts": (lambda c, d: c.request("GET", "/", headers=[("host", HOST)] * 2), 421),
    **{f"the origin {origin}": (post("{d}/release", {}, origin=origin), 403) for origin in ORIGINS},
    "a frame of another site": (get("/", **FRAMED), 403),
    "a fetch of another site": (get("/budget", **FETCHED), 403),
    "a fetch of the same site": (get("/budget", **{**FETCHED, "sec-fetch-site": "same-site"}), 403),
    "a form of another site": (post("{d}/release", {}, **{"sec-fetch-site": "cross-site"}), 403),
    # which address
    **{f"the address {path}": (get(path), 404) for path in NOWHERE},
    "the library, unasked": (without_key("GET", "/library/d3.js"), 403),
    "a job to cancel that is not there": (post("/jobs/none/cancel", {}), 404),
    "stages watched from elsewhere": (get("/questions/x/events", **FETCHED), 403),
    "a step that is not there": (get("{d}/fifth"), 404),
    "an address that is too long": (get("/" + "a" * 400), 414),
    "a query that is too long": (get("/?" + "a" * 400), 414),
    "a method that is not offered": (lambda c, d: c.request("DELETE", "/publish"), 405),
    "a folder of no release": (get("/read?folder=../.."), 200),
    # which message
    "a form": (post("{d}/choices", "count=cases", **FORM), 415),
    "plain text": (post("{d}/choices", "{}", **{"content-type": "text/plain"}), 415),
    "no JSON": (post("{d}/choices", "{"), 400),
    "a list": (post("{d}/choices", [1]), 400),
    "NaN": (post("{d}/preview", '{"confidence": NaN}'), 400),
    "one name twice": (post("{d}/choices", '{"a": 1, "a": 2}'), 400),
    "deep JSON": (post("{d}/choices", "[" * 5000 + "]" * 5000), 400),
    "not UTF-8": (post("{d}/choices", b'{"a": "\xff"}'), 400),
    "a long message": (post("{d}/choices", '{"a": "' + "x" * (2 << 20) + '"}'), 413),
    **{f"the choices {c}"[:60]: (post("{d}/choices", {"choices": c}), 400) for c in NO_CHOICES},
    "a confidence above 1": (post("{d}/preview", {"confidence": 2}), 400),
    "a distance in words": (post("{d}/epsilon", {"within": "near"}), 400),
    "a negative distance": (post("{d}/epsilon", {"within": -3}), 422),
    "a negative epsilon": (post("{d}/preview", {"choices": {"epsilon": ["-1"]}}), 422),
    "an endless epsilon": (post("{d}/preview", {"choices": {"epsilon": ["1e999999999"]}}), 422),
    "a mechanism file": (post("{d}/preview", {"choices": {"method": "/etc/passwd"}}), 400),
    "a list of categories from a file": (
        post("{d}/preview", {"choices": PEOPLE}),
        {200, 422},
    ),
    # steps out of order, and again
    "a release without its key": (post("{d}/release", {"out": "x", "dataset": "cases"}), 409),
    "a release of an old plan": (
        lambda c, d: c.send_json(f"{d}/release", {**c.find_keys(d), "plan": "0", "out": "x"}),
        409,
    ),
    "a release that nobody pays": (
        lambda c, d: c.send_json(f"{d}/release", {**c.find_keys(d), "out": "x", "dataset": None}),
        422,
    ),
    "a release with an old key": (post("{d}/release", {"request": "old", "out": "x"}), 409),
    "a zip before the release": (get("{d}/zip"), 404),
    "a page before the release": (get("{d}/page"), 404),
    **{f"the table {name}": (post("/tables/folder", {"name": name}), 404) for name in NO_TABLES},
    "a second ledger": (post("/ledger/create", {"name": "more"}), 409),
    "a dataset twice": (post("/ledger/open", {"dataset": "cases", "epsilon": "1"}), 422),
    "a dataset of no budget": (post("/ledger/open", {"dataset": "n", "epsilon": "-1"}), 422),
    "a bundle that is not there": (post("/bundles/none/check", {}), 404),
    "a bundle outside the folder": (post("/bundles", {"folder": "../.."}), 404),
    "a count of nothing opened": (post("/bundles/none/count", {"released": 7}), 404),
    # files
    "a program": (put("/tables", b"MZ", "virus.exe"), 415),
    "no name": (put("/tables", b"a,b\n", ""), 400),
    "a zip as a table": (put("/tables", zipped(("a", "b")), "a.zip"), 415),
    "a table that is none": (put("/tables", b"\x00\xff\x00", "t.parquet"), 422),
    "an empty table": (put("/tables", b"", "t.csv"), 422),
    "ragged rows": (put("/tables", b"a,b\n1\n1,2,3\n", "t.csv"), 422),
    "two columns of one name": (put("/tables", b"a,a\n1,2\n", "t.csv"), 422),
    "a file of another site": (put("/tables", b"a\n1\n", "t.csv", origin=EVIL), 403),
    "a table that is too large": (put("/tables", b"a\n" + b"1\n" * (3 << 20), "t.csv"), 413),
    # mechanisms
    "a question of its own": (post("/design/solve", {"query": "__class__"}), 400),
    "a giant question": (post("/design/solve", {"query": "count", "upper": 10**6}), 422),
    **{f"the design {design}": (post("/design/solve", design), 422) for design in NO_DESIGNS},
    "properties as a word": (post("/design/solve", {"upper": 5, "properties": "fair"}), 400),
    "sliders in words": (post("/learn/epsilon/answer", {"epsilon": 1, "at": "x"}), 400),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_it_is_refused_and_leaves_nothing(client, studio, place, draft, kind):
    send, expected = HOSTILE[kind]
    before = look(place, studio)
    answer = send(client, draft)
    allowed = {expected} if isinstance(expected, int) else expected
    assert answer.status_code in allowed, answer.text
    assert look(place, studio) == before
    for leak in (SECRET, "7654321", "Traceback", "root:", str(studio.uploads.folder)):
        assert leak not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["../x.json", "/x.json", "a/../b.json", "a\\b.json", "", "x.exe"])
def test_a_file_of_a_bundle_stays_inside(client, studio, name):
    key = client.send_json("/bundles").json()["bundle"]
    sent = client.put(f"/bundles/{key}/files", content=b"{}", headers={"x-name": name})
    assert sent.status_code in (400, 415)
    assert list(studio.bundles[key].rglob("*")) == []


def test_the_token_works_once_and_the_cookie_is_strict(tmp_path, studio):
    guard = server.build_app(studio, 8124)
    client = TestClient(guard, base_url="http://127.0.0.1:8124", follow_redirects=False)
    token = guard.token
    first = client.get("/open", params={"token": token})
    assert first.status_code == 303
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    other = TestClient(guard, base_url="http://127.0.0.1:8124", follow_redirects=False)
    assert other.get("/open", params={"token": token}).status_code == 403
    assert client.get("/open", params={"token": token}).headers["location"] == "/"


def test_who_asks_for_nothing_is_hung_up_on(monkeypatch):
    class Line:
        def __init__(self, cycle=None):
            self.cycle, self.transport, self.closed = cycle, self, False

        def close(self):
            self.closed = True

    busy = type("Cycle", (), {"response_complete": False})()
    silent, asking = Line(), Line(busy)
    watched = server._Server(uvicorn.Config(None), lambda: None)
    watched.server_state.connections = {silent, asking}
    clock = iter([0.0, 9.0, 11.0])
    monkeypatch.setattr(server.time, "monotonic", lambda: next(clock))
    for closed in (False, False, True):
        watched._hang_up()
        assert (silent.closed, asking.closed) == (closed, False)


IMPATIENT = """
from tallyveil.cli import main
from tallyveil.studio import server

server.SILENCE = 0.3
main()
"""


def test_half_a_question_keeps_nobody_out_and_an_end_leaves_nothing(tmp_path, served):
    started = type(served)(tmp_path, program=("-c", IMPATIENT))
    assert list(started.temporary.rglob("run-*"))
    host, _, port = started.origin.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert line.recv(100) == b""  # closed
    assert "Traceback" not in started.stop()
    assert started.process.returncode == 0
    assert not list(started.temporary.rglob("run-*"))


def test_only_this_machine_is_listened_on(served):
    port = int(served.origin.rpartition(":")[2])
    with socket.socket() as other:
        other.settimeout(2)
        with pytest.raises(OSError, match=r".*"):
            other.connect(("127.0.0.2", port))
