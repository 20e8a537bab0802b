"""How quick the studio is, and whether it stays sound with many people clicking at once.

    python -m benchmarks.studio [--quick] [--json FILE]

Starts `tallyveil studio` as a user does, on this machine, and talks to it over HTTP. First one
person moves sliders; then 20 people click through demo releases, designs, checks and pages for
two minutes, all against one ledger whose budget covers only some of the releases.

Bars: starts under 2 s; a slider answers within 150 ms for 41 answers (median, one user); 20 users
get no error but a refused budget; the ledger is never overspent and verifies; memory of all
processes in the last quarter is at most 1.15 times that of the second.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Bar, Result, Table, compiled_environment, conduct, options

USERS, SECONDS = 20, 120
BUDGET, COST = 5, "0.1"
PAGES = ("/", "/publish", "/check", "/design", "/read", "/ledger", "/learn", "/learn/bias")
SPENT = "does not cover this release"


class Browser:
    """One user's connection, with the key that the printed address gave."""

    def __init__(self, origin: str, cookie: str) -> None:
        self.origin, self.cookie = origin, cookie
        self.host = origin.removeprefix("http://")
        self.line = http.client.HTTPConnection(self.host, timeout=120)

    def send(self, method: str, path: str, message: Any = None) -> tuple[int, bytes]:
        headers = {"cookie": self.cookie, "origin": self.origin, "accept": "application/json"}
        body = None
        if message is not None:
            body, headers["content-type"] = json.dumps(message), "application/json"
        self.line.request(method, path, body, headers)
        answer = self.line.getresponse()
        return answer.status, answer.read()

    def post(self, path: str, message: Any) -> Any:
        status, content = self.send("POST", path, message)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {content[:200]!r}")
        return json.loads(content)


class Studio:
    """`tallyveil studio` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        import tallyveil as tv

        self.ledger = tv.Ledger.create(folder / "budget.db")
        self.ledger.open("cases", BUDGET)
        words = [sys.executable, "-m", "tallyveil", "studio", "--no-browser"]
        words += ["--folder", str(folder), "--ledger", str(folder / "budget.db")]
        start = time.perf_counter()
        self.process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            text=True,
            env=compiled_environment() | {"COLUMNS": "300"},
        )
        said = self.process.stdout.readline() if self.process.stdout else ""
        self.seconds, self.started = time.perf_counter() - start, self.processor()
        address = re.search(r"http://\S+", said)
        assert address is not None
        self.origin, _, path = address[0].partition("/open")
        line = http.client.HTTPConnection(self.origin.removeprefix("http://"))
        line.request("GET", f"/open{path}")
        self.cookie = str(line.getresponse().getheader("set-cookie")).partition(";")[0]

    def open(self) -> Browser:
        return Browser(self.origin, self.cookie)

    def _processes(self) -> set[int]:
        """The server and everything it started."""
        own = {self.process.pid}
        for _ in range(4):
            for place in Path("/proc").glob("[0-9]*/stat"):
                try:
                    parent = int(place.read_text().rpartition(")")[2].split()[1])
                except OSError:
                    continue
                if parent in own:
                    own.add(int(place.parent.name))
        return own

    def memory(self) -> float:
        """Resident MiB of all processes; pages that they share are counted for each."""
        total = 0
        for process in self._processes():
            with contextlib.suppress(OSError):
                total += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return total * os.sysconf("SC_PAGE_SIZE") / 2**20

    def processor(self) -> float:
        """Processor seconds of all processes so far."""
        total = 0
        for process in self._processes():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def measure_sliders(studio: Studio, times: int) -> dict[str, tuple[list[float], float]]:
    """Seconds of one answer after the other for one user, and processor seconds of each."""
    user = studio.open()
    base = user.post("/tables/demo", {})["next"].removesuffix("/table")
    user.post(f"{base}/choices", {"choices": {"count": ["cases"], "upper": ["40"]}})
    found = {}
    for label, ask in (
        ("publish: epsilon slider", _ask_preview),
        ("publish: accuracy slider", _ask_within),
        ("design: no property", _ask_design),
        ("design: two properties", _ask_properties),
        ("learn: one person", _ask_lesson),
    ):
        walls, before = [], studio.processor()
        for k in range(times):
            start = time.perf_counter()
            user.post(*ask(base, k))
            walls.append(time.perf_counter() - start)
        found[label] = walls, (studio.processor() - before) / times
    return found


def _epsilon(k: int) -> str:
    return f"{0.3 + 0.05 * k:.3f}"


def _ask_preview(base: str, k: int) -> tuple[str, Any]:
    method = ("auto", "geometric", "fair")[k % 3]
    return f"{base}/preview", {"choices": {"epsilon": [_epsilon(k)], "method": method}}


def _ask_within(base: str, k: int) -> tuple[str, Any]:
    return f"{base}/epsilon", {"within": 2 + k % 6}


def _ask_design(base: str, k: int) -> tuple[str, Any]:
    return "/design/solve", {"query": "count", "upper": 40, "epsilon": _epsilon(k)}


def _ask_properties(base: str, k: int) -> tuple[str, Any]:
    path, asked = _ask_design(base, k)
    return path, {**asked, "properties": ["fair", "column_monotone"]}


def _ask_lesson(base: str, k: int) -> tuple[str, Any]:
    return "/learn/epsilon/answer", {"epsilon": _epsilon(k), "at": 3}


def click_through(studio: Studio, user: int, until: float, found: dict[str, Any]) -> None:
    """One user until the time is over; every answer that is not as it should be is kept."""
    browser, number = studio.open(), 0
    while time.monotonic() < until:
        number += 1
        try:
            _click_once(browser, f"user {user} release {number}", found)
        except (RuntimeError, OSError, http.client.HTTPException) as problem:
            found["errors"].append(str(problem))
            browser = studio.open()


def _click_once(browser: Browser, out: str, found: dict[str, Any]) -> None:
    def timed(name: str, method: str, path: str, message: Any = None) -> Any:
        start = time.perf_counter()
        status, content = browser.send(method, path, message)
        found["times"].setdefault(name, []).append(time.perf_counter() - start)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {content[:200]!r}")
        return content

    for page in PAGES:
        timed("page", "GET", page)
    demo = json.loads(timed("demo", "POST", "/tables/demo", {}))
    base = demo["next"].removesuffix("/table")
    choices = {"count": ["cases"], "upper": ["40"], "epsilon": [COST]}
    for k in range(5):
        asked = {"choices": {**choices, "epsilon": [f"{0.1 + 0.1 * k:.1f}"]}}
        timed("slider", "POST", f"{base}/preview", asked)
    design = {"query": "count", "upper": 20, "epsilon": "1", "properties": ["fair"]}
    timed("design", "POST", "/design/solve", design)
    timed("choices", "POST", f"{base}/choices", {"choices": choices})
    page = timed("page", "GET", f"{base}/release").decode()
    keys = dict(re.findall(r'data-(request|plan)="([^"]+)"', page))
    message = {**keys, "out": out, "dataset": "cases"}
    start = time.perf_counter()
    for _ in range(30):
        status, content = browser.send("POST", f"{base}/release", message)
        if status != 429:  # the studio asks to wait while eight jobs run
            break
        time.sleep(1)
    if status == 429:
        found["waited"] += 1
    elif status != 200:
        raise RuntimeError(f"release: {status} {content[:200]!r}")
    else:
        again = json.loads(browser.send("POST", f"{base}/release", message)[1])
        job = json.loads(content)["job"]
        if again.get("job") != job:
            raise RuntimeError("a second press was another job")
        events = browser.send("GET", f"/jobs/{job}/events")[1].decode().strip().split("\n\n")
        ended = json.loads(events[-1].removeprefix("data: "))
        found["times"].setdefault("release", []).append(time.perf_counter() - start)
        if ended["state"] == "done" and ended["result"]["ok"]:
            found["released"] += 1
        elif SPENT in ended["sentence"]:
            found["refused"] += 1
        else:
            raise RuntimeError(f"release: {ended['state']} {ended['sentence']}")
    timed("remove", "POST", f"{base}/remove", {})


def crowd(studio: Studio, users: int, seconds: float) -> tuple[dict[str, Any], list[float]]:
    """Everybody at once; the memory is looked at every second."""
    found: dict[str, Any] = {"errors": [], "times": {}, "released": 0, "refused": 0, "waited": 0}
    until, memory = time.monotonic() + seconds, []
    threads = [
        threading.Thread(target=click_through, args=(studio, user, until, found))
        for user in range(users)
    ]
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        memory.append(studio.memory())
        time.sleep(1)
    for thread in threads:
        thread.join()
    return found, memory


def run(quick: bool) -> Result:
    users, seconds = (6, 20) if quick else (USERS, SECONDS)
    with tempfile.TemporaryDirectory() as name:
        studio = Studio(Path(name))
        try:
            time.sleep(3)
            asked = measure_sliders(studio, 6 if quick else 30)
            found, memory = crowd(studio, users, seconds)
            account, (entries, _) = studio.ledger.account("cases"), studio.ledger.verify()
        finally:
            studio.stop()
    quarter = max(1, len(memory) // 4)
    early = statistics.median(memory[quarter : 2 * quarter] or memory)
    late = statistics.median(memory[-quarter:])
    sound = account.spent_epsilon <= account.epsilon and account.debits == found["released"]
    slow = {label: statistics.median(walls) for label, (walls, _) in asked.items()}
    sliders = [
        (
            label,
            *(f"{1000 * np.percentile(walls, q):.0f}" for q in (50, 90, 99)),
            f"{1000 * spent:.0f}",
        )
        for label, (walls, spent) in asked.items()
    ]
    busy = [
        (label, str(len(times)), *(f"{1000 * np.percentile(times, q):.0f}" for q in (50, 90, 99)))
        for label, times in found["times"].items()
    ]
    worst = max(slow.values())
    return Result(
        question="Is the studio quick, and sound with many users?",
        method=f"One user first, then {users} users for {seconds} s on the same two cores as the "
        "server. 41 possible counts. Every release is checked by the library. Wall times include "
        "what else the machine was doing; processor times do not.",
        tables=[
            Table("One user, milliseconds", ("", "median", "90 %", "99 %", "processor"), sliders),
            Table(f"{users} users, milliseconds", ("", "times", "median", "90 %", "99 %"), busy),
        ],
        bars=[
            Bar(
                "starts under 2 s",
                f"{studio.seconds:.2f} s, of which {studio.started:.2f} s of processor time",
                studio.seconds < 2,
            ),
            Bar("sliders answer within 150 ms", f"{1000 * worst:.0f} ms", worst < 0.15),
            Bar(
                f"{users} users: no error",
                f"{len(found['errors'])} errors; {found['released']} releases, "
                f"{found['refused']} refused by the budget, {found['waited']} gave up waiting",
                not found["errors"],
            ),
            Bar(
                "the ledger is sound",
                f"{account.debits} debits, {float(account.spent_epsilon):g} of "
                f"{float(account.epsilon):g} spent, {entries} entries verified",
                sound,
            ),
            Bar(
                "memory is steady",
                f"{late / early:.2f} times ({early:.0f} to {late:.0f} MiB)",
                late < 1.15 * early,
            ),
        ],
        raw={
            "sliders": {label: walls for label, (walls, _) in asked.items()},
            "crowd": found,
            "memory_mib": memory,
            "start": studio.seconds,
        },
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("studio", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
