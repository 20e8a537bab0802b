"""A request file asks for what the options on a command line ask for."""

import json
import tomllib
from dataclasses import fields

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.release.options import ReleaseOptions
from tallyveil.request.request_file import make_schema, read_request, save_request, write_request

TEXT = "county,cases\n" + "".join(f"c{i},{i % 5}\n" for i in range(40))
REQUEST = """
# what the health department publishes every month
table = "cases.csv"
count = "cases"
keep = ["county"]
upper = 9
epsilon = 0.5
title = "Cases by county"
publisher = "Department of Health"
contact = "data@health.example"
period = "2026-01"
licence = "CC-BY-4.0"
"""


@pytest.fixture
def request_file(tmp_path):
    (tmp_path / "cases.csv").write_text(TEXT)
    path = tmp_path / "release.toml"
    path.write_text(REQUEST)
    return path


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    if code and done.exception is not None and not isinstance(done.exception, SystemExit):
        return done.exception
    assert done.exit_code == code, (done.output, done.exception)
    return done


def check(folder):
    found = tv.check_package(folder)
    assert all(finding.ok for finding in found), [f for f in found if not f.ok]


def receipt(folder):
    return json.loads((folder / "receipt.json").read_text())


def test_a_request_is_released_wherever_it_is_run_from(request_file, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run("run", request_file, "--out", tmp_path / "out")
    found = receipt(tmp_path / "out")
    assert found["epsilon_exact"] == "1/2"
    assert found["about"] == {
        "title": "Cases by county",
        "publisher": "Department of Health",
        "contact": "data@health.example",
        "period": "2026-01",
        "licence": "CC-BY-4.0",
    }
    page = (tmp_path / "out" / "METHODOLOGY.html").read_text()
    package = json.loads((tmp_path / "out" / "datapackage.json").read_text())
    for words in found["about"].values():
        assert words in page
        assert words in json.dumps(package)
    assert package["title"] == "Cases by county"
    check(tmp_path / "out")


@pytest.mark.parametrize("file", ["receipt.json", "METHODOLOGY.html", "datapackage.json"])
def test_words_about_a_release_cannot_be_changed(request_file, tmp_path, file):
    from tallyveil.release.folder import checksums_text

    out = tmp_path / "out"
    run("run", request_file, "--out", out)
    path = out / file
    path.write_text(path.read_text().replace("Department of Health", "Somebody else"))
    names = [p.name for p in out.iterdir() if p.name != "SHA256SUMS"]
    sums = checksums_text({name: (out / name).read_bytes() for name in names})
    (out / "SHA256SUMS").write_text(sums)
    assert not all(finding.ok for finding in tv.check_package(out))


def test_the_command_line_overrides_the_request(request_file, tmp_path):
    (tmp_path / "other.csv").write_text(TEXT.replace("c1,", "x1,"))
    words = ("--epsilon", "2", "--table", tmp_path / "other.csv", "--period", "2026-02")
    run("run", request_file, *words, "--out", tmp_path / "out")
    found = receipt(tmp_path / "out")
    assert (found["epsilon"], found["about"]["period"]) == (2.0, "2026-02")
    assert "x1," in (tmp_path / "out" / "data.csv").read_text()
    assert found["columns"][0]["upper"] == 9, "what was not given stays as the request has it"


@pytest.mark.parametrize(
    ("lines", "words", "published"),
    [
        ('priority = "balanced"', "--tradeoff 0.5", ("preserve", "1/2")),
        ("tradeoff = 0.5", "--priority counts", ("preserve", "1/4")),
        ('priority = "balanced"', "--method geometric", ("geometric", None)),
        ("tradeoff = 0.5", "--method geometric", ("geometric", None)),
        ('method = "geometric"', "--tradeoff 0.5", ("preserve", "1/2")),
        ('method = "geometric"', "--priority counts", ("preserve", "1/4")),
        ('priority = "counts"', "--method preserve", ("preserve", "1/4")),
        ('priority = "counts"', "--epsilon 1", ("preserve", "1/4")),
    ],
)
def test_an_option_pushes_out_those_of_the_file_that_it_excludes(
    request_file, tmp_path, lines, words, published
):
    request_file.write_text(f"{REQUEST}{lines}\n")
    run("run", request_file, *words.split(), "--out", tmp_path / "out")
    (column,) = receipt(tmp_path / "out")["columns"]
    assert (column["method"], column.get("tradeoff")) == published


def test_options_that_exclude_each_other_are_refused_in_one_place(request_file, tmp_path):
    words = ["--tradeoff", "0.5", "--priority", "counts"]
    assert "either" in str(run("run", request_file, *words, "--out", tmp_path / "o", code=2))
    request_file.write_text(f'{REQUEST}tradeoff = 0.5\npriority = "counts"\n')
    assert "either" in str(run("run", request_file, "--out", tmp_path / "o", code=2))


def test_a_saved_request_asks_for_the_same(tmp_path):
    (tmp_path / "cases.csv").write_text(TEXT)
    (tmp_path / "saved").mkdir()
    saved = tmp_path / "saved" / "release.toml"
    words = ("--count", "cases", "--keep", "all", "--upper", "9", "--epsilon", "1/3")
    words = (*words, "--title", 'A "quoted" title', "--loss", "beyond:2", "--method", "design")
    run(
        "privatize",
        tmp_path / "cases.csv",
        *words,
        "--out",
        tmp_path / "a",
        "--save-request",
        saved,
    )
    run("run", saved, "--out", tmp_path / "b")
    first, second = receipt(tmp_path / "a"), receipt(tmp_path / "b")
    for name in ("about", "epsilon_exact", "stages", "unit"):
        assert first[name] == second[name]
    assert first["columns"][0]["loss"] == second["columns"][0]["loss"]
    text = saved.read_text()
    assert tomllib.loads(text)["table"] == "../cases.csv"
    assert "# Privacy loss of each count column" in text
    assert "\nout =" not in text
    assert isinstance(run("privatize", "x", *words, "--save-request", saved, code=1), UsageError)


EVERYTHING = ReleaseOptions(
    count=["a", "b"],
    upper={"a": 9, "b": 12},
    epsilon=[0.1, "1/3"],
    levels=[2, 1],
    hierarchy=["state", "county"],
    level_weights=[1, 4.5],
    disjoint=[["a", "b"], ["c", "d"]],
    zero=("sex = F",),
    categories={"sex": ["f", "m"], "age": [1, 2]},
    missing=["*", ""],
    skip_rows=2,
    thousands="'",
    title='Zeile \\ "zwei" ü \u2028',
    within=1.5,
    allow_totals=True,
    ledger="budget.db",
)


def test_every_option_can_stand_in_a_file(tmp_path):
    (tmp_path / "release.toml").write_text(
        write_request(EVERYTHING, str(tmp_path / "t.csv"), tmp_path)
    )
    table, found = read_request(tmp_path / "release.toml")
    assert table == str(tmp_path / "t.csv")
    asked = {f.name: getattr(EVERYTHING, f.name) for f in fields(EVERYTHING)}
    expected = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asked.items()
        if name in found and name != "ledger"
    }
    assert {name: value for name, value in found.items() if name != "ledger"} == expected
    assert found["ledger"].endswith("budget.db")
    assert len(found) == 17
    known = {f.name for f in fields(ReleaseOptions)} - {"entropy"}
    assert set(make_schema()["properties"]) == known | {"table"}


WRONG = {
    "epsilon = true": "'epsilon' must be a number or text or a list or a table",
    "upper = 9.5": "'upper' must be",
    "skip_rows = 'two'": "'skip_rows' must be a whole number in a request file",
    "allow_totals = 'no'": "'allow_totals' must be true or false",
    "sheet = 3": "'sheet' must be text",
    "count = [1]": "'count' must be text or a list",
    "epsilom = 1": "Perhaps you mean 'epsilon'",
    "allow-totals = true": "Perhaps you mean 'allow_totals'",
    "entropy = 'x'": "'entropy' that no release knows",
    "epsilon = ": "is not TOML",
    "[privacy]\nepsilon = 1": "'privacy' that no release knows",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_request_is_refused_in_words(tmp_path, line):
    path = tmp_path / "release.toml"
    path.write_text(line)
    with pytest.raises(ArgumentError, match=WRONG[line]):
        read_request(path)


def test_requests_that_cannot_be_read_or_hold_secrets(tmp_path, request_file):
    with pytest.raises(UsageError, match="cannot be read"):
        read_request(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        read_request(tmp_path / "bad.toml")
    options = ReleaseOptions(ledger="postgresql://ann:secret@db/budgets")
    with pytest.raises(UsageError, match="password"):
        save_request(tmp_path / "new.toml", options, "t.csv")
    assert not (tmp_path / "new.toml").exists()
    request_file.write_text('count = "cases"\n')
    assert isinstance(run("run", request_file, "--out", tmp_path / "o", code=1), UsageError)


@pytest.mark.parametrize(
    "words", [{"title": "two\nlines"}, {"contact": ""}, {"publisher": "x" * 301}, {"period": 3}]
)
def test_words_about_a_release_are_one_line_each(words):
    with pytest.raises(ArgumentError, match=f"'{next(iter(words))}' must be one line of text"):
        tv.privatize([1, 2, 3], upper=9, epsilon=1, **words)


def test_a_request_can_be_planned_and_may_have_levels(request_file, tmp_path):
    done = run("run", request_file, "--dry-run", "--rows", "40")
    assert "Dry run" in done.output
    levels = tmp_path / "levels.toml"
    levels.write_text(
        'table = "cases.csv"\ncount = "cases"\nkeep = "all"\nupper = 9\nlevels = [2, 1]\n'
    )
    run("run", levels, "--out", tmp_path / "levels")
    check(tmp_path / "levels")
