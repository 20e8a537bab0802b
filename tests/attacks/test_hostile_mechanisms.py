"""A small mechanism file that somebody else made cannot stop its reader: a plain no, soon.

Every case is a file of at most 10 MB, given to every command that reads such files. The program
must end by itself with exit code 1 or 2, within 5 seconds of processor time and 500 MB of memory,
and say why in its own words.
"""

import hashlib
import os
from fractions import Fraction
from itertools import islice

import pytest

import tallyveil as tv
from tallyveil.proof import certificate as document
from tallyveil.proof.exponent import Growth
from tests.attacks import hostile
from tests.attacks.hostile import fill, mark, require_cheap_refusal


def reseal(data, **claims):
    claim = data["certificate"] | claims
    if "epsilon" in claims:
        growth = Growth.of(Fraction(claims["epsilon"]))
        claim["growth"] = {"numerator": str(growth.numerator), "shift": growth.shift}
    return document.canonical(data | {"certificate": document.seal(claim)})


def geometric(upper, **claims):
    data = tv.certify_geometric(tv.Query.count(9), 1).to_dict()
    query = {**data["certificate"]["query"], "upper": upper}
    neighbours = {"kind": "band", "size": upper + 1, "width": 1}
    claims = {"query": query, "neighbours": neighbours, "shape": [upper + 1] * 2} | claims
    return reseal(data, **claims)


def lines_of_ones(size):
    """Rows that total 2^62 in few bytes: all ones but the diagonal."""
    row = ["1"] * size
    return [" ".join([*row[:at], str(2**62 - size + 1), *row[at + 1 :]]) for at in range(size)]


def dense(size, neighbours):
    numbers = list(range(size))
    query = {"kind": "custom", "inputs": numbers, "outputs": numbers, "neighbours": neighbours}
    lines = lines_of_ones(size)
    data = tv.certify(tv.geometric(tv.Query.count(3), 1)).to_dict() | {"weights": lines}
    sha256 = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
    claims = {"query": query, "neighbours": neighbours, "shape": [size, size]}
    return reseal(data, epsilon="700", weights_sha256=sha256, **claims)


def explicit(size, pairs):
    every = ([low, high] for low in range(size) for high in range(low + 1, size))
    listed = list(islice(every, pairs))
    return dense(size, {"kind": "explicit", "size": size, "pairs": listed})


def ladder(size, levels, first="1"):
    lines = lines_of_ones(size)
    lines[0] = lines[0].replace("1", first, 1)
    epsilons = [str(700 - at) for at in range(levels)]
    query = tv.Query.count(size - 1).to_dict()
    parts = {"query": query, "epsilons": epsilons, "weights": [lines] * levels}
    return document.canonical({"format": document.LADDER_FORMAT, "version": 1, **parts})


def weights_instead(lines):
    data = tv.certify(tv.geometric(tv.Query.count(3), 1)).to_dict()
    return document.canonical(data | {"weights": lines})


def plain(matrix, query='{"kind": "count", "upper": 3}'):
    head = f'{{"format": "tallyveil-mechanism", "version": 1, "name": "x", "query": {query}, '
    return head + f'"epsilon": null, "delta": "0", "matrix": {matrix}}}'


FILES = {
    "a range of a hundred million.json": lambda: geometric(99_999_998),
    "the widest range, a false claim.json": lambda: geometric(3_999_999, epsilon="1/10"),
    "a wide band.json": lambda: dense(2000, {"kind": "band", "size": 2000, "width": 1998}),
    "many pairs.json": lambda: explicit(1900, 42_000),
    "many levels.json": lambda: ladder(400, 29),
    "very many levels.json": lambda: ladder(30, 600),
    "a large ladder.json": lambda: ladder(1900, 1, first="2"),
    "a negative weight.json": lambda: ladder(5, 2, first="-1"),
    "millions of rows.json": lambda: weights_instead(["1"] * 1_400_000),
    "a row of millions.json": lambda: weights_instead([fill("1 ", end="1")] + ["1"] * 3),
    "an epsilon of many digits.json": lambda: geometric(9, name="x" * 9).replace(
        '"epsilon": "1"', f'"epsilon": "1.{"3" * 5000}"'
    ),
    "an epsilon with an exponent.json": lambda: geometric(9).replace(
        '"epsilon": "1"', '"epsilon": "1e400000000"'
    ),
    "much noise.json": lambda: document.canonical(
        tv.certify_noise(1).to_dict() | {"noise": {
            "epsilon": "1", "near": fill("1 ", end="1"), "beyond": "1", "block": "1", "again": "1"}}
    ),
    "a long number.json": lambda: fill("9"),
    "deep lists.json": lambda: fill("["),
    "deep objects.json": lambda: fill('{"":'),
    "many lists.json": lambda: fill("[],", "[", "[]]"),
    "many objects.json": lambda: fill('{"":0},', "[", "{}]"),
    "many numbers.json": lambda: fill("0,", '{"format": "tallyveil-ladder", "weights": [', "0]}"),
    "indented numbers.json": lambda: fill(
        "   0,\n", '{\n "format": "tallyveil-ladder",\n "weights": [\n', "   0]}\n"
    ),
    "quotes that never end.json": lambda: fill('\\"', '"'),
    "a wide plain matrix.json": lambda: plain(fill("0,", "[[", "0]]")),
    "a long plain matrix.json": lambda: plain(fill("0,", "[", "0]")),
    "a plain matrix of a huge query.json": lambda: plain(
        "[[1]]", '{"kind": "count", "upper": 3999999}'
    ),
    "fine categories.json": lambda: plain(
        "[[1]]", '{"kind": "count", "upper": 3, "categories": 1e-300}'
    ),
    "one column.csv": lambda: fill("0\n"),
    "one row.csv": lambda: fill("0,", end="0\n"),
    "a square.csv": lambda: "\n".join([",".join(["0"] * 2200)] * 2200) + "\n",
    "long cells.csv": lambda: fill("1", end="\n1\n"),
    "open quotes.csv": lambda: fill('"'),
    "a sparse ptable.csv": lambda: "i,j,p\n" + "".join(f"{k},{k},1\n" for k in range(550_000)),
    "one row of a ptable.csv": lambda: "i,j,p\n" + "".join(f"0,{k},0\n" for k in range(900_000)),
    "labels of no use.csv": lambda: "true,nan,inf\n1e400,0.5,0.5\n-inf,0.5,0.5\n",
}  # fmt: skip


QUICK = (
    *("a range of a hundred million.json", "a wide band.json", "many levels.json"),
    *("a negative weight.json", "deep objects.json", "indented numbers.json"),
    *("one column.csv", "a sparse ptable.csv"),
)  # the dearest of every kind, in every run
READERS = {
    "verify": ("verify",),
    "interpret": ("interpret", "--released", "3", "--mechanism"),
    "compare": ("compare", "--query", "count:3", "--epsilon", "1"),
}
CASES = [(reader, name) for name in FILES for reader in READERS]


@pytest.mark.parametrize(("reader", "name"), mark(CASES, QUICK))
def test_a_hostile_mechanism_file_is_refused_cheaply(reader, name, tmp_path):
    path = tmp_path / name
    path.write_text(FILES[name](), encoding="utf-8")
    assert path.stat().st_size <= hostile.LARGEST_FILE
    require_cheap_refusal(*READERS[reader], path)


def test_readers_wait_for_no_pipe(tmp_path):
    for name in ("t.csv", "m.json"):
        os.mkfifo(tmp_path / name)
        for words in READERS.values():
            require_cheap_refusal(*words, tmp_path / name)
