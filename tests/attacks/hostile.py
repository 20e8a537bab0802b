"""Run the program on a hostile file, and measure what that costs."""

import json
import os
import subprocess
import sys

import pytest

MOST_SECONDS, MOST_MEGABYTES, LARGEST_FILE = 5.0, 500, 10 * 2**20
PROGRAM = [sys.executable, "-m", "tallyveil"]
ROOM = 9_900_000  # bytes that a filled file has
PROBE = """
import json, os, sys
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, memory]))
"""  # a small process starts the program, because memory is counted from before the start
LIMITED = ["timeout", "--signal=KILL", "300"]  # a program that waits for ever fails its test


def run_measured(*words):
    """Exit code, processor seconds, megabytes and what was said."""
    command = [sys.executable, "-S", "-c", PROBE, *LIMITED, *PROGRAM, *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    *said, last = done.stdout.strip().splitlines()
    return *json.loads(last), "\n".join([*said, done.stderr])


def require_cheap(*words, codes=(0, 1, 2)):
    """The program ends by itself, soon and with little memory, in its own words."""
    code, seconds, megabytes, said = run_measured(*words)
    assert code in codes, said
    assert seconds < MOST_SECONDS, f"{seconds:.1f} s"
    assert megabytes < MOST_MEGABYTES, f"{megabytes} MB"
    assert "Traceback" not in said
    assert "unexpected" not in said
    return said


def require_cheap_refusal(*words):
    """The same, and it refuses."""
    return require_cheap(*words, codes=(1, 2))


def fill(part, start="", end=""):
    return start + part * ((ROOM - len(start) - len(end)) // len(part)) + end


def mark(cases, quick):
    """The cases, those that are not `quick` for the long run; a case is named by its last word."""
    slow = pytest.mark.slow
    return [pytest.param(*c, marks=() if c[-1] in quick else slow, id="-".join(c)) for c in cases]
