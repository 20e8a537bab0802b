"""A folder that was made on one processor checks on any other: doubles differ in their last digits.

Libraries choose their kernels by the processor; here they are told to take the plainest ones.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "releases", Path(__file__).parents[1] / "attacks" / "releases.py"
)
releases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(releases)

KINDS = ("preserve", "fair", "design", "hierarchy", "margins", "strata", "tradeoff", "no upper")
PLAIN = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3,X86_V4,AVX512_ICL"}
"""For x86; elsewhere nothing is different."""

PROGRAM = """
import sys
import tallyveil as tv
for folder in sys.argv[1:]:
    wrong = [finding for finding in tv.check_package(folder) if not finding.ok]
    assert not wrong, (folder, wrong)
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    return [releases.make_release(name, place) for name in KINDS]


def test_folders_check_with_other_kernels(folders):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *map(str, folders)]
    done = subprocess.run(
        command, env={**os.environ, **PLAIN}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
