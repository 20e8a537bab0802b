"""The libraries we compare with, each in an environment of its own, installed on demand.

They are never dependencies of the project. Environments are kept in build/peers, which
`make clean` removes; a quick run uses those that are there and installs none.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HOME = Path("build") / "peers"
INSTALL_SECONDS, RUN_SECONDS = 600, 1200
"""After this long an installation, or what a peer was asked, is given up."""

PACKAGES = {
    "opendp": ("opendp",),
    "diffprivlib": ("diffprivlib", "scikit-learn<1.8"),  # 0.6.6 imports names 1.8 dropped
    "qif": ("qif",),
    "dp_accounting": ("dp-accounting",),
}


@dataclass(frozen=True)
class Peer:
    """One library: `state` is its version, or says why it cannot be asked."""

    name: str
    python: Path | None
    state: str

    def run(self, script: str, *words: str) -> list[float] | None:
        """The numbers that `script` prints last in the peer's environment; None if it fails."""
        if self.python is None:
            return None
        done = _run([self.python, "-c", script, *words], RUN_SECONDS, self.name)
        if done is None:
            return None
        lines = done.stdout.splitlines()
        return [float(word) for word in lines[-1].split()] if not done.returncode else None


def peer(name: str, install: bool) -> Peer:
    """The peer `name`, installed now if `install` and it is not there yet."""
    folder = HOME / name
    python = folder / "bin" / "python"
    if not _installed(name, python):
        if not install:
            return Peer(name, None, "not installed, and a quick run installs nothing")
        print(f"installing {name} in {folder}", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True, clear=True)
        words = [python, "-m", "pip", "install", "--quiet", *PACKAGES[name]]
        done = _run(words, INSTALL_SECONDS, f"installing {name}")
        if done is None:
            return Peer(name, None, f"could not be installed in {INSTALL_SECONDS} s")
        if done.returncode or not _installed(name, python):
            return Peer(name, None, "could not be installed here")
    return Peer(name, python.absolute(), _version(name, python))


def _run(
    words: Sequence[str | Path], seconds: int, what: str
) -> subprocess.CompletedProcess[str] | None:
    """What a command did, or None if it took too long, which is said."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        print(f"{what}: given up after {seconds} s", file=sys.stderr, flush=True)
        return None


def _installed(name: str, python: Path) -> bool:
    if not python.exists():
        return False
    done = subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False)
    return done.returncode == 0


def _version(name: str, python: Path) -> str:
    ask = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.check_output([python, "-c", ask], text=True).strip()
