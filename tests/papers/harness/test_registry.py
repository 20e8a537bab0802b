"""The registry covers every table, figure and experiment that the papers list."""

import pytest

from tallyveil.errors import ArgumentError
from tallyveil.papers.harness.registry import PAPERS, experiments, select

# Every experiment of the four papers, by paper and the paper's own name for it.
CHECKLIST = {
    "000": [
        *(f"Figure {k}" for k in range(1, 19)),
        "Example 1",
        "Theorem 3",
        "Section 8",  # naive Bayes and Chow-Liu from group counts
    ],
    "001": [*(f"Table {k}" for k in range(1, 5)), *(f"Figure {k}" for k in range(1, 10))],
    "002": [
        *(f"Figure {k}" for k in (3, 4, 5, 6, 7, 8)),
        "Table 2",
        "Table 3",
        "Example 1",
        "Example 2",
        "Section 3",
        "Formulas",
    ],
    "003": [
        "Figure 1", "Table 1", "Table 2", "Theorem 1", "Lemma 3", "Section 2.7", "Appendix A",
        "Appendix B",
    ],
}  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
def test_every_item_of_the_checklist_is_there_once(paper):
    assert sorted(e.item for e in experiments() if e.paper == paper) == sorted(CHECKLIST[paper])


def test_ids_are_unique_and_begin_with_the_paper():
    ids = [e.id for e in experiments()]
    assert len(set(ids)) == len(ids)
    assert all(e.id.startswith(e.paper + "-") for e in experiments())


def test_select_by_paper_figure_and_table():
    assert [e.id for e in select("001", figure="9")] == ["001-figure-9"]
    assert [e.id for e in select(figure="9")] == ["000-figure-9", "001-figure-9"]
    assert [e.id for e in select("003", table="2")] == ["003-table-2"]
    assert select() == experiments()


def test_a_figure_is_not_taken_for_another_with_the_same_digit():
    assert [e.id for e in select("000", figure="1")] == ["000-figure-1"]


@pytest.mark.parametrize(
    "arguments", [{"paper": "004"}, {"figure": "99"}, {"table": "9"}, {"figure": "1", "table": "1"}]
)
def test_unknown_selections_are_refused(arguments):
    with pytest.raises(ArgumentError):
        select(**arguments)
