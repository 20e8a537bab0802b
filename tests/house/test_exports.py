"""The public names are exactly those documented, and every one explains itself."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import tallyveil as tv

MODULES_BY_NAME = {"papers", "results", "opendp", "dp_accounting"}
MODULES = sorted(module.name for module in pkgutil.walk_packages(tv.__path__, "tallyveil."))


@pytest.mark.parametrize("name", sorted(set(tv.__all__) - {"__version__"}))
def test_public_name_has_a_docstring(name):
    assert inspect.getdoc(getattr(tv, name))


def test_no_public_name_is_also_a_module():
    # else importing the module would hide the name
    modules = {module.name for module in pkgutil.iter_modules(tv.__path__)}
    assert modules & set(tv.__all__) == MODULES_BY_NAME


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tv.nonsense  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_the_doctests_are_there():
    attempted = sum(
        len(example.examples)
        for name in MODULES
        for example in doctest.DocTestFinder().find(importlib.import_module(name))
    )
    assert attempted > 100


@pytest.mark.parametrize("name", MODULES)
def test_modules_list_what_they_export(name):
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", ()):
        assert hasattr(module, exported)
