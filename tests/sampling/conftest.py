"""Words that are given in advance, to follow every path of a draw."""

import numpy as np
import pytest

import tallyveil as tv


class Scripted(tv.Entropy):
    """Hands out lists of words, one for every call."""

    def __init__(self, *words):
        super().__init__()
        self.script = iter(words)

    def words(self, count):
        return np.array(next(self.script), dtype=np.uint64)


@pytest.fixture
def scripted():
    return Scripted
