"""The 108 inputs that a new user tried: what each ends with, in words that help.

A refused input has an exit code, one paragraph, no content of the table, and leaves nothing
behind. An input that is right is published.
"""

import gzip
import io
import sys

import pytest
import xlsxwriter

import tallyveil as tv
from tallyveil.cli.app import run

SECRET = "7919"
"""A count that no message may show."""

GOOD = "county,cases\n" + "".join(f"c{i},{i * 7 % 5}\n" for i in range(30))
PEOPLE = "county,age,sex\n" + "".join(f"c{i % 3},{20 + i},{'fm'[i % 2]}\n" for i in range(60))
BASE = ("--keep", "all", "--upper", "10", "--epsilon", "1", "--out", "out")
COUNT = ("--count", "cases", *BASE)
BY = ("--by", "county", "--upper", "99", "--epsilon", "1", "--out", "out")
LISTED = (*BY, "--categories", "c0,c1,c2")
LEDGER = ("--ledger", "b.db", "--dataset", "d")


def row(cell):
    """The table with one more row."""
    return f'{GOOD}c30,"{cell}"\n'


def without(*names):
    """The usual options without some and their values."""
    words = list(COUNT)
    for name in names:
        at = words.index(name)
        del words[at : at + 2]
    return tuple(words)


def instead(**changes):
    """The usual options with other values."""
    given = {f"--{name}": value for name, value in changes.items()}
    words = [word for name, value in given.items() for word in (name, value)]
    return (*without(*(name for name in given if name in COUNT)), *words)


# what is tried: (number and name, content of t.csv or None, words after `privatize`, exit code,
# words of the message or None for a release)
TRIED = [
    ("1 file missing", None, ("nofile.csv", *COUNT), 1, "There is no file 'nofile.csv'"),
    ("2 a directory", None, (".", *COUNT), 1, "not a plain file; a table is one file"),
    ("3 empty file", "", COUNT, 1, "The table is empty"),
    ("4 header only", "county,cases\n", COUNT, 1, "no rows"),
    ("5 no header row", f"c0,{SECRET}\nc1,3\n", COUNT, 1, "no line with names at its top"),
    (
        "6 misspelled column",
        GOOD,
        ("--count", "case", *BASE),
        1,
        "No column named 'case'. Columns: county, cases.",
    ),
    ("7 column case differs", GOOD, ("--count", "Cases", *BASE), 1, "Columns: county, cases."),
    ("8 no count at all", GOOD, BASE, 2, "--count must name the column of counts"),
    ("9 upper missing", GOOD, without("--upper"), 0, None),
    ("10 no epsilon nor within", GOOD, without("--epsilon"), 2, "--epsilon must be given"),
    ("11 epsilon 0", GOOD, instead(epsilon="0"), 2, "--epsilon must be greater than 0"),
    ("12 epsilon -1", GOOD, instead(epsilon="-1"), 2, "--epsilon must be greater than 0"),
    ("13 epsilon abc", GOOD, instead(epsilon="abc"), 2, "--epsilon must be a finite number"),
    ("14 epsilon inf", GOOD, instead(epsilon="inf"), 2, "--epsilon must be a finite number"),
    ("15 epsilon nan", GOOD, instead(epsilon="nan"), 2, "--epsilon must be a finite number"),
    ("16 epsilon 1e9", GOOD, instead(epsilon="1e9"), 2, "--epsilon must lie between"),
    ("17 epsilon 1e-12", GOOD, instead(epsilon="1e-12"), 2, "--epsilon must be at least 1e-08"),
    ("18 epsilon 1,5", GOOD, instead(epsilon="1,5"), 2, "--epsilon must be a finite number"),
    ("19 upper 0", GOOD, instead(upper="0"), 2, "--upper must be a whole number of at least 1"),
    ("20 upper -5", GOOD, instead(upper="-5"), 2, "--upper must be a whole number"),
    ("21 upper 10.5", GOOD, instead(upper="10.5"), 2, "--upper must be a whole number"),
    ("22 upper 1,000", GOOD, instead(upper="1,000"), 2, "--upper must be a whole number"),
    ("23 upper 1e30", GOOD, instead(upper="1e30"), 2, "--upper must be a whole number"),
    ("24 upper ten", GOOD, instead(upper="ten"), 2, "--upper must be a whole number"),
    (
        "25 negative count",
        row(f"-{SECRET}"),
        COUNT,
        1,
        "Row 31 of count column 'cases' has a negative number",
    ),
    (
        "26 fractional count",
        row(f"{SECRET}.5"),
        COUNT,
        1,
        "Row 31 of count column 'cases' has a fraction",
    ),
    (
        "27 text in count",
        row(f"about {SECRET}"),
        COUNT,
        1,
        "Row 31 of count column 'cases' has text",
    ),
    ("28 NA", row("NA"), COUNT, 1, "Row 31 of count column 'cases' has no value"),
    ("29 empty cell", row(""), COUNT, 1, "Row 31 of count column 'cases' has no value"),
    ("30 suppressed *", row("*"), COUNT, 1, "--missing"),
    ("31 <5", row("<5"), COUNT, 1, "Row 31 of count column 'cases' has text"),
    ("32 thousands separators", row("7,919"), COUNT, 1, "--set source.thousands"),
    ("33 count overflows int64", row("9" * 30), COUNT, 0, None),
    ("35 above upper", row(SECRET), COUNT, 0, "note: Some counts of cases lie above --upper"),
    ("36 duplicate category", f"{GOOD}c3,1\n", COUNT, 1, "--set counts.allow_duplicates=true"),
    ("37 ragged row (more)", f"{GOOD}c30,1,2\n", COUNT, 1, "Row 31 has 3 cells"),
    ("38 ragged row (fewer)", f"{GOOD}c30\nc31,2\n", COUNT, 1, "Row 31 has 1 cells"),
    ("39 byte-order mark", GOOD.encode("utf-8-sig"), COUNT, 0, None),
    ("40 UTF-16", GOOD.encode("utf-16"), COUNT, 0, None),
    ("41 Latin-1", GOOD.replace("c3", "\xe9").encode("latin-1"), COUNT, 1, "latin-1"),
    ("42 semicolons", GOOD.replace(",", ";"), COUNT, 1, "--delimiter ';'"),
    ("43 mixed line endings", GOOD.replace("\n", "\r\n", 9), COUNT, 1, "mixes line endings"),
    ("44 CRLF", GOOD.replace("\n", "\r\n"), COUNT, 0, None),
    ("45 CR only", GOOD.replace("\n", "\r"), COUNT, 0, None),
    ("46 NUL byte", GOOD.replace("c3,", "c\0,"), COUNT, 1, "it has a zero byte"),
    ("47 unclosed quote", f'{GOOD}"c30,1\n', COUNT, 1, "not well-formed text"),
    ("48 corrupt parquet", b"PAR1" + bytes(40), ("t.parquet", *COUNT), 1, "damaged or cut short"),
    ("49 xlsx", "xlsx", ("t.xlsx", *COUNT), 0, None),
    ("50 CSV named .parquet", GOOD, ("t.parquet", *COUNT), 1, "It seems to be text: name it .csv"),
    ("51 .csv.gz", gzip.compress(GOOD.encode()), ("t.csv.gz", *COUNT), 0, None),
    ("52 two columns of one name", GOOD.replace("county", "cases"), COUNT, 1, "more than once"),
    ("53 blank header name", GOOD.replace("county", ""), COUNT, 0, None),
    ("54 out exists", GOOD, instead(out="."), 1, "exists already"),
    ("55 out parent missing", GOOD, instead(out="a/b/out"), 0, None),
    ("56 out not writable", GOOD, instead(out="/proc/rel"), 1, "cannot be written"),
    ("57 no out", GOOD, without("--out"), 2, "--out"),
    ("58 ledger missing", GOOD, (*COUNT, "--ledger", "no.db", "--dataset", "d"), 1, "no ledger at"),
    ("59 ledger without dataset", GOOD, (*COUNT, "--ledger", "b.db"), 2, "belong together"),
    (
        "60 unknown dataset",
        GOOD,
        (*COUNT, "--ledger", "b.db", "--dataset", "z"),
        1,
        "not in the ledger",
    ),
    ("61 overspent", GOOD, (*instead(epsilon="5"), *LEDGER), 1, "Nothing was spent"),
    (
        "62 ledger is a CSV",
        GOOD,
        (*COUNT, "--ledger", "t.csv", "--dataset", "d"),
        1,
        "not a Tallyveil",
    ),
    ("63 unknown option", GOOD, (*COUNT, "--fast"), 2, "No such option"),
    ("64 unknown method", GOOD, (*COUNT, "--method", "laplace"), 2, "--method must be one of"),
    ("65 method file garbage", GOOD, (*COUNT, "--method", "t.csv"), 1, "must hold a mechanism"),
    (
        "66 property on geometric",
        GOOD,
        (*COUNT, "--method", "geometric", "--set", "method.properties=fair"),
        2,
        "Geometric has no key 'properties'",
    ),
    (
        "67 property unknown",
        GOOD,
        (*COUNT, "--method", "design", "--set", "method.properties=fairest"),
        2,
        "Known",
    ),
    ("68 epsilon and within", GOOD, (*COUNT, "--within", "3"), 2, "--within and --epsilon exclude"),
    (
        "69 confidence 95",
        GOOD,
        (*without("--epsilon"), "--within", "3", "--set", "budget.confidence=95"),
        2,
        "confidence",
    ),
    ("70 contributions 0", GOOD, (*COUNT, "--contributions", "0"), 2, "--contributions must"),
    ("71 contributions -1", GOOD, (*COUNT, "--contributions", "-1"), 2, "--contributions must"),
    ("72 keep unknown", GOOD, instead(keep="nope"), 1, "No column named 'nope'"),
    ("75 by without categories", PEOPLE, BY, 2, "reveals that person"),
    ("76 category not listed", PEOPLE, (*BY, "--categories", "c0,c1"), 1, "not in the public list"),
    (
        "77 categories file missing",
        PEOPLE,
        (*BY, "--categories", "cats.txt"),
        2,
        "a file that exists",
    ),
    (
        "78 where syntax",
        PEOPLE,
        (*LISTED, "--where", "age is 65"),
        2,
        "--where must be comparisons",
    ),
    ("79 where unknown column", PEOPLE, (*LISTED, "--where", "agee >= 65"), 1, "not there"),
    ("80 where with and", PEOPLE, (*LISTED, "--where", "age >= 30 and age < 33"), 0, None),
    (
        "81 where text and number",
        PEOPLE,
        (*LISTED, "--where", "age >= old"),
        1,
        "numbers with text",
    ),
    ("82 upper auto", GOOD, instead(upper="auto"), 2, "--upper must"),
    (
        "84 three epsilons",
        GOOD,
        (*COUNT, "--epsilon", "1", "--epsilon", "2"),
        2,
        "one value, or one for each",
    ),
    ("85 count twice", GOOD, (*COUNT, "--count", "cases"), 2, "name every column once"),
    (
        "86 delimiter of two",
        GOOD,
        (*COUNT, "--delimiter", "::"),
        2,
        "--delimiter must be one character",
    ),
    (
        "87 encoding unknown",
        GOOD,
        (*COUNT, "--set", "source.encoding=utf-99"),
        1,
        "cannot be read as utf-99",
    ),
    ("92 standard input", GOOD, ("-", *COUNT), 0, None),
    (
        "93 report inside out",
        GOOD,
        (*COUNT, "--confidential-report", "out/x.html"),
        2,
        "outside the release",
    ),
    (
        "94 sorted by count",
        "county,cases\n" + "".join(f"c{9 - i},{i}\n" for i in range(9)),
        COUNT,
        0,
        "stand in the order",
    ),
    ("95 a Total row", f"{GOOD}Total,{SECRET}\n", COUNT, 1, "a row labelled 'Total'"),
    ("96 formula injection", GOOD.replace("c3,", "=1+1,"), COUNT, 0, None),
    ("97 boolean count", row("true"), COUNT, 1, "Row 31 of count column 'cases' has something"),
    (
        "98 1e1",
        row("1e1"),
        COUNT,
        1,
        "Row 31 of count column 'cases' has a number that is not in plain digits",
    ),
    (
        "99 +3",
        row("+3"),
        COUNT,
        1,
        "Row 31 of count column 'cases' has a number that is not in plain digits",
    ),
    ("100 007", row("007"), COUNT, 0, None),
    ("101 padded with spaces", row("  3 "), COUNT, 0, None),
    ("102 inf", row("inf"), COUNT, 1, "Row 31 of count column 'cases' has no finite number"),
    ("103 Arabic-Indic digit", row("\u0663"), COUNT, 1, "not in plain digits"),
    ("104 full-width digit", row("\uff13"), COUNT, 1, "not in plain digits"),
    ("105 leading comment", f"# made by x\n{GOOD}", COUNT, 1, "--set source.comment='#'"),
    ("106 title line", f"Cases of 2026\n\n{GOOD}", COUNT, 1, "--set source.skiprows=2"),
    ("107 trailing blank lines", f"{GOOD}\n\n", COUNT, 0, None),
    ("108 footnote", f"{GOOD}Source: somebody\n", COUNT, 1, "--set source.skipfooter=1"),
]
OTHERS = [
    ("88 check of no release", ("check", "."), 1, "receipt"),
    ("89 check of nothing", ("check", "nope"), 1, "There is no release folder"),
    (
        "90 interpret outside",
        ("interpret", "--released", "999", "--mechanism", "m.json"),
        2,
        "--released must",
    ),
    (
        "91 no mechanism",
        ("interpret", "--released", "9", "--mechanism", "no.json"),
        1,
        "No such file",
    ),
]


@pytest.fixture
def program(tmp_path, monkeypatch, capsys):
    """Run the program in an empty folder; give its exit code and what it said."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["tallyveil", *words])
        with pytest.raises(SystemExit) as ended:
            run()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call


def write_table(content, name):
    if content == "xlsx":
        with xlsxwriter.Workbook(name) as book:
            sheet = book.add_worksheet()
            for at, line in enumerate(GOOD.splitlines()):
                county, cases = line.split(",")
                sheet.write_row(at, 0, [county, int(cases) if cases.isdigit() else cases])
    elif content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        with open(name, "wb") as file:
            file.write(data)


@pytest.mark.parametrize("tried", TRIED, ids=lambda tried: tried[0])
def test_what_a_new_user_tried(program, tmp_path, monkeypatch, tried):
    _, content, words, code, message = tried
    if "b.db" in words:
        tv.Ledger.create(tmp_path / "b.db").open("d", 2)
    named = words[0] if not words[0].startswith("--") else None
    name = named if named not in (None, "-", ".", "nofile.csv") else "t.csv"
    write_table(content, name)
    words = words if named else ("t.csv", *words)
    if named == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    before = sorted(tmp_path.rglob("*"))
    ended, out, err = program("privatize", *words)
    assert ended == code, out + err
    assert SECRET not in out + err
    assert "7,919" not in err
    assert "Source: somebody" not in err
    assert message is None or message in " ".join(err.replace("│", " ").split())
    if code == 0:
        folder = next(tmp_path.rglob("receipt.json")).parent
        assert all(finding.ok for finding in tv.check_package(folder))
        return
    assert sorted(path for path in tmp_path.rglob("*") if "journal" not in path.name) == before
    assert "Traceback" not in err
    assert out == ""
    if "b.db" in words:
        assert tv.Ledger(tmp_path / "b.db").history("d") == []


@pytest.mark.parametrize("tried", OTHERS, ids=lambda tried: tried[0])
def test_what_a_new_user_tried_with_other_commands(program, tmp_path, tried):
    _, words, code, message = tried
    tv.certify(tv.geometric(tv.Query.count(10), 1)).save(tmp_path / "m.json")
    ended, out, err = program(*words)
    assert ended == code, out + err
    assert message in out + err


def test_conditions_joined_by_and_count_what_they_say(program, tmp_path):
    write_table(PEOPLE, "t.csv")
    ended, *_ = program(
        "privatize", "t.csv", *LISTED, "--where", "age >= 30 and age < 33", "--epsilon", "50"
    )
    assert ended == 2, "one epsilon for one column"
    words = [word for word in LISTED if word not in ("--epsilon", "1")]
    program("privatize", "t.csv", *words, "--epsilon", "50", "--where", "age >= 30 and age < 33")
    data = (tmp_path / "out" / "data.csv").read_text().split()
    assert data == ["county,count", "c0,1", "c1,1", "c2,1"]
