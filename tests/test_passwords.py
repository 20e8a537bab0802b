"""Passwords are hidden in every text, and addresses in the place of files are not quoted."""

import copy
import pickle
import time
from pathlib import Path

import pytest

import tallyveil as tv
from tallyveil.budget.entries import Debit, Stage
from tallyveil.budget.postgresql import is_unknown_address
from tallyveil.errors import ArgumentError, TallyveilError, UsageError
from tallyveil.passwords import hide_in_command, hide_passwords
from tallyveil.release.request_file import read_request, write_request
from tallyveil.tables.read import read_table
from tallyveil.tables.source import Source
from tests.asking import make_options, privatize

SECRET = "hunter2secret"
ADDRESSES = [
    f"postgresql://owner:{SECRET}@h/db", f"postgresql+psycopg://owner:{SECRET}@h/db",
    f"mysql://owner:{SECRET}@h/db", f"jdbc:postgresql://h/db?user=a&password={SECRET}",
    f"host=h password={SECRET}", f"password = '{SECRET} and more' host=h",
    f"Server=h;Uid=a;Pwd={SECRET}", f"owner:{SECRET}@h/db",
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [*ADDRESSES[:-1],
     f"SELECT * FROM dblink('host=h password={SECRET}', 'SELECT 1') AS t(a int)",
     f"SELECT * FROM dblink('host=h PASSWORD=''two {SECRET}''', 'SELECT 1')",
     f"SELECT * FROM dblink('host=h password=\\'two {SECRET}\\'', 'SELECT 1')",
     f"sslpassword={SECRET}", f"https://h/x?a=1&api_key={SECRET}&b=2",
     f"motherduck_token={SECRET}", f"postgresql:/own er:{SECRET}@h/db", f"password=a\\ {SECRET}",
     f"password='unended {SECRET}", f"Pwd={{two {SECRET}}};Server=h", f"password=a&{SECRET}",
     f"postgresql://db/budgets?pass%77ord={SECRET}",
     f"postgresql://db/budgets?user=ann&%70assword={SECRET}",
     f"postgresql://db/budgets?sslpass%77ord={SECRET}&port=5432"],
)  # fmt: skip
def test_no_password_stays_in_a_text_or_a_command(text):
    from shlex import join

    assert SECRET not in hide_passwords(text)
    assert "***" in hide_passwords(text)
    kept = hide_in_command(
        join(["tallyveil", "privatize", "--set", f"source.sql={text}", "--out", "o"])
    )
    assert SECRET not in kept
    assert kept.endswith("--out o")
    assert SECRET not in str(TallyveilError(f"There is no file {text!r}."))
    assert SECRET not in str(UsageError(f"There is no file {text!r}."))
    assert SECRET not in str(ArgumentError("file", "exist", text))
    assert SECRET not in str(ArgumentError("file", "exist", text + 200 * "x"))


@pytest.mark.parametrize(
    "text",
    ["tallyveil privatize 'a=b.csv' --where 'age >= 65' --out o",
     "tallyveil privatize data/year=2020/part.csv",
     "tallyveil ledger show --ledger 'postgresql://ann@db:5432/budgets?port=5432&sslmode=require'",
     "'a' must be given: write postgresql://USER@HOST/NAME or duckdb:FILE.",
     "See https://example.org/page for more: ann",
     "an 'unended command"],
)  # fmt: skip
def test_other_texts_stay(text):
    assert hide_passwords(text) == text
    assert hide_in_command(text) == text


@pytest.mark.parametrize("piece", ["ab://c:", "a", "password=", "password ", "x=' ", "''", "a:/"])
def test_long_texts_take_no_long_time(piece):
    began = time.process_time()
    hide_passwords("@" + piece * (200_000 // len(piece)))
    hide_passwords(piece * (200_000 // len(piece)) + "@")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("kind", [str, Path])
def test_an_address_in_the_place_of_a_file_is_refused_and_not_quoted(address, kind, tmp_path):
    with pytest.raises(UsageError) as refused:
        read_table(kind(address))
    assert SECRET not in str(refused.value)
    words = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
    with pytest.raises(UsageError) as refused:
        privatize(kind(address), **words, out=tmp_path / "out")
    assert SECRET not in str(refused.value)
    if kind is Path or not address.startswith("postgresql://"):
        assert "Got an address" in str(refused.value)
        with pytest.raises(tv.LedgerError, match="write postgresql://USER@HOST") as no_ledger:
            tv.Ledger.create(kind(address))
        assert SECRET not in str(no_ledger.value)
        with pytest.raises(UsageError, match="query"):
            read_table(kind(address), Source(sql="SELECT 1"))


@pytest.mark.parametrize("name", ["a=b.csv", "host=1.csv", "user=a host=b.csv", "password=x.csv"])
def test_files_of_such_names_are_read(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("ward,cases\nA,1\nB,2\n")
    assert read_table(name).rows == 2
    assert read_table(Path(name)).rows == 2
    assert not is_unknown_address(name)


def test_a_file_that_is_missing_is_still_named():
    with pytest.raises(tv.TableError, match=r"There is no file 'a=b\.csv'"):
        read_table("a=b.csv")


def test_an_old_ledger_of_such_a_name_opens_and_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tv.Ledger.create("budget.db").open("v", 1)
    Path("budget.db").rename(f"host=h password={SECRET}")
    book = tv.Ledger(f"host=h password={SECRET}")
    assert book.account("v").epsilon == 1
    assert SECRET not in book.store.name


def test_a_debit_keeps_no_password_and_an_old_one_is_not_shown(tmp_path):
    from fractions import Fraction

    command = f"tallyveil privatize --set source.sql=\"SELECT dblink('password={SECRET}')\" --out o"
    debit = Debit(("n",), (Stage("draw", Fraction(1)),), command=command)
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("v", 1)
    entry = book.debit("v", debit)
    assert SECRET not in entry.body["command"]
    assert SECRET.encode() not in (tmp_path / "budget.db").read_bytes()
    entry.body["command"] = command  # as an earlier program kept it
    assert SECRET not in str(entry.to_dict())


@pytest.mark.parametrize("address", ADDRESSES)
def test_request_files_hold_no_password_and_quote_none(address, tmp_path):
    request = tmp_path / "request.toml"
    request.write_text(f'table = "{address}"\n'.replace("\\", "\\\\"))
    with pytest.raises(UsageError) as refused:
        read_table(read_request(request)[0])
    assert SECRET not in str(refused.value)
    request.write_text(f'ledger = "{address}"\n')
    ledger = read_request(request)[1]["ledger"]
    with pytest.raises(tv.TallyveilError) as refused:
        tv.Ledger.create(ledger)
    assert SECRET not in str(refused.value)
    assert list(tmp_path.iterdir()) == [request]
    query = f"SELECT dblink('password={SECRET}')"
    for table, keys in ((None, {"ledger": address}), (None, {"sql": query}), (address, {})):
        with pytest.raises(tv.TallyveilError, match="PGPASSWORD") as refused:
            write_request(make_options(count="cases", **keys), table, tmp_path)
        assert SECRET not in str(refused.value)


def test_a_ledger_with_a_password_is_not_pickled():
    book = tv.Ledger(f"postgresql://ann:{SECRET}@db.invalid/budgets")
    with pytest.raises(tv.LedgerError, match=r"not pickled.*PGPASSWORD"):
        pickle.dumps(book)
    assert copy.deepcopy(book).store is book.store
    bare = tv.Ledger("postgresql://ann@db.invalid/budgets")
    assert pickle.loads(pickle.dumps(bare)).store.name == bare.store.name
