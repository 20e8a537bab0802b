"""The registry of methods is complete: every method is asked for and explained."""

from __future__ import annotations

import pytest

from tallyveil.errors import PackageError
from tallyveil.release.methods.registry import ASKED_FOR, METHODS, find_kind
from tallyveil.release.options import ReleaseOptions


def test_every_method_has_words_for_its_page() -> None:
    assert all(method.words for name, method in METHODS.items() if name != "auto")


def test_the_help_of_the_option_names_what_can_be_asked_for() -> None:
    told = ReleaseOptions.__dataclass_fields__["method"].metadata["help"]
    assert all(name in told for name in ASKED_FOR)
    assert not {"ladder", "file"} & set(ASKED_FOR)


@pytest.mark.parametrize("name", ["magic", "auto", "sums"])
def test_a_method_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(PackageError, match="does not exist"):
        find_kind(name)
