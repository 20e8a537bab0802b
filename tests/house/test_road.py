"""One count from CSV to folder: the hops of docs/architecture.md are those of a running release."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.release.methods.base import Plan

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
PACKAGE = Path(tv.__file__).parent
ROWS = 400


def read_hops() -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("| Where | What happens to the counts |")
    lines = text[start:].split("\n\n")[0].splitlines()[2:]
    return [re.match(r"\| `([\w.:]+)`", line)[1] for line in lines]


@pytest.fixture
def words(tmp_path):
    table = tmp_path / "cases.csv"
    table.write_text("county,cases\n" + "".join(f"c{i},{i % 12}\n" for i in range(ROWS)))
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 2)
    options = f"--keep all --upper 9 --epsilon 1 --ledger {book.store.path} --dataset cases"
    return f"privatize {table} --count cases {options} --out {tmp_path / 'out'}".split()


def trace(words) -> list[str]:
    """Every function of ours in the order of its first call."""
    seen: dict[str, None] = {}

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            path = Path(frame.f_code.co_filename).relative_to(PACKAGE).with_suffix("")
            seen.setdefault(f"{'.'.join(path.parts)}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        ran = CliRunner().invoke(app, words)
    finally:
        sys.setprofile(None)
    assert ran.exit_code == 0, ran.output
    return list(seen)


def test_the_page_walks_the_road_as_it_is(words):
    called = trace(words)
    hops = read_hops()
    assert len(hops) > 15
    missing = [hop for hop in hops if hop not in called]
    assert missing == []
    places = [called.index(hop) for hop in hops]
    assert places == sorted(places), "the page names the hops in another order"


def test_a_count_is_validated_clamped_and_histogrammed_once(words, monkeypatch):
    """No second look at true counts: one reading, one clamp, one histogram; one of the draws."""
    true, binned = [], []
    real = Plan.draw

    def draw(self, counts, entropy):
        true.append(counts)
        draws = real(self, counts, entropy)
        true.append(draws.private.values)
        return draws

    honest = np.bincount
    monkeypatch.setattr(Plan, "draw", draw)
    monkeypatch.setattr(np, "bincount", lambda x, *a, **k: binned.append(x) or honest(x, *a, **k))
    called = trace(words)
    counts, draws = true
    assert counts.dtype == np.uint8
    assert counts.max() == 9
    assert sum(x is counts or x.base is counts for x in binned) == 1
    assert sum(x is draws or x.base is draws for x in binned) == 1
    assert sum(len(x) == ROWS for x in binned) == 2
    assert "sampling.positions:input_positions" not in called
