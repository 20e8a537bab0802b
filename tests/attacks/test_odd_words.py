"""Names, labels, lists and amounts that are not what they seem: refused in words, unpaid."""

import re
import time

import numpy as np
import pandas as pd
import pytest

from tallyveil.check.package import check_package
from tallyveil.cli.design import parse_distribution
from tallyveil.errors import ArgumentError, MissingExtraError, TableError
from tallyveil.release.request_file import read_request
from tests.asking import privatize

HALF = "a\ud800"
"""Half of a character, which pandas holds and no file can."""

FRAME = pd.DataFrame({"g": ["a", "b"], "c": [1, 2]})
COUNTED = {"count": "c", "keep": "all", "upper": 5, "epsilon": 1}


@pytest.mark.parametrize(
    "categories",
    [5, True, object(), b"ab", {"a", "b"}, np.array(5), {"g": 5}, {"g": {"a", "b"}}, [[5, 6]], []],
    ids=lambda one: type(one).__name__,
)
def test_what_is_no_list_of_categories_is_refused(categories, paid):
    with pytest.raises(ArgumentError, match="'categories' must"):
        privatize(FRAME[["g"]], by="g", categories=categories, upper=5, epsilon=1, **paid)


@pytest.mark.parametrize("categories", [[HALF, "b"], f"{HALF},b", {"g": [HALF]}])
def test_a_category_that_cannot_be_written_is_refused(categories, paid):
    with pytest.raises(ArgumentError, match="'categories' has a character"):
        privatize(FRAME[["g"]], by="g", categories=categories, upper=5, epsilon=1, **paid)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("place", ["cell", "category", "column", "index"])
def test_a_kept_word_that_cannot_be_written_is_refused(place, form, paid):
    """Half a character in a message would stop whoever prints it."""
    frame = {
        "cell": lambda: FRAME.assign(g=[HALF, "b"]),
        "category": lambda: FRAME.assign(g=pd.Categorical([HALF, "b"])),
        "column": lambda: FRAME.rename(columns={"g": HALF}),
        "index": lambda: FRAME.set_index(pd.Index([HALF, "y"], name="k")),
    }[place]()
    with pytest.raises(TableError, match="has a character that cannot be written") as refused:
        privatize(frame, **COUNTED, format=form, **paid)
    assert str(refused.value).isascii()


def test_a_category_outside_the_encoding_of_the_table_is_released(tmp_path):
    """What is released is UTF-8, whatever the table is written in."""
    file = tmp_path / "people.csv"
    file.write_bytes("g\n\xe9\n".encode("latin-1"))
    options = {"by": "g", "categories": ["\xe9", "\u0436"], "upper": 5, "epsilon": 1}
    privatize(file, **options, encoding="latin-1", out=tmp_path / "out")
    assert (
        (tmp_path / "out" / "data.csv")
        .read_text(encoding="utf-8")
        .splitlines()[1]
        .startswith("\xe9,")
    )
    assert all(finding.ok for finding in check_package(tmp_path / "out"))


@pytest.mark.parametrize("twin", ["c\u200b", " c", "\u2063c", "c\u3164", "c\ufe0f"])
def test_columns_whose_names_look_the_same_are_refused(twin, paid):
    with pytest.raises(TableError, match="characters that nobody sees"):
        privatize(FRAME.assign(**{twin: [1, 2]}), **COUNTED, **paid)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("c_unbiased\u200b", {"count": "c", "keep": "all", "unbiased": True}),
        ("count\u200b", {"by": "count\u200b", "categories": ["a", "b"]}),
    ],
)
def test_a_column_that_looks_like_one_that_is_made_is_refused(name, options, paid):
    frame = FRAME.assign(**{name: ["a", "b"]})
    with pytest.raises(TableError, match="characters that nobody sees"):
        privatize(frame, **options, upper=5, epsilon=1, **paid)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"c_low": ["x", "y"]}, {"hierarchy": ["c_low", "g"]}, "have a column 'c_low' already"),
        ({"c_low": [1, 2]}, {"count": ["c", "c_low"], "hierarchy": "g"}, "column 'c_low' already"),
        ({"total": ["x", "y"]}, {"hierarchy": ["total", "g"]}, "not name a column 'total'"),
    ],
)
def test_sums_with_two_columns_of_one_name_are_refused(columns, options, words, paid):
    with pytest.raises(ArgumentError, match=words):
        privatize(FRAME.assign(**columns), **{**COUNTED, **options}, **paid)


@pytest.mark.parametrize("digits", [400, 4500])
@pytest.mark.parametrize("name", ["priority", "delta", "epsilon"])
def test_an_amount_that_no_receipt_can_hold_is_refused(name, digits, paid):
    with pytest.raises(ArgumentError, match=f"'{name}' must be .*at most 300 digits"):
        privatize(FRAME, **{**COUNTED, name: "0." + "1" * digits}, **paid)


def test_the_longest_epsilon_gives_a_release_that_checks(tmp_path):
    folder = tmp_path / "out"
    epsilon = "0." + "1" * 299
    privatize(pd.concat([FRAME] * 40), **{**COUNTED, "epsilon": epsilon}, contributions=7,
                 neighbours="replace_one", method="preserve", allow_duplicates=True,
                 out=folder)  # fmt: skip
    assert all(finding.ok for finding in check_package(folder))


def test_more_columns_than_a_receipt_may_have_are_refused(paid):
    names = [f"c{at}" for at in range(1001)]
    frame = pd.DataFrame(1, index=range(3), columns=names)
    with pytest.raises(ArgumentError, match="'count' must name at most 1,000"):
        privatize(frame, count=names, upper=5, epsilon="0.001", **paid)
    options = {"count": "c0", "hierarchy": names[1:42], "upper": 5, "epsilon": 1}
    with pytest.raises(ArgumentError, match="'hierarchy' must have at most 40"):
        privatize(frame, **options, **paid)


def test_a_hierarchy_of_many_levels_checks(tmp_path):
    rows = np.arange(2**12)
    levels = {f"l{at}": [f"{at}-{row >> (12 - at)}" for row in rows] for at in range(1, 12)}
    frame = pd.DataFrame({**levels, "c": rows % 5})
    options = {"weights": [1] + [1000.0] * 12, "allow_duplicates": True}
    privatize(frame, count="c", hierarchy=list(levels), upper=5, epsilon=1, **options,
                 out=tmp_path / "out")  # fmt: skip
    findings = check_package(tmp_path / "out")
    assert all(finding.ok for finding in findings), findings


@pytest.mark.parametrize("options", [
    {"hierarchy": ["g", "k"], "upper": 50},
    {"keep": "all", "upper": 50, "method": "preserve"},
    {"keep": "all", "upper": 50, "method": "geometric"},
], ids=["hierarchy", "preserve", "geometric"])  # fmt: skip
def test_a_tiny_epsilon_takes_seconds(options, tmp_path):
    """Nothing that is worked out after the debit grows with 1 / epsilon."""
    keys = {"g": [f"s{at % 5}" for at in range(100)], "k": [f"k{at}" for at in range(100)]}
    frame = pd.DataFrame({**keys, "c": np.arange(100) % 7})
    start = time.process_time()
    privatize(frame, count="c", epsilon="1e-6", **options, out=tmp_path / "out")
    assert time.process_time() - start < 15  # 1 to 3 s measured; 41 s and more before
    assert all(finding.ok for finding in check_package(tmp_path / "out"))


def test_a_missing_library_sends_nobody_to_a_name_that_anybody_may_register():
    message = str(MissingExtraError("psycopg", "postgresql"))
    assert "psycopg" in message
    assert 'pip install -e ".[postgresql]"' in message
    assert not re.search(r"install '?(tallyveil|psycopg)", message)


def test_the_recipient_is_told_of_formulas(tmp_path):
    frame = FRAME.assign(g=["=HYPERLINK(1)", "-3"])
    with pytest.warns(UserWarning, match="Cells of 'g' begin with"):
        privatize(frame, **COUNTED, out=tmp_path / "out")
    findings = check_package(tmp_path / "out")
    assert all(finding.ok for finding in findings)
    assert any("a spreadsheet would run cells" in finding.detail for finding in findings)


def test_a_list_that_is_too_long_for_the_name_of_a_file_is_a_list(tmp_path):
    labels = [f"area {at}" for at in range(100)]
    frame = pd.DataFrame({"g": labels})
    release = privatize(frame, by="g", categories=",".join(labels), upper=5, epsilon=1)
    assert list(release.table["g"]) == labels
    for text in ("/" + "x" * 5000, "/" + "x" * 300):
        with pytest.raises(ArgumentError, match="be a file that exists, or values"):
            privatize(frame, by="g", categories=text, upper=5, epsilon=1)
    with pytest.raises(ArgumentError, match="'method' must be one of"):
        privatize(frame, by="g", categories=labels, upper=5, epsilon=1, method="x" * 5000)
    assert parse_distribution(",".join(["1"] * 500), "prior") == [1.0] * 500
    request = tmp_path / "request.toml"
    request.write_text(f'by = "g"\ncategories = "{",".join(labels)}"\n')
    assert read_request(request)[1]["categories"] == ",".join(labels)


def test_a_folder_may_have_a_comma_in_its_name(tmp_path):
    folder = tmp_path / "north, south"
    folder.mkdir()
    (folder / "areas.txt").write_text("a\nb\n")
    options = {"by": "g", "categories": str(folder / "areas.txt"), "upper": 5, "epsilon": 1}
    release = privatize(FRAME[["g"]], **options, other="rest")
    assert list(release.table["g"]) == ["a", "b", "rest"]


def test_a_file_with_the_name_of_a_method_is_not_taken_for_one(tmp_path):
    (tmp_path / "geometric").write_text("1\n")
    (tmp_path / "request.toml").write_text('method = "geometric"\n')
    assert read_request(tmp_path / "request.toml")[1] == {"method": "geometric"}
