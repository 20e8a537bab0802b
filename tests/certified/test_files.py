"""The one reader of mechanism files."""

import json

import pytest

import tallyveil as tv
from tallyveil.certified.files import read_mechanism

Q = tv.Query.count(4)
M = tv.geometric(Q, "1/2")
SECRET = "county,cases\nAdams,31337\nBoone,4\n"


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_every_kind_of_file(tmp_path):
    certified, plain = tmp_path / "mechanism.json", tmp_path / "plain.JSON"
    tv.certify(M).save(certified)
    tv.certify(M).save_certificate(tmp_path / "certificate.json")
    write(plain, M.to_json())
    M.to_csv(tmp_path / "matrix.csv")
    M.to_ptable(tmp_path / "ptable.txt")
    tv.certify_geometric(Q, 1).save(tmp_path / "wide.json")
    assert isinstance(read_mechanism(certified), tv.CertifiedMechanism)
    assert read_mechanism(tmp_path) == read_mechanism(certified)  # a folder
    assert read_mechanism(tmp_path / "certificate.json") == read_mechanism(certified)
    assert isinstance(read_mechanism(str(tmp_path / "wide.json")), tv.CertifiedGeometric)
    assert read_mechanism(plain) == M == read_mechanism(plain, tv.Query.maximum(0, 4), 3)
    for name in ("matrix.csv", "ptable.txt"):
        assert read_mechanism(tmp_path / name, Q, "1/2") == M
        found = read_mechanism(tmp_path / name)
        assert found.query == Q
        assert found.epsilon is None


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [("cases.csv", SECRET, "numbers only"),
     ("cases.csv", "31337,4\n7,2\n", "rows that sum to 1"),
     ("cases.csv", "31337\n", "shape|sum to 1|two"),
     ("cases.csv", "1,2\n31337\n", "equal length"),
     ("cases.csv", "i;j;p\n0;0;Adams 31337\n", "numbers only"),
     ("cases.csv", "", "at least one line"),
     ("cases.json", SECRET, "JSON document"),
     ("cases.json", "[31337]", "formats"),
     ("cases.json", '{"format": "Adams 31337"}', "formats"),
     ("cases.json", '{"format": "tallyveil-mechanism", "version": 31337}', "version 1"),
     ("cases.json", '{"format": "tallyveil-mechanism", "version": 1, "x": 31337}', "fields"),
     *(("cases.json", json.dumps({**json.loads(M.to_json()), **wrong}), "cases")
       for wrong in ({"query": 31337}, {"matrix": "31337"}, {"epsilon": []}, {"query": {}}))],
)  # fmt: skip
def test_errors_name_the_file_and_the_rule_and_never_the_content(tmp_path, name, text, rule):
    with pytest.raises(tv.MechanismError, match=rule) as caught:
        read_mechanism(write(tmp_path / name, text))
    assert caught.match(name)
    assert "31337" not in str(caught.value)
    assert "Adams" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_bytes_that_are_no_text_and_paths_that_are_none(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe1,2\n")
    with pytest.raises(tv.MechanismError, match="UTF-8"):
        read_mechanism(tmp_path / "x.csv")
    for wrong in (None, 5):
        with pytest.raises(tv.ArgumentError, match="be a path"):
            read_mechanism(wrong)
    with pytest.raises(FileNotFoundError):
        read_mechanism(tmp_path / "missing.json")


def test_a_forged_certified_file_is_refused(tmp_path):
    file = tmp_path / "mechanism.json"
    tv.certify(M).save(file)
    write(file, file.read_text().replace('"upper": 4', '"upper": 5'))
    with pytest.raises(tv.VerificationError, match=r"mechanism\.json"):
        read_mechanism(file)


def test_bad_arguments_are_not_blamed_on_the_file(tmp_path):
    M.to_csv(tmp_path / "m.csv")
    with pytest.raises(tv.QueryError, match="'query' must"):
        read_mechanism(tmp_path / "m.csv", query=4)
    with pytest.raises(tv.ArgumentError, match="'epsilon' must"):
        read_mechanism(tmp_path / "m.csv", epsilon=-1)
