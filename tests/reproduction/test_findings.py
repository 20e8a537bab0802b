"""Findings, verdicts and the pages made from them: each of them can fail."""

import csv

import pytest

from reproduction import check
from reproduction.experiment import Context, Experiment, Result, Table
from reproduction.run import Outcome, render_page, run_experiments
from tallyveil.notebook import Curve, Panel, panels


def draw():
    return panels([Panel("a panel", [Curve("a", [1, 2], [1.0, 2.0]), Curve("b", [1, 2], [2, 1])])])


def result(*findings, data=""):
    return Result({"data": Table(("x", "y"), [(1, 0.1 + 0.2)])}, draw, findings, data)


AGREES = check.number("one", 1.0, 1.004, within=0.005)
DIFFERS = check.number("two", 1.0, 2.0, within=0.005)
KNOWN = check.number("three", 1.0, 2.0, within=0.005, reason="A misprint.")


@pytest.mark.parametrize(
    ("finding", "agrees"),
    [
        (check.number("x", 1.0, 1.005, within=0.005), True),
        (check.number("x", 1.0, 1.0051, within=0.005), False),
        (check.number("x", 1.0, float("nan"), within=1.0), False),
        (check.numbers("x", [1, 2, 3], [1, 2, 3.1], within=0.2), True),
        (check.numbers("x", [1, 2, 3], [1, 2, 3.1], within=0.05), False),
        (check.estimate("x", 1.0, 1.044, error=0.01, rounding=0.005), True),
        (check.estimate("x", 1.0, 1.046, error=0.01, rounding=0.005), False),
        (check.estimate("x", 1.0, 1.0 + 1e-6, error=0.0), False),
    ],
)
def test_numbers_agree_up_to_their_tolerance_and_no_further(finding, agrees):
    assert finding.agrees is agrees


SKIPPED = check.skip("x", "1", "2", "Why.")
GUESSED = check.claim("x", "no", False, guess="Other data.")
EXCUSED = check.claim("x", "yes", True, "A misprint.")
NO_BETTER = check.better("x", "1", "2", False)
FOR_NOTHING = check.number("x", 1.0, 1.0, within=0.1, guess="perhaps")


@pytest.mark.parametrize(
    ("findings", "verdict", "line"),
    [([AGREES], "matches", "matches the paper"),
     ([AGREES, KNOWN], "differs", "differs from the print: A misprint."),
     ([GUESSED], "open", "differs from the print: Not established: Other data."),
     ([AGREES, KNOWN, GUESSED], "open",
      "differs from the print: A misprint. Not established: Other data."),
     ([AGREES, DIFFERS, KNOWN], "unexplained", "DIFFERS, NOT EXPLAINED: two"),
     ([NO_BETTER], "unexplained", "DIFFERS, NOT EXPLAINED: x"),
     ([EXCUSED], "unexplained", "DIFFERS, NOT EXPLAINED: x (agrees, against its stated reason)"),
     ([FOR_NOTHING], "unexplained",
      "DIFFERS, NOT EXPLAINED: x (agrees, against its stated reason)"),
     ([AGREES, SKIPPED], "matches", "matches the paper where it can be judged"),
     ([SKIPPED], "not judged", "not judged: Why.")],
)  # fmt: skip
def test_verdicts_and_why(findings, verdict, line):
    assert result(*findings).verdict == verdict
    assert result(*findings).verdict_line == line


def invent(*findings):
    return Experiment("cormode", "Figure 99", "A | title", "9", lambda context: result(*findings))


def test_run_writes_data_picture_and_verdict(tmp_path):
    (outcome,) = run_experiments([invent(AGREES, KNOWN)], Context(quick=True), tmp_path)
    assert outcome.line == "Cormode 2018 Figure 99: differs from the print: A misprint."
    folder = tmp_path / "cormode"
    with (folder / "figure-99.csv").open() as file:
        assert list(csv.reader(file)) == [["x", "y"], ["1", "0.3"]]
    assert (folder / "figure-99.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "figure-99.svg").read_text()
    assert "cormode/figure-99.png" in (tmp_path / "README.md").read_text()


def test_the_same_run_gives_the_same_pictures(tmp_path):
    for name in ("one", "two"):
        list(run_experiments([invent(AGREES)], Context(), tmp_path / name))
    for file in ("figure-99.svg", "figure-99.png"):
        first, second = (
            (tmp_path / name / "cormode" / file).read_bytes() for name in ("one", "two")
        )
        assert first == second


def test_the_page_escapes_bars_and_links_to_sections():
    text = render_page([Outcome(invent(), result(KNOWN))], quick=True, pictures={})
    assert "A \\| title" in text
    assert "[Cormode 2018 Figure 99](#cormode-2018-figure-99)" in text
    assert "### Cormode 2018 Figure 99" in text
    assert "python -m reproduction --quick" in text
    assert "| three | 1 ± 0.005 | 2 | differs: A misprint. |" in text
