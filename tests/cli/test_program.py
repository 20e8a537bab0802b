"""What every command owes its user: help with an example, JSON, one-paragraph errors."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.fingerprint import fingerprint

TALLYVEIL = [sys.executable, "-m", "tallyveil"]


def commands(group, words=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_json(words):
    command = COMMANDS[words]
    assert command.help, "says what it does"
    assert f"tallyveil {' '.join(words)}" in command.epilog, "shows an example"
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in options
    shown = CliRunner().invoke(app, [*words, "--help"]).output
    assert "Usage" in shown
    assert not re.search(r"<|{|\[file\]", shown), "names what an option takes"
    assert "\x1b" not in shown


HEADINGS = {
    "Most releases need only these": "count keep upper epsilon hierarchy by categories out ledger "
    "dataset dry-run",
    "Microdata": "where bins other id-column",
    "Privacy and method": "within unit contributions method priority",
    "Totals": "margins allow-totals",
    "Files": "sheet delimiter missing format save-request confidential-report set json",
}


def test_privatize_has_thirty_options_in_order(tallyveil):
    shown = tallyveil("privatize", "-h", check=0).stdout
    assert shown == tallyveil("privatize", "--help", check=0).stdout
    panels = {}
    for line in shown.splitlines():
        if line in HEADINGS:
            names = panels[line] = []
        elif option := re.match(r"  --([a-z-]+)", line):
            names.append(option[1])
    assert list(panels.items()) == [(name, words.split()) for name, words in HEADINGS.items()]
    assert sum(map(len, panels.values())) == 30


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("--uper", "9"), "--upper"),
        (("--title=x",), "--set about.title=VALUE"),
        (("--set", "unit.contribution=2"), "--contributions"),
        (("--set", "about.titel=x"), "--set about.title"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_nearest(tallyveil, cases, words, advice):
    base = "privatize --count cases --keep all --epsilon 1 --out never"
    done = tallyveil(base, cases, *words, check=2)
    assert done.stderr.startswith("error: ")
    assert f"Perhaps you mean {advice}." in done.stderr
    assert done.stderr.count("\n") == 1


def test_errors_are_one_paragraph_and_debug_shows_more(tallyveil, cases):
    words = "privatize --count none --keep all --upper 9 --epsilon 1 --out never"
    short = tallyveil(words, cases, check=1)
    assert short.stderr.count("\n") == 1
    assert "Traceback" not in short.stderr
    for debug in (f"--debug {words}", f"{words} --debug"):
        assert "Traceback" in tallyveil(debug, cases, check=1).stderr
    for wrong in ("privatize cases.csv", "nonsense", "privatize --nonsense 1"):
        assert "Traceback" not in tallyveil(wrong, check=2).stderr


def test_version_and_completion(tallyveil):
    version, mark = tallyveil("--version", check=0).stdout.splitlines()
    assert version == f"tallyveil {tv.__version__}"
    assert mark == f"fingerprint {fingerprint()}"
    environment = {**os.environ, "_TALLYVEIL_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    environment["COMP_WORDS"] = "tallyveil priv"
    program = [Path(sys.executable).with_name("tallyveil")]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert "privatize" in done.stdout


def test_a_terminal_sees_progress_and_colour(cases, tmp_path):
    """Standard error is a terminal here: the bar appears there, and not in the output."""
    main, other = pty.openpty()
    options = "privatize --keep all --count cases --upper 9 --epsilon 1 --out"
    done = subprocess.run(
        [*TALLYVEIL, *options.split(), tmp_path / "release", cases],
        stdout=subprocess.PIPE,
        stderr=other,
        text=True,
        env={**os.environ, "TERM": "xterm-256color"},
        check=False,
    )
    os.close(other)
    shown = os.read(main, 1 << 16).decode(errors="replace")
    os.close(main)
    assert done.returncode == 0
    assert "\x1b[" in shown
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("text", "shown", "not_shown"),
    [
        ("county,cases\na,1\n", "--count cases --keep COLUMN --upper N", "--drop"),
        ("cases\n1\n", "--count cases --upper N", "--keep COLUMN"),
        ("county,cases,deaths\na,1,2\n", "Several columns hold whole numbers", "tallyveil priv"),
        ("county,name\na,x\n", "No column holds whole numbers", "tallyveil priv"),
        ("id,sex\na,x\n", "and --id-column COLUMN if", "tallyveil priv"),
        ("county;cases\na;1\n", "separated by ';': give --delimiter ';'", "No column"),
    ],
)
def test_inspect_suggests_what_can_be_right(tallyveil, tmp_path, text, shown, not_shown):
    (tmp_path / "t.csv").write_text(text)
    text = tallyveil("inspect", tmp_path / "t.csv", check=0).stdout
    assert shown in text
    assert not_shown not in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("county;cases\na;1\n", "--delimiter ';'"),
        ("county\tcases\na\t1\n", "--delimiter tab"),
        ("code,cases\n01,1\n02,*\n03,-\n", "--missing '*' --missing -"),
        ('code,cases\n01,"1,234"\n', "--set source.thousands=,"),
        (
            "code;cases\n01;1.234\n02;*\n",
            "--delimiter ';' --set 'source.na_values=*' --set source.decimal=, "
            "--set source.thousands=.",
        ),
    ],
)
def test_inspect_reads_counts_as_declared_and_repeats_how(tallyveil, tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    text = tallyveil("inspect", tmp_path / "t.csv", *shlex.split(words), check=0).stdout
    assert f"t.csv {words} --count cases --keep COLUMN" in text


def test_inspect_shows_the_schema_and_no_value(tallyveil, tmp_path):
    table, cells = tmp_path / "t.csv", ("Somewhere", "007", "4711", "0.25")
    table.write_text(f"place,code,cases,share\n{','.join(cells)}\n")
    done = tallyveil("inspect", table, check=0)
    assert not [cell for cell in cells if cell in done.stdout]
    assert "from public knowledge" in done.stdout
    schema = json.loads(tallyveil("inspect", table, "--json", check=0).stdout)
    assert schema["rows"] == 1
    assert [c["type"] for c in schema["columns"]] == ["string", "string", "integer", "number"]


def test_the_ledger_from_open_to_closed(tallyveil, tmp_path):
    book = ("--ledger", tmp_path / "budget.db")
    tallyveil("ledger init --dataset a --epsilon 0.3", *book, check=0)
    again = tallyveil("ledger init --dataset a --epsilon 9", *book, check=1)
    assert "set once" in again.stderr
    tallyveil("ledger init --dataset b --epsilon 1/3", *book, check=0)
    assert "1/3" in tallyveil("ledger show", *book, check=0).stdout
    assert tallyveil("ledger history", *book, check=0).stdout == "No debits yet.\n"
    listed = tallyveil("ledger history --dataset a --json", *book, check=0)
    assert json.loads(listed.stdout) == []
    tallyveil("ledger close --dataset a", *book, check=0)
    state = json.loads(tallyveil("ledger show --json", *book, check=0).stdout)
    assert [account["closed"] for account in state] == [True, False]
    verdict = json.loads(tallyveil("ledger verify --json", *book, check=0).stdout)
    assert verdict["ok"]
    assert verdict["entries"] == 3


def test_a_ledger_with_a_changed_byte_does_not_verify(tallyveil, ledger):
    content = ledger.read_bytes()
    ledger.write_bytes(content.replace(b'"epsilon": "2"', b'"epsilon": "9"'))
    assert ledger.read_bytes() != content
    assert "was changed" in tallyveil("ledger verify --ledger", ledger, check=1).stderr
    done = tallyveil("ledger verify --json --ledger", ledger, check=1)
    assert json.loads(done.stdout)["ok"] is False


def test_the_demo_is_the_whole_journey_and_repeats(tallyveil, tmp_path):
    out = tmp_path / "deep" / "demo"
    for _ in range(2):
        done = tallyveil("demo", "--out", out, check=0)
        assert "published counts" in done.stdout
        assert str(out / "release") in done.stdout
    tallyveil("check", out / "release", check=0)
    tallyveil("ledger verify --ledger", out / "budget.db", "--release", out / "release", check=0)
    other = tmp_path / "mine"
    other.mkdir()
    (other / "precious.txt").write_text("x")
    assert "not an earlier demo" in tallyveil("demo", "--out", other, check=1).stderr
    assert (other / "precious.txt").exists()


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "damaged"])
def test_a_reader_that_has_seen_enough_changes_no_verdict(cases, tmp_path, form, damaged):
    """`tallyveil check FOLDER | head` ends as `tallyveil check FOLDER` does."""
    folder = tmp_path / "release"
    options = {"count": "cases", "keep": ["county", "fips", "rate"], "upper": 9, "epsilon": 1}
    tv.privatize(cases, **options, out=folder)
    if damaged:
        (folder / "data.csv").write_text("county\n")
    reading, writing = os.pipe()
    os.close(reading)
    words = [*TALLYVEIL, "check", folder, *form]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (int(damaged), b"")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--epsilon -1", "--epsilon must be greater than 0. Got '-1'."),
        ("--set budget.confidence=0.9", "--set budget.confidence goes with --within"),
        ("--set unit.spread=one_row", "requires --contributions of 2 or more"),
        ("--method count", "Got 'count'."),
    ],
    ids=["one", "two", "hyphens", "value"],
)
def test_messages_name_options_as_they_are_typed(tallyveil, cases, words, message):
    epsilon = "" if "--epsilon" in words else "--epsilon 1"
    done = tallyveil(f"privatize --count cases --out never {epsilon} {words}", cases, check=2)
    assert message in done.stderr
