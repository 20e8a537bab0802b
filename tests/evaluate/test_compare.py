"""tv.compare: the figures are those of the mechanisms, in every form it is given out."""

import csv
import io

import numpy as np
import pytest
from rich.console import Console

import tallyveil as tv

Q = tv.Query.count(8)
GEOMETRIC, FAIR = tv.geometric(Q, 0.5), tv.fair(Q, 0.5)


def test_figures_are_those_of_the_mechanism():
    rising = np.arange(1, 10)
    view = tv.compare({"g": GEOMETRIC}, ["squared"], {"rising": rising}, confidence=0.9)
    (row,) = view.rows
    width = np.diff(GEOMETRIC.interval(0.9), axis=1)[:, 0]
    assert row.expected_loss == GEOMETRIC.expected_loss("squared", rising)
    assert row.worst_loss == GEOMETRIC.worst_loss("squared")
    assert row.response_loss == GEOMETRIC.bayes_loss("squared", rising)
    assert abs(row.largest_bias) == pytest.approx(np.abs(GEOMETRIC.bias()).max())
    assert row.error_probability == GEOMETRIC.error_probability(rising)
    assert row.interval_width == pytest.approx(rising @ width / rising.sum())
    assert row.realised_epsilon == pytest.approx(0.5)
    assert set(row.properties) >= {"row_monotone", "symmetric"}
    assert (row.mechanism, row.loss, row.prior) == ("g", "squared", "rising")


def test_a_row_for_every_mechanism_loss_and_prior():
    view = tv.compare(
        [GEOMETRIC, tv.papers.variant2(Q, 0.5)],
        ["absolute", ("beyond", 1)],
        [None, ("binomial", 0.3)],
    )
    assert len(view.rows) == 8
    assert {row.prior for row in view.rows} == {"uniform", "binomial 0.3"}
    assert {row.loss for row in view.rows} == {"absolute", "beyond 1"}
    assert all(row.response_loss <= row.expected_loss + 1e-12 for row in view.rows)


def test_names_are_told_apart():
    both = [GEOMETRIC, tv.geometric(Q, 1.0), tv.geometric(Q, 1.0)]
    names = [row.mechanism for row in tv.compare(both).rows]
    assert names == ["geometric, ε = 0.5", "geometric, ε = 1", "geometric, ε = 1 (2)"]


def test_csv_holds_the_rows(tmp_path):
    broken = tv.Mechanism(np.eye(9), Q, 0.5, name="truth")
    text = tv.compare([GEOMETRIC, broken]).to_csv(tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["mechanism"] for row in rows] == ["geometric", "truth"]
    assert rows[1]["realised_epsilon"] == "inf"
    assert float(rows[0]["expected_loss"]) == GEOMETRIC.expected_loss()


def test_the_table_fits_a_terminal():
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(tv.compare([GEOMETRIC, FAIR], ["absolute", "zero_one"]).table())
    text = console.export_text()
    assert "absolute loss, uniform prior" in text
    assert "RM CM F S" in text
    assert max(map(len, text.splitlines())) <= 80


def test_pictures(tmp_path):
    levels = [maker(Q, e) for e in (0.2, 1.0) for maker in (tv.geometric, tv.fair)]
    view = tv.compare(levels)
    figure = view.plot(tmp_path / "plot.png")
    assert [axes.get_title() for axes in figure.axes] == ["absolute loss", "bias"]
    trade = view.tradeoff(tmp_path / "trade.png")
    assert [text.get_text() for text in trade.legends[0].get_texts()] == ["geometric", "fair"]
    assert (tmp_path / "plot.png").stat().st_size > 5000
    assert (tmp_path / "trade.png").stat().st_size > 5000


def test_rectangular_queries_and_tables_of_losses():
    wide = tv.Query.count(8, extend=2)
    found = tv.design(wide, 0.5)
    rows = tv.compare([found], {"table": np.ones(wide.shape), "absolute": "absolute"}).rows
    assert np.isnan(rows[0].response_loss)
    assert rows[1].response_loss <= rows[1].expected_loss + 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "at least one mechanism"),
        ((["geometric"],), "a design or a certified mechanism"),
        (([GEOMETRIC], []), "at least one loss"),
        (([GEOMETRIC], ["absolute"], []), "at least one prior"),
        (([GEOMETRIC, tv.geometric(tv.Query.count(3), 1)],), "same true answers"),
    ],
)
def test_bad_input_is_explained(arguments, message):
    with pytest.raises(tv.ArgumentError, match=message):
        tv.compare(*arguments)
