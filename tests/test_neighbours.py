"""Neighbour relations: what they list, and what they refuse to believe."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.neighbours import Neighbours


@pytest.mark.parametrize(
    "relation",
    [
        Neighbours.path(7), Neighbours.band(7, 3), Neighbours.complete(5),
        Neighbours.explicit(9, [(3, 1), (1, 3), (8, 0)]), Neighbours.band(3, 9), Neighbours.path(2),
    ],
    ids=repr,
)  # fmt: skip
def test_blocks_list_exactly_the_pairs(relation):
    index = np.arange(relation.size)

    def pairs(blocks):
        return [
            pair
            for low, high in blocks
            for pair in zip(index[low].tolist(), index[high].tolist(), strict=True)
        ]

    listed = pairs(relation.blocks())
    assert sorted(listed) == sorted(map(tuple, relation.pairs.tolist()))
    assert len(listed) == relation.count
    both = pairs(relation.ordered_blocks())
    assert sorted(both) == sorted(listed + [(high, low) for low, high in listed])
    assert Neighbours.from_dict(relation.to_dict()) == relation


def test_a_path_is_one_however_it_is_stated():
    assert Neighbours.path(4).is_path
    assert Neighbours.explicit(4, [(1, 0), (1, 2), (3, 2)]).is_path
    assert Neighbours.complete(2).is_path
    assert not Neighbours.explicit(4, [(0, 1), (1, 2)]).is_path
    assert not Neighbours.band(4, 2).is_path


WIDTHS = [0, -7, 5, 6, 10**9, 1.0, 0.5, True, "1", None, float("nan")]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_band_from_a_file_has_a_width_of_its_own(width):
    with pytest.raises(tv.QueryError, match="'neighbours' must"):
        Neighbours.from_dict({"kind": "band", "size": 5, "width": width})


@pytest.mark.parametrize("width", [0, -7, 1.0, True, "1", None])
def test_bands_are_checked(width):
    with pytest.raises(tv.QueryError, match="'neighbours' must"):
        Neighbours.band(5, width)
    with pytest.raises(tv.QueryError, match="'neighbours' must"):
        Neighbours("band", 5, width)


@pytest.mark.parametrize("size", [0, 1, -3, 2.0, True, "4", None])
def test_sizes_are_checked(size):
    for make in (
        Neighbours.path,
        Neighbours.complete,
        lambda size: Neighbours.explicit(size, [(0, 1)]),
        lambda size: Neighbours.from_dict({"kind": "complete", "size": size, "width": 1}),
    ):
        with pytest.raises(tv.QueryError, match="'neighbours' must"):
            make(size)


@pytest.mark.parametrize(
    "pairs",
    [
        [], None, "ab", 3, [0, 1], [(0,)], [(0, 1, 2)], [(0, 1), (2,)], [(0, 5)], [(-1, 1)],
        [(2, 2)], [(0.0, 1.0)], [("0", "1")], [(True, False)], [(True, 2)],
        np.array([[True, False]]), np.array([[0.0, 1.0]]), [(0, 2**80)],
    ],
)  # fmt: skip
def test_explicit_pairs_are_checked(pairs):
    with pytest.raises(tv.QueryError, match="'neighbours' must"):
        Neighbours.explicit(5, pairs)
    with pytest.raises(tv.QueryError, match="'neighbours' must"):
        Neighbours.from_dict({"kind": "explicit", "size": 5, "pairs": pairs})


@pytest.mark.parametrize(
    "data",
    [
        None, [], {}, {"kind": "ring", "size": 5, "width": 1}, {"kind": "band", "size": 5},
        {"kind": "band", "size": 5, "width": 1, "pairs": []},
        {"kind": "complete", "size": 5, "width": 1}, {"kind": "explicit", "size": 5, "width": 1},
        {"kind": ["band"], "size": 5, "width": 1},
    ],
)  # fmt: skip
def test_other_descriptions_are_refused(data):
    with pytest.raises(tv.QueryError, match="'neighbours' must"):
        Neighbours.from_dict(data)
