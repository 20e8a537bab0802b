"""Methods as options: one form each, and what a method refuses by itself."""

from __future__ import annotations

import msgspec
import pytest

import tallyveil as tv
from tallyveil.errors import PackageError
from tallyveil.release.methods import registry
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.design import Design, Fair
from tallyveil.release.methods.geometric import Geometric
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.ladder import Ladder
from tallyveil.release.methods.margins import Margins
from tallyveil.release.methods.preserve import Preserve
from tallyveil.release.methods.registry import ASKED_FOR, METHODS, AnyMethod, find_kind
from tallyveil.release.methods.strata import Strata
from tallyveil.release.options import ReleaseOptions

EXAMPLES = {
    "file": {"path": "mechanism.json"},
    "strata": {"columns": "region, sex"},
    "ladder": {"epsilons": "2,1,0.5"},
    "hierarchy": {"columns": "state,county", "invariant": "nation", "weights": "1,4,1"},
    "margins": {"columns": "age+sex,education"},
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_written_and_read_in_one_form(name):
    made = METHODS[name](**EXAMPLES.get(name, {}))
    written = msgspec.json.encode(made)
    again = msgspec.json.decode(written, type=AnyMethod)
    assert again == made
    assert msgspec.json.encode(again) == written
    assert msgspec.json.decode(written)["name"] == name


def test_every_method_is_registered():
    def list_kinds(kind):
        return [kind, *(one for sub in kind.__subclasses__() for one in list_kinds(sub))]

    assert set(METHODS.values()) == set(list_kinds(Method)) - {Method}
    assert all(getattr(registry, kind.__name__) is kind for kind in METHODS.values())


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Preserve("distributions"), "be one of distribution, balanced, counts"),
        (lambda: Preserve(-1), "lie in 0..1000"),
        (lambda: Preserve(2000), "lie in 0..1000"),
        (lambda: Geometric("yes"), "be True or False"),
        (lambda: Geometric(unbiased="no"), "be True or False"),
        (lambda: Geometric(True, unbiased=True), "unbiased already"),
        (lambda: Fair(unbiased=True), "made from geometric noise"),
        (lambda: Ladder("2,1", unbiased=True), "made from geometric noise"),
        (lambda: Ladder("1,2"), "strictly decreasing"),
        (lambda: Ladder("1,1e-9"), "be at least 1e-08"),
        (lambda: Design("huge"), "be a known loss"),
        (lambda: Design(properties=["nice"]), "known properties"),
        (lambda: Strata(""), "at least one column"),
        (lambda: Strata("a,a"), "every column once"),
        (lambda: Hierarchy("state,,county"), "at least one column"),
        (lambda: Hierarchy([f"c{at}" for at in range(41)]), "at most 40 columns"),
        (lambda: Hierarchy("a: b"), "colon"),
        (lambda: Hierarchy("total,county"), "not name a column 'total'"),
        (lambda: Hierarchy("state", invariant="county"), "levels of the hierarchy: total, state"),
        (lambda: Hierarchy("state", weights="1,x"), "be numbers"),
        (lambda: Hierarchy("state", weights=[1, -1]), "at least 0"),
        (lambda: Margins("age+sex"), "at least two margins"),
        (lambda: Margins("age+sex,sex"), "every column once"),
        (lambda: Margins("age+,sex"), "at least two margins"),
    ],
)
def test_a_method_refuses_by_itself(make, rule):
    with pytest.raises(tv.ArgumentError, match=rule):
        make()


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
