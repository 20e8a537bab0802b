"""The objectives of Cormode et al. (2018) under their own names."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.loss import loss_table
from tallyveil.papers.cormode import paper_loss, rescaled_loss


def test_unknown_names_are_refused():
    for bad in ("L3", "L0,", "l1", "L0,1.5", "", None):
        with pytest.raises(tv.ArgumentError, match="'name' must be L0"):
            paper_loss(tv.Query.count(4), bad)
    with pytest.raises(tv.QueryError, match="'query' must"):
        paper_loss(4, "L0")


def test_losses_keep_the_scaling_of_the_paper():
    q = tv.Query.count(4)
    m = tv.uniform(q)
    assert m.expected_loss(paper_loss(q, "L0")) == pytest.approx(1.0)
    assert m.expected_loss(paper_loss(q, "L0,0")) == pytest.approx(1.0)
    far = m.expected_loss(("beyond", 1))
    assert m.expected_loss(paper_loss(q, "L0,1")) == pytest.approx(far * 5 / 4)
    assert m.expected_loss(paper_loss(q, "L1")) == pytest.approx(m.expected_loss("absolute"))
    near = np.where(loss_table(q, "absolute") > 2, loss_table(q, "squared"), 0)
    assert m.expected_loss(paper_loss(q, "L2,2")) == pytest.approx(m.expected_loss(near))


@pytest.mark.parametrize("beyond", [0, 1, 3])
def test_the_rescaled_loss_is_the_table_of_that_name(beyond):
    m = tv.geometric(tv.Query.count(6), 0.4)
    table = paper_loss(m.query, f"L0,{beyond}")
    assert rescaled_loss(m, beyond) == pytest.approx(m.expected_loss(table), rel=1e-12)
