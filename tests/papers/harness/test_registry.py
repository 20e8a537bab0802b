"""The registry covers every table, figure and experiment that the papers list."""

import pytest

from tallyveil.errors import ArgumentError
from tallyveil.papers.harness.bibliography import PAPERS, find_paper
from tallyveil.papers.harness.registry import list_experiments, select_experiments

# Every experiment of the four papers, by paper and the paper's own name for it.
CHECKLIST = {
    "cormode": [
        *(f"Figure {k}" for k in range(1, 19)),
        "Example 1",
        "Theorem 3",
        "Theorem 5",  # uniqueness
        "Section 6.3",  # derivability
        "Section 8",  # naive Bayes and Chow-Liu from group counts
    ],
    "croft": [*(f"Table {k}" for k in range(1, 5)), *(f"Figure {k}" for k in range(1, 10))],
    "kohli": [
        *(f"Figure {k}" for k in (1, 3, 4, 5, 6, 7, 8)),
        "Table 2",
        "Table 3",
        "Example 1",
        "Example 2",
        "Section 3",
        "Section 6",  # the other privatizers
        "Formulas",
    ],
    "gupte": [
        "Figure 1",
        "Table 1",
        "Table 2",
        "Theorem 1",
        "Lemma 3",
        "Section 2.7",
        "Appendix A",
        "Appendix B",
    ],
}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_item_of_the_checklist_is_there_once(paper):
    assert sorted(e.item for e in list_experiments() if e.paper == paper) == sorted(
        CHECKLIST[paper]
    )


def test_ids_are_unique_and_begin_with_the_paper():
    ids = [e.id for e in list_experiments()]
    assert len(set(ids)) == len(ids)
    assert all(e.id.startswith(e.paper + "-") for e in list_experiments())


def test_select_by_paper_figure_and_table():
    assert [e.id for e in select_experiments("croft", figure="9")] == ["croft-figure-9"]
    assert [e.id for e in select_experiments(figure="9")] == ["cormode-figure-9", "croft-figure-9"]
    assert [e.id for e in select_experiments("gupte", table="2")] == ["gupte-table-2"]
    assert select_experiments() == list_experiments()


def test_a_figure_is_not_taken_for_another_with_the_same_digit():
    assert [e.id for e in select_experiments("cormode", figure="1")] == ["cormode-figure-1"]


@pytest.mark.parametrize(
    "arguments", [{"paper": "004"}, {"figure": "99"}, {"table": "9"}, {"figure": "1", "table": "1"}]
)
def test_unknown_selections_are_refused(arguments):
    with pytest.raises(ArgumentError):
        select_experiments(**arguments)


def test_the_order_is_that_of_the_bibliography():
    assert list(dict.fromkeys(e.paper for e in list_experiments())) == list(PAPERS)


@pytest.mark.parametrize(
    ("old", "author"),
    [("000", "cormode"), ("001", "croft"), ("002", "kohli"), ("003", "gupte")],
)
def test_old_numbers_and_capitals_still_find_the_paper(old, author):
    assert find_paper(old) == find_paper(author.capitalize()) == author
    assert select_experiments(old) == select_experiments(author)


def test_a_paper_is_cited_by_authors_year_and_title():
    assert PAPERS["gupte"].label == "Gupte 2010"
    assert PAPERS["cormode"].citation.startswith("Cormode, Kulkarni and Srivastava (2018), Con")
