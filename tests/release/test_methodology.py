"""The methodology page and the confidential page: complete, small, self-contained."""

import base64
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli import app
from tallyveil.release import svg
from tallyveil.release.column import Histogram
from tallyveil.release.page import confidential_report
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize

COUNTS = np.array([i % 6 for i in range(300)])


def page(counts=COUNTS, **options):
    release = privatize(counts, **{"upper": 9, "epsilon": 1, **options})
    return release, release.files["METHODOLOGY.html"].decode()


def require_pictures(text):
    """Refuse pictures that are no XML."""
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)


@pytest.mark.parametrize("method", ["preserve", "geometric", "fair"])
def test_it_says_what_a_reader_needs(method):
    _, text = page(method=method)
    titles = "The guarantee|What was done|Totals|Accuracy of counts of count|Limitations|Cost"
    titles += "|Note to print under the table|Check this release|Technical record"
    for title in titles.split("|"):
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg") == (2 if method == "preserve" else 3)
    assert "tallyveil check" in text
    assert "factor of at most 2.72 (epsilon 1)" in text
    assert "at most 73.2% sure" in text


def test_the_page_of_microdata_speaks_of_records_and_cells():
    persons = pd.DataFrame({"sex": ["f", "m"] * 50})
    _, text = page(persons, count=None, upper=90, by="sex", categories=["f", "m"])
    shown = re.sub(r"<svg.*?</svg>|<[^>]*>", " ", text, flags=re.DOTALL)
    assert "Counts of records are protected" in shown
    assert "number of cells" in shown
    assert not re.search(r"of count\b|\brows\b", shown.partition("Technical record")[0])


def test_true_counts_above_every_released_one_are_marked_and_explained():
    release, text = page(method="geometric", upper=50)
    largest = int(release.table.max())
    assert largest < 50
    grey = re.findall(r'<tr class="absent"><td class="number">([\d,]+)', text)
    assert grey
    assert all(int(true) > largest for true in grey)
    assert f"true counts above {largest}, the largest released count" in text
    _, full = page(method="geometric", upper=5, epsilon=0.1)
    assert 'class="absent"' not in full


def test_the_promise_has_short_sentences_and_the_page_needs_no_network():
    _, text = page(method="geometric")
    promise = re.search(r'<p class="promise">(.*?)</p>', text)[1]
    assert all(sentence.count(",") <= 2 for sentence in promise.split(". "))
    assert "(1/" not in text
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
    assert "@import" not in text
    assert set(re.findall(r'(?:src|href)="(\w+:)', text)) == {"data:"}


def test_names_are_escaped():
    frame = pd.DataFrame({"<b>id</b>": range(300), "<script>x</script>": COUNTS})
    _, text = page(frame, count="<script>x</script>", keep="all")
    assert "<script>x" not in text
    assert "<b>id" not in text
    assert "&lt;script&gt;x" in text


def test_the_receipt_and_the_page_state_the_multiplier():
    release, text = page(neighbours="replace_one", contributions=3)
    assert release.receipt.epsilon == 6
    assert "multiplied by 6" in text
    assert "up to 3 times" in release.receipt.promise


HEAVY = np.array([0] * 180 + [i * i % 23 for i in range(100)] + [4**i for i in range(1, 10)] * 2)
EIGHT = np.array([0, 3, 17, 420, 5_100, 61_000, 350_000, 999_999])


@pytest.mark.parametrize("method", ["preserve", "geometric"])
@pytest.mark.parametrize("upper", [1, 2, 40, 300, 1500, 1_000_000])
@pytest.mark.parametrize("counts", [COUNTS, HEAVY, EIGHT], ids=["even", "heavy", "eight rows"])
def test_pages_and_receipts_stay_small_whatever_the_range(method, upper, counts):
    release, text = page(counts, upper=upper, method=method)
    assert f"0 to {upper:,}" in text
    assert len(text) < 120_000, "a page is a page"
    assert len(release.files["receipt.json"]) < 90_000
    require_pictures(text)


def test_a_wide_range_is_shown_up_to_the_largest_published_count():
    _, text = page(upper=1_000_000, method="geometric")
    picture = re.findall(r"<svg.*?</svg>", text, re.DOTALL)[1]
    labels = re.findall(r">([\d,]+)</text>", picture)
    assert max(int(label.replace(",", "")) for label in labels) < 200, labels


def test_every_row_is_in_the_histogram_whatever_its_width():
    for counts in (HEAVY, EIGHT):
        present, rows = np.unique(counts, return_counts=True)
        histogram = Histogram(tuple(present.tolist()), tuple(rows.tolist()))
        bars = svg.Bars.of(histogram, histogram.largest)
        assert sum(bars.rows) == len(counts)
        assert len(bars.rows) < 120


def confidential(counts, **options):
    release = privatize(counts, entropy=SeededNotPrivate(2), **options)
    interval = {"count": release.figures[0].accuracy.interval}
    released = np.array(release.table)
    text = confidential_report(release.receipt, {"count": counts}, {"count": released}, interval)
    figures = dict(re.findall(r'<tr><td>([^<]*)</td><td class="number">([^<]*)</td>', text))
    return released, text, figures


def test_the_confidential_page_is_marked_and_right():
    released, text, figures = confidential(COUNTS, upper=9, epsilon=1)
    assert text.count("CONFIDENTIAL") >= 4
    assert figures["mean absolute error"] == f"{np.abs(released - COUNTS).mean():.4f}"
    assert figures["lost by top-coding"].endswith("(0.0%)")
    assert 'class="mark"' in text
    require_pictures(text)


@pytest.mark.parametrize("method", ["preserve", "geometric"])
def test_the_confidential_page_compares_with_the_truth_not_with_what_was_left_of_it(method):
    released, text, figures = confidential(HEAVY, upper=20, epsilon=1, method=method)
    error = released - HEAVY
    assert figures["mean absolute error"] == f"{np.abs(error).mean():.4f}"
    assert figures["mean error"] == f"{error.mean():+.4f}".replace("-", "−")
    assert error.mean() < -100, "top-coding at 20 loses nearly everything"
    lost = np.maximum(HEAVY - 20, 0).sum()
    share = f"{lost / HEAVY.sum():.1%}"
    assert figures["lost by top-coding"] == f"{lost:,} of {HEAVY.sum():,} ({share})"
    assert f"took {share} of the true total" in text
    spread = np.abs(np.sort(HEAVY) - np.sort(released)).mean()
    assert figures["distance of the distributions (W1)"] == f"{spread:.4f}"


def test_the_confidential_page_of_many_rows_stays_small():
    many = np.minimum((np.arange(1, 60_001) ** 1.7 % 90_001).astype(int), 90_000)
    _, text, _ = confidential(many, upper=100_000, epsilon=1, method="geometric")
    assert len(text) < 2_500_000


def test_a_heatmap_holds_a_readable_png():
    picture = svg.heatmap(np.eye(3), [0, 1, 2], [0, 1, 2])
    raw = base64.b64decode(re.search(r"base64,([^\"]+)", picture)[1])
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", raw[16:24]) == (3, 3)
    body = zlib.decompress(raw[raw.index(b"IDAT") + 4 :][:-16])
    assert len(body) == 3 * (1 + 9)
    assert body[1:4] == bytes([16, 44, 82]), "the largest probability is the darkest"


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ({}, True),
        ({"strata": "state"}, True),
        ({"nested": ["deaths", "cases"], "count": ["deaths", "cases"]}, True),
        ({"count": ["cases", "deaths"], "upper": [2000, 9]}, True),
        ({"upper": 2000}, False),
        ({"hierarchy": "state"}, False),
        ({"upper": 2000, "hierarchy": "state"}, False),
    ],
)
def test_a_command_for_one_count_is_printed_exactly_where_it_answers(options, printed, tmp_path):
    keys = {"count": "cases", "keep": "state", "allow_duplicates": True, **options}
    release, text = page(GROUPED, **keys, out=tmp_path / "r")
    words = re.findall("<pre>tallyveil (interpret --released COUNT[^<]*)</pre>", text)
    assert len(words) == printed
    for command in words:
        name = command.split()[-1]
        for count in set(release.table[name]):
            asked = command.replace("COUNT", str(count)).replace(" . ", f" {tmp_path / 'r'} ")
            done = CliRunner().invoke(app.app, asked.split())
            assert done.exit_code == 0, done.output


STATES = ["N"] * 100 + ["S"] * 200
GROUPED = pd.DataFrame(
    {"state": STATES, "area": range(300), "cases": COUNTS, "deaths": COUNTS // 2}
)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"strata": "state", "keep": "area"},
        {"nested": ["deaths", "cases"], "count": ["deaths", "cases"], "keep": "all"},
        {"hierarchy": ["state", "area"]},
        {"keep": "all"},
    ],
)
def test_totals_name_a_command_exactly_where_it_answers(options, unbiased, tmp_path):
    keys = {"count": "cases", "keep": [], **options}
    release, text = page(GROUPED, **keys, unbiased=unbiased, out=tmp_path / "r")
    adding = text[text.index("<h2>Totals") : text.index("<h2>Accuracy of")]
    for column in release.receipt.columns:
        assert f"counts of {column.name}" in adding
        assert (f"{column.name}_unbiased" in adding) == unbiased
        if f"--column {column.name} --by" in adding:
            tv.estimate_total(tmp_path / "r", column=column.name, by="state")
        else:
            with pytest.raises(tv.UsageError, match=r"group by group.*release it with 'unbiased'"):
                tv.estimate_total(tmp_path / "r", column=column.name, by="state")


def test_limits_of_columns_that_add_up_speak_of_their_sums():
    release, text = page(GROUPED, count="cases", keep=[], hierarchy=["state", "area"])
    assert "The sums in separate files are not." in text
    assert "so that sums of many small ones are too large" not in text
    assert "they were measured" not in text
    assert release.receipt.columns[0].total is None
