"""A request file asks for what the options on a command line ask for."""

import json
import tomllib

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.release.options import ReleaseOptions
from tallyveil.release.request_file import make_schema, read_request, save_request, write_request
from tests.asking import make_options, privatize

TEXT = "county,cases\n" + "".join(f"c{i},{i % 5}\n" for i in range(40))
REQUEST = """
# what the health department publishes every month
table = "cases.csv"
count = "cases"
keep = ["county"]
upper = 9
epsilon = 0.5

[about]
title = "Cases by county"
publisher = "Department of Health"
contact = "data@health.example"
period = "2026-01"
license = "CC-BY-4.0"
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
    document = tv.check_package(folder)
    assert all(finding.ok for finding in document), [f for f in document if not f.ok]


def receipt(folder):
    return json.loads((folder / "receipt.json").read_text())


def test_a_request_is_released_wherever_it_is_run_from(request_file, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run("run", request_file, "--out", tmp_path / "out")
    document = receipt(tmp_path / "out")
    assert document["statement"]["epsilon_exact"] == "1/2"
    assert document["about"] == tomllib.loads(REQUEST)["about"]
    page = (tmp_path / "out" / "METHODOLOGY.html").read_text()
    package = json.loads((tmp_path / "out" / "datapackage.json").read_text())
    assert all(words in page for words in document["about"].values())
    assert all(words in json.dumps(package) for words in document["about"].values())
    assert package["title"] == "Cases by county"
    check(tmp_path / "out")


def test_the_command_line_overrides_the_request(request_file, tmp_path):
    (tmp_path / "other.csv").write_text(TEXT.replace("c1,", "x1,"))
    settings = ("--set", "epsilon=2", "--set", "about.period=2026-02")
    words = (*settings, "--table", tmp_path / "other.csv")
    run("run", request_file, *words, "--out", tmp_path / "out")
    document = receipt(tmp_path / "out")
    assert (document["statement"]["epsilon"], document["about"]["period"]) == (2.0, "2026-02")
    assert "x1," in (tmp_path / "out" / "data.csv").read_text()
    assert document["columns"][0]["upper"] == 9, "what was not given stays as the request has it"


@pytest.mark.parametrize(
    ("lines", "words", "published"),
    [
        ("name = 'preserve'\npriority = 0.5", "method.priority=counts", ("preserve", "counts")),
        ("name = 'preserve'\npriority = 0.5", "method=geometric", ("geometric", None)),
        ("name = 'geometric'", "epsilon=1", ("geometric", None)),
    ],
)
def test_a_method_in_the_file_is_changed_or_replaced(
    request_file, tmp_path, lines, words, published
):
    request_file.write_text(f"{REQUEST}[method]\n{lines}\n")
    run("run", request_file, "--set", words, "--out", tmp_path / "out")
    (column,) = receipt(tmp_path / "out")["columns"]
    assert (column["method"]["name"], column["method"].get("priority")) == published


def test_a_saved_request_asks_for_the_same(tmp_path):
    (tmp_path / "cases.csv").write_text(TEXT)
    (tmp_path / "saved").mkdir()
    saved = tmp_path / "saved" / "release.toml"
    words = ("--count", "cases", "--keep", "all", "--upper", "9", "--epsilon", "1/3")
    words = (*words, "--set", 'about.title=A "quoted" title', "--set", "method.loss=beyond:2")
    words = (*words, "--method", "design")
    table = tmp_path / "cases.csv"
    run("privatize", table, *words, "--out", tmp_path / "a", "--save-request", saved)
    run("run", saved, "--out", tmp_path / "b")
    first, second = receipt(tmp_path / "a"), receipt(tmp_path / "b")
    for name in ("about", "statement", "unit"):
        assert first[name] == second[name]
    assert first["columns"][0]["method"] == second["columns"][0]["method"]
    assert first["columns"][0]["method"]["loss"] == "beyond:2"
    text = saved.read_text()
    assert tomllib.loads(text)["table"] == "../cases.csv"
    assert "# Privacy loss of each count column" in text
    assert "\nout =" not in text
    assert isinstance(run("privatize", "x", *words, "--save-request", saved, code=1), UsageError)


EVERYTHING = make_options(
    count=["a", "b"],
    upper={"a": 9, "b": 12},
    epsilon=[0.1, "1/3"],
    hierarchy=["state", "county"],
    weights=[1, 4.5],
    disjoint=[["a", "b"], ["c", "d"]],
    structural_zeros=("sex = F",),
    categories={"sex": ["f", "m"], "age": [1, 2]},
    na_values=["*", ""],
    skiprows=2,
    thousands="'",
    title='Zeile \\ "zwei" ü',
    accuracy=1.5,
    allow_totals=True,
    ledger="budget.db",
)


def test_every_option_can_be_written_to_a_file(tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(write_request(EVERYTHING, str(tmp_path / "t.csv"), tmp_path))
    table, keys = read_request(path)
    assert table == str(tmp_path / "t.csv")
    assert keys.pop("ledger").endswith("budget.db")
    assert ReleaseOptions(**keys, ledger="budget.db") == EVERYTHING
    facts = set(ReleaseOptions.__struct_fields__) - {"entropy"}
    assert set(make_schema()["properties"]) == facts | {"table"}


def test_a_list_of_categories_in_a_file_is_beside_the_request(tmp_path):
    (tmp_path / "sexes.txt").write_text("f\nm\n")
    categories = {"sex": str(tmp_path / "sexes.txt"), "age": [1, 2]}
    path = tmp_path / "release.toml"
    path.write_text(write_request(make_options(categories=categories), None, tmp_path))
    assert '"sex" = "sexes.txt"' in path.read_text()
    assert read_request(path)[1]["categories"] == categories


WRONG = {
    "source.skiprows = 'two'": "'skiprows' must be a whole number",
    "counts.allow_totals = 'no'": "'allow_totals' must be True or False",
    "source.sheet_name = 3": "'sheet_name' must be text",
    "source = 3": "'source' must be Source or a mapping",
    "epsilom = 1": "Perhaps you mean 'epsilon'",
    "counts.allow-totals = true": "Perhaps you mean 'counts.allow_totals'",
    "title = 'x'": "A request has no key 'title'. Perhaps you mean 'about.title'",
    "counts.upper = 9": "'counts' has no key 'upper'. Perhaps you mean 'upper'",
    "unit.contribution = 2": "'unit' has no key 'contribution'. .* 'unit.contributions'",
    "method.weight = 2": "'method' has no key 'weight'. Perhaps you mean 'method.weights'",
    "method.loss = 'l1'": "The method 'auto' has no key 'loss'. It goes with the method 'design'",
    "entropy = 'x'": "no key 'entropy'",
    "epsilon = ": "is not TOML",
    "[privacy]\nepsilon = 1": "no key 'privacy'",
    "[method]\nname = 'magic'": "'method' must be one of",
    "[method]\nname = 'hierarchy'": "needs the key 'columns'",
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
    options = make_options(ledger="postgresql://ann:secret@db/budgets")
    with pytest.raises(UsageError, match="password"):
        save_request(tmp_path / "new.toml", options, "t.csv")
    assert not (tmp_path / "new.toml").exists()
    request_file.write_text('count = "cases"\n')
    assert isinstance(run("run", request_file, "--out", tmp_path / "o", code=1), UsageError)


@pytest.mark.parametrize(
    "words", [{"title": "two\nlines"}, {"publisher": "x" * 301}, {"period": 3}]
)
def test_words_about_a_release_are_one_line_each(words):
    with pytest.raises(ArgumentError, match=f"'{next(iter(words))}' must be (one line of )?text"):
        privatize([1, 2, 3], upper=9, epsilon=1, **words)


def test_a_request_can_be_planned_and_may_have_levels(request_file, tmp_path):
    done = run("run", request_file, "--dry-run", "--set", "dry_run.rows=40")
    assert "Dry run" in done.output
    levels = tmp_path / "levels.toml"
    levels.write_text(
        'table = "cases.csv"\ncount = "cases"\nkeep = "all"\nupper = 9\n'
        "method = { name = 'ladder', epsilons = [2, 1] }\n"
    )
    run("run", levels, "--out", tmp_path / "levels")
    check(tmp_path / "levels")
