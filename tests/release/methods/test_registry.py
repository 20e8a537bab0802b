"""Methods as options: one form each, what a method refuses by itself, and the list of all."""

import msgspec
import pytest

import tallyveil as tv
from tallyveil.errors import PackageError
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.design import Design, Fair
from tallyveil.release.methods.geometric import Geometric, Staircase
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.ladder import Ladder
from tallyveil.release.methods.margins import Margins
from tallyveil.release.methods.preserve import Preserve
from tallyveil.release.methods.registry import METHODS, PLAIN_METHODS, AnyMethod, RecordedMethod
from tallyveil.release.methods.strata import Strata
from tallyveil.release.methods.sums import Sums
from tallyveil.release.records import from_plain

EXAMPLES = {
    "file": {"path": "mechanism.json"},
    "strata": {"columns": "region, sex"},
    "ladder": {"epsilons": "2,1,0.5"},
    "hierarchy": {"columns": "state,county", "invariant": "state", "weights": "1,4,1"},
    "margins": {"columns": "age+sex,education"},
}
CHOSEN = ("canonical", "staircase")
"""Methods that nobody asks for by name: a delta or contributions in one row choose them."""


@pytest.mark.parametrize("name", [name for name in METHODS if name not in CHOSEN])
def test_a_method_is_written_and_read_in_one_form(name):
    method = METHODS[name](**EXAMPLES.get(name, {}))
    written = msgspec.json.encode(method)
    assert msgspec.json.decode(written)["name"] == name
    again = msgspec.json.decode(written, type=AnyMethod)
    assert again == method
    assert msgspec.json.encode(again) == written


def test_every_method_is_registered_and_has_words_for_its_page():
    def list_kinds(kind):
        return [kind, *(one for sub in kind.__subclasses__() for one in list_kinds(sub))]

    assert set(METHODS.values()) == set(list_kinds(Method)) - {Method, Sums}
    used = [method for name, method in METHODS.items() if name != "auto"]
    assert all(method.brief and method.words for method in used)
    assert all(METHODS[name].good_for for name in PLAIN_METHODS if name != "auto")


@pytest.mark.parametrize("name", ["magic", "auto", "sums"])
def test_a_receipt_cannot_name_a_method_that_does_not_exist(name):
    with pytest.raises(PackageError, match="wrong form"):
        from_plain({"name": name}, RecordedMethod)


@pytest.mark.parametrize("name", ["magic", *CHOSEN])
def test_an_unknown_name_is_answered_with_the_methods_there_are(name):
    with pytest.raises(tv.ArgumentError, match=f"one of {', '.join(PLAIN_METHODS)}, or the path"):
        tv.privatize([1, 2], upper=9, epsilon=1, method=name)


@pytest.mark.parametrize(
    ("kind", "keys", "rule"),
    [
        (Preserve, {"priority": "distributions"}, "be one of distribution, balanced, counts"),
        (Preserve, {"priority": -1}, "lie in 0..1000"),
        (Preserve, {"priority": 2000}, "lie in 0..1000"),
        (Preserve, {"signed": True}, "Preserve has no key 'signed'"),
        (Geometric, {"signed": "yes"}, "be True or False"),
        (Geometric, {"unbiased": "no"}, "be True or False"),
        (Geometric, {"signed": True, "unbiased": True}, "unbiased already"),
        (Fair, {"unbiased": True}, "made from geometric noise"),
        (Staircase, {"unbiased": True}, "made from geometric noise"),
        (Fair, {"priority": 0}, "Fair has no key 'priority'"),
        (Ladder, {"epsilons": "2,1", "unbiased": True}, "made from geometric noise"),
        (Ladder, {"epsilons": "1,2"}, "strictly decreasing"),
        (Ladder, {"epsilons": "1,1e-9"}, "be at least 1e-08"),
        (Design, {"loss": "huge"}, "be a known loss"),
        (Design, {"properties": ["nice"]}, "known properties"),
        (Strata, {"columns": ""}, "'strata' must name at least one column"),
        (Strata, {"columns": "a,a"}, "'strata' must name every column once"),
        (Hierarchy, {}, "needs the key 'columns'"),
        (Hierarchy, {"columns": ""}, "'hierarchy' must name at least one column"),
        (Hierarchy, {"columns": "state,,county"}, "at least one column"),
        (Hierarchy, {"columns": ["state", "state"]}, "every column once"),
        (Hierarchy, {"columns": [f"c{number}" for number in range(41)]}, "at most 40 columns"),
        (Hierarchy, {"columns": "a: b"}, "colon"),
        (Hierarchy, {"columns": "total,county"}, "not name a column 'total'"),
        (Hierarchy, {"columns": "state", "invariant": "county"}, "levels.*: total, state"),
        (Hierarchy, {"columns": "state", "weights": "1,x"}, "'weights' must be numbers"),
        (Hierarchy, {"columns": "state", "weights": [1, -1]}, "at least 0"),
        (Hierarchy, {"columns": "state", "upper_column": "state"}, "a public column that is no le"),
        (Hierarchy, {"columns": "state", "signed": True}, "Hierarchy has no key 'signed'"),
        (Margins, {"columns": "age+sex"}, "at least two margins"),
        (Margins, {"columns": " , "}, "'margins' must name at least two margins"),
        (Margins, {"columns": "age+sex,sex"}, "every column once"),
        (Margins, {"columns": "age+,sex"}, "at least two margins"),
        (Margins, {"columns": "age,sex", "upper_column": "people"}, "has no key 'upper_column'"),
    ],
)
def test_a_method_refuses_by_itself(kind, keys, rule):
    with pytest.raises(tv.ArgumentError, match=rule):
        kind(**keys)
