"""Every count that the threat model states is the count of what the tests really try.

The page states them in words; here stands, for each, the sentence and where the number comes from.
"""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "threat-model.md"


def load(name):
    """A module of tests, without its tests being run."""
    path = TESTS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"counted_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def count_marked(module, test, argument):
    """How many values a test is run with in every run, and in the long one."""
    marks = [mark for mark in getattr(module, test).pytestmark if mark.name == "parametrize"]
    (values,) = [list(mark.args[1]) for mark in marks if mark.args[0] == argument]
    slow = [value for value in values if getattr(value, "marks", ())]
    return len(values) - len(slow), len(values)


def count_pairs(module):
    """Every run tries each option with some engines, the long one with all of them, twice."""
    return module.EACH * len(module.CASES), 2 * len(module.CASES) * len(module.ENGINES)


def hostile(name, test, arguments):
    return lambda: count_marked(load(f"attacks/test_hostile_{name}"), test, arguments)


OVERDRAFT = "test_a_second_total_a_refund_and_an_overdraft_are_noticed"
NO_DELTA = "test_a_delta_that_is_no_delta_is_refused"
STATED = {
    r"releases of (\d+) kinds": lambda: (len(load("attacks/releases").KINDS),),
    r"(\d+) damages, (\d+) forms; ([\d,]+) in the long run": lambda: (
        12 * len(load("attacks/test_documents").NAMES),
        12,
        200 * len(load("attacks/test_documents").NAMES),
    ),
    r"spellings of a count \(`test_hidden_data.py`\) \| (\d+) ways": lambda: (
        len(load("attacks/test_hidden_data").HIDDEN),
    ),
    r"handed in in (\d+) ways": lambda: (len(load("attacks/test_neighbouring_pairs").ENGINES),),
    r"([\d,]+) pairs in every run, all ([\d,]+) combinations": lambda: count_pairs(
        load("attacks/test_neighbouring_pairs")
    ),
    r"in (\d+) settings, six pairs each": lambda: (
        len(load("attacks/test_sensitivity").OPTIONS) + len(load("attacks/test_sensitivity").MICRO),
    ),
    r"mechanism files (\d+) of (\d+)": hostile(
        "mechanisms", "test_a_hostile_mechanism_file_is_refused_cheaply", ("reader", "name")
    ),
    r"folders (\d+) of (\d+)": hostile(
        "folders", "test_a_hostile_folder_is_refused_cheaply", ("kind", "name")
    ),
    r"(\d+) of (\d+) with `report`": hostile(
        "folders", "test_a_hostile_folder_stops_no_reader", ("reader", "kind", "name")
    ),
    r"tables (\d+) of (\d+)": hostile(
        "tables", "test_a_hostile_table_costs_little", ("command", "name")
    ),
    r"(\d+) requests": lambda: (len(load("attacks/test_request_files").CASES),),
    r"(\d+) for DuckDB, (\d+) for PostgreSQL \| no value": lambda: tuple(
        len(queries) for queries in load("attacks/test_database_words").MISUSED.values()
    ),
    r"(\d+) commands, (\d+) fields": lambda: (
        len(load("attacks/test_terminal").commands(Path())),
        len(load("attacks/test_terminal").FIELDS),
    ),
    r"4,400 digits \(`test_ledger_books.py`\) \| (\d+) \|": lambda: (
        len(load("attacks/test_ledger_books").BAD_AMOUNTS)
        + count_marked(load("attacks/test_ledger_books"), NO_DELTA, "delta")[1],
    ),
    r"whose digests hold \| (\d+) \|": lambda: (
        len(load("attacks/test_ledger_books").BAD_BODIES)
        + count_marked(load("attacks/test_ledger_books"), OVERDRAFT, ("kind", "body"))[1],
    ),
    r"(\d+) for SQLite, (\d+) for PostgreSQL \| refused, file": lambda: (
        len(load("attacks/test_ledger_books").FOREIGN),
        len(load("budget/test_postgresql").ALTERED)
        + len(load("budget/test_postgresql_attacks").SWAPPED),
    ),
    r"that may only debit[^|]*\| (\d+) \|": lambda: (
        len(load("budget/test_postgresql_attacks").DISGUISES)
        + 4 * len(load("budget/test_postgresql_attacks").NAMES)
        + 1,
    ),
    r"rows that lie[^|]*\| (\d+) \|": lambda: (
        3 * len(load("budget/test_postgresql_attacks").LIES),
    ),
    r"(\d+) kinds of draws": lambda: (len(load("attacks/test_seeded_marks").DRAWS),),
}  # fmt: skip


@pytest.mark.parametrize("words", STATED)
def test_a_stated_count_is_that_of_the_tests(words):
    found = re.search(words, " ".join(PAGE.read_text(encoding="utf-8").split()))
    assert found is not None, f"the page does not say: {words}"
    stated = tuple(int(number.replace(",", "")) for number in found.groups())
    assert stated == STATED[words]()
