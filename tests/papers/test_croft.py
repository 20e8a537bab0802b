"""Croft, Sack and Shi (2020): values recomputed, minimality and smooth sensitivity."""

import itertools
import math

import numpy as np
import pytest

import tallyveil as tv

TABLE_1 = [  # rows are released answers, as printed
    [0.558752, 0.441248, 0.343645, 0.267631, 0.208431],
    [0.097604, 0.117503, 0.097604, 0.076014, 0.0592],
    [0.076014, 0.097604, 0.117503, 0.097604, 0.076014],
    [0.0592, 0.076014, 0.097604, 0.117503, 0.097604],
    [0.208431, 0.267631, 0.343645, 0.441248, 0.558752],
]


def test_table_1_snapped_laplace():
    m = tv.laplace(tv.Query.maximum(1, 5), 1.0)
    assert m.papers_matrix() == pytest.approx(np.array(TABLE_1), abs=1e-6)
    assert not m.has("column_monotone")
    assert not m.has("fair")


def test_mass_outside_the_range_is_sixty_percent():
    # section 1.1: true answer 3 in 1..5; exact value exp(-1/2) (errata, Croft 10)
    from tallyveil.mechanisms.additive import LaplaceNoise

    noise = LaplaceNoise(4.0)
    outside = noise.mass(np.array([-np.inf, 2.0]), np.array([-2.0, np.inf])).sum()
    assert outside == pytest.approx(math.exp(-0.5), rel=1e-12)


# Section 4.3, maximum over 0..9: epsilon, mechanism, equations (23) to (26) and real epsilon
MEASURES = [
    (0.05, "snapLap", 4.421858454, 27.765752795, 2.493118778, 8.45463584, 0.049992305),
    (0.05, "snapStair", 4.421389901, 27.761943025, 2.493056356, 8.45417561, 0.05),
    (0.05, "normLap", 3.2861212, 16.394043568, 2.497674442, 8.485594488, 0.024305314),
    (0.05, "normLap_halfbins", 3.154556, 15.07766181, 2.497801533, 8.486538266, 0.023611111),
    (0.05, "uniform", 3.3, 16.5, 2.5, 8.5, None),
    (0.5, "snapLap", 3.801948086, 22.089341559, 2.436506632, 8.085661181, 0.499249204),
    (0.5, "snapStair", 3.762776779, 21.798493186, 2.431065921, 8.048001502, 0.5),
    (0.5, "normLap", 3.162108803, 15.454597531, 2.476842113, 8.356489378, 0.243031443),
    (0.5, "normLap_halfbins", 3.046193472, 14.286941843, 2.47808866, 8.365764672, 0.236111111),
    (2.0, "snapLap", 2.481295196, 11.157997718, 2.050420477, 6.438460337, 1.988879628),
    (2.0, "snapStair", 2.093361011, 9.066959531, 1.815759981, 5.622048997, 2.0),
    (2.0, "normLap", 2.765826761, 12.546313674, 2.382460373, 7.941305413, 0.971836469),
    (2.0, "normLap_halfbins", 2.697320384, 11.814256404, 2.391681759, 7.974721474, 0.944444444),
]

BUILD = {
    "snapLap": tv.laplace,
    "snapStair": tv.staircase,
    "normLap": lambda q, e: tv.laplace(q, e, "normalize"),
    "normLap_halfbins": lambda q, e: tv.laplace(q, e, "normalize", truncate="answers"),
    "uniform": tv.uniform,
}
MAXIMUM = tv.Query.maximum(0, 9)
GEOMETRIC = tv.geometric(tv.Query.count(4), 0.5)
SENSITIVITY = tv.papers.smooth_sensitivity


@pytest.mark.parametrize("entry", MEASURES, ids=lambda entry: f"{entry[0]}-{entry[1]}")
def test_utility_measures(entry):
    epsilon, kind, *measures, realised = entry
    m = BUILD[kind](MAXIMUM, epsilon)
    assert list(m.usability().values()) == pytest.approx(measures, rel=1e-7)
    if realised is not None:
        assert m.realised_epsilon() == pytest.approx(realised, rel=1e-6)


def test_theorem_2_snapping_keeps_row_monotonicity_and_symmetry():
    for m in (tv.laplace(MAXIMUM, 0.5), tv.staircase(MAXIMUM, 0.5)):
        assert m.has("row_monotone")
        assert m.has("symmetric")


def test_normalised_laplace_is_over_private_and_calibration_mends_it():
    q = MAXIMUM
    assert tv.laplace(q, 1.0, "normalize").realised_epsilon() == pytest.approx(0.486, abs=5e-4)
    sharp = tv.laplace(q, 1.0, "calibrate")
    assert sharp.realised_epsilon() == pytest.approx(1.0, rel=1e-9)
    assert sharp.realised_epsilon() <= 1.0
    assert sharp.expected_loss() < tv.laplace(q, 1.0, "normalize").expected_loss()


QUERIES = [tv.Query.count(4), tv.Query.maximum(1, 5), tv.Query.mean(2, 0, 3)]


@pytest.mark.parametrize("query", QUERIES, ids=repr)
@pytest.mark.parametrize("loss", ["absolute", "squared", ("power", 0.5)])
def test_optima_of_increasing_losses_are_minimal(query, loss):
    """Corollary 1, with its missing conditions (errata, Croft 6)."""
    found = tv.design(query, 0.7, loss, prior=np.arange(1, len(query.inputs) + 1) ** 1.0)
    assert tv.papers.is_minimal(found.mechanism, "0.7")


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_what_a_smaller_mechanism_beats_is_not_minimal(query):
    best = tv.papers.variant1(query, 0.7).mechanism
    mixed = tv.Mechanism((best.matrix + tv.uniform(query).matrix) / 2, query, 0.7)
    assert not tv.papers.is_minimal(mixed)
    assert not tv.papers.is_minimal(tv.uniform(query), 0.7)


def test_minimal_at_one_epsilon_and_not_at_a_larger_one():
    assert tv.papers.is_minimal(GEOMETRIC)
    assert not tv.papers.is_minimal(GEOMETRIC, 0.8)


def brute(query, database, beta):
    """S(D) = max over D' of e^(-beta d(D, D')) * local sensitivity of D', over all databases."""
    answer = {"maximum": max, "minimum": min, "median": lambda d: sorted(d)[len(d) // 2]}[
        query.kind
    ]
    values = query.inputs.tolist()
    best = 0.0
    for other in itertools.product(values, repeat=len(database)):
        local = max(
            abs(answer(other) - answer((*other[:at], v, *other[at + 1 :])))
            for at in range(len(other))
            for v in values
        )
        distance = sum(a != b for a, b in zip(database, other, strict=True))
        best = max(best, math.exp(-beta * distance) * local)
    return best


@pytest.mark.parametrize("make", [tv.Query.maximum, tv.Query.minimum, tv.Query.median])
@pytest.mark.parametrize("database", [(0, 1, 4), (2, 2, 2), (4, 4, 4), (0, 0, 3), (1,)])
@pytest.mark.parametrize("beta", [0.05, 0.4, 2.0])
def test_smooth_sensitivity_by_enumeration(make, database, beta):
    q = make(lower=0, upper=4)
    wanted = brute(q, database, beta)
    assert tv.papers.smooth_sensitivity(q, database, beta) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(("beta", "share"), [(0.5, 0.53), (None, 1.0)])
def test_cauchy_noise_is_private_over_all_databases(beta, share):
    q, epsilon = tv.Query.maximum(0, 3), 1.0
    released = {
        d: tv.papers.cauchy(q, epsilon, d, beta=beta) for d in itertools.product(range(4), repeat=3)
    }
    worst = max(
        float(np.log(released[d] / released[(*d[:at], v, *d[at + 1 :])]).max())
        for d in released
        for at in range(3)
        for v in range(4)
    )
    assert worst <= epsilon * share  # errata, Croft 9: the scale 8 S/epsilon is loose
    assert worst > epsilon * share * 0.6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SENSITIVITY(tv.Query.count(4), [1], 0.1), "'query' must"),
        (lambda: SENSITIVITY(MAXIMUM, [1], 0), "'beta' must"),
        (lambda: SENSITIVITY(MAXIMUM, [], 0.1), "'database' must"),
        (lambda: SENSITIVITY(MAXIMUM, [777], 0.1), "'database' must"),
        (lambda: SENSITIVITY(tv.Query.median(0, 4), [1, 2], 0.1), "'database' must"),
        (
            lambda: tv.papers.cauchy(MAXIMUM, 1.0, [1, 2], beta=0.9),
            r"'beta' must be at most 0\.875",
        ),
        (lambda: tv.papers.is_minimal(GEOMETRIC, 0.1), r"'epsilon' must be at least 0\.5"),
        (lambda: tv.papers.is_minimal(tv.uniform(GEOMETRIC.query)), "'epsilon' must be given"),
    ],
)
def test_bad_arguments_are_named_and_a_database_is_not_quoted(call, message):
    with pytest.raises(tv.ArgumentError, match=message) as refused:
        call()
    assert "777" not in str(refused.value)
