import json
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.stats import chi2

import tallyveil as tv
from tallyveil.certified import ladder as module
from tallyveil.exact import exp_lower
from tallyveil.proof.rounding import TOTAL


@pytest.mark.parametrize(
    ("upper", "epsilons"),
    [
        (1, ["2", "1"]), (4, ["2", "1", "0.5"]), (40, ["2", "1", "0.5"]), (60, ["20", "0.5"]),
        (40, ["1", "0.999999", "1e-4"]), (100, ["0.1", "0.05", "0.01"]),
    ],
)  # fmt: skip
def test_every_level_is_geometric_and_private(upper, epsilons):
    ladder = tv.Ladder(tv.Query.count(upper), epsilons)
    assert ladder.verify()
    for rung, epsilon in zip(ladder.rungs, epsilons, strict=True):
        assert rung.epsilon == Fraction(epsilon)
        assert rung.distance < 1e-9
        ideal = tv.geometric(ladder.query, epsilon).matrix
        assert np.abs(rung.mechanism.matrix - ideal).max() < 1e-9
        assert (rung.weights.astype(object).sum(axis=1) == TOTAL).all()


def test_levels_of_a_mean_whose_neighbours_are_further_apart():
    ladder = tv.Ladder(tv.Query.mean(records=5, lower=0, upper=3), [2, 1])
    assert ladder.verify()
    assert ladder.rungs[1].distance < 1e-9
    assert ladder.release(ladder.query.inputs[3]).shape == (2,)


def test_coalitions_by_brute_force_in_fractions():
    """Lemma 4 of paper 003 on the weights themselves, sharing no code with the package."""
    ladder = tv.Ladder(tv.Query.count(3), ["3/2", 1, "1/3"])
    tables = [
        [[Fraction(int(w), TOTAL) for w in row] for row in rung.weights] for rung in ladder.rungs
    ]
    answers = range(4)
    for size in (1, 2, 3):
        for group in combinations(range(3), size):
            factor = exp_lower(ladder.epsilons[min(group)])
            views = []
            for truth in answers:
                view = {}
                for path in product(answers, repeat=3):
                    chance = tables[0][truth][path[0]]
                    chance *= tables[1][path[0]][path[1]] * tables[2][path[1]][path[2]]
                    seen = tuple(path[k] for k in group)
                    view[seen] = view.get(seen, 0) + chance
                assert sum(view.values()) == 1
                views.append(view)
            for one, other in pairwise(views):
                for seen in one:
                    assert one[seen] <= factor * other[seen]
                    assert other[seen] <= factor * one[seen]
    assert all(ladder.verify_coalitions().values())
    assert len(ladder.verify_coalitions()) == 7


def test_a_corrupted_weight_is_found():
    ladder = tv.Ladder(tv.Query.count(5), [1, "1/2"])
    for level, row, moved in ((0, 2, 10**12), (1, 5, -(10**16))):
        data = ladder.body()["ladder"]
        cells = [int(cell) for cell in data["weights"][level][row].split()]
        cells[0], cells[5] = cells[0] + moved, cells[5] - moved
        data["weights"][level][row] = " ".join(map(str, cells))
        verdict = tv.verify(data)
        assert not verdict
        assert f"Level {level + 1}" in verdict.reason


@pytest.mark.parametrize("line", ["1 1 1", "-1 1 4611686018427387904"])
def test_rows_that_do_not_total_or_are_negative_are_found(line):
    data = tv.Ladder(tv.Query.count(2), [1, "1/2"]).body()["ladder"]
    data["weights"][1][0] = line
    assert "Level 2" in tv.verify(data).reason


def test_a_file_is_verified_and_read_back(tmp_path):
    ladder = tv.Ladder(tv.Query.count(6), [1, "1/2", "1/3"])
    for made in (ladder, ladder.level(2)):
        back = tv.load(made.save(tmp_path / "mechanism.json"))
        assert back == made
        assert back.epsilons == made.epsilons
        for one, other in zip(made.rungs, back.rungs, strict=True):
            assert np.array_equal(one.weights, other.weights)
            assert one.mechanism.isclose(other.mechanism, 1e-15)
        made.save_certificate(tmp_path / "certificate.json")
        assert tv.verify(tmp_path / "certificate.json")
    bare = tmp_path / "ladder.json"
    bare.write_text(json.dumps(ladder.body()["ladder"]))
    assert tv.verify(bare).epsilon == 1
    assert tv.load(bare) == ladder


def test_a_level_is_certified_for_its_own_epsilon():
    ladder = tv.Ladder(tv.Query.count(6), [1, "1/2", "1/3"])
    assert ladder.exact_epsilon == 1
    assert [ladder.level(k).exact_epsilon for k in (1, 2, 3)] == list(ladder.epsilons)
    assert ladder.level(2).mechanism.isclose(ladder.rungs[1].mechanism)
    with pytest.raises(tv.ArgumentError, match="between 1 and 3"):
        ladder.level(4)


@pytest.mark.parametrize(
    "change",
    [
        lambda claim: claim.update(published="every level"),
        lambda claim: claim.update(published="nothing"),
        lambda claim: claim.update(epsilon="1/100"),
        lambda claim: claim.update(epsilons=["1", "1/3"]),
    ],
)
def test_a_forged_claim_is_found_even_when_sealed_again(change):
    from tallyveil.proof.certificate import seal

    data = tv.Ladder(tv.Query.count(4), [1, "1/2"]).level(2).to_dict()
    claim = dict(data["certificate"])
    change(claim)
    del claim["digest"]
    assert not tv.verify({**data, "certificate": seal(claim)})


def test_exact_laws_are_the_products_of_the_weights():
    ladder = tv.Ladder(tv.Query.count(3), [1, "1/2"])
    law, total = ladder.distribution(1)
    weights = [rung.weights.astype(object) for rung in ladder.rungs]
    assert (law == weights[0] @ weights[1]).all()
    assert (law.sum(axis=1) == total).all()


def test_drawn_levels_follow_the_joint_law():
    """Chi-square over all joint outcomes; the draw is seeded, so it cannot fail by chance."""
    ladder = tv.Ladder(tv.Query.count(2), ["3/2", "1/2"])
    rows, truth = 200_000, 1
    drawn = ladder.release(np.full(rows, truth), tv.SeededNotPrivate(5))
    seen = np.bincount(drawn[0] * 3 + drawn[1], minlength=9)
    first, second = (rung.weights / TOTAL for rung in ladder.rungs)
    expected = rows * (first[truth][:, None] * second).ravel()
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, df=8) > 1e-3


def test_shapes_and_types():
    ladder = tv.Ladder(tv.Query.count(9), [2, 1, "1/2"])
    one = ladder.release(4)
    assert one.shape == (3,)
    assert ((one >= 0) & (one <= 9)).all()
    many = ladder.release(np.array([0, 9, 4, 4], dtype=np.int16))
    assert many.shape == (3, 4)
    assert many.dtype == np.int16
    assert ladder.release(np.array([], dtype=np.int64)).shape == (3, 0)


@pytest.mark.parametrize("epsilons", [[1, 2], [1, 1], [2, 1, 1], [], [1, 0]])
def test_levels_must_strictly_decrease(epsilons):
    with pytest.raises(tv.ArgumentError, match="epsilons"):
        tv.Ladder(tv.Query.count(4), epsilons)


def test_counts_out_of_range_are_refused_without_being_named():
    ladder = tv.Ladder(tv.Query.count(4), [1, "1/2"])
    with pytest.raises(tv.ArgumentError, match="Nothing was drawn") as refusal:
        ladder.release([1, 7777])
    assert "7777" not in str(refusal.value)


def test_queries_with_other_outputs_are_refused():
    with pytest.raises(tv.QueryError, match="same inputs and outputs"):
        tv.Ladder(tv.Query.count(4, extend=3), [1])


def test_wide_ranges_are_not_enumerated():
    with pytest.raises(tv.ArgumentError, match="cells"):
        tv.Ladder(tv.Query.count(200), [1, "1/2"]).verify_coalitions()


def test_a_remap_that_is_not_private_enough_is_mended_or_refused(monkeypatch):
    """Only what passes the exact check is kept, whatever the floats said."""
    honest, calls = module.geometric_step, []

    def hasty(size, less, more):
        calls.append(more)
        return honest(size, less, more * (1.01 if len(calls) == 1 else 1))

    monkeypatch.setattr(module, "geometric_step", hasty)
    assert tv.Ladder(tv.Query.count(6), [1, "1/2"]).verify()
    assert len(calls) == 2
    assert calls[1] < calls[0] < 0.5
    monkeypatch.setattr(module, "geometric_step", lambda size, less, more: np.eye(size))
    with pytest.raises(tv.CertificationError, match="too small"):
        tv.Ladder(tv.Query.count(6), [1, "1/2"])
