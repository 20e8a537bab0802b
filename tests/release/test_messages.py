"""Messages about files name keys of Python, never flags of a command."""

import re

import pandas as pd
import pytest

from tallyveil.errors import TallyveilError
from tests.asking import privatize

BASE = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
FLAG = re.compile(r"--[a-z]")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("county,cases\na,*\n", {}, "declared with 'source.na_values'"),
        ("county,cases\na,1\na,2\n", {}, "counts.allow_duplicates=True"),
        ("Title\n\ncounty,cases\na,1\n", {}, "source.skiprows=2"),
        ("county,cases\na,1\nNote\n", {}, "source.skipfooter=1"),
        ("county;cases\na;1\n", {}, "source.delimiter=';'"),
        ("county,cases\na,1\nTotal,1\n", {}, "unit.contributions=2, or counts.allow_totals=True"),
        ("county,cases\na,1\n", {"keep": None}, "with 'keep' (county), or use keep='all'"),
    ],
)
def test_errors_of_files_are_spelled_for_python(tmp_path, text, options, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(TallyveilError, match=re.escape(message)) as findings:
        privatize(path, **{**BASE, **options})
    assert not FLAG.search(str(findings.value))


def test_warnings_are_spelled_for_python():
    frame = pd.DataFrame({"county": list("bca"), "cases": [1, 2, 3], "deaths": [1, 1, 0]})
    with pytest.warns(UserWarning, match="sort the file by public columns") as findings:
        privatize(frame, **BASE)
    assert not any(FLAG.search(str(warning.message)) for warning in findings)


def test_rows_with_a_missing_count_are_told_of(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{at},{at % 5},{at % 3}\n" for at in range(30))
    path.write_text(f"county,cases,deaths\n{rows}x,*,2\n")
    words = "1 row has a code.*left out whole, their other counts too"
    with pytest.warns(UserWarning, match=words):
        result = privatize(path, **{**BASE, "count": ["cases", "deaths"]}, na_values="*")
    assert result.table.num_rows == 30
