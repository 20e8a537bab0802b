"""Stand-ins have the shape the papers print; real files are read as they are."""

import gzip

import numpy as np
import pytest

from reproduction.data import (
    load_adult,
    load_bird_flu,
    load_families,
    load_homicides,
    load_schools,
)
from tallyveil.errors import TableError


def test_stand_ins_are_labelled_and_repeatable():
    for make in (load_homicides, load_schools, load_families, load_bird_flu):
        first, second = make(None), make(None)
        assert not first.real
        assert "stand-in" in first.label
        assert np.array_equal(first.values, second.values)
    bits, label, real = load_adult(None)
    assert "stand-in" in label
    assert not real
    assert all(len(column) == 32_561 for column in bits.values())


def test_stand_ins_follow_the_printed_summaries():
    crime = load_homicides(None).values  # Kohli and Laskowski (2026): 3,136 counties, 53 % zeros
    assert len(crime) == 3136
    assert abs((crime == 0).mean() - 0.53) < 0.005
    assert len(load_schools(None).values) == 95_969
    flu = load_bird_flu(None).values  # Figure 1: 50 states, n = 41
    assert (len(flu), flu.max() + 1) == (50, 41)
    sizes = load_families(None).values  # Croft et al. (2020), section 4.3.5: 1 to 7, mean 2.02
    assert (sizes.min(), sizes.max()) == (1, 7)
    assert abs(sizes.mean() - 2.02) < 0.03


def test_real_files_are_read(tmp_path):
    (tmp_path / "homicides_by_county.csv").write_text("county,MURDER\nA,0\nB,12\n")
    sample = load_homicides(tmp_path)
    assert sample.real
    assert sample.values.tolist() == [0, 12]
    (tmp_path / "family_size_acs2019.csv").write_text("NPF\nN\n3\n9\n")
    assert load_families(tmp_path).values.tolist() == [1, 3, 7]
    (tmp_path / "bird_flu_by_state.csv").write_text("State,Bird_Flu_Cases\nA,0\nB,38\n")
    assert load_bird_flu(tmp_path).values.tolist() == [0, 38]
    assert not load_schools(tmp_path).real  # the folder has no such file


@pytest.mark.parametrize("name", ["adult.data", "adult.data.gz"])
def test_adult_is_read_plain_or_compressed(tmp_path, name):
    line = "25, Private, 1, HS, 9, Married-civ-spouse, X, Y, White, Male, 0, 0, 40, United-States, "
    text = (line + "<=50K\n" + line + ">50K\n\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    bits, label, real = load_adult(tmp_path)
    assert real
    assert "2 rows" in label
    assert bits["income"].tolist() == [0, 1]
    assert bits["young"].tolist() == [1, 1]


def test_a_wrong_file_is_refused_without_showing_what_is_in_it(tmp_path):
    wrong = tmp_path / "homicides_by_county.csv"
    wrong.write_text("MURDER\nsecret\n")
    with pytest.raises(TableError, match="whole numbers") as caught:
        load_homicides(tmp_path)
    assert "secret" not in str(caught.value)
    wrong.write_text("deaths\n1\n")
    with pytest.raises(TableError, match="column MURDER"):
        load_homicides(tmp_path)
