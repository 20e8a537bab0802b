"""Matrices as text: round trips, and files that are none."""

import csv

import numpy as np
import pytest
from scipy.optimize import brentq

import tallyveil as tv
from tallyveil.formats import (
    continue_noise,
    csv_matrix,
    is_ptable,
    ptable_matrix,
    ptable_text,
)

MATRIX = tv.geometric(tv.Query.count(3), 0.7).matrix
ANSWERS = np.arange(4)


@pytest.mark.parametrize("text", ["", "\n\n", "true,0,1\n", "0.5,0.5\n1\n", "0.5,half\n", "a,b\n"])
def test_other_csv_files_are_refused(text):
    with pytest.raises(tv.MechanismError, match="'matrix' must"):
        csv_matrix(text)


@pytest.mark.parametrize("text", ["i,j,p\n", "i,j,p\n0,0\n", "i,j,p\n0,0,1,2\n"])
def test_other_ptables_are_refused(text):
    with pytest.raises(tv.MechanismError, match="'ptable' must"):
        ptable_matrix(text)


def test_decimal_commas_are_read_with_semicolons():
    """As R's write.csv2 writes them."""
    plain = ptable_text(MATRIX, ANSWERS, ANSWERS)
    lines = [line.replace(",", ";").replace(".", ",") for line in plain.splitlines()]
    lines[0] = ";".join(f'"{name}"' for name in lines[0].split(";"))
    text = "\n".join(lines)
    assert is_ptable(text)
    assert np.array_equal(ptable_matrix(text)[0], MATRIX)
    assert np.array_equal(tv.Mechanism.from_csv(text, epsilon="0.7").matrix, MATRIX)
    with pytest.raises(tv.MechanismError, match="hold numbers only"):
        ptable_matrix("i;j;p\n0;0;1.000,5\n")


def test_a_ptable_of_several_types_is_called_so():
    lines = ptable_text(MATRIX, ANSWERS, ANSWERS).splitlines()
    both = [*lines, *lines[1:]]
    half = len(lines)
    kinds = ["even"] * (half - 1) + ["odd"] * (half - 1)
    text = "\n".join(
        [lines[0], *(line.replace("all", k) for line, k in zip(both[1:], kinds, strict=True))]
    )
    with pytest.raises(tv.MechanismError, match="several types"):
        tv.Mechanism.from_csv(text)
    one = "\n".join(line for line in text.splitlines() if not line.endswith("odd"))
    assert np.array_equal(tv.Mechanism.from_csv(one).matrix, MATRIX)


@pytest.mark.parametrize("make", [tv.certify_geometric, lambda q, e: tv.certify(tv.fair(q, e))])
def test_certified_mechanisms_are_written_as_ptables_too(make, tmp_path):
    certified = make(tv.Query.count(3), "0.7")
    assert certified.to_ptable(tmp_path / "p.csv") == certified.mechanism.to_ptable()
    assert tv.Mechanism.from_csv(tmp_path / "p.csv").query == tv.Query.count(3)


def maximum_entropy_ptable():
    """The ptable of the R package for noise of at most 2 with variance 1, from its definition.

    Every row has the largest entropy with mean noise 0, noise no likelier further from 0, and
    variance 1 where the package finds that within reach: the last row. A count of 1, whose noise
    is -1, 0, 1 or 2, keeps the first two, so its probabilities are a, a, c, d with a = c + 2d.
    """
    squares = np.arange(-2, 3) ** 2.0

    def spread(b):
        weights = np.exp(-b * squares)
        return weights / weights.sum()

    last = spread(brentq(lambda b: spread(b) @ squares - 1, 0.01, 5))
    d = brentq(
        lambda d: 5 * np.log((1 - 5 * d) / 3) - 2 * np.log((1 + d) / 3) - 3 * np.log(d), 1e-3, 0.19
    )
    small = [(1 + d) / 3, (1 + d) / 3, (1 - 5 * d) / 3, d]
    rows = [(0, [(0, 1.0)]), (1, list(enumerate(small))), (2, list(enumerate(last)))]
    lines = ["i;j;p;v"]
    lines += [f"{i};{j};{p!r};{j - i}" for i, row in rows for j, p in row]
    return "\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n"


def test_the_ptable_is_the_one_that_the_package_prints():
    matrix, inputs, outputs = ptable_matrix(maximum_entropy_ptable())
    assert (inputs.tolist(), outputs.tolist()) == ([0, 1, 2], [0, 1, 2, 3, 4])
    assert matrix[1, :4].tolist() == pytest.approx([0.3665, 0.3665, 0.1676, 0.0995], abs=6e-5)
    assert [matrix[2, 0], matrix[2, 2]] == pytest.approx([0.0638, 0.3830], abs=6e-5)


def test_an_audit_of_a_ptable_finds_what_bounded_noise_gives_away():
    m = tv.Mechanism.from_csv(maximum_entropy_ptable(), upper=6)
    assert m.query.shape == (7, 9)
    assert m.realised_epsilon() == np.inf
    # a true 0 is never changed: released above 0 it was at least 1
    assert m.privacy_profile([5.0])[0] == pytest.approx(1 - 0.3665, abs=1e-4)
    larger = m.matrix[2:]
    assert all(np.array_equal(larger[k, k : k + 5], larger[0, :5]) for k in range(5))
    assert np.count_nonzero(larger) == 25
    # among larger counts a neighbour's noise ends one earlier, with probability 0.0638
    tail = tv.Mechanism(larger, tv.Query.custom(range(2, 7), range(9), "path"))
    assert tail.privacy_profile([5.0])[0] == pytest.approx(0.0638, abs=1e-4)


def test_a_transition_matrix_as_r_writes_it_is_read():
    text = '"","0","1","2"\n"0",1,0,0\n"1",0.25,0.5,0.25\n'
    matrix, inputs, outputs = csv_matrix(text)
    assert matrix.tolist() == [[1, 0, 0], [0.25, 0.5, 0.25]]
    assert (inputs.tolist(), outputs.tolist()) == ([0, 1], [0, 1, 2])


def test_a_ptable_has_the_columns_that_cellkey_reads():
    lines = list(csv.DictReader(ptable_text(MATRIX, ANSWERS, ANSWERS).splitlines()))
    assert list(lines[0]) == ["i", "j", "p", "v", "p_int_lb", "p_int_ub", "type"]
    for i in range(4):
        row = [line for line in lines if line["i"] == str(i)]
        assert {line["type"] for line in row} == {"all"}
        assert [int(line["v"]) for line in row] == [j - i for j in range(4)]
        # a cell key finds its row by p_int_lb < key <= p_int_ub
        key = 0.7
        found = [x for x in row if float(x["p_int_lb"]) < key <= float(x["p_int_ub"])]
        assert [int(line["j"]) for line in found] == [
            int(np.searchsorted(np.cumsum(MATRIX[i]), key))
        ]


def test_only_tables_of_counts_go_on():
    with pytest.raises(tv.MechanismError, match="'upper' must be at least the ptable's last"):
        continue_noise(MATRIX, ANSWERS.astype(float), ANSWERS.astype(float), 2)
    with pytest.raises(tv.MechanismError, match="'ptable' must list the counts"):
        continue_noise(MATRIX, ANSWERS + 1.0, ANSWERS.astype(float), 9)
    with pytest.raises(tv.MechanismError, match="at most 10,000,000 cells"):
        continue_noise(MATRIX, ANSWERS.astype(float), ANSWERS.astype(float), 10_000)
    with pytest.raises(tv.MechanismError, match="'matrix' must name its counts"):
        tv.Mechanism.from_csv("0.5,0.5\n0.5,0.5\n", upper=9)
    with pytest.raises(tv.QueryError, match="'upper' must be a whole number"):
        tv.Mechanism.from_csv(maximum_entropy_ptable(), upper="many")
