"""Every table, figure and experiment that the papers list is there, and the command runs it."""

import pytest

from reproduction import check, run
from reproduction.__main__ import main
from reproduction.experiment import Experiment, Result, Table
from reproduction.papers import PAPERS
from reproduction.run import list_experiments, select_experiments
from tallyveil.notebook import new_figure

# Every experiment of the four papers, by paper and the paper's own name for it.
CHECKLIST = {
    "cormode": [
        *(f"Figure {k}" for k in range(1, 19)), "Example 1", "Theorem 3", "Theorem 5",
        "Section 6.3", "Section 8",
    ],
    "croft": [*(f"Table {k}" for k in range(1, 5)), *(f"Figure {k}" for k in range(1, 10))],
    "kohli": [
        *(f"Figure {k}" for k in (1, 3, 4, 5, 6, 7, 8)), "Table 2", "Table 3", "Example 1",
        "Example 2", "Section 3", "Section 6", "Formulas",
    ],
    "gupte": [
        "Figure 1", "Table 1", "Table 2", "Theorem 1", "Lemma 3", "Section 2.7", "Appendix A",
        "Appendix B",
    ],
}  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
def test_every_item_of_the_checklist_is_there_once(paper):
    assert sorted(e.item for e in list_experiments() if e.paper == paper) == sorted(
        CHECKLIST[paper]
    )


def test_select_by_paper_and_item():
    assert [e.id for e in select_experiments("Croft", "figure 9")] == ["croft-figure-9"]
    both = [e.id for e in select_experiments(item="Figure 9")]
    assert both == ["cormode-figure-9", "croft-figure-9"]
    assert [e.id for e in select_experiments("cormode", "Figure 1")] == ["cormode-figure-1"]
    assert select_experiments() == list_experiments()


@pytest.mark.parametrize(
    "words", [["--paper", "nobody"], ["--item", "Figure 99"], ["--data", "no-such-folder"]]
)
def test_unknown_selections_are_refused(words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2


def test_the_command_lists_experiments_and_writes_one_figure(tmp_path, capsys):
    out = tmp_path / "results"
    words = ["--paper", "cormode", "--item", "Figure 7", "--quick", "--out", str(out)]
    assert main([*words, "--page", str(tmp_path / "page.md")]) == 0
    assert "Cormode 2018 Figure 7: differs" in capsys.readouterr().out
    written = sorted(path.name for path in (out / "cormode").iterdir())
    assert written == ["figure-7.csv", "figure-7.png", "figure-7.svg"]
    assert "### Cormode 2018 Figure 7" in (tmp_path / "page.md").read_text()
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(list_experiments())


@pytest.mark.parametrize(("got", "code"), [(1.0, 0), (2.0, 1)])
def test_an_unexplained_difference_is_exit_code_1(tmp_path, monkeypatch, got, code):
    table = Table(("x",), [(1,)])
    result = Result({"data": table}, new_figure, (check.number("claim", 1.0, got, 0.1),))
    invented = Experiment("cormode", "Figure 99", "t", "1", lambda context: result)
    monkeypatch.setattr(run, "list_experiments", lambda: (invented,))
    assert main(["--out", str(tmp_path)]) == code
