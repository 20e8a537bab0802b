"""What every command owes its user: help with an example, JSON, one-paragraph errors."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
import typer

import tallyveil as tv
from tallyveil.cli.app import app

PROGRAM_OPTIONS = ("--json", "--help")


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
    told = f"{command.help} {command.epilog}"
    assert f"tallyveil {' '.join(words)}" in told, "shows an example"
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in options


@pytest.mark.parametrize("words", [(), ("privatize",), ("ledger",), ("ledger", "init")])
def test_help_is_printed_without_colours_when_piped(tallyveil, words):
    done = tallyveil(*words, "--help", check=0)
    assert "Usage" in done.stdout
    assert "\x1b" not in done.stdout


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
    found = {}
    for line in shown.splitlines():
        if line in HEADINGS:
            names = found[line] = []
        elif option := re.match(r"  --([a-z-]+)", line):
            names.append(option[1])
    assert list(found.items()) == [(name, words.split()) for name, words in HEADINGS.items()]
    assert sum(map(len, found.values())) == 30


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
    base = ("--count", "cases", "--keep", "all", "--epsilon", "1", "--out", "never")
    done = tallyveil("privatize", cases, *base, *words, check=2)
    assert done.stderr.startswith("error: ")
    assert f"Perhaps you mean {advice}." in done.stderr
    assert done.stderr.count("\n") == 1


def test_errors_are_one_paragraph_and_debug_shows_more(tallyveil, cases, tmp_path):
    options = ("--count", "none", "--keep", "all", "--upper", "9", "--epsilon", "1")
    words = ("privatize", cases, *options, "--out", tmp_path / "x")
    short = tallyveil(*words, check=1)
    assert short.stderr.count("\n") == 1
    assert "Traceback" not in short.stderr
    for place in (("--debug", *words), (*words, "--debug")):
        assert "Traceback" in tallyveil(*place, check=1).stderr


def test_a_wrong_command_line_is_exit_code_2(tallyveil, cases):
    assert tallyveil("privatize", cases).returncode == 2
    assert tallyveil("nonsense").returncode == 2
    done = tallyveil("privatize", cases, "--nonsense", "1")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_version_and_completion(tallyveil):
    import tallyveil as tv
    from tallyveil.fingerprint import fingerprint

    version, mark = tallyveil("--version", check=0).stdout.splitlines()
    assert version == f"tallyveil {tv.__version__}"
    assert mark == f"fingerprint {fingerprint()}"
    environment = {
        **os.environ,
        "_TALLYVEIL_COMPLETE": "complete_bash",
        "COMP_WORDS": "tallyveil priv",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [_program()], env=environment, capture_output=True, text=True, check=False
    )
    assert "privatize" in done.stdout


def _program():
    import sys
    from pathlib import Path

    return str(Path(sys.executable).with_name("tallyveil"))


def test_a_terminal_sees_progress_and_colour(cases, tmp_path):
    """Standard error is a terminal here: the bar appears there, and not in the output."""
    main, other = pty.openpty()
    options = ["--keep", "all", "--count", "cases", "--upper", "9", "--epsilon", "1"]
    words = ["privatize", str(cases), *options, "--out", str(tmp_path / "release")]
    environment = {**os.environ, "TERM": "xterm-256color"}
    done = subprocess.run(
        [_program(), *words],
        stdout=subprocess.PIPE,
        stderr=other,
        text=True,
        env=environment,
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
    ],
)
def test_inspect_suggests_what_can_be_right(tallyveil, tmp_path, text, shown, not_shown):
    (tmp_path / "t.csv").write_text(text)
    said = tallyveil("inspect", tmp_path / "t.csv", check=0).stdout
    assert shown in said
    assert not_shown not in said


def test_inspect_shows_the_schema_and_no_value(tallyveil, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("place,code,cases,share\nSomewhere,007,4711,0.25\n")
    done = tallyveil("inspect", table, check=0)
    for secret in ("Somewhere", "007", "4711", "0.25"):
        assert secret not in done.stdout
    assert "from public knowledge" in done.stdout
    schema = json.loads(tallyveil("inspect", table, "--json", check=0).stdout)
    assert schema["rows"] == 1
    assert [c["type"] for c in schema["columns"]] == ["string", "string", "integer", "number"]


def test_the_ledger_from_open_to_closed(tallyveil, tmp_path):
    book = ("--ledger", tmp_path / "budget.db")
    tallyveil("ledger", "init", *book, "--dataset", "a", "--epsilon", "0.3", check=0)
    again = tallyveil("ledger", "init", *book, "--dataset", "a", "--epsilon", "9", check=1)
    assert "set once" in again.stderr
    tallyveil("ledger", "init", *book, "--dataset", "b", "--epsilon", "1/3", check=0)
    shown = tallyveil("ledger", "show", *book, check=0).stdout
    assert "1/3" in shown
    assert tallyveil("ledger", "history", *book, check=0).stdout == "No debits yet.\n"
    listed = tallyveil("ledger", "history", *book, "--dataset", "a", "--json", check=0)
    assert json.loads(listed.stdout) == []
    tallyveil("ledger", "close", *book, "--dataset", "a", check=0)
    state = json.loads(tallyveil("ledger", "show", *book, "--json", check=0).stdout)
    assert [account["closed"] for account in state] == [True, False]
    verdict = json.loads(tallyveil("ledger", "verify", *book, "--json", check=0).stdout)
    assert verdict["ok"]
    assert verdict["entries"] == 3


def test_a_ledger_with_a_changed_byte_does_not_verify(tallyveil, ledger):
    content = ledger.read_bytes()
    at = content.index(b'"epsilon": "2"')
    ledger.write_bytes(content.replace(b'"epsilon": "2"', b'"epsilon": "9"'))
    assert at
    done = tallyveil("ledger", "verify", "--ledger", ledger, check=1)
    assert "was changed" in done.stderr
    done = tallyveil("ledger", "verify", "--ledger", ledger, "--json", check=1)
    assert json.loads(done.stdout)["ok"] is False


def test_the_demo_is_the_whole_journey_and_repeats(tallyveil, tmp_path):
    out = tmp_path / "deep" / "demo"
    for _ in range(2):
        done = tallyveil("demo", "--out", out, check=0)
        assert "published counts" in done.stdout
        assert str(out / "release") in done.stdout
    tallyveil("check", out / "release", check=0)
    tallyveil(
        "ledger", "verify", "--ledger", out / "budget.db", "--release", out / "release", check=0
    )
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
    words = [sys.executable, "-m", "tallyveil", "check", folder, *form]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (int(damaged), b"")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--count", "cases", "--epsilon", "-1"), "--epsilon must be greater than 0. Got '-1'."),
        (
            ("--count", "cases", "--epsilon", "1", "--set", "budget.confidence=0.9"),
            "--set budget.confidence goes with --within",
        ),
        (
            ("--count", "cases", "--epsilon", "1", "--set", "unit.spread=one_row"),
            "requires --contributions of 2 or more",
        ),
        (("--count", "cases", "--epsilon", "1", "--method", "count"), "Got 'count'."),
    ],
    ids=["one", "two", "hyphens", "value"],
)
def test_messages_name_options_as_they_are_typed(tallyveil, cases, words, said):
    done = tallyveil("privatize", cases, *words, "--out", "never", check=2)
    assert said in done.stderr
