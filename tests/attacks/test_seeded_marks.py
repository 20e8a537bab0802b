"""Nothing that was drawn from a test seed can be taken for private."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.certified.transport import implicit_transport
from tallyveil.check.package import check_package
from tallyveil.errors import TallyveilError
from tallyveil.papers.kohli.pipeline import privatize_counts
from tallyveil.papers.kohli.privatizers import PRIVATIZERS, privatize_distribution
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.noise import discrete_gaussian_noise, geometric_noise
from tests.asking import privatize

QUERY = tv.Query.count(9)
COUNTS = [0, 3, 9, 1] * 25

DRAWS = {
    "geometric noise": lambda e: geometric_noise(5, 1, e),
    "gaussian noise": lambda e: discrete_gaussian_noise(5, 1, e),
    "certified matrix": lambda e: tv.certify(tv.fair(QUERY, 1)).release(COUNTS, e),
    "certified geometric": lambda e: tv.certify_geometric(QUERY, 1).release(COUNTS, e),
    "one number": lambda e: tv.certify_geometric(QUERY, 1).release(3, e),
    "certified noise": lambda e: tv.certify_noise(1).release([3, 4], e),
    "one noisy number": lambda e: tv.certify_noise(1).release(3, e),
    "ladder": lambda e: tv.Ladder(QUERY, [2, 1]).release(COUNTS, e),
    "ladder of one number": lambda e: tv.Ladder(QUERY, [2, 1]).release(3, e),
    "transport": lambda e: implicit_transport(9, 1, [0.1] * 10).release(COUNTS, e),
    "an array released": lambda e: privatize(np.array(COUNTS), upper=9, epsilon=1, entropy=e).table,
    "a list released": lambda e: privatize(COUNTS, upper=9, epsilon=1, entropy=e).table,
    "a release": lambda e: privatize(COUNTS, upper=9, epsilon=1, entropy=e),
    "the paper's counts": lambda e: privatize_counts(COUNTS, 9, 2, entropy=e).counts,
    **{
        f"the paper's {name}": lambda e, name=name: (
            privatize_distribution(
                COUNTS, 9, 2, name, entropy=e, delta="1e-6" if "gauss" in name else 0
            ).draws
        )
        for name in PRIVATIZERS
    },
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_every_draw_says_so_when_printed_copied_or_pickled(draw):
    seeded = draw(tv.SeededNotPrivate(5))
    for shown in (seeded, copy.deepcopy(seeded), pickle.loads(pickle.dumps(seeded))):
        assert "NOT PRIVATE" in repr(shown)
    assert "NOT PRIVATE" not in repr(draw(None))
    assert "NOT PRIVATE" not in repr(draw(Entropy()))


def test_the_mark_stays_in_parts_and_sums_and_changes_no_number():
    drawn = tv.certify_geometric(QUERY, 1).release(np.array(COUNTS), tv.SeededNotPrivate(5))
    for part in (drawn[2:], drawn + 1, drawn.copy(), drawn / 2):
        assert "NOT PRIVATE" in repr(part)
        assert "NOT PRIVATE" in str(part)
    assert type(drawn.sum()) is np.int64
    assert type(drawn[0]) is np.int64
    assert drawn.dtype == np.int64
    assert json.dumps(drawn.tolist()) == json.dumps(np.asarray(drawn).tolist())
    one = tv.certify_geometric(QUERY, 1).release(3, tv.SeededNotPrivate(5))
    assert json.loads(json.dumps(one)) == one
    assert f"{one}" != str(int(one))


def test_tables_say_so_where_their_kind_can():
    columns = {"county": [f"c{i}" for i in range(100)], "cases": COUNTS}
    for table in (pd.DataFrame(columns), pa.table(columns), pl.DataFrame(columns)):
        release = privatize(
            table, "cases", upper=9, epsilon=1, keep="all", entropy=tv.SeededNotPrivate(5)
        )
        released = release.table
        if isinstance(released, pd.DataFrame):
            assert "NOT PRIVATE" in str(released.attrs)
            assert "NOT PRIVATE" in str(released.head(3).attrs)
        elif isinstance(released, pa.Table):
            assert "NOT PRIVATE" in str(released.schema.metadata)
            assert "NOT PRIVATE" in str(released.slice(0, 3).schema.metadata)
        assert "NOT PRIVATE" in repr(release)
        assert "NOT PRIVATE" in release._repr_html_()
        assert "NOT PRIVATE" in repr(pickle.loads(pickle.dumps(release)))


def test_a_folder_says_so_in_every_document_and_does_not_check(tmp_path):
    privatize(COUNTS, upper=9, epsilon=1, entropy=tv.SeededNotPrivate(5), out=tmp_path / "seeded")
    for name in ("receipt.json", "datapackage.json", "METHODOLOGY.html"):
        assert "NOT PRIVATE" in (tmp_path / "seeded" / name).read_text()
    receipt = json.loads((tmp_path / "seeded" / "receipt.json").read_text())
    assert receipt["private"] is False
    assert receipt["statement"]["promise"].startswith("NOT PRIVATE")
    assert receipt["statement"]["implementation"]["randomness"] == "a test seed"
    assert not all(finding.ok for finding in check_package(tmp_path / "seeded"))
    privatize(COUNTS, upper=9, epsilon=1, out=tmp_path / "private")
    for path in (tmp_path / "private").iterdir():
        assert "NOT PRIVATE" not in path.read_text()
    assert all(finding.ok for finding in check_package(tmp_path / "private"))


def test_nobody_can_declare_a_seed_private():
    seeded = tv.SeededNotPrivate(5)
    with pytest.raises(AttributeError):
        seeded.private = True
    with pytest.raises(TypeError):
        pickle.dumps(tv.Entropy())

    class Mine(tv.Entropy):
        def octets(self, count):
            return np.random.default_rng(1).integers(0, 256, count).astype(np.uint8)

    assert not Mine().private
    assert "NOT PRIVATE" in repr(privatize(COUNTS, upper=9, epsilon=1, entropy=Mine()))


def test_a_cipher_that_writes_too_little_is_noticed(monkeypatch):
    class Short:
        def update_into(self, data, room):
            return len(data) - 1

    source = tv.Entropy()
    monkeypatch.setattr(source, "_cipher", Short)
    for use in (
        lambda: source.octets(10),
        lambda: source.words(1),
        lambda: tv.certify_geometric(QUERY, 1).draw_positions(np.array([3]), source),
    ):
        with pytest.raises(TallyveilError, match="fewer bytes"):
            use()
