"""One studio for the tests of its answers, one server and one browser for those that look."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import tallyveil as tv
from tallyveil.studio.server import build_app, make_studio
from tallyveil.studio.uploads import Uploads

PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"
NEED = "TALLYVEIL_NEED_SERVERS"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


class Client(TestClient):
    """A browser of the studio's own: it sends its origin, and JSON."""

    def send_json(self, path, message=None, **headers):
        return self.post(path, json={} if message is None else message, headers=headers or None)

    def upload(self, path, content, name):
        return self.put(path, content=content, headers={"x-name": name})

    def follow(self, job):
        """The state in which a job ended."""
        events = self.get(f"/jobs/{job}/events")
        assert events.headers["content-type"].startswith("text/event-stream")
        lines = events.text.strip().split("\n\n")
        return json.loads(lines[-1].removeprefix("data: "))

    def open_demo(self):
        """The address of a new draft of the demo table."""
        return self.send_json("/tables/demo").json()["next"].removesuffix("/table")

    def open_table(self, content, name):
        """The address of a new draft of an uploaded table."""
        content = content.encode() if isinstance(content, str) else content
        return self.upload("/tables", content, name).json()["next"].removesuffix("/table")

    def choose(self, base, **choices):
        return self.send_json(f"{base}/choices", {"choices": choices})

    def new_bundle(self, files):
        """The key of a new bundle with files by their names."""
        key = self.send_json("/bundles").json()["bundle"]
        for name, content in files.items():
            sent = self.upload(f"/bundles/{key}/files", content, name)
            assert sent.status_code == 200, sent.text
        return key

    def check(self, files):
        """The state in which the check of dropped files ended."""
        key = self.new_bundle(files)
        return self.follow(self.send_json(f"/bundles/{key}/check").json()["job"])

    def find_keys(self, base):
        """What the button of a release sends: its key, and the plan that is shown."""
        shown = self.get(f"{base}/release").text
        return {
            name: re.search(rf'data-{name}="([^"]+)"', shown)[1] for name in ("request", "plan")
        }

    def release(self, base, out, dataset="cases"):
        """Press the button, and wait."""
        message = {**self.find_keys(base), "out": out, "dataset": dataset}
        started = self.send_json(f"{base}/release", message)
        assert started.status_code == 200, started.text
        return self.follow(started.json()["job"])


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """The studio's folder, with a ledger."""
    folder = tmp_path_factory.mktemp("studio")
    tv.Ledger.create(folder / "budget.db").open("cases", 600)
    return folder


@pytest.fixture(scope="session")
def running(place, tmp_path_factory):
    uploads = Uploads(
        largest=4 << 20, most=60 << 20, base=tmp_path_factory.mktemp("uploads") / "own"
    )
    studio = make_studio(place, str(place / "budget.db"), uploads)
    guard = build_app(studio, PORT)
    with Client(guard, base_url=ORIGIN, headers={"origin": ORIGIN}) as client:
        assert client.get("/open", params={"token": guard.token}).status_code == 200
        yield client, studio, guard


@pytest.fixture
def client(running):
    return running[0]


@pytest.fixture
def studio(running):
    return running[1]


@pytest.fixture
def guard(running):
    return running[2]


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """The program itself: the address of the page, its folder, its process."""
    folder = tmp_path_factory.mktemp("served")
    tv.Ledger.create(folder / "budget.db").open("cases", 20)
    server = Server(folder, folder / "budget.db")
    yield server
    server.stop()


class Server:
    """`tallyveil studio` in a process of its own."""

    def __init__(self, folder, ledger=None, program=("-m", "tallyveil")):
        words = [sys.executable, *program, "studio", "--no-browser", "--folder", folder]
        words += ["--ledger", ledger] if ledger else []
        self.folder = folder
        self.temporary = Path(folder).with_name(f"{Path(folder).name}-temporary")
        self.temporary.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            list(map(str, words)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(self.temporary), "COLUMNS": "300"},
        )
        output = self.process.stdout.readline()
        results = re.search(r"http://\S+", output)
        assert results, output + self.process.communicate(timeout=60)[0]
        self.address = results[0]
        self.origin = self.address.partition("/open")[0]

    def stop(self):
        """Ctrl-C; returns what it said since it was opened."""
        self.process.send_signal(signal.SIGINT)
        output, _ = self.process.communicate(timeout=30)
        return output


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        if os.environ.get(NEED):
            pytest.fail("Chromium is missing. Install the package chromium.")
        pytest.skip("Chromium is missing. Install the package chromium.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def context(browser, served):
    """A browser that has the key, counts its errors and every request it makes."""
    window = browser.new_context(viewport={"width": 1200, "height": 900})
    window.set_default_timeout(60_000)
    window.errors, window.outside = [], []

    def watch(page):
        page.on(
            "console", lambda output: output.type == "error" and window.errors.append(output.text)
        )
        page.on("pageerror", lambda problem: window.errors.append(str(problem)))

    window.on("page", watch)
    window.on(
        "request",
        lambda sent: (
            sent.url.startswith((served.origin, "data:", "blob:"))
            or window.outside.append(sent.url)
        ),
    )
    page = window.new_page()
    page.goto(served.address)
    page.close()
    yield window
    window.close()


@pytest.fixture
def page(context):
    """A new tab; afterwards nothing may have gone wrong in it, or out."""
    context.errors.clear()
    opened = context.new_page()
    yield opened
    opened.close()
    assert context.errors == []
    assert context.outside == []


class Walk:
    """A person's way through the steps of a release."""

    def __init__(self, page, served):
        self.page, self.served = page, served

    def open(self, file=None):
        """From the start to the second step, with a file or with the demo table."""
        self.page.goto(self.served.origin)
        if file is None:
            self.page.locator("#demo").click()
        else:
            self.page.get_by_role("link", name="Publish a table").click()
            self.page.set_input_files("#file", file)
        self.page.wait_for_url("**/table")
        self.page.locator("#next").click()
        self.page.wait_for_url("**/protect")
        assert self.page.locator("input:checked").count() == 0

    def protect(self, file=None, upper=None):
        """The second step with everything chosen, and the third if there is an upper bound."""
        self.open(file)
        self.page.get_by_label("A count of people").check()
        self.page.locator("[name=count][value=cases]").check()
        self.page.locator("[name=keep][value=county]").check()
        self.page.locator("[name=keep][value=region]").check()
        if upper is not None:
            self.page.get_by_label("Largest count").fill(upper)
            self.go_on("accuracy")

    def plan(self, file=None, epsilon="0.8"):
        """Everything up to the last step."""
        self.protect(file, "20")
        self.page.get_by_label("epsilon", exact=True).fill(epsilon)
        self.page.get_by_text(f"(epsilon {epsilon})").wait_for()
        self.go_on("release")
        self.page.get_by_text(f"epsilon {epsilon} for one person").wait_for()

    def go_on(self, step):
        self.page.locator("#next").click()
        self.page.wait_for_url(f"**/{step}")

    def name(self, folder, page=None):
        """The last step's fields."""
        page = page or self.page
        page.locator("#summary dt").first.wait_for()
        page.get_by_label("Name of the new folder").fill(folder)
        page.get_by_label("Paid by the dataset").select_option("cases")
        return page.get_by_role("button", name="Release", exact=True)

    def release(self, folder):
        """The button, and the check of the folder that it made."""
        self.name(folder).click()
        self.page.get_by_text("This release checks.").wait_for()
        assert all(finding.ok for finding in tv.check_package(self.served.folder / folder))


@pytest.fixture
def walk(page, served):
    return Walk(page, served)


@pytest.fixture(scope="module")
def release_folder(tmp_path_factory):
    """A release with a public column, in a folder of its own."""
    folder = tmp_path_factory.mktemp("made")
    table = folder / "t.csv"
    rows = "".join(f"c{i},{'NESW'[i % 4]},{i * 7 % 11}\n" for i in range(400))
    table.write_text("county,region,cases\n" + rows)
    tv.privatize(table, "cases", upper=20, epsilon=1, keep="all", out=folder / "release")
    return folder / "release"
