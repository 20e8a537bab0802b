"""The benchmark harness: exponents, what is kept, the page, and that nothing is left out.

The benchmarks themselves are not run here; `make bench` and `make bench-quick` do.
"""

import argparse
import importlib
import inspect
import json
import math
from pathlib import Path

import numpy as np
import pytest

import benchmarks
from benchmarks import __main__ as suite
from benchmarks import measure, page, peers, throughput

FOLDER = Path(benchmarks.__file__).parent


def result(met=True):
    return measure.Result(
        question="How fast?",
        method="By a clock.",
        tables=[measure.Table("Seconds", ("n", "ours", "theirs"), [("10", "1.0", "5.0")])],
        bars=[measure.Bar("5 times theirs", "5.0 times", met)],
        plots=[measure.Plot("Time", "n", "seconds", {"tallyveil": ([1, 10], [1.0, 9.0])})],
        exponents={"ours": 0.95},
        peers={"opendp": "could not be installed here"},
        raw=[1, 2],
    )


def given(tmp_path, quick=False):
    return argparse.Namespace(quick=quick, json=tmp_path / "deep" / "fake.json")


@pytest.mark.parametrize("power", [0.5, 1.0, 2.37])
def test_exponents_are_those_of_a_power_law(power):
    sizes = [10, 40, 160]
    assert measure.exponent(sizes, [3.0 * n**power for n in sizes]) == pytest.approx(power)


def test_only_the_three_largest_sizes_count():
    sizes, costs = [160, 10, 80, 40], [1600.0, 10**6, 800.0, 400.0]
    assert measure.exponent(sizes, costs) == pytest.approx(1.0)


def test_one_size_has_no_exponent():
    with pytest.raises(ValueError, match="two sizes"):
        measure.exponent([5, 5], [1.0, 2.0])


def test_timed_keeps_the_shortest_run():
    ticks = iter([0.0, 5.0, 10.0, 12.0, 20.0, 29.0])
    assert measure.timed(lambda: "done", 3, lambda: next(ticks)) == (2.0, "done")


@pytest.mark.parametrize("met", [True, False])
def test_what_is_kept_and_how_it_ends(tmp_path, capsys, met):
    options = given(tmp_path)
    assert measure.conduct("fake", lambda: result(met), options) == (0 if met else 1)
    kept = json.loads(options.json.read_text(encoding="utf-8"))
    assert kept["benchmark"] == "fake"
    assert kept["quick"] is False
    assert kept["tables"][0]["rows"] == [["10", "1.0", "5.0"]]
    assert kept["plots"][0]["curves"] == {"tallyveil": [[1, 10], [1.0, 9.0]]}
    assert kept["bars"] == [{"promise": "5 times theirs", "measured": "5.0 times", "met": met}]
    assert kept["exponents"] == {"ours": 0.95}
    assert set(kept["machine"]) >= {"processor", "cores", "python", "libraries", "load", "date"}
    assert kept["raw"] == [1, 2]
    shown = capsys.readouterr().out
    assert "k = 0.95" in shown
    assert ("MISSED" in shown) is not met
    assert "opendp: could not be installed here" in shown


def test_the_page_from_a_small_result(tmp_path):
    results, docs = tmp_path / "results", tmp_path / "benchmarks"
    docs.mkdir()
    (tmp_path / "docs").mkdir()
    name = benchmarks.SUITE[0]
    measure.conduct(name, result, argparse.Namespace(quick=True, json=results / f"{name}.json"))
    assert page.main([str(results), str(tmp_path), "--note", "The machine was shared."]) == 0
    text = (docs / "results.md").read_text(encoding="utf-8")
    assert "| 5 times theirs | 5.0 times | met |" in text
    assert "## How fast?" in text
    assert "| 10 | 1.0 | 5.0 |" in text
    assert "| ours | 0.95 |" in text
    assert "quick run" in text
    assert "The machine was shared." in text
    assert "Peers: opendp could not be installed here." in text
    picture = docs / "images" / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"(images/{name}.png)" in text
    headlines = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "## How fast?" in headlines
    assert "| 5 times theirs | 5.0 times | met |" in headlines


def test_missed_bars_stand_out_and_long_tables_are_folded():
    table = measure.Table("Long", ("n",), [(str(n),) for n in range(page.LONG + 1)])
    long = measure.asdict(result(met=False)) | {"tables": [measure.asdict(table)]}
    document = {
        **long,
        "benchmark": benchmarks.SUITE[0],
        "quick": False,
        "seconds": 1,
        "machine": measure.machine(),
    }
    text = page.page(page.make_parts([document], {}))
    assert "| **missed** |" in text
    assert f"<summary>Long ({page.LONG + 1} rows)</summary>" in text


def test_benchmarks_that_were_not_run_again_keep_their_part_of_the_page(tmp_path):
    docs = tmp_path / "benchmarks"
    docs.mkdir()
    (tmp_path / "docs").mkdir()
    for number, name in enumerate(benchmarks.SUITE[1::-1]):  # the second, then the first
        results = tmp_path / name
        made = argparse.Namespace(quick=True, json=results / f"{name}.json")
        measure.conduct(name, lambda number=number: result(met=number == 0), made)
        assert page.main([str(results), str(tmp_path)]) == 0
    text = (docs / "results.md").read_text(encoding="utf-8")
    first, second = benchmarks.SUITE[:2]
    assert f"| {first} | 5 times theirs | 5.0 times | **missed** |\n| {second} | 5 t" in text
    assert 0 < text.index(f"`python -m benchmarks {first}`") < text.index(f"marks {second}`")
    page.main([str(tmp_path / second), str(tmp_path)])
    assert (docs / "results.md").read_text(encoding="utf-8") == text


def test_the_page_of_this_project_is_read_whole():
    """So that no section is lost when others are measured."""
    text = (FOLDER / "results.md").read_text(encoding="utf-8")
    parts = page.read_parts(text)
    assert list(parts) == [name for name in benchmarks.SUITE if name in parts]
    assert len(parts) == text.count("\n## ")
    assert page.page(parts) == text
    short = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page.headlines(parts) == short
    assert len(short.split()) <= 1500


def test_a_folder_without_numbers_is_refused(tmp_path):
    with pytest.raises(SystemExit):
        page.main([str(tmp_path), str(tmp_path)])


def test_every_module_is_in_the_suite():
    modules = {file.stem for file in FOLDER.glob("*.py")} - {"__init__", "__main__"}
    assert modules == set(benchmarks.SUITE) | set(benchmarks.SHARED)


@pytest.mark.parametrize("name", benchmarks.SUITE)
def test_every_benchmark_has_the_same_shape(name, capsys):
    main = importlib.import_module(f"benchmarks.{name}").main
    (parameter,) = inspect.signature(main).parameters.values()
    assert parameter.default is None
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    told = capsys.readouterr().out
    assert "--quick" in told
    assert "--json" in told


def test_the_suite_counts_what_was_missed(tmp_path, monkeypatch, capsys):
    asked = []

    class Fake:
        @staticmethod
        def main(words):
            asked.append(words)
            return int("design" in words[1])

    monkeypatch.setattr(suite, "import_module", lambda _: Fake)
    assert suite.main(["--quick", "--out", str(tmp_path)]) == 1
    assert len(asked) == len(benchmarks.SUITE)
    assert all("--quick" in words for words in asked)
    assert "Missed bars: design." in capsys.readouterr().out
    assert suite.main(["sampling", "--out", str(tmp_path)]) == 0
    with pytest.raises(SystemExit):
        suite.main(["nonsense"])


def test_the_folder_of_real_tables_goes_to_who_reads_it(tmp_path, monkeypatch):
    asked = {}

    class Fake:
        @staticmethod
        def main(words):
            asked[Path(words[1]).stem] = words
            return 0

    monkeypatch.setattr(suite, "import_module", lambda _: Fake)
    assert suite.main(["--data", "tables", "--out", str(tmp_path)]) == 0
    assert {name for name, words in asked.items() if "--data" in words} == set(suite.REAL)


def test_every_promise_of_sums_is_judged_over_all_cells():
    from benchmarks import sums

    near, far = sums.Errors(1.0, 1.0, 1.0, 0.1), sums.Errors(1.0, 1.0, 9.0, 0.1)
    ways = dict.fromkeys(sums.RELEASES, far) | {"hierarchy": near, "states first": near}
    good = [sums.Cell("a", epsilon, ways) for epsilon in (0.1, 1.0, 4.0)]
    assert all(bar.met for bar in sums.judge(good))
    beaten = sums.Cell("b", 2.0, ways | {"top down": sums.Errors(1.0, 1.0, 0.5, 0.1)})
    missed = [bar for bar in sums.judge([*good, beaten]) if not bar.met]
    assert len(missed) == 2
    assert all("in 3 of 4 cells; not in b at 2 (0.50)" in bar.measured for bar in missed)
    tied = sums.Cell("c", 4.0, ways | {"default": sums.Errors(1.0, 1.0, 0.9, 0.1)})
    assert sums.judge([tied])[0].met  # within two standard errors
    worse = sums.Cell("c", 4.0, ways | {"default": sums.Errors(0.9, 0.9, 0.5, 0.1)})
    assert [bar.met for bar in sums.judge([worse])[:3]] == [False, False, False]


def test_large_hierarchies_are_timed_with_their_distribution_too(monkeypatch):
    from benchmarks import sum_scale

    monkeypatch.setattr(sum_scale, "SIZES", ((300, [3, 20], 60.0), (500, [4, 30], None)))
    shown, bars = sum_scale.measure_scale(quick=False)
    assert [(row[0], row[2].split()[0]) for row in shown.rows] == [
        ("300", "estimate"), ("300", "whole,"), ("500", "estimate"), ("500", "whole,"),
    ]  # fmt: skip
    assert [bar.promise for bar in bars] == [
        "300 rows under 60 s and 2 GB", "300 rows by default under 60 s and 2 GB",
    ]  # fmt: skip
    assert all(bar.met for bar in bars)
    monkeypatch.setattr(sum_scale, "adds_up", lambda tree, levels: False)
    assert not any(bar.met for bar in sum_scale.measure_scale(quick=True)[1])


def test_the_least_share_of_states_is_what_the_formula_says():
    from benchmarks.sum_bounds import find_least_share

    counts, states = np.arange(400) % 5, np.arange(400) % 4
    easy = find_least_share(counts, states, 4, 1.0, 100.0)
    hard = find_least_share(counts, states, 4, 1.0, 4.0)
    assert easy.share == 0
    assert 0 < hard.share < 0.5
    assert easy.rows < hard.rows
    assert find_least_share(counts, states, 4, 1.0, 0.01).rows == np.inf


def test_a_peer_that_is_not_there_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "HOME", tmp_path)
    absent = peers.peer("qif", install=False)
    assert absent.run("print(1)") is None
    assert "not installed" in absent.state


def test_a_peer_answers_in_numbers_or_not_at_all():
    import sys

    here = peers.Peer("python", Path(sys.executable), "this one")
    assert here.run("import sys; print('noise'); print(1.5, sys.argv[1])", "inf") == [1.5, math.inf]
    assert here.run("raise SystemExit(1)") is None


@pytest.mark.parametrize("kind", [*throughput.BESIDE, *throughput.BESIDE.values()])
def test_the_scripts_of_throughput_run(kind, tmp_path):
    """They are text to every other check, and use the program's own functions."""
    found = throughput.measured(kind, 300, tmp_path)
    assert found["rows"] == 300
    assert min(found["seconds"], found["processor"], found["peak_bytes"]) > 0
