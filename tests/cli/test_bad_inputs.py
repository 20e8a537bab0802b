"""What a new user tried: what each input ends with, in words that help.

A refused input has an exit code, one paragraph, no content of the table, leaves nothing behind and
debits nothing. An input that is right is published.
"""

import gzip
import io
import sys

import pandas as pd
import pytest
import xlsxwriter

import tallyveil as tv
from tallyveil.cli.app import run

SECRET = "7919"
"""A count that no message may show."""

GOOD = "county,cases\n" + "".join(f"c{i},{i * 7 % 5}\n" for i in range(30))
SORTED = "county,cases\n" + "".join(f"c{9 - i},{i}\n" for i in range(9))
PEOPLE = "county,age,sex\n" + "".join(f"c{i % 3},{20 + i},{'fm'[i % 2]}\n" for i in range(60))
LEDGER = "--ledger b.db --dataset d"
COUNT = f"--count cases --keep all --upper 10 --epsilon 1 --out out {LEDGER}".split()
BY = f"--by county --upper 99 --epsilon 1 --out out --categories c0,c1,c2 {LEDGER}".split()
WIDE = ",".join(["county", "cases", *(f"x{i}" for i in range(9998))])


def row(cell):
    """The table with one more row."""
    return f'{GOOD}c30,"{cell}"\n'


def damage_parquet():
    file = io.BytesIO()
    pd.DataFrame({"county": ["a", "b"], "cases": [1, 2]}).to_parquet(file)
    return file.getvalue()[: len(file.getvalue()) // 2]


def fill_sheet():
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["county", "cases"])
        for place in range(30):
            sheet.write_row(place + 1, 0, [f"c{place}", place % 5])
    return file.getvalue()


# the content of t.csv, and words of the message or None for a release
TABLES = {
    "empty file": ("", "The table is empty"),
    "header only": ("county,cases\n", "no rows"),
    "no header row": (f"c0,{SECRET}\nc1,3\n", "no line with names at its top"),
    "negative count": (row(f"-{SECRET}"), "Row 31 of count column 'cases' has a negative number"),
    "fractional count": (row(f"{SECRET}.5"), "Row 31 of count column 'cases' has a fraction"),
    "text in count": (row(f"about {SECRET}"), "Row 31 of count column 'cases' has text"),
    "NA": (row("NA"), "Row 31 of count column 'cases' has no value"),
    "NaN": (row("NaN"), "Row 31 of count column 'cases' has no value"),
    "empty cell": (row(""), "Row 31 of count column 'cases' has no value"),
    "suppressed *": (row("*"), "--missing"),
    "<5": (row("<5"), "Row 31 of count column 'cases' has text"),
    "thousands separators": (row("7,919"), "--set source.thousands"),
    "count overflows int64": (row("9" * 30), None),
    "above upper": (row(SECRET), "note: Some values of cases exceed --upper and are top-coded."),
    "duplicate category": (f"{GOOD}c3,1\n", "--set counts.allow_duplicates=true"),
    "ragged row (more)": (f"{GOOD}c30,1,2\n", "Row 31 has 3 cells"),
    "ragged row (fewer)": (f"{GOOD}c30\nc31,2\n", "Row 31 has 1 cell where"),
    "10,000 columns": (WIDE + ("\na" + ",1" * 9999) * 3 + "\n", "columns"),
    "byte-order mark": (GOOD.encode("utf-8-sig"), None),
    "UTF-16": (GOOD.encode("utf-16"), None),
    "Latin-1": (GOOD.replace("c3", "\xe9").encode("latin-1"), "latin-1"),
    "semicolons": (GOOD.replace(",", ";"), "--delimiter ';'"),
    "mixed line endings": (GOOD.replace("\n", "\r\n", 9), "mixes line endings"),
    "CRLF": (GOOD.replace("\n", "\r\n"), None),
    "CR only": (GOOD.replace("\n", "\r"), None),
    "NUL byte": (GOOD.replace("c3,", "c\0,"), "it has a zero byte"),
    "unclosed quote": (f'{GOOD}"c30,1\n', "not well-formed text"),
    "two columns of one name": (GOOD.replace("county", "cases"), "Two columns are called"),
    "blank header name": (GOOD.replace("county", ""), None),
    "sorted by count": (SORTED, "note: The rows are in the order"),
    "a Total row": (f"{GOOD}Total,{SECRET}\n", "a row labelled 'Total'"),
    "formula injection": (GOOD.replace("c3,", "=1+1,"), None),
    "boolean count": (row("true"), "Row 31 of count column 'cases' has something"),
    "1e1": (row("1e1"), "Row 31 of count column 'cases' has a number that is not in plain digits"),
    "+3": (row("+3"), "Row 31 of count column 'cases' has a number that is not in plain digits"),
    "007": (row("007"), None),
    "padded with spaces": (row("  3 "), None),
    "inf": (row("inf"), "Row 31 of count column 'cases' has no finite number"),
    "Arabic-Indic digit": (row("\u0663"), "not in plain digits"),
    "full-width digit": (row("\uff13"), "not in plain digits"),
    "leading comment": (f"# made by x\n{GOOD}", "--set source.comment='#'"),
    "title line": (f"Cases of 2026\n\n{GOOD}", "is, use --set source.skiprows=2"),
    "trailing blank lines": (f"{GOOD}\n\n", None),
    "footnote": (f"{GOOD}Source: somebody\n", "--set source.skipfooter=1"),
}
# the name and content of a table that is not t.csv
FILES = {
    "file missing": ("nofile.csv", None, "There is no file 'nofile.csv'"),
    "a directory": (".", None, "not a plain file; a table is one file"),
    "no known ending": ("t.png", b"x", "Known endings"),
    "corrupt parquet": ("t.parquet", b"PAR1" + bytes(40), "damaged or cut short"),
    "half a parquet file": ("t.parquet", damage_parquet(), "damaged or cut short"),
    "CSV named .parquet": ("t.parquet", GOOD, "It seems to be text: name it .csv"),
    "xlsx": ("t.xlsx", fill_sheet(), None),
    ".csv.gz": ("t.csv.gz", gzip.compress(GOOD.encode()), None),
    "standard input": ("-", GOOD, None),
}
# numbers that an option does not take, by the message
BAD_NUMBERS = {
    "--epsilon must be greater than 0": "0 -1",
    "--epsilon must be a finite number": "abc inf nan 1,5",
    "--epsilon must be": "1/0",
    "--epsilon must lie between": "1e9",
    "--epsilon must be at least 1e-08": "1e-12",
    "--epsilon must": "1e9999999 1e-999",
    "--upper must be a whole number of at least 1": "0",
    "--upper must be a whole number": "-5 10.5 1,000 1e30 ten",
    "--upper must": "auto",
    "--contributions must": "0 -1",
}
# words that replace those of COUNT, an option without a value none; exit code; message
WORDS = {
    "misspelled column": ("--count case", 1, "No column named 'case'. Columns: county, cases."),
    "column case differs": ("--count Cases", 1, "Columns: county, cases."),
    "no count at all": ("--count", 2, "--count must name the column of counts"),
    "upper missing": ("--upper", 0, None),
    "no epsilon nor within": ("--epsilon", 2, "--epsilon must be given, or --within"),
    "out exists": ("--out .", 1, "exists already"),
    "out parent missing": ("--out a/b/out", 0, None),
    "out not writable": ("--out /proc/rel", 1, "cannot be written"),
    "no out": ("--out", 2, "--out"),
    "ledger missing": ("--ledger no.db", 1, "no ledger at"),
    "ledger without dataset": ("--dataset", 2, "belong together"),
    "unknown dataset": ("--dataset z", 1, "'z' is not in the ledger"),
    "overspent": ("--epsilon 5", 1, "Nothing was spent"),
    "ledger is a CSV": ("--ledger t.csv", 1, "not a Tallyveil ledger"),
    "ledger is empty": ("--ledger empty.db", 1, "not a Tallyveil ledger"),
    "ledger is broken": ("--ledger broken.db", 1, "not a Tallyveil ledger"),
    "unknown option": ("--fast", 2, "No such option"),
    "unknown method": ("--method laplace", 2, "--method must be one of"),
    "method file garbage": ("--method t.csv", 1, "must hold a mechanism"),
    "property on geometric": ("--method geometric --set method.properties=fair", 2, "has no key"),
    "property unknown": ("--method design --set method.properties=fairest", 2, "Known"),
    "epsilon and within": ("--within 3", 2, "--within and --epsilon exclude"),
    "within and preserve": ("--epsilon --within 3 --method preserve", 2, "only with 'auto', 'geo"),
    "confidence 95": ("--epsilon --within 3 --set budget.confidence=95", 2, "confidence"),
    "flag and key": ("--set upper=5", 2, "--upper and --set upper exclude each other"),
    "flag and inner key": (
        "--contributions 2 --set unit.contributions=3",
        2,
        "--contributions and --set unit.contributions exclude",
    ),
    "method and its name": ("--method geometric --set method.name=preserve", 2, "exclude each"),
    "hierarchy and columns": ("--hierarchy county --set method.columns=x", 2, "exclude each"),
    "keep unknown": ("--keep nope", 1, "No column named 'nope'"),
    "two epsilons": ("--epsilon 1 --epsilon 2", 2, "must be one value. Got 2 values"),
    "count twice": ("--count cases --count cases", 2, "name every column once"),
    "delimiter of two": ("--delimiter ::", 2, "--delimiter must be one character"),
    "encoding unknown": ("--set source.encoding=utf-99", 1, "cannot be read as utf-99"),
    "report inside out": ("--confidential-report out/x.html", 2, "outside the release"),
}
for message, numbers in BAD_NUMBERS.items():
    for option in (f"{message.split()[0]} {number}" for number in numbers.split()):
        WORDS[option.lstrip("-")] = option, 2, message
# the same for microdata
PEOPLE_WORDS = {
    "by without categories": (["--categories"], 2, "reveals that person"),
    "category not listed": (["--categories", "c0,c1"], 1, "not in the public list"),
    "categories file missing": (["--categories", "cats.txt"], 2, "a file that exists"),
    "where syntax": (["--where", "age is 65"], 2, "--where must be comparisons"),
    "where unknown column": (["--where", "agee >= 65"], 1, "not there"),
    "where with and": (["--where", "age >= 30 and age < 33"], 0, None),
    "where text and number": (["--where", "age >= old"], 1, "numbers with text"),
}
OTHERS = {
    "check of no release": ("check .", 1, "receipt"),
    "check of nothing": ("check nope", 1, "There is no release folder"),
    "interpret outside": ("interpret --released 999 --mechanism m.json", 2, "--released must"),
    "interpret no number": ("interpret --released nan --mechanism m.json", 2, "--released must"),
    "no mechanism": ("interpret --released 9 --mechanism no.json", 1, "No such file"),
}


@pytest.fixture
def program(tmp_path, monkeypatch, capsys):
    """Run the program in an empty folder; give its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["tallyveil", *words])
        with pytest.raises(SystemExit) as ended:
            run()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return call


def replace(base, words):
    """Replace options of the base; those without a value are left out."""
    pairs = zip(base[::2], base[1::2], strict=True)
    followed = zip(words, [*words[1:], "--"], strict=True)
    bare = [a for a, b in followed if a in base and a.startswith("--") and b.startswith("--")]
    rest = [word for pair in pairs if pair[0] not in words for word in pair]
    return rest + [word for word in words if word not in bare]


@pytest.fixture
def attempt(program, tmp_path, monkeypatch):
    """Run privatize; check what every end has in common, and that the message is there."""
    book = tv.Ledger.create(tmp_path / "b.db")
    book.open("d", 2)

    def run(name, content, words, code, message):
        content = content.encode() if isinstance(content, str) else content
        if name == "-":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        elif content is not None:
            (tmp_path / name).write_bytes(content)
        before = sorted(tmp_path.rglob("*"))
        ended, out, err = program("privatize", name, *words)
        assert ended == code, out + err
        for secret in (SECRET, "7,919", "Source: somebody"):
            assert secret not in out + err
        assert message is None or message in err
        if code == 0:
            folder = next(tmp_path.rglob("receipt.json")).parent
            assert not next(folder.glob("data.*")).read_bytes().startswith(b"\xef\xbb\xbf")
            assert all(finding.ok for finding in tv.check_package(folder))
            assert len(book.history("d")) == 1
            return
        after = [path for path in tmp_path.rglob("*") if "journal" not in path.name]
        assert sorted(after) == before
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert out == ""
        assert book.history("d") == []

    return run


@pytest.mark.parametrize("case", TABLES)
def test_text_tables(attempt, case):
    content, message = TABLES[case]
    is_refused = message is not None and not message.startswith("note:")
    attempt("t.csv", content, COUNT, int(is_refused), message)


@pytest.mark.parametrize("case", FILES)
def test_other_files(attempt, case):
    name, content, message = FILES[case]
    attempt(name, content, COUNT, int(message is not None), message)


@pytest.mark.parametrize("case", WORDS)
def test_words_of_tables_of_counts(attempt, tmp_path, case):
    words, code, message = WORDS[case]
    (tmp_path / "empty.db").touch()
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"x" * 999)
    attempt("t.csv", GOOD, replace(COUNT, words.split()), code, message)


@pytest.mark.parametrize("case", PEOPLE_WORDS)
def test_words_of_microdata(attempt, case):
    words, code, message = PEOPLE_WORDS[case]
    attempt("t.csv", PEOPLE, replace(BY, words), code, message)


@pytest.mark.parametrize("case", OTHERS)
def test_other_commands(program, tmp_path, case):
    words, code, message = OTHERS[case]
    tv.certify(tv.geometric(tv.Query.count(10), 1)).save(tmp_path / "m.json")
    ended, out, err = program(*words.split())
    assert ended == code, out + err
    assert message in out + err


def test_conditions_joined_by_and_count_what_they_say(program, tmp_path):
    (tmp_path / "t.csv").write_text(PEOPLE)
    words = ["--where", "age >= 30 and age < 33", "--epsilon", "50", "--ledger", "--dataset"]
    program("privatize", "t.csv", *replace(BY, words))
    data = (tmp_path / "out" / "data.csv").read_text().split()
    assert data == ["county,count", "c0,1", "c1,1", "c2,1"]
