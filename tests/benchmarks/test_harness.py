"""The benchmark harness: what is recorded, the pages, and that nothing is left out.

Of the benchmarks only small parts run here; `make bench` and `make bench-quick` run all.
"""

import importlib
import json
from pathlib import Path

import pytest

import benchmarks
from benchmarks import __main__ as suite
from benchmarks import harness, page

FOLDER = Path(benchmarks.__file__).parent


def make_result(met=True, rows=1):
    return harness.Result(
        question="How fast?",
        method="By a clock.",
        tables=[
            harness.Table("Seconds", ("n", "ours"), [(str(10 + n), "1.0") for n in range(rows)])
        ],
        targets=[harness.Target("5 times theirs", "5.0 times", met)],
        peers={"opendp": "could not be installed here"},
    )


def record(folder, name, met=True, rows=1):
    settings = harness.Settings(quick=True)
    return harness.conduct(name, lambda _: make_result(met, rows), settings, folder)


@pytest.mark.parametrize("met", [True, False])
def test_numbers_are_recorded_and_missed_targets_counted(tmp_path, capsys, met):
    assert record(tmp_path / "deep", "sums", met) is met
    numbers = json.loads((tmp_path / "deep" / "sums.json").read_text(encoding="utf-8"))
    assert numbers["benchmark"] == "sums"
    assert numbers["tables"][0]["rows"] == [["10", "1.0"]]
    assert numbers["targets"] == [
        {"promise": "5 times theirs", "measured": "5.0 times", "met": met}
    ]
    assert set(numbers["machine"]) >= {"processor", "cores", "python", "libraries", "load", "date"}
    shown = capsys.readouterr().out
    assert ("MISSED" in shown) is not met
    assert "opendp: could not be installed here" in shown


def test_pages_show_every_target_and_fold_long_tables(tmp_path):
    numbers = tmp_path / "benchmarks" / "numbers"
    (tmp_path / "docs").mkdir()
    first, second = benchmarks.SUITE[:2]
    record(numbers, second, met=False, rows=page.LONG + 1)
    record(numbers, first)
    page.write_pages(tmp_path)
    text = (tmp_path / "benchmarks" / "results.md").read_text(encoding="utf-8")
    assert (
        f"| {first} | 5 times theirs | 5.0 times | met |\n"
        f"| {second} | 5 times theirs | 5.0 times | **missed** |" in text
    )
    assert "| 10 | 1.0 |" in text
    assert "quick run" in text
    assert "Peers: opendp could not be installed here." in text
    assert text.count(f"<summary>Seconds ({page.LONG + 1} rows)</summary>") == 1
    headlines = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "## How fast?" in headlines
    assert "| 5 times theirs | 5.0 times | **missed** |" in headlines


def test_the_pages_of_this_project_are_made_from_its_numbers():
    documents = page.read_numbers(page.NUMBERS)
    results = (FOLDER / "results.md").read_text(encoding="utf-8")
    headlines = (page.ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page.render_results(documents) == results
    assert page.render_headlines(documents) == headlines
    assert len(headlines.split()) <= 1500


def test_every_module_is_in_the_suite():
    modules = {file.stem for file in FOLDER.glob("*.py")} - {"__init__", "__main__"}
    assert modules == {*benchmarks.SUITE, "harness", "page"}
    assert all(
        callable(importlib.import_module(f"benchmarks.{name}").run)
        for name in modules & set(benchmarks.SUITE)
    )
    assert len(benchmarks.SUITE) <= 9


def test_the_suite_runs_all_and_names_those_that_missed(tmp_path, monkeypatch, capsys):
    runs = []

    def conduct(name, run, settings, folder):
        runs.append((name, settings))
        return name != "design"

    monkeypatch.setattr(suite, "conduct", conduct)
    words = ["--quick", "--rows", "50", "--data", "tables", "--out", str(tmp_path)]
    assert suite.main(words) == 1
    assert [name for name, _ in runs] == list(benchmarks.SUITE)
    assert all(settings == harness.Settings(True, Path("tables"), 50) for _, settings in runs)
    assert "Missed targets: design." in capsys.readouterr().out
    assert suite.main(["sampling", "--out", str(tmp_path)]) == 0
    with pytest.raises(SystemExit):
        suite.main(["nonsense"])
