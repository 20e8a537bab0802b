"""A request file that somebody else wrote is read cheaply, and asks for nothing unseen.

Whatever stands in it, `tallyveil run` ends soon, in its own words, with nothing spent and nothing
written; what it asks for in earnest is what the same options on a command line ask for.
"""

import os
import time

import pytest

from tallyveil.budget.ledger import Ledger
from tallyveil.cli import app
from tallyveil.request.request_file import read_request
from tests.attacks import hostile

ASKED = {
    "table": '"t.csv"',
    "count": '"cases"',
    "keep": '"all"',
    "upper": "9",
    "epsilon": "1",
    "ledger": '"book.db"',
    "dataset": '"cases"',
    "out": '"release"',
}


def ask(text="", **changes):
    """The text of a request like `ASKED`; None leaves a key out."""
    asked = {**ASKED, **changes}
    lines = [f"{key} = {value}" for key, value in asked.items() if value is not None]
    return "\n".join([*lines, text]) + "\n"


def repeat(part, start="", end=""):
    """As many parts as a request has room for."""
    most = (1 << 20) - len(start) - len(end) - 1000
    return start + part * (most // len(part)) + end


NESTED = {
    "lists": lambda: ask(epsilon=None, text=repeat("[", "epsilon = ")),
    "closed lists": lambda: ask(epsilon="[" * 100_000 + "]" * 100_000),
    "tables": lambda: ask(epsilon="{a = " * 100_000 + "1" + "}" * 100_000),
    "a key of many parts": lambda: repeat(".a", "a", " = 1"),
    "a quoted key of many parts": lambda: repeat('."a"', "a", " = 1"),
    "keys of many parts": lambda: "\n".join(f"a{'.a' * 300}.b{k} = 1" for k in range(1600)),
    "a header of many parts": lambda: repeat(".a", "[a", "]"),
    "headers of many parts": lambda: "\n".join(f"[{'a.' * 300}b{k}]" for k in range(1600)),
    "headers without end": lambda: repeat("[[bins]]\n"),
    "tables without end": lambda: "\n".join(f"[bins.a{k}]" for k in range(60_000)),
}
NUMBERS = {
    "many digits": lambda: ask(upper="9" * 5000),
    "very many digits": lambda: ask(upper="9" * 900_000),
    "hexadecimal digits": lambda: ask(upper="0x" + "f" * 900_000),
    "two to the 64": lambda: ask(upper=str(2**64)),
    "a range of three hundred digits": lambda: ask(upper='"' + "9" * 300 + '"'),
    "a range beyond all": lambda: ask(upper=str(10**18)),
    "a range of minus one": lambda: ask(upper="-1"),
    "an infinite epsilon": lambda: ask(epsilon="inf"),
    "an epsilon that is none": lambda: ask(epsilon="nan"),
    "an epsilon of 1e400": lambda: ask(epsilon="1e400"),
    "a written epsilon of 1e400000000": lambda: ask(epsilon='"1e400000000"'),
    "a written epsilon of many digits": lambda: ask(epsilon='"0.' + "3" * 900_000 + '"'),
    "a fraction of many digits": lambda: ask(epsilon='"1/' + "3" * 5000 + '"'),
    "an epsilon of zero": lambda: ask(epsilon="0.0"),
    "contributions beyond all": lambda: ask("contributions = 9223372036854775807"),
    "levels without end": lambda: ask(epsilons=repeat("1,", "[", "]")),
    "written levels without end": lambda: ask(epsilons=repeat("1,", '"', '1"')),
    "bins without end": lambda: ask(bins=repeat("1,", '"place=', '1"')),
}
TYPES = {
    "a day": lambda: ask(epsilon="1979-05-27"),
    "a time": lambda: ask(upper="07:32:00"),
    "a moment": lambda: ask(count="1979-05-27T07:32:00Z"),
    "true": lambda: ask(epsilon="true"),
    "a list for a path": lambda: ask(table='["t.csv"]'),
    "a number for a path": lambda: ask(out="3"),
    "a table for a name": lambda: ask(count="{a = 1}"),
    "a number for a name": lambda: ask(count="3"),
    "a list of lists": lambda: ask(count='[["cases"]]'),
    "text for a switch": lambda: ask('one_row = "yes"'),
    "a fraction for a range": lambda: ask(upper="9.5"),
    "names without end": lambda: ask(count=repeat('"a",', "[", "]")),
    "categories without end": lambda: ask(categories=repeat("[1],", "[", "]")),
}
KEYS = {
    "a key twice": lambda: ask("epsilon = 2"),
    "a key twice, quoted once": lambda: ask('"epsilon" = 2'),
    "a key twice after a return": lambda: ask("upper = 1\repsilon = 2"),
    "a misspelt key": lambda: ask("espilon = 2"),
    "a key that looks the same": lambda: ask('"epsil\u043en" = 2'),
    "a key with a mark nobody sees": lambda: ask('"epsilon\u200b" = 2'),
    "a key that steers the terminal": lambda: ask('"\\u001b[31mepsilon" = 2'),
    "a key without letters": lambda: ask('"" = 2'),
    "a key of Python's": lambda: ask("__class__ = 2"),
    "a very long key": lambda: repeat("epsilon", '"', '" = 2'),
    "keys without end": lambda: "\n".join(f"k{k} = 1" for k in range(90_000)),
    "an option in a section": lambda: ask("[privatize]\nepsilon = 2"),
}  # fmt: skip
PATHS = {
    "a device for a table": lambda: ask(table='"/dev/zero"'),
    "a folder for a table": lambda: ask(table='"."'),
    "no such table": lambda: ask(table='"../../nowhere.csv"'),
    "a zero in a path": lambda: ask(table='"t.csv\\u0000.csv"'),
    "a very long path": lambda: ask(table='"' + "a" * 100_000 + '.csv"'),
    "a full device to write to": lambda: ask(out='"/dev/full"'),
    "a file to write to": lambda: ask(out='"t.csv"'),
    "the ledger to write to": lambda: ask(out='"book.db"'),
    "a table as the ledger": lambda: ask(ledger='"t.csv"'),
    "a device as the ledger": lambda: ask(ledger='"/dev/zero"'),
    "a device as the method": lambda: ask(method='"/dev/zero"'),
    "a device as categories": lambda: ask(categories='"/dev/zero"', by='"place"'),
    "the table as the report": lambda: ask(confidential_report='"t.csv"'),
    "a password in an address": lambda: ask(ledger='"postgresql://user:s3cret@127.0.0.1:1/x"'),
    "standard input": lambda: ask(table='"/dev/stdin"'),
}
TEXTS = {
    "nothing": lambda: "",
    "zeros": lambda: "\0" * 100_000,
    "comments": lambda: repeat("#\n"),
    "text without end": lambda: repeat("a", 'count = "'),
    "quotes without end": lambda: repeat('""\\', 'count = """'),
    "half a character": lambda: 'count = "\\ud800"',
    "more than there may be": lambda: "#" * (1 << 20) + "\n" + ask(),
    "a condition that steers the terminal": lambda: ask(where='"place\\u001b[31m == 1"'),
    "a condition without end": lambda: ask(where=repeat("place == 1 and ", '"', 'place == 1"')),
    "JSON": lambda: '{"table": "t.csv", "count": "cases"}',
}
GROUPS = {
    "nested": NESTED,
    "numbers": NUMBERS,
    "types": TYPES,
    "keys": KEYS,
    "paths": PATHS,
    "texts": TEXTS,
}
CASES = [(group, name) for group, cases in GROUPS.items() for name in cases]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a table and a ledger, where programs run."""
    (tmp_path / "t.csv").write_text("place,cases\n" + "".join(f"p{k},{k % 7}\n" for k in range(9)))
    Ledger.create(tmp_path / "book.db").open("cases", 5)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the program here; gives its exit code and what it said."""

    def call(*words):
        monkeypatch.setattr("sys.argv", ["tallyveil", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            app.run()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out + said.err

    return call


def list_files(place):
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


@pytest.mark.parametrize(("group", "name"), CASES)
def test_a_hostile_request_is_refused_and_changes_nothing(group, name, place, run):
    (place / "r.toml").write_text(GROUPS[group][name](), encoding="utf-8", newline="")
    before, start = list_files(place), time.process_time()
    code, said = run("run", "r.toml")
    assert code in (1, 2), said
    assert time.process_time() - start < hostile.MOST_SECONDS
    assert "unexpected" not in said
    assert len(said) < 5000
    assert "\x1b" not in said
    assert "s3cret" not in said
    assert list_files(place) == before
    assert not (place / "release").exists()
    assert len(Ledger("book.db").history("cases")) == 0


def test_the_request_itself_is_carried_out(place, run):
    (place / "r.toml").write_text(ask())
    code, said = run("run", "r.toml")
    assert code == 0, said
    assert len(Ledger("book.db").history("cases")) == 1


@pytest.mark.parametrize("what", ["the request", "the table", "the categories", "the method"])
def test_no_pipe_is_waited_for(what, place):
    os.mkfifo(place / "pipe.csv")
    changes = {"the table": "table", "the categories": "categories", "the method": "method"}
    text = ask(**{changes[what]: '"pipe.csv"'}) if what in changes else ask()
    (place / "r.toml").write_text(text)
    os.mkfifo(place / "r.pipe")
    hostile.require_cheap_refusal("run", "r.pipe" if what == "the request" else "r.toml")


def test_a_device_is_no_request(place, run):
    code, said = run("run", "/dev/zero")
    assert (code, "plain file" in said) == (2, True), said


def test_paths_are_those_of_the_requests_folder(place, run, monkeypatch):
    """A request from elsewhere reads and writes beside itself, not where the program runs."""
    (place / "other").mkdir()
    (place / "other" / "r.toml").write_text(ask())
    code, said = run("run", "other/r.toml")
    assert code == 1, said
    assert "other" in said
    table, options = read_request("other/r.toml")
    assert {table, options["out"], options["ledger"]} == {
        os.path.join("other", name) for name in ("t.csv", "release", "book.db")
    }
