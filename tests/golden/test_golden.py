"""Draws, released data and whole numbers stay the same to the byte, matrices to nine digits."""

import json

import numpy as np
import pytest

from tests.golden import cases

NEAR = 1e-8
"""How far probabilities may differ between processors: the accuracy that solvers are asked for."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return cases.compute(tmp_path_factory.mktemp("golden"))


def test_every_case_is_known(found):
    expected = json.loads(cases.EXPECTED.read_text())
    assert set(found) == set(expected)


@pytest.mark.parametrize("name", sorted(json.loads(cases.EXPECTED.read_text())))
def test_nothing_moved(found, name):
    expected = json.loads(cases.EXPECTED.read_text())[name]
    made = dict(found[name])
    assert set(made) == set(expected)
    for key in {"matrix", "matrices"} & set(expected):
        rows, wanted = (
            np.array([row.split() for row in part.pop(key)], float) for part in (made, expected)
        )
        assert np.allclose(rows, wanted, rtol=1e-8, atol=NEAR)
    assert made == expected
