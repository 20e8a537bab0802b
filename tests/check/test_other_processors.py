"""A release made on one processor checks on any other: doubles differ in their last digits.

Libraries choose their kernels by the processor; here they take the plainest ones.
"""

import os
import subprocess
import sys

from tests.attacks.releases import make_release

KINDS = ("preserve", "fair", "design", "hierarchy", "margins", "strata", "priority", "no upper")
PLAIN = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3,X86_V4,AVX512_ICL"}
"""For x86; elsewhere nothing is different."""

PROGRAM = """
import sys
import tallyveil as tv
for folder in sys.argv[1:]:
    wrong = [finding for finding in tv.check_package(folder) if not finding.ok]
    assert not wrong, (folder, wrong)
"""


def test_folders_check_with_other_kernels(tmp_path):
    folders = [make_release(name, tmp_path) for name in KINDS]
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *map(str, folders)]
    done = subprocess.run(
        command, env={**os.environ, **PLAIN}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
