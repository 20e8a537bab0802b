"""What a guarantee rests on changes only on purpose: a new digest here, and a line under Privacy.

The digest of a package is that of its modules in the order of their names; a failing test shows it.
"""

import hashlib
from pathlib import Path

import pytest

import tallyveil

TRUSTED = {
    "proof": "a3642013f5de77f2edb95605dd50d82495fd07768b7f12fd374ab62a28a5c131",
    "certified": "2ceed4c68e1faae0b5110ec26196b0c7471666e9d6ef02278b3572f6bd510928",
    "sampling": "a13bd4fd8522ab687579d1d3ee040b9e6911ab7b8081d1a64154848e9702ac53",
}


@pytest.mark.parametrize("package", TRUSTED)
def test_a_trusted_package_is_the_one_that_was_reviewed(package):
    home, digest = Path(tallyveil.__file__).parent / package, hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        digest.update(f"{path.relative_to(home).as_posix()}\n".encode() + path.read_bytes())
    assert digest.hexdigest() == TRUSTED[package]
