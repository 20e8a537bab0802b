"""Values of Croft, Sack and Shi (2020), recomputed independently."""

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


# Section 4.3: query, epsilon, mechanism, equations (23), (24), (25), (26) and real epsilon
# fmt: off
# ruff: noqa: E501  # a table reads best with one entry a line
MEASURES = [
    ("max0..9", 0.05, "snapLap", 4.421858454, 27.765752795, 2.493118778, 8.45463584, 0.049992305),
    ("max0..9", 0.05, "snapStair", 4.421389901, 27.761943025, 2.493056356, 8.45417561, 0.05),
    ("max0..9", 0.05, "normLap", 3.2861212, 16.394043568, 2.497674442, 8.485594488, 0.024305314),
    ("max0..9", 0.05, "normLap_halfbins", 3.154556, 15.07766181, 2.497801533, 8.486538266, 0.023611111),
    ("max0..9", 0.05, "uniform", 3.3, 16.5, 2.5, 8.5, None),
    ("max0..9", 0.1, "snapLap", 4.345724853, 27.054148022, 2.486362278, 8.410196445, 0.099969306),
    ("max0..9", 0.1, "snapStair", 4.343894759, 27.039412317, 2.486117221, 8.408402214, 0.1),
    ("max0..9", 0.1, "normLap", 3.272260312, 16.288386542, 2.495350648, 8.471198137, 0.048610147),
    ("max0..9", 0.1, "normLap_halfbins", 3.142457915, 14.988875364, 2.495604363, 8.47308267, 0.047222222),
    ("max0..9", 0.1, "uniform", 3.3, 16.5, 2.5, 8.5, None),
    ("max0..9", 0.2, "snapLap", 4.199236335, 25.695802224, 2.473213337, 8.324012278, 0.199877899),
    ("max0..9", 0.2, "snapStair", 4.192235789, 25.640544069, 2.472266613, 8.31717735, 0.2),
    ("max0..9", 0.2, "normLap", 3.244595326, 16.077994057, 2.490708966, 8.442437356, 0.097218364),
    ("max0..9", 0.2, "normLap_halfbins", 3.118301753, 14.811974447, 2.491214416, 8.446193431, 0.094444444),
    ("max0..9", 0.2, "uniform", 3.3, 16.5, 2.5, 8.5, None),
    ("max0..9", 0.5, "snapLap", 3.801948086, 22.089341559, 2.436506632, 8.085661181, 0.499249204),
    ("max0..9", 0.5, "snapStair", 3.762776779, 21.798493186, 2.431065921, 8.048001502, 0.5),
    ("max0..9", 0.5, "normLap", 3.162108803, 15.454597531, 2.476842113, 8.356489378, 0.243031443),
    ("max0..9", 0.5, "normLap_halfbins", 3.046193472, 14.286941843, 2.47808866, 8.365764672, 0.236111111),
    ("max0..9", 0.5, "uniform", 3.3, 16.5, 2.5, 8.5, None),
    ("max0..9", 1.0, "snapLap", 3.257335295, 17.357361771, 2.33390694, 7.747617327, 0.997075348),
    ("max0..9", 1.0, "snapStair", 3.12176082, 16.446771326, 2.286739113, 7.592272121, 1.0),
    ("max0..9", 1.0, "normLap", 3.026673735, 14.444096636, 2.453995527, 8.214870744, 0.486014664),
    ("max0..9", 1.0, "normLap_halfbins", 2.927473887, 13.432653036, 2.456417658, 8.232927471, 0.472222222),
    ("max0..9", 1.0, "uniform", 3.3, 16.5, 2.5, 8.5, None),
    ("max0..9", 2.0, "snapLap", 2.481295196, 11.157997718, 2.050420477, 6.438460337, 1.988879628),
    ("max0..9", 2.0, "snapStair", 2.093361011, 9.066959531, 1.815759981, 5.622048997, 2.0),
    ("max0..9", 2.0, "normLap", 2.765826761, 12.546313674, 2.382460373, 7.941305413, 0.971836469),
    ("max0..9", 2.0, "normLap_halfbins", 2.697320384, 11.814256404, 2.391681759, 7.974721474, 0.944444444),
    ("max0..9", 2.0, "uniform", 3.3, 16.5, 2.5, 8.5, None),
]
# fmt: on

BUILD = {
    "snapLap": tv.laplace,
    "snapStair": tv.staircase,
    "normLap": lambda q, e: tv.laplace(q, e, "normalize"),
    "normLap_halfbins": lambda q, e: tv.laplace(q, e, "normalize", truncate="answers"),
    "uniform": tv.uniform,
}
QUERIES = {
    "max0..9": tv.Query.maximum(0, 9),
}


@pytest.mark.parametrize("entry", MEASURES, ids=lambda entry: "-".join(map(str, entry[:3])))
def test_utility_measures(entry):
    query, epsilon, kind, *measures, realised = entry
    m = BUILD[kind](QUERIES[query], epsilon)
    assert list(m.usability().values()) == pytest.approx(measures, rel=1e-7)
    if realised is not None:
        assert m.realised_epsilon() == pytest.approx(realised, rel=1e-6)


def test_theorem_2_snapping_keeps_row_monotonicity_and_symmetry():
    for q in QUERIES.values():
        for m in (tv.laplace(q, 0.5), tv.staircase(q, 0.5)):
            assert m.has("row_monotone")
            assert m.has("symmetric")


def test_normalised_laplace_is_over_private_and_calibration_mends_it():
    q = tv.Query.maximum(0, 9)
    assert tv.laplace(q, 1.0, "normalize").realised_epsilon() == pytest.approx(0.486, abs=5e-4)
    sharp = tv.laplace(q, 1.0, "calibrate")
    assert sharp.realised_epsilon() == pytest.approx(1.0, rel=1e-9)
    assert sharp.realised_epsilon() <= 1.0
    assert sharp.expected_loss() < tv.laplace(q, 1.0, "normalize").expected_loss()
