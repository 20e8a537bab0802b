"""`tallyveil verify`: the verdict, the worst cell and the exit code."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app

QUERY = tv.Query.count(4)


def run(*arguments):
    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


def test_a_certified_mechanism_passes(tmp_path):
    certified = tv.certify(tv.geometric(QUERY, 1.0))
    path = certified.save(tmp_path / "mechanism.json")
    certified.save_certificate(tmp_path / "certificate.json")
    for file in (path, tmp_path / "certificate.json"):
        done = run(file)
        assert done.exit_code == 0
        assert "4 neighbour pairs" in done.output
    assert run(path, "--epsilon", "1").exit_code == 0
    assert run(path, "--epsilon", "0.5").exit_code == 1


def test_a_changed_byte_fails(tmp_path):
    path = tv.certify(tv.geometric(QUERY, 1.0)).save(tmp_path / "mechanism.json")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"epsilon": "1"', '"epsilon": "2"'), encoding="utf-8")
    done = run(path, "--json")
    assert done.exit_code == 1
    summary = json.loads(done.output)
    assert summary["private"] is False
    assert "changed" in summary["reason"]


@pytest.mark.parametrize("form", ["to_csv", "to_ptable"])
def test_plain_matrices_are_audited(form, tmp_path):
    path = tmp_path / "matrix.csv"
    getattr(tv.fair(QUERY, 1.0), form)(path)
    done = run(path, "--json")
    assert done.exit_code == 0
    summary = json.loads(done.output)
    assert summary["achieved_epsilon"] == pytest.approx(1.0)
    assert summary["properties"]["fair"] is True
    assert "released" in summary["worst_cell"]
    assert run(path, "--epsilon", "1").exit_code == 0
    assert run(path, "--epsilon", "0.9").exit_code == 1


def test_an_infinite_epsilon_fails_and_names_the_cell(tmp_path):
    path = tmp_path / "matrix.csv"
    tv.Mechanism(np.eye(3), tv.Query.count(2)).to_csv(path)
    done = run(path)
    assert done.exit_code == 1
    assert "NOT PRIVATE" in done.output
    assert "a zero next to a positive probability" in done.output
    assert "true 0 has 1, true 1 has 0" in done.output


def test_a_ptable_is_audited_up_to_the_counts_it_is_used_for(tmp_path):
    path = tmp_path / "ptable.csv"
    path.write_text("i,j,p\n0,0,0.5\n0,1,0.5\n1,0,0.4\n1,1,0.4\n1,2,0.2\n", encoding="utf-8")
    done = run(path, "--epsilon", "1", "--upper", "5")
    assert done.exit_code == 1
    assert "infinite" in done.output
    assert "0.4 at the claimed epsilon" in done.output
    summary = json.loads(run(path, "--epsilon", "1", "--upper", "5", "--json").output)
    assert summary["needed_delta"] == pytest.approx(0.4)
    proved = tv.certify(tv.geometric(QUERY, 1.0)).save(tmp_path / "mechanism.json")
    refused = run(proved, "--upper", "5").exception
    assert "--upper is for a CSV matrix or a ptable" in str(refused)


def test_other_json_files(tmp_path):
    path = tmp_path / "mechanism.json"
    path.write_text(tv.geometric(QUERY, 1.0).to_json(), encoding="utf-8")
    done = run(path, "--json")
    assert done.exit_code == 0
    assert json.loads(done.output)["kind"] == "audited"
    path.write_text("{", encoding="utf-8")
    assert run(path).exit_code == 1


LISTED = tv.Query.custom(range(5), range(5), [(0, 1), (1, 3)])
PAIRS = "unit whoever moves the true answer from one of a listed pair to the other"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (tv.Query.count(4), "by one step"),
        (tv.Query.mean(2, 0, 3), "by up to 3 steps"),
        (tv.Query.custom(range(3), range(3), [(0, 1), (1, 2)]), "by one step"),
        (LISTED, "2 listed pairs of 5 true answers, 2 of which are in no pair"),
        (LISTED, PAIRS),
    ],
)
def test_the_unit_is_stated(query, sentence, tmp_path):
    """Of listed pairs nobody reads that every step is protected: some answers may be in none."""
    certified = tv.certify(tv.exponential(query, 1))
    text = " ".join(run(certified.save(tmp_path / "mechanism.json")).output.split())
    assert sentence in text
    assert ("by one step" in text) <= (query is not LISTED)
