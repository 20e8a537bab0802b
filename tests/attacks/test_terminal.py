"""What a table, a receipt or a certificate is called cannot steer the reader's terminal."""

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from rich.text import Text
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.cli.common import SafeConsole, errors, fail
from tallyveil.proof import certificate as document
from tallyveil.untrusted import escape_controls
from tests.asking import privatize
from tests.attacks import forging

EVIL = "a\x1b[31m\x1b]8;;x\x07\x9b2J\u202eb\u2066\r\nok   forged: line\x7f\x08"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def run(*words):
    """Run a command and return its output, without anything that steers a terminal."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    output = done.output + (done.stderr or "")
    if isinstance(done.exception, tv.TallyveilError | OSError):  # `app.run` prints these
        with errors.capture() as shown:
            fail(str(done.exception))
        output += shown.get()
    assert output.strip()
    assert not STEERING.search(output)
    assert not re.search(r"^ok   forged", output, re.MULTILINE)
    return output


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, a release, a certificate and a ledger whose names steer a terminal."""
    place = tmp_path_factory.mktemp("terminal")
    quoted = '"' + EVIL.replace("\r\n", " ") + '"'
    lines = [f"{quoted},cases", *(f'{quoted[:-1]}{k}",{k % 5}' for k in range(60))]
    (place / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1, "method": "geometric"}
    privatize(place / "t.csv", out=place / "release", **options)
    made = tv.certify(tv.geometric(tv.Query.count(4), 1).renamed(EVIL))
    made.save(place / "m.json")
    plain = json.loads(tv.geometric(tv.Query.count(4), 1).to_json()) | {"name": EVIL}
    (place / "plain.json").write_text(json.dumps(plain))
    broken = made.to_dict()
    broken["format"] = EVIL
    (place / "broken.json").write_text(document.canonical(broken))
    return place


def commands(place):
    table, release = place / "t.csv", place / "release"
    return {
        "inspect": ("inspect", table),
        "privatize": ("privatize", table, "--count", "cases", "--upper", 9, "--epsilon", 1,
                      "--keep", "all", "--out", place / "other"),
        "dry run": ("privatize", "--count", EVIL, "--upper", 9, "--epsilon", 1, "--dry-run"),
        "check": ("check", release),
        "report": ("report", release),
        "verify": ("verify", place / "m.json"),
        "verify plain": ("verify", place / "plain.json"),
        "verify broken": ("verify", place / "broken.json"),
        "compare": ("compare", place / "m.json", place / "plain.json"),
        "interpret": ("interpret", "--released", 3, "--mechanism", place / "m.json"),
        "ladder": ("ladder", table, "--count", "cases", "--upper", 5, "--epsilons", "2,1",
                   "--out", place / "levels"),
        "no such file": ("verify", place / f"none{EVIL}.json"),
    }  # fmt: skip


@pytest.mark.parametrize("name", commands(Path()))
def test_no_command_passes_a_control_on(place, name):
    run(*commands(place)[name])


FIELDS = [
    ("created",), ("release",), ("program", "version"), ("columns", 0, "why"),
    ("columns", 0, "name"), ("columns", 0, "stages", 0, "name"),
    ("columns", 0, "stages", 0, "file"), ("table", "file"), ("table", "columns", 0),
    ("table", "published_unchanged", 0), ("unit", "neighbours"), ("format",),
    ("statement", "promise"),
]  # fmt: skip


@pytest.mark.parametrize("path", FIELDS, ids=lambda path: ".".join(map(str, path)))
def test_no_field_of_a_receipt_forges_a_line(place, tmp_path, path):
    folder = shutil.copytree(place / "release", tmp_path / "release")
    forging.write(folder, forging.put(forging.read(folder), path, EVIL))
    for command in ("check", "report"):
        run(command, folder)


def test_names_of_files_in_a_folder_do_not_either(place, tmp_path):
    folder = shutil.copytree(place / "release", tmp_path / "release")
    (folder / "x\x1b[31m\nok   forged: line").write_text("x")
    run("check", folder)


def test_a_ledger_with_foreign_words_does_not_either(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 2)
    privatize([1] * 30, upper=3, epsilon=1, out=tmp_path / "r", ledger=book, dataset="cases")
    with sqlite3.connect(tmp_path / "budget.db") as store:
        tables = [
            row[0] for row in store.execute("select name from sqlite_master where type='table'")
        ]
        for table in tables:
            for trigger in store.execute("select name from sqlite_master where type='trigger'"):
                store.execute(f"drop trigger {trigger[0]}")
            columns = [row[1] for row in store.execute(f"pragma table_info({table})")]
            if "dataset" in columns:
                store.execute(f"update {table} set dataset = ?", (EVIL,))
    for command in ("show", "history", "verify"):
        run("ledger", command, "--ledger", tmp_path / "budget.db")


def test_tables_texts_and_markup_are_escaped_by_the_console(capsys):
    from rich.table import Table

    table = Table(EVIL)
    table.add_row(EVIL)
    SafeConsole().print(table, Text(EVIL), EVIL)
    shown = capsys.readouterr().out
    assert "forged" in shown
    assert not STEERING.search(shown)


def test_plain_names_stay_as_they_are():
    for name in ("Zürich", "東京", "Åland", "naïve é", "العربية", "a b", "x_1-2.csv"):
        assert escape_controls(name) == name
