"""Matrices as text: round trips, and files that are none."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.formats import csv_matrix, csv_text, is_ptable, ptable_matrix, ptable_text

MATRIX = tv.geometric(tv.Query.count(3), 0.7).matrix
ANSWERS = np.arange(4)


def test_text_and_back_changes_nothing():
    for write, read in ((csv_text, csv_matrix), (ptable_text, ptable_matrix)):
        matrix, inputs, outputs = read(write(MATRIX, ANSWERS, ANSWERS))
        assert np.array_equal(matrix, MATRIX)
        assert np.array_equal(inputs, ANSWERS)
        assert np.array_equal(outputs, ANSWERS)
    assert is_ptable(ptable_text(MATRIX, ANSWERS, ANSWERS))
    assert not is_ptable(csv_text(MATRIX, ANSWERS, ANSWERS))


@pytest.mark.parametrize("text", ["", "\n\n", "true,0,1\n", "0.5,0.5\n1\n", "0.5,half\n", "a,b\n"])
def test_other_csv_files_are_refused(text):
    with pytest.raises(tv.MechanismError, match="'matrix' must"):
        csv_matrix(text)


@pytest.mark.parametrize("text", ["i,j,p\n", "i,j,p\n0,0\n", "i,j,p\n0,0,1,2\n"])
def test_other_ptables_are_refused(text):
    with pytest.raises(tv.MechanismError, match="'ptable' must"):
        ptable_matrix(text)
