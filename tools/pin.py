"""Write requirements.txt and requirements-dev.txt: pinned versions with the hashes of their files.

    .venv/bin/python tools/pin.py

The first holds what the program needs, the second what tests, documentation and optional formats
need besides. Versions come from constraints.txt, hashes from the index that pip is set up to use.
The installer then refuses any file that is not one of those seen when this was run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import urllib.request
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
PROGRAM, DEVELOPMENT = ROOT / "requirements.txt", ROOT / "requirements-dev.txt"
HEADER = "# Written by tools/pin.py from constraints.txt; do not edit. No addresses here.\n"
LINK = re.compile(r'#sha256=([0-9a-f]{64})"[^>]*>\s*([^<\s]+)\s*</a>')
OLD_PYTHON = re.compile(r"-(cp2\d*|cp3\d|cp310|pp\d+|py2)-(?!abi3)")
OTHER_MACHINES = re.compile(
    r"(win32|i686|ppc64le|s390x|armv7l|armv6l|riscv64|loongarch64|ios_|android_|graalpy|pyodide"
    r"|wasm32|emscripten|-cp\d+t-)"
)
"""Files for Pythons and machines that nobody is expected to use; their source still works."""


def find_index() -> str:
    """The index that pip is set up to use, or its own default."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode == 0 and asked.stdout.strip():
        return asked.stdout.strip()
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url)


def find_hashes(index: str, name: str, version: str) -> list[str]:
    """SHA-256 of every file of one version that a supported machine could install."""
    address = f"{index.rstrip('/')}/{normalise(name)}/"
    with urllib.request.urlopen(address, timeout=60) as answer:
        links = LINK.findall(answer.read().decode())
    stem = r"[-_.]+".join(map(re.escape, re.split(r"[-_.]+", name)))
    wanted = re.compile(rf"{stem}-{re.escape(version)}(-|\.tar\.gz$|\.zip$)", re.IGNORECASE)
    return sorted(
        digest
        for digest, file in links
        if wanted.match(file) and not OLD_PYTHON.search(file) and not OTHER_MACHINES.search(file)
    )


def read_versions() -> list[tuple[str, str]]:
    """Name and version of every pin, in the order of the file."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pins = [line.partition("==")[::2] for line in lines if line and not line.startswith("#")]
    return [(name.strip(), version.strip()) for name, version in pins]


def normalise(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_program() -> set[str]:
    """Every package that the program needs to be built and to run, from what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    waiting = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    found = {"editables"}  # hatchling asks for it when the project is installed from its folder
    while waiting:
        asked = Requirement(waiting.pop())
        if asked.marker and not asked.marker.evaluate({"extra": ""}):
            continue
        if normalise(asked.name) not in found:
            found.add(normalise(asked.name))
            waiting += requires(asked.name) or ()
    return found


def main() -> None:
    """Write both files."""
    index, program = find_index(), find_program()
    files = {PROGRAM: [HEADER], DEVELOPMENT: [HEADER]}
    for name, version in read_versions():
        hashes = find_hashes(index, name, version)
        if not hashes:
            raise SystemExit(f"The index has no file of {name} {version}.")
        lines = [f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in hashes)]
        file = PROGRAM if normalise(name) in program else DEVELOPMENT
        files[file].append(" \\\n".join(lines) + "\n")
    for path, parts in files.items():
        path.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
