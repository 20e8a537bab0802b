"""The registry of methods is complete: every kind is planned, asked for and explained."""

from __future__ import annotations

import pytest
from tallyveil.plans.plan import PLANNERS
from tallyveil.request.kinds import ASKED_FOR, KINDS

from tallyveil.errors import PackageError
from tallyveil.release.methods.registry import find_kind
from tallyveil.release.options import ReleaseOptions


def test_every_kind_has_a_planner_and_nothing_else_has() -> None:
    assert set(PLANNERS) == set(KINDS)


def test_the_help_of_the_option_names_what_can_be_asked_for() -> None:
    told = ReleaseOptions.__dataclass_fields__["method"].metadata["help"]
    assert all(name in told for name in ASKED_FOR)
    assert not {"ladder", "file"} & set(ASKED_FOR)


def test_a_method_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PackageError, match="does not exist"):
        find_kind("magic")
