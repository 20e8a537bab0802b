"""The documents: self-contained, honest about whose eyes they are for, free of surprises."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.publish.page import svg
from tallyveil.publish.page.confidential import confidential_report
from tallyveil.sampling.entropy import SeededNotPrivate

COUNTS = np.array([i % 6 for i in range(300)])


def page(**options):
    rel = tv.privatize(COUNTS, **{"upper": 9, "epsilon": 1, **options})
    return rel, rel.files["METHODOLOGY.html"].decode()


@pytest.mark.parametrize("method", ["preserve", "geometric", "fair"])
def test_it_says_what_a_reader_needs(method):
    _, text = page(method=method)
    titles = (
        "The promise to a person",
        "What was done",
        "What it cost",
        "Accuracy of count",
        "Known limitations",
        "How to check this release",
        "Technical record",
    )
    for title in titles:
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg") == 3
    assert "tallyveil check" in text
    assert "factor of 2.72" in text


def test_it_needs_no_network():
    _, text = page()
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
    assert "@import" not in text
    assert set(re.findall(r'(?:src|href)="(\w+:)', text)) == {"data:"}


def test_every_picture_is_well_formed():
    _, text = page()
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)


def test_names_are_escaped():
    import pandas as pd

    frame = pd.DataFrame({"<b>id</b>": range(300), "<script>x</script>": COUNTS})
    rel = tv.privatize(frame, count="<script>x</script>", keep="all", upper=9, epsilon=1)
    text = rel.files["METHODOLOGY.html"].decode()
    assert "<script>x" not in text
    assert "<b>id" not in text
    assert "&lt;script&gt;x" in text


def test_the_receipt_and_the_page_tell_the_multiplier():
    rel, text = page(neighbours="change_one", contributions=3)
    assert rel.receipt.epsilon == 6
    assert "multiplied by 6" in text
    assert "up to 3 times" in rel.receipt.promise


@pytest.mark.parametrize("upper", [1, 2, 300, 1500])
def test_narrow_and_wide_ranges(upper):
    rel, text = page(upper=upper)
    assert f"0 to {upper}" in text
    assert text.count("<svg") == (3 if upper <= 1000 else 2)
    assert len(rel.files["METHODOLOGY.html"]) < 2_000_000


def test_the_confidential_page_is_marked_and_right():
    rel = tv.privatize(COUNTS, upper=9, epsilon=1, entropy=SeededNotPrivate(2))
    text = confidential_report(rel.receipt, {"count": COUNTS}, {"count": np.array(rel.table)})
    assert text.count("CONFIDENTIAL") >= 4
    error = np.abs(np.array(rel.table) - COUNTS).mean()
    assert f"{error:.4f}" in text
    assert 'class="mark"' in text
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)


def test_ticks_are_round_and_inside():
    assert svg.nice_ticks(0, 1) == [0.0, 1.0]
    assert svg.nice_ticks(50.5, -0.5) == [0.0, 20.0, 40.0]
    assert svg.nice_ticks(-5.4, 5.4) == [-5.0, 0.0, 5.0]


def test_a_heatmap_holds_a_readable_png():
    import base64
    import struct
    import zlib

    picture = svg.heatmap(np.eye(3), [0, 1, 2], [0, 1, 2])
    raw = base64.b64decode(re.search(r"base64,([^\"]+)", picture)[1])
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", raw[16:24]) == (3, 3)
    body = zlib.decompress(raw[raw.index(b"IDAT") + 4 :][:-16])
    assert len(body) == 3 * (1 + 9)
    assert body[1:4] == bytes([16, 44, 82]), "the largest probability is the darkest"
