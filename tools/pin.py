"""Write requirements.txt: every pinned version with the hashes of its files.

    python tools/pin.py

Versions come from constraints.txt, hashes from the index that pip is set up to use. The
installer then refuses any file that is not one of those seen when this was run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS, REQUIREMENTS = ROOT / "constraints.txt", ROOT / "requirements.txt"
PEERS = "# Only for the peers"
"""Where the pins begin that nobody needs but the benchmarks."""

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
    address = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
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
    text, _, _ = CONSTRAINTS.read_text(encoding="utf-8").partition(PEERS)
    lines = text.splitlines()
    pins = [line.partition("==")[::2] for line in lines if line and not line.startswith("#")]
    return [(name.strip(), version.strip()) for name, version in pins]


def main() -> None:
    """Write requirements.txt."""
    index = find_index()
    parts = [HEADER]
    for name, version in read_versions():
        hashes = find_hashes(index, name, version)
        if not hashes:
            raise SystemExit(f"The index has no file of {name} {version}.")
        lines = [f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in hashes)]
        parts.append(" \\\n".join(lines) + "\n")
    REQUIREMENTS.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
