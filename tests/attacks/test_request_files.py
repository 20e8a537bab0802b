"""A request file that somebody else wrote is read cheaply, and does only what options could.

Whatever it holds, `tallyveil run` ends soon with a plain message, nothing spent, nothing written.
"""

import os
import re
import time

import pytest

from tallyveil.budget.ledger import Ledger
from tallyveil.cli import app
from tallyveil.request.request_file import read_request
from tests.attacks import hostile

REQUEST = {
    "table": '"t.csv"',
    "count": '"cases"',
    "keep": '"all"',
    "upper": "9",
    "epsilon": "1",
    "ledger": '"book.db"',
    "dataset": '"cases"',
    "out": '"release"',
}

MICRODATA = {"count": None, "by": '"place"', "categories": '["p0", "p1"]'}


def ask(text="", **changes):
    """Write a request like `REQUEST`; None leaves a key out."""
    keys = {**REQUEST, **changes}
    lines = [f"{key} = {value}" for key, value in keys.items() if value is not None]
    return "\n".join([*lines, text]) + "\n"


def repeat(part, start="", end=""):
    """Repeat a part as often as a request has room for."""
    most = (1 << 20) - len(start) - len(end) - 1000
    return start + part * (most // len(part)) + end


NESTED = {
    "lists": ask(epsilon=None, text=repeat("[", "epsilon = ")),
    "closed lists": ask(epsilon="[" * 100_000 + "]" * 100_000),
    "tables": ask(epsilon="{a = " * 100_000 + "1" + "}" * 100_000),
    "a key of many parts": repeat(".a", "a", " = 1"),
    "a quoted key of many parts": repeat('."a"', "a", " = 1"),
    "keys of many parts": "\n".join(f"a{'.a' * 300}.b{k} = 1" for k in range(1600)),
    "a header of many parts": repeat(".a", "[a", "]"),
    "headers of many parts": "\n".join(f"[{'a.' * 300}b{k}]" for k in range(1600)),
    "headers without end": ask(repeat("[[microdata.bins]]\n")),
    "tables without end": ask("\n".join(f"[microdata.bins.a{k}]" for k in range(40_000))),
}
NUMBERS = {
    "many digits": ask(upper="9" * 5000),
    "very many digits": ask(upper="9" * 900_000),
    "hexadecimal digits": ask(upper="0x" + "f" * 900_000),
    "two to the 64": ask(upper=str(2**64)),
    "a range of three hundred digits": ask(upper='"' + "9" * 300 + '"'),
    "a range beyond all": ask(upper=str(10**18)),
    "a range of minus one": ask(upper="-1"),
    "an infinite epsilon": ask(epsilon="inf"),
    "an epsilon that is none": ask(epsilon="nan"),
    "an epsilon of 1e400": ask(epsilon="1e400"),
    "a written epsilon of 1e400000000": ask(epsilon='"1e400000000"'),
    "a written epsilon of many digits": ask(epsilon='"0.' + "3" * 900_000 + '"'),
    "a fraction of many digits": ask(epsilon='"1/' + "3" * 5000 + '"'),
    "an epsilon of zero": ask(epsilon="0.0"),
    "contributions beyond all": ask("unit.contributions = 9223372036854775807"),
    "levels without end": ask(
        epsilon=None, text=repeat("1,", 'method = {name = "ladder", epsilons = [', "]}")
    ),
    "written levels without end": ask(
        epsilon=None, text=repeat("1,", 'method = {name = "ladder", epsilons = "', '1"}')
    ),
    "bins without end": ask(repeat("1,", 'microdata.bins = "place=', '1"'), **MICRODATA),
}
TYPES = {
    "a day": ask(epsilon="1979-05-27"),
    "a time": ask(upper="07:32:00"),
    "a moment": ask(count="1979-05-27T07:32:00Z"),
    "true": ask(epsilon="true"),
    "a list for a path": ask(table='["t.csv"]'),
    "a number for a path": ask(out="3"),
    "a number for a ledger": ask(ledger="3"),
    "a number for columns": ask('method = {name = "hierarchy", columns = 5}'),
    "a table for a name": ask(count="{a = 1}"),
    "a number for a name": ask(count="3"),
    "a list of lists": ask(count='[["cases"]]'),
    "text for a switch": ask('counts.allow_totals = "yes"'),
    "a fraction for a range": ask(upper="9.5"),
    "names without end": ask(count=repeat('"a",', "[", "]")),
    "categories without end": ask(**{**MICRODATA, "categories": repeat("[1],", "[", "]")}),
}
KEYS = {
    "a key twice": ask("epsilon = 2"),
    "a key twice, quoted once": ask('"epsilon" = 2'),
    "a key twice after a return": ask("upper = 1\repsilon = 2"),
    "a misspelt key": ask("espilon = 2"),
    "a key that looks the same": ask('"epsil\u043en" = 2'),
    "a key with a mark nobody sees": ask('"epsilon\u200b" = 2'),
    "a key that steers the terminal": ask('"\\u001b[31mepsilon" = 2'),
    "a key without letters": ask('"" = 2'),
    "a key of Python's": ask("__class__ = 2"),
    "a very long key": repeat("epsilon", '"', '" = 2'),
    "keys without end": "\n".join(f"k{k} = 1" for k in range(90_000)),
    "an option in a section": ask("[privatize]\nepsilon = 2"),
}  # fmt: skip
PATHS = {
    "a device for a table": ask(table='"/dev/zero"'),
    "a folder for a table": ask(table='"."'),
    "no such table": ask(table='"../../nowhere.csv"'),
    "a zero in a path": ask(table='"t.csv\\u0000.csv"'),
    "a very long path": ask(table='"' + "a" * 100_000 + '.csv"'),
    "a full device to write to": ask(out='"/dev/full"'),
    "a file to write to": ask(out='"t.csv"'),
    "the ledger to write to": ask(out='"book.db"'),
    "a table as the ledger": ask(ledger='"t.csv"'),
    "a device as the ledger": ask(ledger='"/dev/zero"'),
    "a device as the method": ask(method='"/dev/zero"'),
    "a device as categories": ask(categories='"/dev/zero"', by='"place"'),
    "the table as the report": ask('output.confidential_report = "t.csv"'),
    "a password in an address": ask(ledger='"postgresql://user:s3cret@127.0.0.1:1/x"'),
    "standard input": ask(table='"/dev/stdin"'),
}
TEXTS = {
    "nothing": "",
    "zeros": "\0" * 100_000,
    "comments": repeat("#\n"),
    "text without end": repeat("a", 'count = "'),
    "quotes without end": repeat('""\\', 'count = """'),
    "half a character": 'count = "\\ud800"',
    "more than there may be": "#" * (1 << 20) + "\n" + ask(),
    "a condition that steers the terminal": ask(
        'microdata.where = "place\\u001b[31m == 1"', **MICRODATA
    ),
    "a condition without end": ask(
        repeat("place == 1 and ", 'microdata.where = "', 'place == 1"'), **MICRODATA
    ),
    "JSON": '{"table": "t.csv", "count": "cases"}',
}
REQUESTS = NESTED | NUMBERS | TYPES | KEYS | PATHS | TEXTS


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a table and a ledger, where programs run."""
    (tmp_path / "t.csv").write_text("place,cases\n" + "".join(f"p{k},{k % 7}\n" for k in range(9)))
    Ledger.create(tmp_path / "book.db").open("cases", 5)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the program here and return its exit code and output."""

    def call(*words):
        monkeypatch.setattr("sys.argv", ["tallyveil", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            app.run()
        output = capsys.readouterr()
        return ended.value.code or 0, output.out + output.err

    return call


def list_files(place):
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_hostile_request_is_refused_and_changes_nothing(name, place, run):
    (place / "r.toml").write_text(REQUESTS[name], encoding="utf-8", newline="")
    before, start = list_files(place), time.process_time()
    code, output = run("run", "r.toml")
    assert code in (1, 2), output
    assert time.process_time() - start < hostile.MOST_SECONDS
    assert not re.search("unexpected|\x1b|s3cret", output)
    assert name in KEYS or "has no key" not in output
    assert len(output) < 5000
    assert list_files(place) == before
    assert not (place / "release").exists()
    assert len(Ledger("book.db").history("cases")) == 0


def test_the_request_itself_is_carried_out(place, run):
    (place / "r.toml").write_text(ask())
    code, output = run("run", "r.toml")
    assert code == 0, output
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
    code, output = run("run", "/dev/zero")
    assert (code, "plain file" in output) == (2, True), output


def test_paths_are_those_of_the_requests_folder(place, run, monkeypatch):
    """A request from elsewhere reads and writes beside itself, not where the program runs."""
    (place / "other").mkdir()
    (place / "other" / "r.toml").write_text(ask())
    code, output = run("run", "other/r.toml")
    assert code == 1, output
    assert "other" in output
    table, options = read_request("other/r.toml")
    assert {table, options["out"], options["ledger"]} == {
        os.path.join("other", name) for name in ("t.csv", "release", "book.db")
    }
