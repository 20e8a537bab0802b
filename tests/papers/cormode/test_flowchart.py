import itertools
import math

import pytest

import tallyveil as tv
from tallyveil.properties import SEVEN


@pytest.mark.parametrize("n", [1, 2, 4, 20, 21])
@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.62, 10 / 11])
def test_all_128_sets_get_a_closed_form_that_holds_or_a_program(n, alpha):
    q, epsilon = tv.Query.count(n), -math.log(alpha)
    kinds = set()
    for size in range(8):
        for wanted in itertools.combinations(SEVEN, size):
            choice = tv.papers.choose(q, epsilon, wanted)
            kinds.add((choice.method, choice.properties))
            if choice.mechanism is not None:
                assert all(choice.mechanism.has(name) for name in wanted)
            else:
                gm = tv.geometric(q, epsilon)
                assert not all(gm.has(name) for name in wanted)
    assert len(kinds) <= 4


def test_flowchart_by_example():
    # Figure 5 at alpha = 10/11, where the threshold 2a/(1-a) is 20
    epsilon = math.log(1.1)
    small, large = tv.Query.count(8), tv.Query.count(20)
    assert tv.papers.choose(small, epsilon).method == "geometric"
    assert tv.papers.choose(small, epsilon, ["row_monotone", "symmetric"]).method == "geometric"
    assert tv.papers.choose(small, epsilon, ["fair", "column_monotone"]).method == "fair"
    assert tv.papers.choose(small, epsilon, ["weakly_honest"]).properties == ("weakly_honest",)
    assert tv.papers.choose(large, epsilon, ["weakly_honest"]).method in ("geometric", "program")
    assert tv.papers.choose(small, epsilon, ["column_honest"]).properties == ("column_monotone",)
    assert tv.papers.choose(small, epsilon, ["output_private"]).method == "program"
    assert "Weak honesty fails" in tv.papers.choose(small, epsilon, ["weakly_honest"]).reason


def test_only_counts_have_a_flowchart():
    with pytest.raises(tv.QueryError, match="be a count"):
        tv.papers.choose(tv.Query.maximum(0, 5), 1.0)
    with pytest.raises(tv.ArgumentError, match="known properties"):
        tv.papers.choose(tv.Query.count(4), 1.0, ["honest"])
